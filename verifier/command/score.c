#include "verifier/command/score.h"

#include "common/base/grouped.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/file_map.h"
#include "common/text/utf8_stream.h"
#include "verifier/job/progress_line.h"
#include <stdlib.h>

/* A text that is being scored. */
struct score {
    const char *path;
    struct request_list windows;
    struct perplexity perplexity;
    int64_t read; /* tokens */
    struct progress_line line;
};

/* Special tokens that the text spells are plain text in it. */
static enum status encode(const struct job *job, const struct file_map *file, int32_t **tokens, int *count)
{
    size_t bad = utf8_valid((const char *)file->bytes, file->size);

    if (file->size == 0)
        log_error("--perplexity %s is empty, expected a text", file->path);
    else if (bad < file->size)
        log_error("--perplexity %s is not valid UTF-8 (byte %zu)", file->path, bad);
    else
        return tokenizer_encode(job->tokenizer, (const char *)file->bytes, file->size, TOKENIZER_ADD_SPECIAL, tokens, count, NULL);
    return STATUS_DATA;
}

static enum status read_tokens(const struct job *job, const char *path, int32_t **tokens, int *count)
{
    struct file_map file;
    enum status status;

    TRY(file_map_open(path, &file));
    status = encode(job, &file, tokens, count);
    file_map_close(&file);
    return status;
}

/* Each window begins with BOS, in the place of its first token, where the tokenizer puts one before a text. */
static enum status cut(struct score *score, const struct job *job, int32_t *tokens, int count)
{
    const struct request_terms terms = {
        .options = job->options, .tokenizer = job->tokenizer, .context = job->model->longest, .vocab = job->model->vocab};
    int window = score->perplexity.window, has_bos = count > 0 && tokens[0] == job->model->config.bos;

    if (count < window) {
        log_error("--perplexity %s has %d tokens, expected at least a window of %d (--context)", score->path, count, window);
        return STATUS_DATA;
    }
    for (int first = 0; first + window <= count; first += window) {
        if (has_bos)
            tokens[first] = job->model->config.bos;
        TRY(request_add_tokens(&score->windows, &terms, tokens + first, window, perplexity_counted(window)));
        const char *wrong = score->windows.request[score->windows.count - 1].error;

        if (wrong != NULL) {
            log_error("--perplexity %s: %s", score->path, wrong);
            return STATUS_DATA;
        }
    }
    return STATUS_OK;
}

static enum status make_windows(struct score *score, const struct job *job)
{
    int32_t *tokens = NULL;
    enum status status;
    int count;

    TRY(read_tokens(job, score->path, &tokens, &count));
    status = cut(score, job, tokens, count);
    free(tokens);
    return status;
}

static void write_words(const void *state, FILE *to)
{
    const struct score *score = state;
    const struct perplexity *perplexity = &score->perplexity;

    fprintf(to, "%d of %d windows", perplexity->windows, score->windows.count);
    if (perplexity->windows > 0)
        fprintf(to, ", perplexity %.2f +/- %.2f", perplexity_value(perplexity), perplexity_error(perplexity));
    else
        fprintf(to, ", %lld tokens read", (long long)score->read);
}

static void see_read(void *state, int tokens)
{
    struct score *score = state;

    score->read += tokens;
    if (progress_line_is_due(&score->line))
        progress_line_tell(&score->line, write_words, score);
}

static enum status see_end(void *state, const struct request *request, const struct sequence *sequence)
{
    struct score *score = state;

    for (int i = request->prompt_count - request->scores; i < request->prompt_count; i++)
        perplexity_add(&score->perplexity, (double)sequence_logprob(sequence, i)->logprob);
    score->perplexity.windows++;
    return STATUS_OK;
}

static void print(const struct perplexity *perplexity)
{
    char tokens[GROUPED_TEXT];

    printf("perplexity %.4f +/- %.4f over %s tokens in %d window%s of %d\n", perplexity_value(perplexity), perplexity_error(perplexity),
           grouped_write(perplexity->tokens, tokens), perplexity->windows, perplexity->windows == 1 ? "" : "s", perplexity->window);
    fflush(stdout);
}

/* Windows end in any order, and sums of floating point depend on it: one at a time they end in theirs. */
static enum status score_windows(struct score *score, struct job *job, struct peers *drafters)
{
    const struct lead_watch watch = {.state = score, .read = see_read, .end = see_end};
    struct figures figures;
    enum status status;

    progress_line_begin(&score->line, 0);
    status = job_pass(job, &score->windows, drafters, JOB_SOLO, 1, &watch, &figures);
    progress_line_clear(&score->line);
    if (status == STATUS_DRAINED)
        log_info("drained: %d of %d windows were read", score->perplexity.windows, score->windows.count);
    TRY(status);
    print(&score->perplexity);
    job->perplexity = &score->perplexity;
    return job_report(job, drafters, NULL, &figures, NULL, NULL);
}

enum status score_run(struct job *job, struct peers *drafters, const struct request_list *none)
{
    const struct options *options = job->options;
    int bar = options_have_bar(options);
    struct score score = {.path = options->input.perplexity,
                          .perplexity.window = job->model->longest,
                          .line = {.to = options->report.quiet ? NULL : stderr, .redrawn = bar, .clears_errors = bar}};
    enum status status;

    (void)none;
    status = make_windows(&score, job);
    if (status == STATUS_OK)
        status = score_windows(&score, job, drafters);
    request_release(&score.windows);
    return status;
}
