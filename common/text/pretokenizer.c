#include "common/text/pretokenizer.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <string.h>

/* Steps that one match may take: PCRE2 counts about one a character for the patterns in use. */
enum { MATCH_STEPS = 100000, MATCH_STEPS_PER_BYTE = 16, MATCH_HEAP_KIB = 1 << 20 };

/* One text on its way through the chain. */
struct passage {
    const struct pretokenizer *pretokenizer;
    struct pretokenizer_work *work;
    pretokenizer_sink *sink;
    void *context;
};

static struct pretokenizer_step *new_step(struct pretokenizer *pretokenizer, const char *name)
{
    if (pretokenizer->count < PRETOKENIZER_STEPS)
        return &pretokenizer->steps[pretokenizer->count];
    log_error("%s: the pre-tokenizer has more than %d steps", name, PRETOKENIZER_STEPS);
    return NULL;
}

enum status pretokenizer_add_pattern(struct pretokenizer *pretokenizer, const char *name, const char *pattern, size_t length, int literal)
{
    struct pretokenizer_step *step = new_step(pretokenizer, name);
    uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C);
    int error;
    PCRE2_SIZE offset;

    if (step == NULL)
        return STATUS_DATA;
    if (length == 0 || length > PRETOKENIZER_PATTERN_BYTES) {
        log_error("%s: a pre-tokenizer pattern of %zu bytes; 1 to %d are allowed", name, length, PRETOKENIZER_PATTERN_BYTES);
        return STATUS_DATA;
    }
    *step = (struct pretokenizer_step){.pattern = pcre2_compile((PCRE2_SPTR)pattern, length, options, &error, &offset, NULL)};
    if (step->pattern == NULL) {
        PCRE2_UCHAR reason[256] = "";

        pcre2_get_error_message(error, reason, sizeof reason);
        log_error("%s: pre-tokenizer pattern, at byte %zu: %s", name, (size_t)offset, (const char *)reason);
        return error == PCRE2_ERROR_HEAP_FAILED ? STATUS_INTERNAL : STATUS_DATA;
    }
    pcre2_jit_compile(step->pattern, PCRE2_JIT_COMPLETE); /* where it cannot, the interpreter matches */
    pretokenizer->count++;
    return STATUS_OK;
}

enum status pretokenizer_add_rewrite(struct pretokenizer *pretokenizer, const char *name, const char *mark, size_t mark_length,
                                     enum pretokenizer_prepend prepend)
{
    struct pretokenizer_step *step = new_step(pretokenizer, name);

    if (step == NULL)
        return STATUS_DATA;
    if (mark_length == 0 || mark_length > sizeof step->mark) {
        log_error("%s: what stands for a space must be one character", name);
        return STATUS_DATA;
    }
    *step = (struct pretokenizer_step){.mark_length = mark_length, .prepend = prepend};
    memcpy(step->mark, mark, mark_length);
    pretokenizer->count++;
    return STATUS_OK;
}

void pretokenizer_release(struct pretokenizer *pretokenizer)
{
    for (int i = 0; i < pretokenizer->count; i++)
        pcre2_code_free(pretokenizer->steps[i].pattern);
    *pretokenizer = (struct pretokenizer){0};
}

static enum status pass_on(const struct passage *passage, int next, const char *text, size_t length, int at_start);

