/* What stands in each table. */
#include "launch/bench/report/by_rank.h"
#include "launch/bench/report/summary.h"
#include "launch/bench/report/table.h"
#include "launch/bench/report/theory.h"

#include <math.h>
#include <string.h>

void table_speed(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to)
{
    static struct table table;

    table_begin(&table, to, form, "<cell,tokens/s,spread %,speedup,error %,by TPOT,tokens/round,acceptance %,equal");
    for (int i = 0; i < run->cells; i++) {
        const struct measured *measured = &all->cell[i];
        char name[128], equal[48] = "", speedup[32] = "";

        summary_name(&run->cell[i], name, sizeof name);
        if (measured->outputs_equal >= 0)
            snprintf(equal, sizeof equal, "%d of %d", measured->outputs_equal, measured->outputs);
        snprintf(speedup, sizeof speedup, "%s%.2fx", measured_is_noisy(run, measured) ? "~" : "", measured->speedup);
        if (run->cell[i].solo)
            table_row(&table, "%s\t%.0f\t%.1f\t\t\t\t%.2f\t\t", name, measured->tokens_per_second, 100 * measured->tokens_per_second_spread,
                      measured->rounds > 0 ? measured->output_tokens / measured->rounds : 0);
        else
            table_row(&table, "%s\t%.0f\t%.1f\t%s\t%.1f\t%.2fx\t%.2f\t%.1f\t%s", name, measured->tokens_per_second,
                      100 * measured->tokens_per_second_spread, speedup, 100 * measured->speedup_error, measured->speedup_tpot,
                      measured->rounds > 0 ? measured->output_tokens / measured->rounds : 0,
                      measured->drafted > 0 ? 100 * measured->accepted / measured->drafted : 0, equal);
    }
    table_end(&table);
}

static int is_predicted(const struct run *run, const struct measured_placement *all, int cell)
{
    return measured_is_predicted(&run->cell[cell]) && all->cell[cell].improvement > 0;
}

/* Of a fixed length alone, where both sizes are known. */
static const char *reads_of(const struct run *run, const struct run_cell *cell, const struct measured *f, char *text, size_t size)
{
    double target = json_number_value(json_object_get(json_object_get(run->json, "target"), "parameters"));
    double draft = json_number_value(json_object_get(json_object_get(run->json, "draft"), "parameters"));

    text[0] = '\0';
    if (target > 0 && cell->draft_length >= 0)
        snprintf(text, size, "%.2fx", theory_reads(f->alpha, cell->draft_length, draft / target));
    return text;
}

/* Where all drafts are accepted and cost nothing there is no bound. */
static const char *oracle_of(const struct measured *f, char *text, size_t size)
{
    double bound = theory_oracle(f->alpha, f->c);

    text[0] = '\0';
    if (isfinite(bound))
        snprintf(text, size, "%.2fx", bound);
    return text;
}

void table_theory(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to)
{
    static struct table table;

    table_begin(
        &table, to, form,
        "<cell,alpha,c,v(K+1),rest,E(tokens) (1),tokens/round,Thm 3.8,with v and wire,measured,off by %,operations Thm 3.11,reads 3.4,oracle 3.5,"
        "best K 3.8,best K with v and wire");
    for (int i = 0; i < run->cells; i++) {
        const struct measured *f = &all->cell[i];
        char name[128], reads[32], oracle[32];

        if (!is_predicted(run, all, i))
            continue;
        summary_name(&run->cell[i], name, sizeof name);
        table_row(&table, "%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.2f\t%.2f\t%.2fx\t%.2fx\t%.2fx\t%+.1f\t%.2fx\t%s\t%s\t%d\t%d", name, f->alpha, f->c, f->v,
                  f->rest, f->tokens_expected, f->output_tokens / f->rounds, f->improvement, f->improvement_measured, f->speedup,
                  100 * (f->speedup / f->improvement_measured - 1), f->operations, reads_of(run, &run->cell[i], f, reads, sizeof reads),
                  oracle_of(f, oracle, sizeof oracle), f->best, f->best_measured);
    }
    table_end(&table);
}

