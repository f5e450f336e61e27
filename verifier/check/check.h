/* `tandem check`: is what comes out with drafts what the target alone would say? Three checks over the models, prompts and sampling options of the
 * user, through the same loop, drafters and followers that complete prompts:
 *   equality  greedy output, and that of a rule whose text does not depend on the drafts (coupled), equals solo output, token for token
 *   law       at a temperature, by a rule whose text depends on them (rejection), the law of the next two tokens is the target's own
 *   draws     every drafted token is the draw from the q that was sent with it
 * A check owns its prompts and what was found; job and drafters are borrowed. Each of the three has a file that runs it or a pure one that judges.
 * The lead alone runs it; it never changes how a round decides, unless --break asks for a fault. */
#ifndef TANDEM_VERIFIER_CHECK_CHECK_H
#define TANDEM_VERIFIER_CHECK_CHECK_H

#include "verifier/check/check_draws.h"
#include "verifier/check/check_equal.h"
#include "verifier/check/check_sample.h"
#include "verifier/job/job.h"

/* A chance of a false alarm in a whole check: a quarter each for the law's sum over all texts, its worst text,
 * its lean to the draft, and how often drafts were accepted by their place. */
#define CHECK_ALARM 1e-6

struct check_sizes {
    int prompts;  /* at most */
    int tokens;   /* of each at most */
    int contexts; /* texts after which the law is tested */
    int samples;  /* after each */
};

struct check {
    struct job *job;                  /* borrowed */
    struct peers *peers;              /* borrowed */
    const struct request_list *asked; /* borrowed: the user's prompts */
    struct check_sizes sizes;
    double temperature;               /* of prompts that ask for none */
    struct request *prompt;           /* [prompts] those that can be completed */
    int prompts;
    struct check_equal equal;
    struct check_sample sample;
    struct check_draws draws;
    double seconds;
    int64_t started_ns, told_ns; /* the checks began; the last line of progress was written */
    int is_law, at;              /* the step of check_progress that is being done */
    int has_advised;             /* the user was told how to make the check smaller */
};

/* The rule that --accept names, where it is lossless and its text depends on the drafts or not, as is asked; else the first that is so. */
int check_rule(const struct check *check, int depends_on_drafts);
/* Runs the checks and reports. STATUS_CHECK when something does not hold. Collective over the group. */
enum status check_run(struct job *job, struct peers *peers, const struct request_list *asked);

/* --draft-length; where that is left to the lead TREE_USUAL of a tree, so that siblings are among its drafts, and -1 of a chain. */
int check_draft_length(const struct check *check);
/* A request of the check's own: the prompt's options with this temperature where it has none, and a fixed draft length. */
struct request check_request(const struct check *check, const struct request *prompt, int accept, int draft_length);
/* Says what is being done and how long the rest may take: step `at`, from 0, of equality's passes or of the law's texts. On a terminal a line that is
 * redrawn, else one every few seconds. */
void check_progress(struct check *check, int is_law, int at);
/* The same within that step, of which so many tokens are there. */
void check_progress_within(struct check *check, int64_t tokens);

#endif