/* The match at or after `at`. Its place goes to span[2], both `length` when there is none. */
static enum status match_from(const struct passage *passage, const pcre2_code *pattern, const char *text, size_t length, size_t at,
                              size_t span[2])
{
    struct pretokenizer_work *work = passage->work;
    int found = pcre2_match(pattern, (PCRE2_SPTR)text, length, at, PCRE2_NO_UTF_CHECK, work->match, work->limits);
    const PCRE2_SIZE *place;

    if (found == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter has its stack on the heap */
        found = pcre2_match(pattern, (PCRE2_SPTR)text, length, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, work->match, work->limits);
    span[0] = span[1] = length;
    if (found == PCRE2_ERROR_NOMATCH)
        return STATUS_OK;
    if (found < 0) {
        PCRE2_UCHAR reason[256] = "";

        pcre2_get_error_message(found, reason, sizeof reason);
        log_error("the tokenizer's pattern, at byte %zu of a text of %zu: %s", at, length, (const char *)reason);
        return found == PCRE2_ERROR_NOMEMORY ? STATUS_INTERNAL : STATUS_DATA;
    }
    place = pcre2_get_ovector_pointer(work->match);
    span[0] = place[0];
    span[1] = place[1];
    if (span[0] < at || span[1] < span[0]) { /* \K in a pattern can do that */
        log_error("the tokenizer's pattern matches backwards at byte %zu", at);
        return STATUS_DATA;
    }
    return STATUS_OK;
}

static enum status cut(const struct passage *passage, int step, const char *text, size_t length, int at_start)
{
    const pcre2_code *pattern = passage->pretokenizer->steps[step].pattern;
    size_t from = 0, at = 0, span[2];

    while (at < length) {
        TRY(match_from(passage, pattern, text, length, at, span));
        TRY(pass_on(passage, step + 1, text + from, span[0] - from, at_start && from == 0));
        TRY(pass_on(passage, step + 1, text + span[0], span[1] - span[0], at_start && span[0] == 0));
        from = at = span[1];
        if (span[0] == span[1]) /* an empty match only cuts: go on behind the next character */
            do
                at++;
            while (at < length && ((unsigned char)text[at] & 0xC0) == 0x80);
    }
    return pass_on(passage, step + 1, text + from, length - from, at_start && from == 0);
}

static enum status rewrite(const struct passage *passage, int step, const char *text, size_t length, int at_start)
{
    const struct pretokenizer_step *how = &passage->pretokenizer->steps[step];
    struct byte_buffer *out = &passage->work->rewritten[step];
    int starts = text[0] == ' ' || (length >= how->mark_length && memcmp(text, how->mark, how->mark_length) == 0);
    const char *end = text + length, *space;

    out->count = 0;
    if (!starts && (how->prepend == PREPEND_ALWAYS || (how->prepend == PREPEND_FIRST && at_start)))
        TRY(byte_buffer_append(out, how->mark, how->mark_length));
    while ((space = memchr(text, ' ', (size_t)(end - text))) != NULL) {
        TRY(byte_buffer_append(out, text, (size_t)(space - text)));
        TRY(byte_buffer_append(out, how->mark, how->mark_length));
        text = space + 1;
    }
    TRY(byte_buffer_append(out, text, (size_t)(end - text)));
    return pass_on(passage, step + 1, out->data, out->count, at_start);
}

static enum status pass_on(const struct passage *passage, int next, const char *text, size_t length, int at_start)
{
    if (length == 0)
        return STATUS_OK;
    if (next == passage->pretokenizer->count)
        return passage->sink(passage->context, text, length);
    if (passage->pretokenizer->steps[next].pattern != NULL)
        return cut(passage, next, text, length, at_start);
    return rewrite(passage, next, text, length, at_start);
}

static enum status prepare(struct pretokenizer_work *work, size_t length)
{
    size_t steps = MATCH_STEPS + MATCH_STEPS_PER_BYTE * length;

    if (work->match == NULL)
        work->match = pcre2_match_data_create(1, NULL);
    if (work->limits == NULL)
        work->limits = pcre2_match_context_create(NULL);
    if (work->match == NULL || work->limits == NULL) {
        log_error("cannot have the working space of a pattern");
        return STATUS_INTERNAL;
    }
    pcre2_set_match_limit(work->limits, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
    pcre2_set_depth_limit(work->limits, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
    pcre2_set_heap_limit(work->limits, MATCH_HEAP_KIB);
    return STATUS_OK;
}

enum status pretokenizer_run(const struct pretokenizer *pretokenizer, struct pretokenizer_work *work, const char *text, size_t length,
                             int at_start, pretokenizer_sink *sink, void *context)
{
    struct passage passage = {.pretokenizer = pretokenizer, .work = work, .sink = sink, .context = context};

    if (pretokenizer->count > 0)
        TRY(prepare(work, length));
    return pass_on(&passage, 0, text, length, at_start);
}

void pretokenizer_work_release(struct pretokenizer_work *work)
{
    pcre2_match_data_free(work->match);
    pcre2_match_context_free(work->limits);
    for (int i = 0; i < PRETOKENIZER_STEPS; i++)
        byte_buffer_release(&work->rewritten[i]);
    *work = (struct pretokenizer_work){0};
}
