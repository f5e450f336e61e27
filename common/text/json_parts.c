#include "common/text/json_parts.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <ctype.h>
#include <string.h>

/* A Sequence may hold others; no tokenizer nests them deeper. */
enum { NESTING = 4 };

/* GPT-2's pattern (Radford et al. 2019, encoder.py), which ByteLevel's use_regex means. */
static const char gpt2_pattern[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
static const char metaspace[] = "\xE2\x96\x81"; /* U+2581 */

enum status json_parts_refuse(const char *name, const char *part, const json_t *type)
{
    const char *text = json_string_value(type);
    char shown[48] = "(none)"; /* a name of a type is letters; anything else must not reach the log */

    for (size_t i = 0; text != NULL && i + 1 < sizeof shown; i++) {
        shown[i] = isalnum((unsigned char)text[i]) || text[i] == '\0' ? text[i] : '?';
        shown[i + 1] = '\0';
        if (text[i] == '\0')
            break;
    }
    log_error("%s: %s of type %s is not supported", name, part, shown);
    return STATUS_DATA;
}

int json_parts_flag(const json_t *node, const char *member, int otherwise)
{
    const json_t *flag = json_object_get(node, member);

    return json_is_boolean(flag) ? json_is_true(flag) : otherwise;
}

int json_parts_is(const json_t *node, const char *type)
{
    const char *is = json_string_value(json_object_get(node, "type"));

    return is != NULL && strcmp(is, type) == 0;
}

static enum status wrong_options(const char *name, const char *part)
{
    log_error("%s: %s has options that are missing, too long or not supported", name, part);
    return STATUS_DATA;
}

/* Calls `read` for each element of a Sequence's list. */
typedef enum status read_part(const char *name, const json_t *node, int depth, void *into);

static enum status read_list(const char *name, const json_t *list, const char *part, int depth, read_part *read, void *into)
{
    size_t index;
    json_t *element;

    if (!json_is_array(list) || depth >= NESTING)
        return wrong_options(name, part);
    json_array_foreach(list, index, element)
    {
        TRY(read(name, element, depth + 1, into));
    }
    return STATUS_OK;
}

static enum status add_replace(const char *name, const json_t *node, const char *part, struct normalizer *normalizer)
{
    const json_t *from = json_object_get(json_object_get(node, "pattern"), "String"), *to = json_object_get(node, "content");

    if (!json_is_string(from) || !json_is_string(to) || json_string_length(from) == 0 ||
        normalizer_add(normalizer, NORMALIZER_REPLACE, json_string_value(from), json_string_length(from), json_string_value(to),
                       json_string_length(to)) != STATUS_OK)
        return wrong_options(name, part);
    return STATUS_OK;
}

static enum status read_normalizer(const char *name, const json_t *node, int depth, void *into)
{
    struct normalizer *normalizer = into;
    const json_t *prefix = json_object_get(node, "prepend");
    enum status status;

    if (json_parts_is(node, "Sequence"))
        return read_list(name, json_object_get(node, "normalizers"), "normalizer Sequence", depth, read_normalizer, into);
    if (json_parts_is(node, "Replace"))
        return add_replace(name, node, "normalizer Replace", normalizer);
    if (json_parts_is(node, "NFC"))
        status = normalizer_add(normalizer, NORMALIZER_NFC, "", 0, "", 0);
    else if (json_parts_is(node, "Prepend") && json_is_string(prefix))
        status = normalizer_add(normalizer, NORMALIZER_PREPEND, "", 0, json_string_value(prefix), json_string_length(prefix));
    else
        return json_parts_refuse(name, "normalizer", json_object_get(node, "type"));
    return status == STATUS_OK ? STATUS_OK : wrong_options(name, "normalizer");
}

enum status json_parts_normalizer(const char *name, const json_t *node, struct normalizer *normalizer)
{
    return node == NULL || json_is_null(node) ? STATUS_OK : read_normalizer(name, node, 0, normalizer);
}

struct pretokenizer_target {
    struct pretokenizer *pretokenizer;
    int byte_level;
};

static enum status add_pattern(const char *name, struct pretokenizer_target *target, const char *pattern)
{
    return pretokenizer_add_pattern(target->pretokenizer, name, pattern, strlen(pattern), 0);
}

static enum status add_split(const char *name, const json_t *node, struct pretokenizer_target *target)
{
    const json_t *pattern = json_object_get(node, "pattern"), *regex = json_object_get(pattern, "Regex");
    const json_t *text = regex != NULL ? regex : json_object_get(pattern, "String");
    const char *behavior = json_string_value(json_object_get(node, "behavior"));

    if (behavior == NULL || strcmp(behavior, "Isolated") != 0) {
        log_error("%s: pre_tokenizer Split with another behavior than Isolated is not supported", name);
        return STATUS_DATA;
    }
    if (!json_is_string(text))
        return wrong_options(name, "pre_tokenizer Split");
    return pretokenizer_add_pattern(target->pretokenizer, name, json_string_value(text), json_string_length(text), regex == NULL);
}

static enum status add_byte_level(const char *name, const json_t *node, struct pretokenizer_target *target)
{
    target->byte_level = 1;
    if (json_parts_flag(node, "add_prefix_space", 1))
        TRY(pretokenizer_add_rewrite(target->pretokenizer, name, " ", 1, PREPEND_ALWAYS));
    return json_parts_flag(node, "use_regex", 1) ? add_pattern(name, target, gpt2_pattern) : STATUS_OK;
}

/* Older files say add_prefix_space instead of prepend_scheme. */
static enum pretokenizer_prepend prepend_of(const json_t *node)
{
    const char *scheme = json_string_value(json_object_get(node, "prepend_scheme"));

    if (scheme == NULL)
        return json_parts_flag(node, "add_prefix_space", 1) ? PREPEND_ALWAYS : PREPEND_NEVER;
    return strcmp(scheme, "never") == 0 ? PREPEND_NEVER : strcmp(scheme, "first") == 0 ? PREPEND_FIRST : PREPEND_ALWAYS;
}

static int has_metaspace(const json_t *node)
{
    const char *mark = json_string_value(json_object_get(node, "replacement"));

    return mark != NULL && strcmp(mark, metaspace) == 0;
}

static enum status add_metaspace(const char *name, const json_t *node, struct pretokenizer_target *target)
{
    if (!has_metaspace(node))
        return wrong_options(name, "pre_tokenizer Metaspace");
    TRY(pretokenizer_add_rewrite(target->pretokenizer, name, metaspace, strlen(metaspace), prepend_of(node)));
    return json_parts_flag(node, "split", 1) ? add_pattern(name, target, "\xE2\x96\x81[^\xE2\x96\x81]*") : STATUS_OK;
}

static enum status read_pretokenizer(const char *name, const json_t *node, int depth, void *into)
{
    struct pretokenizer_target *target = into;

    if (target->byte_level) {
        log_error("%s: a pre_tokenizer behind ByteLevel is not supported", name);
        return STATUS_DATA;
    }
    if (json_parts_is(node, "Sequence"))
        return read_list(name, json_object_get(node, "pretokenizers"), "pre_tokenizer Sequence", depth, read_pretokenizer, into);
    if (json_parts_is(node, "Split"))
        return add_split(name, node, target);
    if (json_parts_is(node, "ByteLevel"))
        return add_byte_level(name, node, target);
    if (json_parts_is(node, "Digits"))
        return add_pattern(name, target, json_parts_flag(node, "individual_digits", 0) ? "\\p{N}" : "\\p{N}+");
    if (json_parts_is(node, "Metaspace"))
        return add_metaspace(name, node, target);
    return json_parts_refuse(name, "pre_tokenizer", json_object_get(node, "type"));
}

enum status json_parts_pretokenizer(const char *name, const json_t *node, struct pretokenizer *pretokenizer, int *byte_level)
{
    struct pretokenizer_target target = {.pretokenizer = pretokenizer};

    if (node != NULL && !json_is_null(node))
        TRY(read_pretokenizer(name, node, 0, &target));
    *byte_level = target.byte_level;
    return STATUS_OK;
}

static enum status add_strip(const char *name, const json_t *node, struct json_decoder *decoder)
{
    const char *content = json_string_value(json_object_get(node, "content"));
    json_int_t start = json_integer_value(json_object_get(node, "start")), stop = json_integer_value(json_object_get(node, "stop"));

    if (content == NULL || strcmp(content, " ") != 0 || start < 0 || start > 1 || stop != 0)
        return wrong_options(name, "decoder Strip");
    decoder->drops_first_space = start == 1;
    return STATUS_OK;
}

static enum status read_decoder(const char *name, const json_t *node, int depth, void *into)
{
    struct json_decoder *decoder = into;

    if (json_parts_is(node, "Sequence"))
        return read_list(name, json_object_get(node, "decoders"), "decoder Sequence", depth, read_decoder, into);
    if (json_parts_is(node, "Replace"))
        return add_replace(name, node, "decoder Replace", &decoder->replace);
    if (json_parts_is(node, "Strip"))
        return add_strip(name, node, decoder);
    if (json_parts_is(node, "Fuse")) /* the pieces of a text are always joined here */
        return STATUS_OK;
    if (json_parts_is(node, "ByteLevel"))
        decoder->byte_level = 1;
    else if (json_parts_is(node, "ByteFallback"))
        decoder->byte_fallback = 1;
    else if (json_parts_is(node, "Metaspace") && has_metaspace(node)) {
        decoder->drops_first_space = prepend_of(node) != PREPEND_NEVER;
        if (normalizer_add(&decoder->replace, NORMALIZER_REPLACE, metaspace, strlen(metaspace), " ", 1) != STATUS_OK)
            return wrong_options(name, "decoder Metaspace");
    } else
        return json_parts_refuse(name, "decoder", json_object_get(node, "type"));
    return STATUS_OK;
}

enum status json_parts_decoder(const char *name, const json_t *node, struct json_decoder *decoder)
{
    return node == NULL || json_is_null(node) ? STATUS_OK : read_decoder(name, node, 0, decoder);
}

static enum status add_special(const char *name, const json_t *node, const json_t *known, const struct piece_table *pieces,
                               struct tokenizer_template *template)
{
    const char *id = json_string_value(json_object_get(node, "id"));
    const json_t *ids = id == NULL ? NULL : json_object_get(json_object_get(known, id), "ids");

    if (!json_is_array(ids))
        return wrong_options(name, "post_processor TemplateProcessing");
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *token = json_array_get(ids, i);
        json_int_t value = json_integer_value(token);

        if (!json_is_integer(token) || value < 0 || value >= pieces->size || pieces->pieces[value].flags == 0 ||
            template->count == TOKENIZER_TEMPLATE)
            return wrong_options(name, "post_processor TemplateProcessing");
        template->tokens[template->count++] = (int32_t)value;
    }
    return STATUS_OK;
}

