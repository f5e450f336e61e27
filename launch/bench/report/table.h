/* The tables of a report, once for both of its forms. Owns nothing; a table's words are escaped as its form needs. */
#ifndef TANDEM_LAUNCH_BENCH_REPORT_TABLE_H
#define TANDEM_LAUNCH_BENCH_REPORT_TABLE_H

#include "launch/bench/report/measured.h"
#include <stdio.h>

enum table_form { TABLE_TEXT /* Markdown, with columns that stand under each other */, TABLE_HTML };
enum { TABLE_MOST_COLUMNS = 20, TABLE_MOST_ROWS = 1024 /* as many as a bench has cells */, TABLE_CELL = 160 };

struct table {
    FILE *to;
    enum table_form form;
    int columns, rows;
    int is_text[TABLE_MOST_COLUMNS]; /* left aligned */
    char head[TABLE_MOST_COLUMNS][TABLE_CELL];
    char cell[TABLE_MOST_ROWS][TABLE_MOST_COLUMNS][TABLE_CELL];
};

/* columns: names with commas between; < before one that is text. Numbers are aligned to the right. */
void table_begin(struct table *table, FILE *to, enum table_form form, const char *columns);
/* A row: cells with tabs between. */
void table_row(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes it. */
void table_end(struct table *table);

void table_speed(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to);
/* What was predicted before anything was drafted, beside what was measured. */
void table_forecast(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to);
/* Proposals that were drafted ahead, by what came of the round before them. Were there any? */
int table_has_hits(const struct run *run, const struct measured_placement *all);
void table_hits(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to);
void table_theory(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to);
void table_residual(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to);
void table_alpha(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to);
void table_paper_1(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to);
void table_paper_2(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to);
/* Alpha and speed by lenience, or another number of a rule that is not lossless. Has the run one? */
int table_has_paper_5(const struct run *run);
void table_paper_5(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to);
void table_phases(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to);
void table_latency(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to);
/* Of messages and collectives, where they were measured; with their headings. */
void table_messages(const struct run_placement *placement, enum table_form form, FILE *to);
/* Each rank's own time by phase, of solo and of the fastest draft length of each group. */
void table_by_rank(const struct run *run, const struct run_placement *placement, const struct measured_placement *all, enum table_form form,
                   FILE *to);
void table_ranks(const struct run_placement *placement, enum table_form form, FILE *to);
/* What another placement changes, where there are two. */
void table_placements(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to);
/* Text with &, <, > and quotes as HTML and XML have them. */
void table_escape(FILE *to, const char *text);

#endif
