/* The first check: where the output is a function of seed and target (greedy, and a rule such as coupled at a temperature), it is the same with
 * drafts of any length as without. It owns the outputs, which it compares token by token; the lead alone runs it. */
#ifndef TANDEM_VERIFIER_CHECK_CHECK_EQUAL_H
#define TANDEM_VERIFIER_CHECK_CHECK_EQUAL_H

#include "common/base/status.h"
#include "verifier/check/check_share.h"
#include "verifier/request/completion.h"
#include <stdint.h>

enum { CHECK_EQUAL_SHOWN = 3, CHECK_EQUAL_LENGTHS = 3 };

struct check_output {
    int32_t *token; /* [count] */
    int count;
    enum finish_reason finish;
};

/* The first place where an output left solo's. */
struct check_difference {
    int greedy;
    const char *rule; /* its name: greedy, or that of check_rule */
    int draft_length;
    int prompt;   /* index in the user's input */
    int position; /* in the completion */
    int32_t solo, drafted;     /* the tokens there; -1: it had ended */
    double margin;             /* between the target's two best there; with the noise at a temperature */
    int32_t best[2];           /* those two */
    char *solo_text, *drafted_text; /* around it */
};

struct check_equal {
    int lengths;
    int draft_length[CHECK_EQUAL_LENGTHS];
    int64_t outputs, unequal, tokens; /* compared */
    int64_t drafted, accepted;        /* without drafts nothing is compared */
    struct check_share share;         /* of rounds that had a proposal */
    struct check_difference difference[CHECK_EQUAL_SHOWN];
    int differences; /* shown */
    /* [prompts] of the rule being checked, in the end of the one at a temperature, whose texts the other checks continue */
    struct check_output *solo;
    struct check_output *spoken;  /* [prompts] with drafts */
    int outputs_room;             /* prompts */
};

struct check;
/* Collective over the group, on the lead. */
enum status check_equal_run(struct check *check);
/* No output differed from solo's. Whether enough drafts came for that to say anything, check_share tells. */
int check_equal_holds(const struct check_equal *equal);
void check_equal_release(struct check_equal *equal);

#endif
