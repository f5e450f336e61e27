/* Whole decodes of the embedded models on a device, held against the CPU's backend token by token.
 *
 * teacher_forced [PROMPTS [TOKENS]]      of launch/demo/golden/greedy.jsonl, from the repository's root; by default 24 and 64
 *
 * The device decodes greedily. The CPU, whose arithmetic is the reference, is fed the device's tokens, so that one token that differs does
 * not hide what comes after it. Each token must be the CPU's argmax, or a near-tie: no logit may differ by more than LARGEST_DIFFERENCE, so
 * the CPU may prefer another token by twice that at most, and only for few tokens. Then the device is fed the same tokens again, several in
 * a step, and prompt and tokens at once: every logit must have the same bits, or greedy output would depend on the drafts.
 *
 * The last line sums up. Exit: 0, 1 with a line for the first thing that does not hold, or 77 where no device answers. */
#include "common/backend/cuda/device.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/json_text.h"
#include "launch/dev/gpu/rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_DIFFERENCE 0.25f
#define MOST_NEAR_TIES     0.05
enum { MOST_TOKENS = 128, LONGEST_LINE = 1 << 16, SKIPPED = 77 };

struct tally {
    long tokens, near_ties;
    float difference, lead; /* the largest of each */
};

struct course {
    struct rig device, cpu;
    int32_t text[BACKEND_MAX_ROWS + MOST_TOKENS + 1]; /* a prompt, then the device's tokens */
    int prompt, tokens;
    float *logits; /* [MOST_TOKENS][vocab] that each token was chosen from, on the device */
    struct tally tally;
};

/* The token ids of `key` in a line of the golden file. */
static enum status read_prompt(const char *line, struct course *course)
{
    const struct json_text_limits limits = {.depth = 4, .values = LONGEST_LINE};
    char fault[JSON_TEXT_FAULT];
    json_t *root, *ids;

    if (json_text_read(line, strlen(line), 0, &limits, &root, fault) != STATUS_OK) {
        log_error("a line of prompts is %s", fault);
        return STATUS_DATA;
    }
    ids = json_object_get(root, "prompt_tokens");
    course->prompt = 0;
    for (size_t i = 0; i < json_array_size(ids) && i < BACKEND_MAX_ROWS; i++)
        course->text[course->prompt++] = (int32_t)json_integer_value(json_array_get(ids, i));
    json_decref(root);
    if (course->prompt > 0)
        return STATUS_OK;
    log_error("a line of prompts has no prompt_tokens");
    return STATUS_DATA;
}

static enum status decode(struct course *course)
{
    size_t vocab = (size_t)course->device.model->vocab;
    int n = course->prompt;

    TRY(rig_step(&course->device, course->text, 0, n, 1));
    for (int i = 0; i < course->tokens; i++, n++) {
        memcpy(course->logits + (size_t)i * vocab, course->device.logits, vocab * sizeof *course->logits);
        course->text[n] = rig_best(&course->device, 0);
        TRY(rig_step(&course->device, &course->text[n], n, 1, 1));
    }
    return STATUS_OK;
}

/* Token i of those decoded, whose logits on the CPU are these. */
static enum status compare(struct course *course, int i, const float *cpu)
{
    int vocab = course->cpu.model->vocab, best = 0;
    const float *device = course->logits + (size_t)i * (size_t)vocab;
    int32_t token = course->text[course->prompt + i];
    float lead;

    for (int v = 0; v < vocab; v++) {
        float difference = fabsf(device[v] - cpu[v]);

        if (!(difference <= LARGEST_DIFFERENCE)) { /* NaN as well */
            log_error("token %d: the logit of %d is %g on the device and %g on the CPU, expected at most %g between them", i, v,
                      (double)device[v], (double)cpu[v], (double)LARGEST_DIFFERENCE);
            return STATUS_CHECK;
        }
        course->tally.difference = difference > course->tally.difference ? difference : course->tally.difference;
        best = cpu[v] > cpu[best] ? v : best;
    }
    lead = cpu[best] - cpu[token];
    course->tally.tokens++;
    course->tally.near_ties += token != best;
    course->tally.lead = lead > course->tally.lead ? lead : course->tally.lead;
    return STATUS_OK;
}

static enum status follow(struct course *course)
{
    int vocab = course->cpu.model->vocab, n = course->prompt;

    TRY(rig_step(&course->cpu, course->text, 0, n, 1));
    TRY(compare(course, 0, course->cpu.logits));
    for (int i = 1, count; i < course->tokens; i += count) {
        count = course->tokens - i < BACKEND_MAX_ROWS ? course->tokens - i : BACKEND_MAX_ROWS;
        TRY(rig_step(&course->cpu, &course->text[n + i - 1], n + i - 1, count, count));
        for (int r = 0; r < count; r++)
            TRY(compare(course, i + r, course->cpu.logits + (size_t)r * (size_t)vocab));
    }
    return STATUS_OK;
}

/* The device again, `rows` tokens in a step. */
static enum status repeat(struct course *course, int rows)
{
    size_t vocab = (size_t)course->device.model->vocab;
    int n = course->prompt;

