/* The rounds of one prompt as a page to step through, beside the report, in the way of a cell with drafts. */
#include "launch/bench/sweep/bench.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/json_text.h"
#include "common/sample/rule.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LONGEST = 100000, /* bytes of a prompt: a word of a command has room for 128 KiB */
    USUAL_LENGTH = 4,
    MOST_TOKENS = 64 /* a page that is turned by hand */
};

/* Of the first terms that have drafts the longest fixed proposals; one whose rule has a number of its own is not taken. */
static const struct plan_cell *shown(const struct plan *plan)
{
    const struct plan_cell *best = NULL;

    for (int i = 0; i < plan->cells; i++) {
        const struct plan_cell *cell = &plan->cell[i];

        if (cell->solo || cell->draft_length == 0 || cell->rule.number >= 0 || (best != NULL && cell->baseline != best->baseline))
            continue;
        if (best == NULL || cell->draft_length > best->draft_length)
            best = cell;
    }
    return best;
}

/* The first line of the prompts that are measured; NULL where there is none, or no JSON. */
static json_t *first_line(const struct bench *bench)
{
    static const struct json_text_limits limits = {.depth = 16, .values = 1 << 20};
    char path[PATH_MAX], fault[JSON_TEXT_FAULT], *line = NULL;
    size_t room = 0;
    json_t *object = NULL;
    FILE *file;

    snprintf(path, sizeof path, "%.3000s/prompts.jsonl", bench->output);
    file = fopen(path, "r");
    if (file == NULL)
        return NULL;
    if (getline(&line, &room, file) >= 0)
        json_text_read(line, strlen(line), 0, &limits, &object, fault);
    free(line);
    fclose(file);
    return object;
}

static enum status add_all(struct bench *bench, const struct plan_cell *cell, const char *prompt, const char *page, struct child_words *words)
{
    int length = cell->draft_length == PLAN_AUTO ? USUAL_LENGTH : cell->draft_length;
    int tokens = bench->plan.options.max_tokens < MOST_TOKENS ? bench->plan.options.max_tokens : MOST_TOKENS;
    const char *added[] = {"--explain-page", page,           "--draft-length", bench->text[0], "--temperature", bench->text[1],
                           "--accept",       bench->text[2], "--max-tokens",   bench->text[3], "--ignore-eos",  "--quiet"};

    snprintf(bench->text[0], PATH_MAX, "%d", length);
    snprintf(bench->text[1], PATH_MAX, "%g", cell->temperature);
    snprintf(bench->text[2], PATH_MAX, "%s", rule_name(cell->rule.accept));
    snprintf(bench->text[3], PATH_MAX, "%d", tokens);
    TRY(bench_begin_words(bench, 0, NULL, words));
    if (prompt != NULL) {
        TRY(child_add(words, "--prompt"));
        TRY(child_add(words, prompt));
    }
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        TRY(child_add(words, added[i]));
    return STATUS_OK;
}

void bench_show_rounds(struct bench *bench, int *code)
{
    const struct plan_cell *cell = shown(&bench->plan);
    char page[PATH_MAX], said[PATH_MAX];
    json_t *line = bench->run.input.prompt == NULL ? first_line(bench) : NULL;
    const char *prompt = json_string_value(json_object_get(line, "prompt"));
    struct child_words words;
    enum status status = STATUS_OK;
    int failed = 0;

    if (cell == NULL || bench->plan.options.synthetic) {
        /* no draft was judged */
    } else if (bench->run.input.prompt == NULL && prompt == NULL) {
        log_info("no rounds.html: the first prompt that was measured is none with a \"prompt\" of one text");
    } else if (prompt != NULL && strlen(prompt) > LONGEST) {
        log_info("no rounds.html: the first prompt that was measured is too long for a command line");
    } else {
        snprintf(page, sizeof page, "%.3000s/rounds.html", bench->output);
        snprintf(said, sizeof said, "%.3000s/raw/%s/rounds.txt", bench->output, bench->placement[0].name);
        status = add_all(bench, cell, prompt, page, &words);
        if (status == STATUS_OK)
            status = child_run(&words, said, &failed);
        if (failed != 0 || status != STATUS_OK)
            log_info("no rounds.html: the job that shows the rounds of a prompt failed, as said above");
        *code = child_told() != 0 ? failed : *code;
    }
    json_decref(line);
}