/* What stands in front of the sequence A, and behind it. */
static enum status add_template(const char *name, const json_t *node, struct tokenizer *tokenizer)
{
    const json_t *known = json_object_get(node, "special_tokens"), *single = json_object_get(node, "single");
    struct tokenizer_template *side = &tokenizer->before;
    size_t index;
    json_t *element;

    json_array_foreach(single, index, element)
    {
        const json_t *special = json_object_get(element, "SpecialToken");

        if (special != NULL)
            TRY(add_special(name, special, known, &tokenizer->bpe.pieces, side));
        else if (json_object_get(element, "Sequence") != NULL && side == &tokenizer->before)
            side = &tokenizer->after;
        else
            return wrong_options(name, "post_processor TemplateProcessing");
    }
    return side == &tokenizer->after ? STATUS_OK : wrong_options(name, "post_processor TemplateProcessing");
}

static enum status read_template(const char *name, const json_t *node, int depth, void *into)
{
    struct tokenizer *tokenizer = into;

    if (json_parts_is(node, "Sequence"))
        return read_list(name, json_object_get(node, "processors"), "post_processor Sequence", depth, read_template, into);
    if (json_parts_is(node, "ByteLevel")) /* only trims offsets, which are not computed here */
        return STATUS_OK;
    if (!json_parts_is(node, "TemplateProcessing"))
        return json_parts_refuse(name, "post_processor", json_object_get(node, "type"));
    if (tokenizer->before.count + tokenizer->after.count > 0)
        return wrong_options(name, "post_processor");
    return add_template(name, node, tokenizer);
}

enum status json_parts_template(const char *name, const json_t *node, struct tokenizer *tokenizer)
{
    return node == NULL || json_is_null(node) ? STATUS_OK : read_template(name, node, 0, tokenizer);
}
