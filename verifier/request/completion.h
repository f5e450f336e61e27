/* A completion is the growing answer to a request. It owns the text of its tokens, in whole characters only, and the reason why it ended. Invariant:
 * it ends at the first of EOS, a stop text (also one that began in an earlier round), a stop token and the length limit; what an accepted run has
 * beyond that is cut off. The lead's thread alone calls; local. Never sends or prints; allocates at open, and later only for unusually long text. */
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
