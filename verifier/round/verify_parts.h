/* What verify.c, which takes rounds, has of verify_prompts.c: the prompt rows that are added to a step. Owns nothing: all of it is in struct verify.
 * For these two files alone. */
#ifndef TANDEM_VERIFIER_ROUND_VERIFY_PARTS_H
#define TANDEM_VERIFIER_ROUND_VERIFY_PARTS_H

#include "verifier/round/verify.h"

/* Prompt rows of the next step, and those of them that are scored. */
int verify_prompt_rows(const struct verify *verify);
int verify_scored_rows(const struct verify *verify);
/* Puts them behind the rows of the round, and those that are scored behind its output rows. */
void verify_lay_out_prompts(struct verify *verify);
/* After the step: keeps what its prompt rows tell, which are in the cache now. Uses the memory of the step's evidence. Collective over the group
 * where there are scored ones. */
enum status verify_end_prompts(struct verify *verify);

#endif