void table_residual(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to)
{
    static struct table table;

    table_begin(&table, to, form, "<cell,measured / account,tokens,round,outside,noise");
    for (int i = 0; i < run->cells; i++) {
        const struct measured *f = &all->cell[i];
        char name[128];

        if (!is_predicted(run, all, i))
            continue;
        summary_name(&run->cell[i], name, sizeof name);
        table_row(&table, "%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f", name, f->speedup / f->improvement_measured, f->by_tokens, f->by_round, f->by_outside,
                  f->by_noise);
    }
    table_end(&table);
}

void table_alpha(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to)
{
    static struct table table;

    table_begin(&table, to, form, "<cell,tested in a pass,counted,sum min(p q),from tokens/round,offline,D_LK");
    for (int i = 0; i < run->cells; i++) {
        const struct measured *f = &all->cell[i];
        double distance_overlap = f->alpha_overlap >= 0 ? f->alpha_overlap : f->overlap_hidden ? f->forecast_overlap : -1;
        char name[128], overlap[32] = "", tokens[32] = "", distance[32] = "", offline[32] = "";

        if (run->cell[i].solo || f->alpha < 0)
            continue;
        summary_name(&run->cell[i], name, sizeof name);
        if (f->alpha_overlap >= 0)
            snprintf(overlap, sizeof overlap, "%.3f", f->alpha_overlap);
        if (distance_overlap >= 0)
            snprintf(distance, sizeof distance, "%.3f", 1 - distance_overlap);
        if (f->forecast_alpha >= 0)
            snprintf(offline, sizeof offline, "%.3f", f->forecast_alpha);
        if (f->alpha_tokens >= 0)
            snprintf(tokens, sizeof tokens, "%.3f", f->alpha_tokens);
        table_row(&table, "%s\t%.0f\t%.3f\t%s\t%s\t%s\t%s", name, f->all_tested / f->repetitions, f->alpha, overlap, tokens, offline, distance);
    }
    table_end(&table);
}

/* alpha of a group: all of its drafts together. */
static double alpha_of_group(const struct run *run, const struct measured_placement *all, int baseline)
{
    double tested = 0, accepted = 0;

    for (int i = 0; i < run->cells; i++)
        if (run->cell[i].baseline == baseline && run->cell[i].sequences == 1) {
            tested += all->cell[i].all_tested;
            accepted += all->cell[i].all_accepted;
        }
    return tested > 0 ? accepted / tested : -1;
}

void table_paper_1(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to)
{
    static const int gammas[] = {2, 3, 5, 10};
    static struct table table;

    table_begin(&table, to, form, "<terms,alpha,gamma,operations,speed");
    for (int i = 0; i < run->cells; i++) {
        double alpha = run->cell[i].solo && run->cell[i].sequences == 1 ? alpha_of_group(run, all, i) : -1;
        char terms[RUN_TERMS];

        for (size_t g = 0; alpha >= 0 && g < sizeof gammas / sizeof *gammas; g++)
            table_row(&table, "%s\t%.2f\t%d\t%.2fX\t%.2fX", run_terms(&run->cell[i], terms), alpha, gammas[g], theory_operations(alpha, gammas[g], 0),
                      theory_improvement(alpha, gammas[g], 0));
    }
    table_end(&table);
}

static const char *name_of(const struct run *run, const char *model)
{
    const char *path = json_string_value(json_object_get(json_object_get(run->json, model), "path"));
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;

    return slash != NULL && slash[1] != '\0' ? slash + 1 : path != NULL ? path : "-";
}

void table_paper_2(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to)
{
    static struct table table;

    table_begin(&table, to, form, "<task,<Mq,<accept,temp,gamma,alpha,speed");
    for (int b = 0; b < run->cells; b++) {
        int best = measured_best(run, all, b);

        if (best >= 0)
            table_row(&table, "completion\t%s\t%s\t%g\t%d\t%.2f\t%.2fX", name_of(run, "draft"),
                      run_rule_word(run->cell[b].temperature, run->cell[b].accept), run->cell[b].temperature, run->cell[best].draft_length,
                      all->cell[best].alpha, all->cell[best].speedup);
    }
    table_end(&table);
}

int table_has_paper_5(const struct run *run)
{
    for (int i = 0; i < run->cells; i++) {
        const struct rule *rule = run_rule(run->cell[i].temperature, run->cell[i].accept);

        if (!run->cell[i].solo && rule != NULL && !rule->lossless)
            return 1;
    }
    return 0;
}

