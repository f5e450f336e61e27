/* Messages to a prompt with marks, and a prompt to tokens. */
#include "common/base/try.h"
#include "common/text/chat_form.h"
#include "common/text/chat_thought.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char dates[] = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";
static const char *const role_name[CHAT_ROLES] = {"system", "user", "assistant"};

/* One prompt in the making. */
struct rendering {
    const struct chat_template *template;
    const struct chat_form *form;
    const struct chat_message *system; /* what goes into a user's turn; NULL: nothing, or it went */
    const struct chat_message *question; /* thoughts of assistants behind it are kept; NULL: none are */
    struct chat_prompt *prompt;
};

static enum status put(struct rendering *rendering, const char *text, size_t length)
{
    return length == 0 ? STATUS_OK : byte_buffer_append(&rendering->prompt->text, text, length);
}

static enum status put_mark_from(struct rendering *rendering, size_t start)
{
    struct tokenizer_mark mark = {.start = start, .stop = rendering->prompt->text.count};

    return mark.start == mark.stop ? STATUS_OK : byte_buffer_append(&rendering->prompt->marks, &mark, sizeof mark);
}

static enum status put_token(struct rendering *rendering, const char *token)
{
    size_t start = rendering->prompt->text.count;

    TRY(put(rendering, token, strlen(token)));
    return put_mark_from(rendering, start);
}

static enum status put_pattern(struct rendering *rendering, const char *pattern, enum chat_role role)
{
    const struct chat_template *template = rendering->template;
    const char *name = role == CHAT_ASSISTANT && rendering->form->assistant != NULL ? rendering->form->assistant : role_name[role];
    size_t start = 0;
    int inside = 0;

    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '`') {
            if (inside)
                TRY(put_mark_from(rendering, start));
            inside = !inside;
            start = rendering->prompt->text.count;
        } else if (*pattern == '^') {
            TRY(put_token(rendering, template->bos));
        } else if (*pattern == '~') {
            TRY(put_token(rendering, template->eos));
        } else if (*pattern == '$') {
            TRY(put(rendering, name, strlen(name)));
        } else {
            TRY(put(rendering, pattern, 1));
        }
    }
    return STATUS_OK;
}

