/* A pretokenizer cuts a text into the pieces that the model encodes one by one. It owns a chain of steps: each cuts (by a pattern) or rewrites
 * (spaces) what it gets and hands it on, and the last hands it to the sink, so no list of pieces is ever made. Patterns come from the tokenizer file,
 * compiled by PCRE2 (UTF, UCP, no \C) under a size limit and run under match limits that grow with the text only. Immutable after open; each encode
 * call has its own working space. */
#ifndef TANDEM_COMMON_TEXT_PRETOKENIZER_H
#define TANDEM_COMMON_TEXT_PRETOKENIZER_H

#include "common/base/status.h"
#include "common/text/byte_buffer.h"
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stddef.h>

enum { PRETOKENIZER_STEPS = 16, PRETOKENIZER_PATTERN_BYTES = 4096 };
enum pretokenizer_prepend { PREPEND_NEVER, PREPEND_FIRST /* at the start of the whole text */, PREPEND_ALWAYS };

struct pretokenizer_step {
    pcre2_code *pattern; /* matches and what lies between them are pieces; NULL: the step rewrites */
    char mark[4];        /* what a space becomes, and what is put in front of a text that does not start with it */
    size_t mark_length;
    enum pretokenizer_prepend prepend;
};

struct pretokenizer {
    struct pretokenizer_step steps[PRETOKENIZER_STEPS];
    int count;
};

struct pretokenizer_work {
    pcre2_match_data *match;
    pcre2_match_context *limits;
    struct byte_buffer rewritten[PRETOKENIZER_STEPS];
};

/* Takes one piece, never an empty one. */
typedef enum status pretokenizer_sink(void *context, const char *piece, size_t length);

/* Adds a cut at every match of pattern[0 .. length), a regular expression or plain text. STATUS_DATA, logged with `name`, when PCRE2
 * refuses it or a limit is passed. */
enum status pretokenizer_add_pattern(struct pretokenizer *pretokenizer, const char *name, const char *pattern, size_t length, int literal);
/* Adds a rewriting of spaces. STATUS_DATA, logged with `name`. */
enum status pretokenizer_add_rewrite(struct pretokenizer *pretokenizer, const char *name, const char *mark, size_t mark_length,
                                     enum pretokenizer_prepend prepend);
void pretokenizer_release(struct pretokenizer *pretokenizer);

/* Cuts text[0 .. length), valid UTF-8; `at_start` says that it begins the whole text. A status of the sink ends it and is passed
 * on; STATUS_DATA (logged) when a pattern needs more steps than its limit, STATUS_INTERNAL (logged) without memory. */
enum status pretokenizer_run(const struct pretokenizer *pretokenizer, struct pretokenizer_work *work, const char *text, size_t length,
                             int at_start, pretokenizer_sink *sink, void *context);
void pretokenizer_work_release(struct pretokenizer_work *work);

#endif
