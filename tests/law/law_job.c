/* The law of a whole job's output. `law_job write DIR N [HEADS VOCAB [KV_HEADS]]` writes a pair of tiny seeded models, in llama2.c's format, and N
 * equal prompts; `law_job check DIR RESULTS` counts the first two tokens of every result and compares them with the exact law, computed from the
 * target in this process. The verdict has the bounds and the power of the other layers. */
#include "common/base/bounds.h"
#include "common/sample/distribution.h"
#include "common/sample/sparse_q.h"
#include "tests/law/budget.h"
#include "tests/law/naive_law.h"
#include "tests/support/model_rig.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 32, DIM = 32, FFN = 32, HEADS = 4, CONTEXT = 32, CELLS = VOCAB * VOCAB, PROMPT = 2, PATH_BYTES = 1024, EXIT_USAGE = 64 };
enum { LINE_BYTES = 1 << 16, ASCII = 0x7f - 'A' };
static const int32_t prompt[PROMPT] = {5, 11};

enum wrong { RIGHT, RESIDUAL_IS_P, RESIDUAL_IS_DISTANCE, Q_OF_NEXT_ROW, WRONGS };
static const char *const wrong_name[WRONGS] = {"right", "residual = p", "residual = |p - q|", "q of the next row"};

struct laws {
    double p[VOCAB + 1][VOCAB], q[VOCAB + 1][VOCAB]; /* after the prompt and a token; [VOCAB]: after the prompt alone */
};

static FILE *file_of(const char *folder, const char *name, const char *mode)
{
    char path[PATH_BYTES];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, mode);
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    return file;
}

/* Numbers about 0 that a draft has in common with its target but for a share of noise. */
static void write_numbers(FILE *file, uint32_t *at, int count, double scale, double noise)
{
    for (int i = 0; i < count; i++, (*at)++) {
        const struct rng_key key = {.seed = 41, .request = *at}, other = {.seed = 42, .request = *at};
        float value = (float)(scale * ((1 - noise) * (rng_uniform(&key, RNG_TREE) - 0.5) + noise * (rng_uniform(&other, RNG_TREE) - 0.5)));

        fwrite(&value, sizeof value, 1, file);
    }
}

static void write_ones(FILE *file, int count)
{
    const float one = 1;

    for (int i = 0; i < count; i++)
        fwrite(&one, sizeof one, 1, file);
}

static void write_model(const char *folder, const char *name, int heads, int kv_heads, int vocab, double noise)
{
    const int32_t header[] = {DIM, FFN, 1, heads, kv_heads, -vocab, CONTEXT}; /* a negative size: a head of its own */
    FILE *file = file_of(folder, name, "wb");
    uint32_t at = 0;

    fwrite(header, sizeof header, 1, file);
    write_numbers(file, &at, vocab * DIM, 2, noise);
    write_ones(file, DIM);
    write_numbers(file, &at, 2 * DIM * (DIM + DIM / heads * kv_heads), 0.6, noise); /* of queries, keys, values and outputs */
    write_ones(file, DIM);
    write_numbers(file, &at, 3 * DIM * FFN, 0.6, noise);
    write_ones(file, DIM);
    write_ones(file, CONTEXT * DIM / heads); /* room for RoPE's tables, not read */
    write_numbers(file, &at, vocab * DIM, 0.8, noise);
    fclose(file);
}

static void write_job(const char *folder, int count, int heads, int vocab, int kv_heads)
{
    FILE *file = file_of(folder, "tokenizer.bin", "wb");
    const int32_t longest = 2;

    fwrite(&longest, sizeof longest, 1, file);
    for (int i = 0; i < vocab; i++) {
        const float score = 0;
        char piece[3] = {(char)('A' + i)};
        int32_t length = 1;

        if (i >= ASCII) { /* the letters from U+00C0 on */
            piece[0] = (char)(0xc3 + (i - ASCII) / 64);
            piece[1] = (char)(0x80 + (i - ASCII) % 64);
            length = 2;
        }
        fwrite(&score, sizeof score, 1, file);
        fwrite(&length, sizeof length, 1, file);
        fwrite(piece, 1, (size_t)length, file);
    }
    fclose(file);
    write_model(folder, "target.bin", heads, kv_heads, vocab, 0);
    write_model(folder, "draft.bin", heads, kv_heads, vocab, 0.35);
    file = file_of(folder, "prompts.jsonl", "w");
    for (int i = 0; i < count; i++)
        fprintf(file, "{\"prompt_tokens\": [%d, %d]}\n", prompt[0], prompt[1]);
    fclose(file);
}

/* The model's law after the prompt, and after each token behind it. */
static void read_laws(const char *folder, const char *name, double (*p)[VOCAB])
{
    struct sampling sampling = sampling_default;
    float logits[PROMPT * VOCAB];
    struct model_rig rig;
    char path[PATH_BYTES];

    sampling.temperature = 1;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    model_rig_open(&rig, path, NULL, 1, NULL);
    model_rig_feed(&rig, 0, prompt, PROMPT, PROMPT, logits);
    naive_law(&sampling, logits + (PROMPT - 1) * VOCAB, VOCAB, prompt, PROMPT, PROMPT, p[VOCAB]);
    for (int32_t a = 0; a < VOCAB; a++) {
        const struct chain chain = {0, PROMPT, 1, &a};

        model_rig_step(&rig, &chain, 1, logits);
        naive_law(&sampling, logits, VOCAB, prompt, PROMPT, PROMPT, p[a]);
    }
    model_rig_close(&rig);
}

