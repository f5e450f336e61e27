#include "tests/unit/launch/bench/bench_folder.h"

#include "common/base/trace.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { PROMPT = 5, TOKENS = 6, OFFSET_US = 5000 /* the drafter's clock is ahead */ };

static const char *const files[] = {"bench.json",
                                    "raw/same-node/passes.jsonl",
                                    "raw/same-node/rank-0000.csv",
                                    "raw/same-node/rank-0001.csv",
                                    "raw/same-node/clocks.csv",
                                    "raw/same-node/latency.jsonl",
                                    "report.md",
                                    "report.html",
                                    "summary.json",
                                    "rounds.csv",
                                    "trace.json",
                                    "prediction.json"};

static FILE *open_file(const struct bench_folder *folder, const char *name)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    file = fopen(path, "w");
    assert_non_null(file);
    return file;
}

static void span(FILE *file, const char *phase, double start_us, double end_us, int length, int a, int b, int c)
{
    fprintf(file, "%s,%.0f,%.0f,0,%d,%d,%d,%d\n", phase, 1000 * start_us, 1000 * end_us, length, a, b, c);
}

/* A round of the target alone: 400 us. */
static void solo_round(FILE *lead, double t, int length)
{
    span(lead, "verify", t, t + 380, 0, 1, 10000, 0);
    span(lead, "gather", t + 380, t + 390, 0, 16, 0, 0);
    span(lead, "decide", t + 390, t + 396, length, 1, 0, 0);
    span(lead, "broadcast", t + 396, t + 398, length, 1, 0, 0);
    span(lead, "output", t + 398, t + 399, 0, 0, 0, 0);
    span(lead, "round", t, t + 400, 0, 1, 0, 0);
}

/* A round with two drafts: 600 us, of which the lead waits 150. What follows accepted drafts was drafted ahead. */
static void drafted_round(FILE *lead, FILE *drafter, double t, int length, int before, int tokens)
{
    double there = t + OFFSET_US;

    if (before > 0)
        span(drafter, "truncate", there + 20, there + 22, before, length - before, 0, 0);
    span(drafter, "draft", there + 22, there + 122, length, 2, 1, 0);
    span(drafter, "pack", there + 122, there + 125, length, 2, 60, 0);
    span(lead, "unpack", t + 148, t + 150, length, 2, 0, 0);
    span(lead, "wait", t, t + 150, 0, 0, 0, 0);
    span(lead, "verify", t + 150, t + 570, 0, 3, 20000, 0);
    span(lead, "gather", t + 570, t + 580, 0, 48, 0, 0);
    span(lead, "decide", t + 580, t + 590, length, 1, 0, 0);
    span(lead, "broadcast", t + 590, t + 595, length, tokens, 2, tokens - 1);
    span(lead, "output", t + 595, t + 597, 0, 0, 0, 0);
    span(lead, "round", t, t + 600, 0, 1, 1, length - before == 3);
}

static void pass_line(FILE *passes, int cell, int repetition, int warm_up, double start, double wall, int rounds, const char *counts)
{
    fprintf(passes,
            "{\"cell\":%d,\"repetition\":%d,\"warm_up\":%s,\"start_ns\":%.0f,\"wall_ns\":%.0f,\"tokens\":%d,\"rounds\":%d,\"steps\":%d,%s,"
            "\"full_rounds\":%d,\"full_tokens\":%d,\"fallback_rounds\":0,\"overlap_error\":0.0,\"ends\":[[%.0f,%.0f,%.0f,%d,%d,\"00ff\"]]}\n",
            cell, repetition, warm_up ? "true" : "false", 1000 * start, 1000 * wall, TOKENS, rounds, rounds, counts, rounds, TOKENS, 1000 * start,
            1000 * (start + 500), 1000 * (start + wall), PROMPT, TOKENS);
}

static double write_pass(FILE *passes, FILE *lead, FILE *drafter, int cell, int repetition, int warm_up, double start, double slower)
{
    static const int tokens[] = {3, 1, 2};
    double t = start + 100;
    int length = PROMPT, before = 0;

    span(lead, "prefill", start, start + 100, PROMPT, PROMPT - 1, 0, 0);
    if (cell == 0) {
        for (int i = 0; i < TOKENS; i++, t += 400)
            solo_round(lead, t, length++);
        pass_line(passes, cell, repetition, warm_up, start, t - start, TOKENS,
                  "\"drafted\":0,\"accepted\":0,\"mean_sum_min_p_q\":0.0,\"tested\":[],\"accepted_at\":[]");
        return t + 1000;
    }
    for (int i = 0; i < 3; i++, t += 600) {
        drafted_round(lead, drafter, t, length, before, tokens[i]);
        before = length;
        length += tokens[i];
    }
    t += slower;
    pass_line(passes, cell, repetition, warm_up, start, t - start, 3,
              "\"drafted\":6,\"accepted\":3,\"mean_sum_min_p_q\":0.6,\"tested\":[3,2],\"accepted_at\":[2,1],\"answered_rounds\":3,\"run_ahead\":"
              "{\"hits\":1,\"all_accepted\":{\"rounds\":1,\"hits\":1},\"rejected\":[{\"accepted\":0,\"rounds\":1,\"hits\":0},"
              "{\"accepted\":-1,\"rounds\":9,\"hits\":9}]}");
    return t + 1000;
}