void table_paper_5(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to)
{
    static struct table table;

    table_begin(&table, to, form, "<Mq,temp,<accept,<lossless,alpha,gamma,tokens/round,speed");
    for (int b = 0; b < run->cells; b++) {
        const struct rule *rule = run_rule(run->cell[b].temperature, run->cell[b].accept);
        int best = measured_best(run, all, b);

        if (best >= 0)
            table_row(&table, "%s\t%g\t%s\t%s\t%.2f\t%d\t%.2f\t%.2fX", name_of(run, "draft"), run->cell[b].temperature,
                      run_rule_word(run->cell[b].temperature, run->cell[b].accept), rule != NULL && rule->lossless ? "yes" : "no",
                      alpha_of_group(run, all, b), run->cell[best].draft_length, all->cell[best].output_tokens / all->cell[best].rounds,
                      all->cell[best].speedup);
    }
    table_end(&table);
}

void table_phases(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to)
{
    static struct table table;

    table_begin(&table, to, form,
                "<cell,round,truncate,draft,pack,wire,order,verify,reduce,decide,broadcast,output,other,idle lead,idle drafter,overlap");
    for (int i = 0; i < run->cells; i++) {
        const struct measured *f = &all->cell[i];
        const double *us = f->phase_us;
        char name[128];

        summary_name(&run->cell[i], name, sizeof name);
        table_row(&table, "%s\t%.0f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f", name, f->round_us,
                  us[ROUND_TRUNCATE], us[ROUND_DRAFT], us[ROUND_PACK], us[ROUND_WIRE], us[ROUND_ORDER], us[ROUND_VERIFY], us[ROUND_REDUCE],
                  us[ROUND_DECIDE], us[ROUND_BROADCAST], us[ROUND_OUTPUT], us[ROUND_OTHER], f->wait_us, f->round_us - f->drafting_us, f->hidden_us);
    }
    table_end(&table);
}

void table_latency(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to)
{
    static struct table table;

    table_begin(&table, to, form,
                "<cell,TTFT p50 ms,p99,TPOT p50,p90,p99,ITL mean,p50,p99,arrival p50,p90,p99,E2E p50,p99,tokens/s");
    for (int i = 0; i < run->cells; i++) {
        const struct measured *f = &all->cell[i];
        char name[128];

        summary_name(&run->cell[i], name, sizeof name);
        table_row(&table, "%s\t%.2f\t%.2f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.1f\t%.1f\t%.0f", name, f->ttft.median, f->ttft.p99,
                  f->tpot.median, f->tpot.p90, f->tpot.p99, f->itl.mean, f->itl.median, f->itl.p99, f->round.median, f->round.p90, f->round.p99,
                  f->e2el.median, f->e2el.p99, f->tokens_per_second);
    }
    table_end(&table);
}

static void write_heading(enum table_form form, const char *heading, const char *below, FILE *to)
{
    fprintf(to, form == TABLE_TEXT ? "## %s\n\n%s\n\n" : "<h3>%s</h3>\n<p>%s</p>\n", heading, below);
}

