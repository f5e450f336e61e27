/* report.html: the report as one page without anything from elsewhere, with figures as SVG. Owns nothing; texts of the run are escaped. It says the
 * same as report.md (page_md.h). */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_PAGE_HTML_H
#define TANDEM_LAUNCH_BENCH_REPORT_PAGE_HTML_H

#include "launch/bench/report/measured.h"
#include <stdio.h>

void page_html_write(const struct run *run, const struct measured_placement *all, FILE *to);

/* The frame of any page of ours: up to the first heading, and from behind the last paragraph. */
void page_html_begin(const char *title, FILE *to);
void page_html_end(FILE *to);

#endif