static void write_bench(const struct bench_folder *folder)
{
    FILE *file = open_file(folder, "bench.json");

    fprintf(file,
            "{\"tandem_bench\":1,\"command\":\"%s\",\"date\":\"2026-01-02T03:04:05+0000\",\"tandem\":\"0.1.0\",\"quick\":true,"
            "\"machine\":{\"processor\":\"A & B\","
            "\"cores\":2,\"memory_gb\":8.0,\"host\":\"a\",\"kernel\":\"6\",\"load\":null,\"driver\":null,\"git\":\"abc\"},\"cells\":["
            "{\"solo\":true,\"draft_length\":0,\"temperature\":0.0,\"accept\":\"rejection\",\"sequences\":1,\"baseline\":0},"
            "{\"solo\":false,\"draft_length\":2,\"temperature\":0.0,\"accept\":\"rejection\",\"sequences\":1,\"baseline\":0},"
            "{\"solo\":false,\"draft_length\":-1,\"temperature\":0.0,\"accept\":\"rejection\",\"sequences\":1,\"baseline\":0}],"
            "\"placements\":[{\"name\":\"same-node\",\"hosts\":\"\",\"line\":\"mpirun 'x' <y>\"}],\"repetitions\":2,\"warm_up\":1,\"requests\":1,"
            "\"max_tokens\":6,\"noise_limit\":0.05,\"lossless\":%s,\"synthetic_acceptance\":%g,"
            "\"target\":{\"path\":\"/m/target\",\"architecture\":\"L\",\"parameters\":100.0,\"operations_per_token\":200.0},"
            "\"draft\":{\"path\":\"/m/draft\",\"architecture\":\"L\",\"parameters\":10.0,\"operations_per_token\":20.0}}\n",
            folder->command, folder->lossless ? "true" : "false", folder->lossless ? -1.0 : 0.8);
    fclose(file);
}

static void write_raw(const struct bench_folder *folder)
{
    FILE *passes = open_file(folder, files[1]), *drafter = open_file(folder, files[2]), *lead = open_file(folder, files[3]);
    FILE *clocks = open_file(folder, files[4]), *latency = open_file(folder, files[5]);
    double t = 1000;

    fprintf(passes,
            "{\"configuration\":{},\"ranks\":[{\"rank\":0,\"role\":\"drafter\",\"host\":\"b\",\"device\":\"cpu\"},{\"rank\":1,\"role\":\"verifier\","
            "\"host\":\"a\",\"device\":\"cpu\"}],\"tandem\":\"t\",\"mpi\":\"M\",\"group\":\"self\",\"lead\":1}\n");
    fprintf(drafter, "# rank 0\n# role drafter\n# host b\n# dropped 0\n" TRACE_COLUMNS "\n");
    fprintf(lead, "# rank 1\n# role lead\n# host a\n# dropped 0\n" TRACE_COLUMNS "\n");
    for (int cell = 0; cell < 3; cell++)
        t = write_pass(passes, lead, drafter, cell, 0, 1, t, 0) + 4 * folder->clock_off_us;
    for (int r = 0; r < 2; r++)
        for (int cell = 0; cell < 3; cell++)
            t = write_pass(passes, lead, drafter, cell, r, 0, t, folder->slower[r]) + 4 * folder->clock_off_us;
    fprintf(clocks, "when,rank,measured,offset_ns,round_trip_ns\nbefore,0,1,%d,%d\nbefore,1,1,0,0\nafter,0,1,%d,4000\nafter,1,1,0,0\n",
            1000 * (OFFSET_US - folder->clock_off_us), 4000 + 2000 * folder->clock_off_us + 1000 * folder->trip_us,
            1000 * (OFFSET_US - folder->clock_off_us));
    fprintf(
        latency,
        "{\"kind\":\"message\",\"message\":\"propose\",\"draft_length\":1,\"support\":0,\"bytes\":44,\"avg_us\":5.9,\"p50_us\":5.8,\"p99_us\":9.0,"
        "\"min_us\":5.0,\"pack_us\":0.5,\"unpack_us\":0.4}\n"
        "{\"kind\":\"collective\",\"operation\":\"all_reduce\",\"bytes\":1024,\"count\":256,\"type\":\"float\",\"redop\":\"sum\",\"root\":-1,"
        "\"avg_us\":2.0,\"p50_us\":2.0,\"p99_us\":3.0,\"min_us\":1.0,\"algbw\":0.512,\"busbw\":0.512,\"wrong\":0}\n");
    fclose(passes);
    fclose(drafter);
    fclose(lead);
    fclose(clocks);
    fclose(latency);
}

void bench_folder_make(struct bench_folder *folder)
{
    char raw[128];

    snprintf(folder->path, sizeof folder->path, "/tmp/test_report_XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    snprintf(raw, sizeof raw, "%s/raw", folder->path);
    assert_int_equal(mkdir(raw, 0700), 0);
    snprintf(raw, sizeof raw, "%s/raw/same-node", folder->path);
    assert_int_equal(mkdir(raw, 0700), 0);
    write_bench(folder);
    write_raw(folder);
}

void bench_folder_cut(const struct bench_folder *folder)
{
    char path[256], text[1 << 16], *at;
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder->path, files[3]);
    file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    at = strstr(text, "# dropped 0");
    memcpy(at, "# dropped 9", 11);
    for (int i = 0; i < 7; i++) { /* up to the second repetition of the first cell */
        at = strstr(at + 1, "prefill,");
        assert_non_null(at);
    }
    *at = '\0';
    bench_folder_spoil(folder, files[3], text);
}

void bench_folder_spoil(const struct bench_folder *folder, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    if (text == NULL) {
        snprintf(path, sizeof path, "%s/%s", folder->path, name);
        assert_int_equal(unlink(path), 0);
        return;
    }
    file = open_file(folder, name);
    fputs(text, file);
    fclose(file);
}

void bench_folder_remove(const struct bench_folder *folder)
{
    char path[256];

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder->path, files[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/raw/same-node", folder->path);
    rmdir(path);
    snprintf(path, sizeof path, "%s/raw", folder->path);
    rmdir(path);
    rmdir(folder->path);
}
