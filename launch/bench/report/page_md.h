/* report.md: the report as text, readable in a terminal and as Markdown. Owns nothing; the sentences here serve both forms of the report. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_PAGE_MD_H
#define TANDEM_LAUNCH_BENCH_REPORT_PAGE_MD_H

#include "launch/bench/report/measured.h"
#include "launch/bench/report/table.h"
#include <stdio.h>

void page_md_write(const struct run *run, const struct measured_placement *all, FILE *to);
/* Was it so noisy that no figure is to be quoted? Says why in one line, and is 1. all: of one placement */
int page_md_withholds(const struct run *run, const struct measured_placement *all, char *line, size_t size);
/* How many predictions and accounts hold within 10 %, and what is to blame where one does not; and where drafts were missing. */
void page_md_verdict(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to);
/* Sentences that this report and the other form of it share. */
extern const char page_md_why_speed[];
extern const char page_md_why_paper_5[];
extern const char page_md_why_residual[];
extern const char page_md_why_alpha[];
extern const char page_md_why_phases[];
extern const char page_md_why_by_rank[];
extern const char page_md_why_itl[];
extern const char page_md_why_theory[];
extern const char page_md_how_measured[];

#endif
