#include "verifier/output.h"

#include "common/base/log.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum status output_open(struct output *output, const char *path, int first, int count)
{
    *output = (struct output){.path = path, .first = first, .count = count};
    output->line = calloc((size_t)count + 1, sizeof *output->line);
    if (output->line == NULL) {
        log_error("no memory for %d results", count);
        return STATUS_INTERNAL;
    }
    if (path == NULL)
        return STATUS_OK;
    output->file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    if (output->file == NULL) {
        log_error("--output %s: %s", path, strerror(errno));
        return STATUS_IO;
    }
    return STATUS_OK;
}

static enum status write_failed(const struct output *output)
{
    log_error("cannot write results to %s: %s", output->path, strerror(errno));
    return STATUS_IO;
}

enum status output_close(struct output *output)
{
    enum status status = STATUS_OK;

    for (int i = 0; i < output->count; i++)
        free(output->line[i]);
    free(output->line);
    if (output->file != NULL && (fflush(output->file) != 0 || ferror(output->file) || (output->file != stdout && fclose(output->file) != 0)))
        status = write_failed(output);
    *output = (struct output){0};
    return status;
}

static double ms(int64_t ns)
{
    return (double)(ns / 1000) / 1000.0;
}

static json_t *tokens_of(const struct sequence *sequence)
{
    json_t *array = json_array();

    for (int i = sequence->request->prompt_count; i < sequence->length; i++)
        json_array_append_new(array, json_integer(sequence->tokens[i]));
    return array;
}

static json_t *speculation_of(const struct sequence *sequence)
{
    double rounds = (double)sequence->rounds, judged = (double)sequence->judged, accepted = (double)sequence->accepted;

    return json_pack("{s:I, s:I, s:I, s:f, s:f}", "rounds", (json_int_t)sequence->rounds, "drafted", (json_int_t)sequence->drafted,
                     "accepted", (json_int_t)sequence->accepted, "alpha", judged > 0 ? accepted / judged : 0.0,
                     "mean_accepted_length", rounds > 0 ? (double)sequence->completion.count / rounds : 0.0);
}

static json_t *timing_of(const struct sequence *sequence)
{
    int count = sequence->completion.count;

    return json_pack("{s:f, s:f, s:f}", "ttft_ms", ms(sequence->first_ns - sequence->started_ns), "tpot_ms",
                     count > 1 ? ms(sequence->ended_ns - sequence->first_ns) / (count - 1) : 0.0, "e2e_ms",
                     ms(sequence->ended_ns - sequence->started_ns));
}

static json_t *result_of(const struct request *request, const struct sequence *sequence)
{
    json_t *id = request->id != NULL ? json_loads(request->id, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : json_integer(request->index);
    json_t *result = json_pack("{s:o, s:i}", "id", id, "index", (int)request->index);

    if (sequence == NULL) {
        json_object_set_new(result, "text", json_string(""));
        json_object_set_new(result, "tokens", json_array());
        json_object_set_new(result, "finish_reason", json_string("error"));
        json_object_set_new(result, "error", json_string(request->error));
    } else {
        json_object_set_new(result, "text", json_stringn(sequence->completion.text, sequence->completion.length));
        json_object_set_new(result, "tokens", tokens_of(sequence));
        json_object_set_new(result, "finish_reason", json_string(completion_reason(sequence->completion.finish)));
    }
    json_object_set_new(result, "usage",
                        json_pack("{s:i, s:i}", "prompt_tokens", sequence == NULL ? 0 : request->prompt_count, "completion_tokens",
                                  sequence == NULL ? 0 : sequence->completion.count));
    if (sequence != NULL) {
        json_object_set_new(result, "speculation", speculation_of(sequence));
        json_object_set_new(result, "timing", timing_of(sequence));
    }
    return result;
}

enum status output_add(struct output *output, const struct request *request, const struct sequence *sequence)
{
    int at = (int)request->index - output->first;
    json_t *result;

    output->failed += sequence == NULL;
    if (output->file == NULL)
        return STATUS_OK;
    result = result_of(request, sequence);
    output->line[at] = json_dumps(result, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(result);
    if (output->line[at] == NULL) {
        log_error("no memory for the result of request %u", request->index);
        return STATUS_INTERNAL;
    }
    for (; output->next < output->count && output->line[output->next] != NULL; output->next++) {
        if (fprintf(output->file, "%s\n", output->line[output->next]) < 0 || fflush(output->file) != 0)
            return write_failed(output);
        free(output->line[output->next]);
        output->line[output->next] = NULL;
    }
    return STATUS_OK;
}
