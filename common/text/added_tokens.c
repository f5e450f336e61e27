#include "common/text/added_tokens.h"

#include "common/base/try.h"
#include <utf8proc.h>

struct added_node {
    int32_t child, sibling; /* index of a node, 0 for none (the root is no node's child) */
    int32_t token;          /* that ends here, or -1 */
    uint8_t byte, flags;
};

static const struct added_node *nodes_of(const struct added_tokens *added)
{
    return (const struct added_node *)(const void *)added->nodes.data;
}

static int32_t child_of(const struct added_tokens *added, int32_t node, char byte)
{
    const struct added_node *nodes = nodes_of(added);

    for (node = nodes[node].child; node != 0 && nodes[node].byte != (uint8_t)byte;)
        node = nodes[node].sibling;
    return node;
}

static enum status add_child(struct added_tokens *added, int32_t parent, char byte, int32_t *child)
{
    struct added_node node = {.token = -1, .byte = (uint8_t)byte};
    struct added_node *nodes;

    if (added->nodes.count > 0)
        node.sibling = nodes_of(added)[parent].child;
    *child = (int32_t)(added->nodes.count / sizeof node);
    TRY(byte_buffer_append(&added->nodes, &node, sizeof node));
    nodes = (struct added_node *)(void *)added->nodes.data;
    nodes[parent].child = *child; /* the root itself: child 0 is none */
    return STATUS_OK;
}

enum status added_tokens_put(struct added_tokens *added, const char *text, size_t length, int32_t token, unsigned flags)
{
    int32_t node = 0;
    struct added_node *last;

    if (added->nodes.count == 0)
        TRY(add_child(added, 0, 0, &node));
    for (size_t i = 0; i < length; i++) {
        int32_t child = child_of(added, node, text[i]);

        if (child == 0)
            TRY(add_child(added, node, text[i], &child));
        node = child;
    }
    last = (struct added_node *)(void *)added->nodes.data + node;
    last->token = token;
    last->flags = (uint8_t)flags;
    return STATUS_OK;
}

/* Length of the longest token at the front of text[0 .. length), 0 for none. */
static size_t longest_at(const struct added_tokens *added, const char *text, size_t length, const struct added_node **found)
{
    size_t longest = 0;
    int32_t node = 0;

    for (size_t i = 0; i < length && (node = child_of(added, node, text[i])) != 0; i++) {
        if (nodes_of(added)[node].token >= 0) {
            *found = &nodes_of(added)[node];
            longest = i + 1;
        }
    }
    return longest;
}

/* The character that starts at `at`, or that ends there; its length, 0 at the end of the text. */
static size_t character_from(const char *text, size_t length, size_t at, utf8proc_int32_t *code)
{
    if (at >= length)
        return 0;
    return (size_t)utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(length - at), code);
}

static size_t character_before(const char *text, size_t at, utf8proc_int32_t *code)
{
    size_t size = 0;

    if (at == 0)
        return 0;
    do
        size++;
    while (size < at && ((unsigned char)text[at - size] & 0xC0) == 0x80);
    return character_from(text, at, at - size, code);
}

static int is_space(utf8proc_int32_t code)
{
    return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

static int is_word(utf8proc_int32_t code)
{
    utf8proc_category_t category = utf8proc_category(code);

    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) || category == UTF8PROC_CATEGORY_PC;
}

static int stands_alone(const char *text, size_t length, size_t start, size_t stop)
{
    utf8proc_int32_t code;

    if (character_before(text, start, &code) > 0 && is_word(code))
        return 0;
    return !(character_from(text, length, stop, &code) > 0 && is_word(code));
}

static void take_space(const char *text, size_t length, size_t from, unsigned flags, struct added_match *match)
{
    utf8proc_int32_t code;
    size_t size;

    while ((flags & ADDED_LSTRIP) && match->start > from && (size = character_before(text, match->start, &code)) > 0 && is_space(code))
        match->start -= size;
    while ((flags & ADDED_RSTRIP) && (size = character_from(text, length, match->stop, &code)) > 0 && is_space(code))
        match->stop += size;
}

int added_tokens_find(const struct added_tokens *added, const char *text, size_t length, size_t from, added_tokens_may *may, void *context,
                      struct added_match *match)
{
    const struct added_node *found = NULL;

    if (added->nodes.count == 0)
        return 0;
    for (size_t at = from, size; at < length; at += size) {
        int answer;

        size = longest_at(added, text + at, length - at, &found);
        answer = size > 0 ? may(context, at, at + size, found->token, found->flags) : -1;
        if (answer < 0) {
            size = 1;
            continue;
        }
        if (!answer ||
            ((found->flags & ADDED_SINGLE_WORD) && !stands_alone(text, length, at, at + size)))
            continue; /* the whole of it is plain text: nothing inside it is looked for */
        *match = (struct added_match){.start = at, .stop = at + size, .token = found->token};
        take_space(text, length, from, found->flags, match);
        return 1;
    }
    return 0;
}

void added_tokens_release(struct added_tokens *added)
{
    byte_buffer_release(&added->nodes);
}
