/* How many tokens a round is expected to give, by the size of its drafts: of a chain by its length, of a tree by its nodes, of which not every number
 * is a size, as one node more says little beside forty. It owns counts of verdicts, which are halved at a limit, so that they follow the text. Pure:
 * never reads a clock, sends or allocates.
 *
 * Of a chain what is counted is how often the i-th draft is accepted where those before it are. A tree has no places, but it has rounds: what they
 * gave, by their size. What was never tried is taken to go on as it began: twice the nodes give nearly as much more as the last doubling did. */
#ifndef TANDEM_VERIFIER_ROUND_ADAPTIVE_TOKENS_H
#define TANDEM_VERIFIER_ROUND_ADAPTIVE_TOKENS_H

#include "verifier/round/adaptive_wait.h"

struct adaptive_tokens {
    int is_tree;
    double tested[ADAPTIVE_MOST];   /* chain: [place] drafts; tree: [size - 1] rounds */
    double accepted[ADAPTIVE_MOST]; /* and the drafts accepted of them, or in them */
};

/* The drafts of a size 1 .. ADAPTIVE_MOST, and the size of a number of drafts: the largest one of no more; 0 of none. A chain may be longer than any
 * that is chosen: its size is its length all the same. */
int adaptive_tokens_drafts(const struct adaptive_tokens *tokens, int size);
int adaptive_tokens_size(const struct adaptive_tokens *tokens, int drafts);
/* `accepted` of a proposal's `drafted` tokens were accepted: of a chain the first ones. */
void adaptive_tokens_add(struct adaptive_tokens *tokens, int drafted, int accepted);
/* What an earlier job counted in the place of what is here, weighing as `most` drafts or rounds of each kind at most. More than all of them accepted,
 * as a damaged file may say, are all. */
void adaptive_tokens_recall(struct adaptive_tokens *tokens, const struct adaptive_tokens *earlier, double most);
/* Was anything counted? */
int adaptive_tokens_known(const struct adaptive_tokens *tokens);
/* Expected tokens of a round of this size; 1 of size 0. */
double adaptive_tokens_expected(const struct adaptive_tokens *tokens, int size);

#endif