    for (int i = 1, count; i < course->tokens; i += count) {
        count = course->tokens - i < rows ? course->tokens - i : rows;
        TRY(rig_step(&course->device, &course->text[n + i - 1], n + i - 1, count, count));
        if (memcmp(course->device.logits, course->logits + (size_t)i * vocab, (size_t)count * vocab * sizeof(float)) != 0) {
            log_error("token %d and those after it have other bits when %d are fed in a step than one by one", i, rows);
            return STATUS_CHECK;
        }
    }
    return STATUS_OK;
}

/* The device again, all in one step, as a prompt goes. */
static enum status repeat_at_once(struct course *course)
{
    size_t vocab = (size_t)course->device.model->vocab;

    TRY(rig_step(&course->device, course->text, 0, course->prompt + course->tokens - 1, course->tokens));
    if (memcmp(course->device.logits, course->logits, (size_t)course->tokens * vocab * sizeof(float)) == 0)
        return STATUS_OK;
    log_error("tokens have other bits when all %d are fed in a step than one by one", course->prompt + course->tokens - 1);
    return STATUS_CHECK;
}

static enum status run_prompts(struct course *course, FILE *file, int prompts)
{
    static char line[LONGEST_LINE];

    for (int i = 0; i < prompts && fgets(line, sizeof line, file) != NULL; i++) {
        TRY(read_prompt(line, course));
        TRY(decode(course));
        TRY(follow(course));
        TRY(repeat(course, 5));
        TRY(repeat(course, BACKEND_MAX_ROWS));
        TRY(repeat_at_once(course));
    }
    return STATUS_OK;
}

static enum status judge(const struct tally *tally, const char *model)
{
    printf("tokens,1,%s,%ld,tokens\nnear_ties,1,%s,%ld,tokens\nlargest_difference,1,%s,%g,logit\nlargest_lead,1,%s,%g,logit\n", model,
           tally->tokens, model, tally->near_ties, model, (double)tally->difference, model, (double)tally->lead);
    if (tally->tokens > 0 && (double)tally->near_ties <= MOST_NEAR_TIES * (double)tally->tokens)
        return STATUS_OK;
    log_error("%ld of %ld tokens of the %s are not the CPU's argmax, expected at most %g of them", tally->near_ties, tally->tokens, model,
              MOST_NEAR_TIES);
    return STATUS_CHECK;
}

static enum status run_model(const char *name, int prompts, int tokens, struct tally *sum)
{
    struct model_options options = {.threads = 1, .max_rows = BACKEND_MAX_ROWS + MOST_TOKENS, .backend = &backend_cuda};
    struct course course = {.tokens = tokens};
    FILE *file = fopen("launch/demo/golden/greedy.jsonl", "r");
    enum status status;
    char path[64];

    if (file == NULL) {
        log_error("launch/demo/golden/greedy.jsonl cannot be read, expected to run in the repository's root");
        return STATUS_NOINPUT;
    }
    snprintf(path, sizeof path, "launch/demo/%s", name);
    TRY_TO(rig_open_files(&course.device, path, &options), close_file);
    options.backend = &backend_cpu;
    TRY_TO(rig_open_files(&course.cpu, path, &options), close_device);
    course.logits = malloc((size_t)MOST_TOKENS * (size_t)course.cpu.model->vocab * sizeof *course.logits);
    if (course.logits == NULL) {
        log_error("no memory for the logits of %d tokens", MOST_TOKENS);
        TRY_TO(STATUS_INTERNAL, close_cpu);
    }
    printf("# %s, %s\n", name, course.device.model->backend->describe(course.device.model->context));
    TRY_TO(run_prompts(&course, file, prompts), close_cpu);
    status = judge(&course.tally, name);
    sum->tokens += course.tally.tokens;
    sum->near_ties += course.tally.near_ties;
    sum->difference = fmaxf(sum->difference, course.tally.difference);

close_cpu:
    free(course.logits);
    rig_close(&course.cpu);
close_device:
    rig_close(&course.device);
close_file:
    fclose(file);
    return status;
}

int main(int count, char **words)
{
    long prompts = count > 1 ? strtol(words[1], NULL, 10) : 24, tokens = count > 2 ? strtol(words[2], NULL, 10) : 64;
    struct tally sum = {0};
    struct device_lack lack;
    enum status status;

    log_init("teacher_forced", LOG_INFO);
    if (count > 3 || prompts < 1 || tokens < 2 || tokens > MOST_TOKENS) {
        log_error("usage: %s [PROMPTS [TOKENS]], at most %d tokens", words[0], MOST_TOKENS);
        return STATUS_USAGE;
    }
    if (device_count(&lack) == 0) {
        printf("skipped: no device answers: %s\n", lack.why);
        return SKIPPED;
    }
    status = run_model("target", (int)prompts, (int)tokens, &sum);
    if (status == STATUS_OK)
        status = run_model("draft", (int)prompts, (int)tokens, &sum);
    if (status == STATUS_OK)
        printf("%ld tokens: %ld near-ties, the rest the CPU's argmax; logits differ by %.4f at most; the same bits at 1, 5 and %d rows and all at "
               "once\n",
               sum.tokens, sum.near_ties, (double)sum.difference, BACKEND_MAX_ROWS);
    return (int)status;
}