static double field(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

static int is_kind(const json_t *row, const char *kind)
{
    const char *found = json_string_value(json_object_get(row, "kind"));

    return found != NULL && strcmp(found, kind) == 0;
}

void table_messages(const struct run_placement *placement, enum table_form form, FILE *to)
{
    static struct table table;
    json_t *row;
    size_t at;

    if (placement->latency == NULL)
        return;
    write_heading(form, "Messages", "Half a round trip of real frames through the real channel, packing and unpacking included, by what is in them. "
                                    "The other way goes the smallest frame of its kind.", to);
    table_begin(&table, to, form, "<message,draft length,support,bytes,avg us,p50,p99,min,pack us,unpack us");
    json_array_foreach (placement->latency, at, row)
        if (is_kind(row, "message"))
            table_row(&table, "%s\t%.0f\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f", json_string_value(json_object_get(row, "message")),
                      field(row, "draft_length"), field(row, "support"), field(row, "bytes"), field(row, "avg_us"), field(row, "p50_us"),
                      field(row, "p99_us"), field(row, "min_us"), field(row, "pack_us"), field(row, "unpack_us"));
    table_end(&table);
    write_heading(form, "Collectives of the group", "As nccl-tests counts them: algbw is bytes over time, busbw that times 2 (n - 1) / n for a sum "
                                                    "and (n - 1) / n for a gather.", to);
    table_begin(&table, to, form, "<operation,size B,count,<type,<redop,root,time us,algbw GB/s,busbw GB/s,#wrong");
    json_array_foreach (placement->latency, at, row)
        if (is_kind(row, "collective"))
            table_row(&table, "%s\t%.0f\t%.0f\t%s\t%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.0f", json_string_value(json_object_get(row, "operation")),
                      field(row, "bytes"), field(row, "count"), json_string_value(json_object_get(row, "type")),
                      json_string_value(json_object_get(row, "redop")), field(row, "root"), field(row, "avg_us"), field(row, "algbw"),
                      field(row, "busbw"), field(row, "wrong"));
    table_end(&table);
}

void table_ranks(const struct run_placement *placement, enum table_form form, FILE *to)
{
    static struct table table;

    table_begin(&table, to, form, "rank,<role,<host,<device,clock offset before us,after us,round trip before us,after us,spans lost");
    for (int i = 0; i < placement->ranks; i++) {
        const struct run_rank *rank = &placement->rank[i];

        table_row(&table, "%d\t%s\t%s\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%lld", rank->rank, rank->role, rank->host, rank->device,
                  (double)rank->offset_ns[0] / 1000, (double)rank->offset_ns[1] / 1000, (double)rank->round_trip_ns[0] / 1000,
                  (double)rank->round_trip_ns[1] / 1000, (long long)rank->dropped);
    }
    table_end(&table);
}

static void add_ranks(const struct run *run, const struct run_placement *placement, const struct measured_placement *all, int cell,
                      struct table *table)
{
    char name[128];

    summary_name(&run->cell[cell], name, sizeof name);
    for (int i = 0; i < placement->ranks; i++) {
        struct by_rank r = {.idle_us = 0};

        if (by_rank_sum(placement, &placement->rank[i], cell, all->cell[cell].steps, &r) != STATUS_OK)
            return;
        table_row(table, "%s\t%d\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f", name, i, placement->rank[i].role,
                  r.us[TRACE_TRUNCATE], r.us[TRACE_DRAFT], r.us[TRACE_PACK], r.us[TRACE_UNPACK], r.us[TRACE_ORDER], r.us[TRACE_VERIFY], r.reduce_us,
                  r.us[TRACE_GATHER], r.us[TRACE_DECIDE], r.us[TRACE_BROADCAST], r.us[TRACE_OUTPUT],
                  r.us[TRACE_ROUND] + r.us[TRACE_PREFILL], r.idle_us);
    }
}

void table_by_rank(const struct run *run, const struct run_placement *placement, const struct measured_placement *all, enum table_form form, FILE *to)
{
    static struct table table;

    table_begin(&table, to, form, "<cell,rank,<role,truncate,draft,pack,unpack,order,verify,reduce,gather,decide,broadcast,output,other,idle");
    for (int b = 0; b < run->cells; b++) {
        int best = measured_best(run, all, b);

        if (best < 0)
            continue;
        add_ranks(run, placement, all, b, &table);
        add_ranks(run, placement, all, best, &table);
    }
    table_end(&table);
}

void table_placements(const struct run *run, const struct measured_placement *all, enum table_form form, FILE *to)
{
    static struct table table;

    if (run->placements < 2)
        return;
    table_begin(&table, to, form, "<cell,tokens/s same-node,other-node,speedup same-node,other-node,wire us same-node,other-node,proposal one way "
                                  "us,other-node,commit one way us,other-node");
    for (int i = 0; i < run->cells; i++) {
        const struct measured *a = &all[0].cell[i], *b = &all[1].cell[i];
        char name[128];

        if (run->cell[i].solo)
            continue;
        summary_name(&run->cell[i], name, sizeof name);
        table_row(&table, "%s\t%.0f\t%.0f\t%.2fx\t%.2fx\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f", name, a->tokens_per_second, b->tokens_per_second,
                  a->speedup, b->speedup, a->phase_us[ROUND_WIRE], b->phase_us[ROUND_WIRE], a->propose_us, b->propose_us, a->commit_us, b->commit_us);
    }
    table_end(&table);
}
