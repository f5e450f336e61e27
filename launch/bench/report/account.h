/* Where a cell's time went, by the theory's terms. For each group of cells (one baseline, one sequence) three times are taken from the rounds of all
 * of its cells: that to draft by drafted tokens, that of the verifying step by rows, and all else by drafted tokens. With the counted alpha of a cell
 * they say what its rounds should give and take. It is no prediction, for a cell's own rounds are among them: that is forecast.h. Owns nothing; it
 * fills in the figures of theory alone and changes none that was measured. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_ACCOUNT_H
#define TANDEM_LAUNCH_BENCH_REPORT_ACCOUNT_H

#include "launch/bench/report/measured.h"

/* Fills the theory's figures of all cells. STATUS_INTERNAL. */
enum status account(const struct run *run, const struct run_placement *placement, struct measured_placement *all);

#endif
