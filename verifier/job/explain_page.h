/* The rounds of a completion as a page of HTML to step through, for `tandem run --explain-page`: the text so far, the round's tree of drafts with q
 * and p of each, and why it stands or not. The page is whole by itself, and readable without scripts: they show one round at a time and heed keys.
 * Local; what is not written yet is in memory. */
#ifndef TANDEM_VERIFIER_JOB_EXPLAIN_PAGE_H
#define TANDEM_VERIFIER_JOB_EXPLAIN_PAGE_H

#include "common/base/status.h"
#include "common/text/tokenizer.h"
#include "common/text/utf8_stream.h"
#include "verifier/round/verify.h"
#include <stdio.h>

struct explain_page {
    FILE *text, *rounds; /* in memory */
    char *text_bytes, *rounds_bytes;
    size_t text_size, rounds_size;
    struct utf8_stream stream;
    int count, tokens, drafts, accepted;
    int failed; /* there was no memory for a part */
};

/* STATUS_INTERNAL: no memory. explain_page_close ends it in any case. */
enum status explain_page_open(struct explain_page *page);
void explain_page_close(struct explain_page *page);
/* The prompt, before the first round.  tokens: [count] */
void explain_page_prompt(struct explain_page *page, const struct tokenizer *tokenizer, const int32_t *tokens, int count);
/* The next round; kept: its tokens that were committed, a stop text's among them. */
void explain_page_round(struct explain_page *page, const struct explained *explained, const struct tokenizer *tokenizer, int kept);
/* Writes the page. No round may follow. STATUS_IO: by which file, and why, is said. */
enum status explain_page_write(struct explain_page *page, const char *path);

#endif
