/* A completion is the growing answer to a request: its tokens' text, whole characters only, and where it ends: at EOS, at a stop text
 * (also one that began in an earlier round), at a stop token, or at the length limit; the first of them cuts the rest of an accepted run
 * off. */
#ifndef TANDEM_VERIFIER_REQUEST_COMPLETION_H
#define TANDEM_VERIFIER_REQUEST_COMPLETION_H

#include "common/text/tokenizer.h"
#include "common/text/utf8_stream.h"
#include "verifier/request/request.h"

enum finish_reason { FINISH_NOT = 0, FINISH_STOP, FINISH_LENGTH, FINISH_ERROR };
const char *completion_reason(enum finish_reason reason);

struct completion {
    const struct request *request;
    const struct tokenizer *tokenizer;
    const int32_t *eos; /* [eos_count] */
    int eos_count;
    int limit; /* tokens to generate at most */
    int count; /* tokens taken */
    enum finish_reason finish;
    char *text; /* whole characters, cut before a stop text */
    size_t length;
    size_t room;
    size_t shown;     /* bytes that can no longer become part of a stop text */
    size_t longest_stop;
    struct utf8_stream stream;
};

/* `longest` tokens may come at most; the text's memory is laid out for them. */
enum status completion_open(struct completion *completion, const struct request *request, const struct tokenizer *tokenizer,
                            const int32_t *eos, int eos_count, int limit);
void completion_close(struct completion *completion);

/* Takes new tokens until one finishes the completion. Returns how many were taken: the rest is to be dropped. */
int completion_push(struct completion *completion, const int32_t *tokens, int count);
/* Would this token alone end it (EOS, a stop token)? It counts and has no text. */
int completion_is_ended_by(const struct completion *completion, int32_t token);

#endif
