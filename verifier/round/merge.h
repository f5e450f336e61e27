/* The proposals of several drafters for one request, merged into one tree as SpecInfer's "merge-based" speculation does (Miao et al. 2024, section
 * 3.2): drafts that agree from the front are one node. Of the merged drafts the most probable are verified, by how often drafts of each kind were
 * accepted at each depth before. For rules that compare tokens alone, whose output does not depend on drafts, so they may be chosen in any way.
 * For rules that ask for q each chain stays a branch of its own, with its q's: a draft that two drafters drew counts twice, and which drafts are
 * taken may depend on what was committed, and on no token that is drafted. Owns those counts. Pure; allocates nothing. */
#ifndef TANDEM_VERIFIER_ROUND_MERGE_H
#define TANDEM_VERIFIER_ROUND_MERGE_H

#include "common/wire/message.h"
#include "verifier/accept/accept.h"

enum { MERGE_MOST = ACCEPT_DRAFTERS }; /* kinds of drafters */

/* Of each kind, by depth: drafts that were compared with what was committed, and those that agreed; old ones count less. */
struct merge {
    double tested[MERGE_MOST][MESSAGE_MAX_DRAFT], agreed[MERGE_MOST][MESSAGE_MAX_DRAFT];
    double compared[MERGE_MOST], alone[MERGE_MOST]; /* first drafts, and those that agreed where that of no other kind did */
};

struct merged {
    int is_there;
    struct proposal proposal;          /* without q where the rule asks for none; else the q's are borrowed of the chains */
    uint8_t source[MESSAGE_MAX_DRAFT]; /* of each draft: the kinds that proposed it, a bit each */
    int32_t asked[MESSAGE_MAX_SUPPORT];      /* ids of proposal.asked */
};

/* How many of the drafts of a chain are what was committed, from the front on.  tokens: [count] committed */
int merge_agreed(const struct proposal *chain, const int32_t *tokens, int count);
/* So many drafts of a chain of this kind agreed with what was committed, and the one after it, if there is one, did not.
 * compared: drafts of the chain for whose place a token was committed, agreed .. MESSAGE_MAX_DRAFT */
void merge_learn(struct merge *merge, int kind, int compared, int agreed);
/* The same of the first drafts of all kinds at once, a bit each.  agreed: some of `compared` */
void merge_learn_first(struct merge *merge, unsigned compared, unsigned agreed);
/* The probability that the first draft of this kind is right where those of all others are wrong: what it is worth behind them. */
double merge_alone(const struct merge *merge, int kind);
/* The probability that a draft of this kind is accepted where all before it were.  depth: from 0 */
double merge_rate(const struct merge *merge, int kind, int depth);
/* Merges chains for the same committed tokens.  from: [kinds] by kind, NULL where there is none; none of them: nothing is there
 * most: drafts of the merged proposal at most, 0 .. MESSAGE_MAX_DRAFT */
void merge_chains(const struct merge *merge, const struct proposal *const *from, int kinds, int most, struct merged *merged);
/* The same for rules that ask for q: chains side by side, those of the best kind first, the more of each the more of its drafts agreed with what was
 * committed before, and of the first drafts of the others where nobody else's did; as if each were as long as it may be, for where it ends may follow
 * from what was drawn in it. Of kinds whose q's for the
 * newest token have more than MESSAGE_MAX_SUPPORT ids together the last ones are left out. */
void merge_apart(const struct merge *merge, const struct proposal *const *from, int kinds, int most, struct merged *merged);
/* Which kinds proposed each of the first drafts that were accepted.  tokens: [count] of a path of the merged proposal; source: [count] */
void merge_sources(const struct merged *merged, const int32_t *tokens, int count, uint8_t *source);

#endif
