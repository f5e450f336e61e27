/* What the results of a job depend on, as a JSON object: a journal goes on only under the terms that it was begun with. Threads and deadlines
 * are no part of it, nor ranks but for a number of verifiers with bits of its own; drafts are, where some request's text depends on them (the rule's row tells). Owns nothing, reads no file;
 * local. */
#ifndef TANDEM_VERIFIER_RESULT_JOURNAL_TERMS_H
#define TANDEM_VERIFIER_RESULT_JOURNAL_TERMS_H

#include "common/options/options.h"
#include "verifier/request/request.h"

struct journal_terms {
    const struct options *options; /* with --cache as what it means to the backend: f32, bf16 or fp8 */
    const struct request_list *requests;
    int context;       /* tokens that a sequence may have */
    int width;         /* verifiers, where the target's numbers are those of so many; else 0 */
    uint64_t target;   /* model_identity */
    uint64_t draft;    /* model_identity of the draft model; 0: solo */
};

/* Does any request's text depend on what is drafted? */
int journal_terms_need_drafts(const struct request_list *requests);
/* The object's text, to be freed; NULL without memory. */
char *journal_terms_write(const struct journal_terms *terms);
/* STATUS_DATA when `found` [length] are other terms than `mine`, with what differs in `reason` ("seed is 7 there and 8 here; others, too:
 * top-k"; not logged). STATUS_INTERNAL without memory, logged. */
enum status journal_terms_compare(const char *found, size_t length, const char *mine, char *reason, size_t size);

#endif