/* The length of the white space at the front of text[0 .. length), or of the last character's at its end: what Python's strip() takes. */
static size_t space_at(const char *text, size_t length)
{
    static const char *const wide[] = {"\xc2\x85", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
                                       "\u2007", "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};

    if (length > 0 && (*text == ' ' || (*text >= 9 && *text <= 13) || (*text >= 28 && *text <= 31)))
        return 1;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (length >= strlen(wide[i]) && memcmp(text, wide[i], strlen(wide[i])) == 0)
            return strlen(wide[i]);
    return 0;
}

static void trim_front(const char **text, size_t *length)
{
    for (size_t size; (size = space_at(*text, *length)) > 0; *length -= size)
        *text += size;
}

static void trim_back(const char *text, size_t *length)
{
    for (size_t size = 1; size <= 3 && size <= *length; size++)
        if (space_at(text + *length - size, size) == size) {
            *length -= size;
            size = 0;
        }
}

/* What was thought before an answer, where it is still of use; the answer alone is left. */
static enum status put_thought(struct rendering *rendering, const struct chat_message *message, const char **content, size_t *length)
{
    static const char begin[] = "<think>\n", end[] = "\n</think>\n\n";
    const char *thought;
    size_t size = chat_thought_take(content, length, &thought);

    if (rendering->question == NULL || message < rendering->question || size == 0)
        return STATUS_OK;
    TRY(put(rendering, begin, sizeof begin - 1));
    TRY(put(rendering, thought, size));
    return put(rendering, end, sizeof end - 1);
}

static int trims(const struct chat_form *form, enum chat_role role)
{
    return (form->flags & CHAT_FORM_TRIMS) || ((form->flags & CHAT_FORM_TRIMS_ANSWERS) && role == CHAT_ASSISTANT);
}

/* A turn's own text, with the system message if it goes here. */
static enum status put_content(struct rendering *rendering, const struct chat_message *message, int with_system)
{
    const struct chat_form *form = rendering->form;
    int whole = (form->flags & CHAT_FORM_TRIMS_TURNS) != 0;
    size_t length = message->length, start = rendering->prompt->text.count;
    const char *content = message->content;

    if (with_system) {
        TRY(put_pattern(rendering, form->system_head, CHAT_SYSTEM));
        TRY(put(rendering, rendering->system->content, rendering->system->length));
        TRY(put_pattern(rendering, form->system_tail, CHAT_SYSTEM));
    }
    if (rendering->template->drops_thoughts && message->role == CHAT_ASSISTANT)
        TRY(put_thought(rendering, message, &content, &length));
    if (trims(form, message->role) || (whole && !with_system))
        trim_front(&content, &length);
    if (trims(form, message->role))
        trim_back(content, &length);
    TRY(put(rendering, content, length));
    if (whole) {
        length = rendering->prompt->text.count - start;
        trim_back(rendering->prompt->text.data + start, &length);
        rendering->prompt->text.count = start + length;
    }
    return STATUS_OK;
}

static enum status put_turn(struct rendering *rendering, const struct chat_message *message, int is_last)
{
    const struct chat_form *form = rendering->form;
    int may_wait = (form->flags & CHAT_FORM_SYSTEM_LAST) && !rendering->template->system_first;
    int here = message->role == CHAT_USER && rendering->system != NULL && (is_last || !may_wait);

    if (rendering->template->drops_empty_system && message->role == CHAT_SYSTEM && message->length == 0)
        return STATUS_OK;
    TRY(put_pattern(rendering, form->head[message->role], message->role));
    TRY(put_content(rendering, message, here));
    if (here)
        rendering->system = NULL;
    return put_pattern(rendering, form->tail[message->role], message->role);
}

/* The system turn of the forms that have one whether it was asked for or not. */
static enum status put_own_system(struct rendering *rendering, const struct chat_message *given)
{
    const struct chat_template *template = rendering->template;
    const struct chat_message none = {.role = CHAT_SYSTEM, .content = "", .length = 0};
    const struct chat_message own = {
        .role = CHAT_SYSTEM, .content = template->system, .length = template->system != NULL ? strlen(template->system) : 0};

    if (!(rendering->form->flags & CHAT_FORM_DATES))
        return given == NULL && own.content != NULL ? put_turn(rendering, &own, 0) : STATUS_OK;
    TRY(put_pattern(rendering, rendering->form->head[CHAT_SYSTEM], CHAT_SYSTEM));
    TRY(put(rendering, dates, sizeof dates - 1));
    TRY(put_content(rendering, given != NULL ? given : &none, 0));
    return put_pattern(rendering, rendering->form->tail[CHAT_SYSTEM], CHAT_SYSTEM);
}

static enum status refuse(char *reason, size_t size, const struct chat_form *form, const char *words)
{
    snprintf(reason, size, "%s (chat template %s)", words, form->name);
    return STATUS_DATA;
}

static enum status check_turns(const struct chat_form *form, const struct chat_message *messages, size_t count, size_t first, char *reason,
                               size_t size)
{
    char words[96];

    if (count == first)
        return refuse(reason, size, form, "messages has a system message alone, expected one of the user");
    for (size_t i = first; i < count; i++) {
        enum chat_role expected = (i - first) % 2 == 0 ? CHAT_USER : CHAT_ASSISTANT;

        if (messages[i].role == expected)
            continue;
        snprintf(words, sizeof words, "messages[%zu] is of the role %s where user and assistant take turns, expected %s", i,
                 role_name[messages[i].role], role_name[expected]);
        return refuse(reason, size, form, words);
    }
    return STATUS_OK;
}

static enum status check(const struct chat_template *template, const struct chat_message *messages, size_t count, char *reason, size_t size)
{
    const struct chat_form *form = &chat_form_table[template->family];
    size_t first = count > 0 && messages[0].role == CHAT_SYSTEM;

    if (template->family == CHAT_AUTO) {
        snprintf(reason, size, "%s", template->fault);
        return STATUS_DATA;
    }
    if (count == 0) {
        snprintf(reason, size, "messages is empty, expected at least one");
        return STATUS_DATA;
    }
    if (first && (template->only_turns || ((form->flags & CHAT_FORM_NO_SYSTEM) && !template->takes_system)))
        return refuse(reason, size, form, "messages[0] is of the role system, for which there is no place");
    if ((form->flags & CHAT_FORM_ALTERNATES) || template->only_turns)
        TRY(check_turns(form, messages, count, first, reason, size));
    if (messages[count - 1].role == CHAT_ASSISTANT && (template->drops_thoughts || template->only_turns || *form->answer == '\0'))
        return refuse(reason, size, form, "messages ends with the role assistant, expected the user, who is to be answered");
    return STATUS_OK;
}

enum status chat_template_render(const struct chat_template *template, const struct chat_message *messages, size_t count,
                                 struct chat_prompt *prompt, char *reason, size_t size)
{
    struct rendering rendering = {.template = template, .form = &chat_form_table[template->family], .prompt = prompt};
    const struct chat_message *given;
    size_t first;

    TRY(check(template, messages, count, reason, size));
    if (template->keeps_last_thoughts)
        rendering.question = chat_thought_question(messages, count);
    given = messages[0].role == CHAT_SYSTEM ? messages : NULL;
    if (rendering.form->head[CHAT_SYSTEM] == NULL)
        rendering.system = given;
    first = given != NULL && (rendering.system != NULL || (rendering.form->flags & CHAT_FORM_DATES));
    if (template->starts_with_bos)
        TRY(put_token(&rendering, template->bos));
    TRY(put_pattern(&rendering, rendering.form->start, CHAT_SYSTEM));
    if (rendering.form->head[CHAT_SYSTEM] != NULL)
        TRY(put_own_system(&rendering, given));
    for (size_t i = first; i < count; i++)
        TRY(put_turn(&rendering, &messages[i], i == count - 1));
    TRY(put_pattern(&rendering, rendering.form->answer, CHAT_ASSISTANT));
    return template->begins_thought ? put(&rendering, "<think>\n", strlen("<think>\n")) : STATUS_OK;
}

void chat_template_discard(struct chat_prompt *prompt)
{
    byte_buffer_release(&prompt->text);
    byte_buffer_release(&prompt->marks);
}

const char *chat_template_end(const struct chat_template *template)
{
    const char *end = chat_form_table[template->family].end;

    return end != NULL ? end : template->eos;
}

/* The one token that a spelling is, or -1. */
static enum status token_of(const struct tokenizer *tokenizer, const char *spelling, size_t length, int32_t *token)
{
    int32_t *tokens;
    int count;
    enum status status = tokenizer_encode(tokenizer, spelling, length, TOKENIZER_PARSE_SPECIAL, &tokens, &count, NULL);

    *token = -1;
    if (status != STATUS_OK)
        return status == STATUS_DATA ? STATUS_OK : status;
    if (count == 1 && length > 1)
        *token = tokens[0];
    free(tokens);
    return STATUS_OK;
}

enum status chat_template_end_token(const struct chat_template *template, const struct tokenizer *tokenizer, int32_t *token)
{
    const char *end = chat_template_end(template);

    return token_of(tokenizer, end, strlen(end), token);
}

enum { RESERVED = 32 };

/* What no message may become: all marks of the form, whether these messages have them or not. */
static enum status reserve(const struct chat_template *template, const struct tokenizer *tokenizer, int32_t reserved[RESERVED], size_t *count)
{
    struct chat_prompt every = {0};
    struct rendering rendering = {.template = template, .form = &chat_form_table[template->family], .prompt = &every};
    const struct tokenizer_mark *mark;
    enum status status = STATUS_OK;

    *count = 0;
    TRY_TO(put_pattern(&rendering, "^~", CHAT_SYSTEM), discard);
    for (int role = 0; role < CHAT_ROLES; role++) {
        if (rendering.form->head[role] == NULL)
            continue;
        TRY_TO(put_pattern(&rendering, rendering.form->head[role], (enum chat_role)role), discard);
        TRY_TO(put_pattern(&rendering, rendering.form->tail[role], (enum chat_role)role), discard);
    }
    mark = (const struct tokenizer_mark *)(const void *)every.marks.data;
    for (size_t i = 0; i < every.marks.count / sizeof *mark && *count < RESERVED; i++) {
        TRY_TO(token_of(tokenizer, every.text.data + mark[i].start, mark[i].stop - mark[i].start, &reserved[*count]), discard);
        *count += reserved[*count] >= 0;
    }
discard:
    chat_template_discard(&every);
    return status;
}

enum status chat_template_encode(const struct chat_template *template, const struct tokenizer *tokenizer, const struct chat_prompt *prompt,
                                 int32_t **tokens, int *count, size_t *bad_offset)
{
    int32_t reserved[RESERVED];
    struct tokenizer_marks marks = {.mark = (const struct tokenizer_mark *)(const void *)prompt->marks.data,
                                    .count = prompt->marks.count / sizeof *marks.mark,
                                    .reserved = reserved};

    TRY(reserve(template, tokenizer, reserved, &marks.reserved_count));
    return tokenizer_encode_marked(tokenizer, prompt->text.data, prompt->text.count, &marks, tokens, count, bad_offset);
}