/* What the drafter ships of its law. */
static void quantise(double *q)
{
    struct scored_token best[VOCAB];
    double falling[VOCAB];
    struct sparse_q sparse;

    for (int i = 0; i < VOCAB; i++)
        best[i] = (struct scored_token){.score = (float)q[i], .token = i};
    distribution_sort(best, VOCAB);
    for (int i = 0; i < VOCAB; i++)
        falling[i] = q[best[i].token];
    sparse_q_fill(&sparse, best, falling, VOCAB, 1.0, VOCAB);
    memset(q, 0, VOCAB * sizeof *q);
    for (int i = 0; i < sparse.count; i++)
        q[sparse.id[i]] = (double)sparse.weight[i] / SPARSE_Q_SUM;
}

/* The law of a token that was drafted from q and judged, by a wrong verifier perhaps.  tested: [VOCAB] the q that each draft is tested with */
static void judge(enum wrong wrong, const double *p, const double *q, const double *const *tested, double *to)
{
    memset(to, 0, VOCAB * sizeof *to);
    for (int x = 0; x < VOCAB; x++) {
        const double *t = tested[x];
        double stands = t[x] > p[x] ? p[x] / t[x] : 1, residual[VOCAB], mass = 0;

        for (int v = 0; v < VOCAB; v++)
            mass += residual[v] = wrong == RESIDUAL_IS_P ? p[v] : wrong == RESIDUAL_IS_DISTANCE ? fabs(p[v] - t[v]) : fmax(0, p[v] - t[v]);
        to[x] += q[x] * stands;
        for (int v = 0; v < VOCAB; v++)
            to[v] += q[x] * (1 - stands) * residual[v] / mass;
    }
}

/* The joint law of two tokens; the second is drafted and judged in the same round or in the next one, always with a q of its own. */
static void join(enum wrong wrong, const struct laws *laws, double *cells)
{
    const double *tested[VOCAB];
    double first[VOCAB], second[VOCAB];

    for (int x = 0; x < VOCAB; x++)
        tested[x] = wrong == Q_OF_NEXT_ROW ? laws->q[x] : laws->q[VOCAB];
    judge(wrong, laws->p[VOCAB], laws->q[VOCAB], tested, first);
    for (int a = 0; a < VOCAB; a++) {
        for (int x = 0; x < VOCAB; x++)
            tested[x] = laws->q[a];
        judge(wrong, laws->p[a], laws->q[a], tested, second);
        for (int b = 0; b < VOCAB; b++)
            cells[a * VOCAB + b] = first[a] * second[b];
    }
}

/* Counts the results; returns how many, or -1 at one that has no two tokens. */
static int count_results(const char *path, int64_t *counts)
{
    static char line[LINE_BYTES];
    FILE *file = fopen(path, "r");
    int results = 0;

    if (file == NULL) {
        perror(path);
        return -1;
    }
    while (results >= 0 && fgets(line, sizeof line, file) != NULL) {
        const char *tokens = strstr(line, "\"tokens\":[");
        int a, b;

        if (tokens == NULL || sscanf(tokens, "\"tokens\":[%d,%d", &a, &b) != 2 || a < 0 || a >= VOCAB || b < 0 || b >= VOCAB) {
            fprintf(stderr, "%s: not two tokens: %s", path, line);
            results = -1;
            break;
        }
        counts[a * VOCAB + b]++;
        results++;
    }
    fclose(file);
    return results;
}

static int check_job(const char *folder, const char *results)
{
    static struct laws laws;
    static double target[CELLS], wrong[CELLS];
    static int64_t counts[CELLS];
    int count = count_results(results, counts), powerful = 1;
    struct bounds_fit fit;

    if (count < 1)
        return 1;
    read_laws(folder, "target.bin", laws.p);
    read_laws(folder, "draft.bin", laws.q);
    for (int i = 0; i <= VOCAB; i++)
        quantise(laws.q[i]);
    for (int a = 0; a < VOCAB; a++)
        for (int b = 0; b < VOCAB; b++)
            target[a * VOCAB + b] = laws.p[VOCAB][a] * laws.p[a][b];
    fit = bounds_compare(counts, target, CELLS);
    printf("%d results: df %d, G %.0f < %.0f, cell %.1f < %.1f\n", count, fit.df, fit.g, bounds_g(fit.df, BUDGET_ALARM), fit.cell,
           bounds_cell(fit.df, BUDGET_ALARM));
    for (enum wrong w = RIGHT + 1; w < WRONGS; w++) {
        join(w, &laws, wrong);
        double needed = bounds_samples(wrong, target, CELLS, BUDGET_ALARM);

        printf("'%s' would need %.0f results\n", wrong_name[w], needed);
        powerful &= count >= needed || BUDGET_SANITIZED;
    }
    if (!powerful)
        printf("too few results to find these\n");
    return fit.impossible > 0 || fit.g >= bounds_g(fit.df, BUDGET_ALARM) || fit.cell >= bounds_cell(fit.df, BUDGET_ALARM) || !powerful;
}

int main(int argc, char **argv)
{
    if ((argc == 4 || argc == 6 || argc == 7) && strcmp(argv[1], "write") == 0) {
        int heads = argc > 4 ? atoi(argv[4]) : HEADS;

        write_job(argv[2], atoi(argv[3]), heads, argc > 4 ? atoi(argv[5]) : VOCAB, argc == 7 ? atoi(argv[6]) : heads);
        return 0;
    }
    if (argc == 4 && strcmp(argv[1], "check") == 0)
        return check_job(argv[2], argv[3]);
    fprintf(stderr, "usage: law_job write DIR COUNT [HEADS VOCAB [KV_HEADS]] | check DIR RESULTS\n");
    return EXIT_USAGE;
}
