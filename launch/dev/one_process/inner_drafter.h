/* A drafter in the lead's own process, on the lead's own thread: where the lead waits for a proposal, the drafter takes its turn. Messages are packed,
 * checked and unpacked as between processes, and go through a loop. */
#ifndef TANDEM_LAUNCH_DEV_ONE_PROCESS_INNER_DRAFTER_H
#define TANDEM_LAUNCH_DEV_ONE_PROCESS_INNER_DRAFTER_H

#include "common/options/options.h"
#include "common/text/tokenizer.h"
#include "drafter/drafter.h"

enum { INNER_DRAFTER_LEAD, INNER_DRAFTER_SELF, INNER_DRAFTER_ENDS }; /* names on the loop */

struct inner_drafter {
    char path[4096];
    struct group alone;
    struct model *model; /* NULL: none is needed */
    struct draft draft;
    int context; /* tokens of a sequence */
    struct channel *end[INNER_DRAFTER_ENDS];
    struct drafter drafter;
    int is_open;
    enum status status; /* of its turns: the first that failed */
};

/* What --draft names, for a target with this tokenizer; the options' threads are not looked at. STATUS_DATA where the draft's tokenizer is another. */
enum status inner_drafter_open(struct inner_drafter *inner, const struct options *options, const struct tokenizer *tokenizer, uint64_t run, int threads);
void inner_drafter_close(struct inner_drafter *inner);

#endif
