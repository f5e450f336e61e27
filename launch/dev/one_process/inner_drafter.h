/* What drafts for a lead in the same process, as a drafter's rank would open it: the model that --draft names, where it runs one, and the kind. It
 * owns both until it is closed. One thread; it sends nothing. */
#ifndef TANDEM_LAUNCH_DEV_ONE_PROCESS_INNER_DRAFTER_H
#define TANDEM_LAUNCH_DEV_ONE_PROCESS_INNER_DRAFTER_H

#include "common/options/options.h"
#include "common/text/tokenizer.h"
#include "drafter/draft.h"

struct inner_drafter {
    char path[4096];
    struct group alone;
    struct corpus_rows found; /* of zeros for a kind without a file of its own */
    struct model *model; /* NULL: none is needed */
    struct draft draft;
    int context; /* tokens of a sequence */
};

/* What --draft names, for a target with this tokenizer; the options' threads are not looked at. STATUS_DATA where the draft's tokenizer is
 * another. */
enum status inner_drafter_open(struct inner_drafter *inner, const struct options *options, const struct tokenizer *tokenizer, int threads);
void inner_drafter_close(struct inner_drafter *inner);

#endif
