/* Several drafters for one request: --draft says the first, each --merge one more, and every drafter rank is of one of these kinds, in turn. What a
 * rank of a kind has to know is the job's options with that kind in the place of --draft. Reading keeps texts in the options; the rest is pure. */
#ifndef TANDEM_COMMON_OPTIONS_OPTIONS_MERGE_H
#define TANDEM_COMMON_OPTIONS_OPTIONS_MERGE_H

#include "common/options/options.h"

/* Kinds of drafters: 1 where nothing is merged. */
int options_kinds(const struct options *options);
/* Writes the options as a drafter of that kind has them; the first kind has them as they are. They borrow the job's texts: not to be released.
 * kind: 0 .. options_kinds - 1 */
void options_of_kind(const struct options *options, int kind, struct options *own);
/* How many kinds draw from a q; each other one names its tokens. */
int options_kinds_that_draw(const struct options *options);
/* Does a rank of any kind run a model? */
int options_kinds_run_models(const struct options *options);
/* Is options_draft_shares true of any kind? */
int options_kinds_share(const struct options *options);
/* What people know that kind by, as they said it: a path by its end.  text: [OPTIONS_DRAFT_TEXT] */
void options_kind_name(const struct options *options, int kind, char *text);
/* Reads what each --merge says. STATUS_USAGE with a line. */
enum status options_merge_read(struct options *options);
/* Is there something to merge, a rule for it, and ranks? STATUS_USAGE with a line that says what was expected. */
enum status options_merge_check(const struct options *options);
/* Is a kind named twice? To be asked again when names of models are paths. STATUS_USAGE, with a line. */
enum status options_merge_check_names(const struct options *options);

#endif
