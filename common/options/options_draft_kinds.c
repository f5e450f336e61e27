/* The registry of drafter kinds. */
#include "common/base/log.h"
#include "common/options/options_draft.h"
#include "common/sample/sampling.h"

static enum status check_lookup(const struct options_draft *draft)
{
    if (draft->min <= draft->max)
        return STATUS_OK;
    log_error("--draft lookup: min is %d and max is %d, expected min <= max", draft->min, draft->max);
    return STATUS_USAGE;
}

static enum status check_self(const struct options_draft *draft)
{
    if (draft->layers > 0 || draft->bits > 0 || layer_set_count(&draft->skip, LAYER_SET_LAYERS) > 0)
        return STATUS_OK;
    log_error("--draft self needs bits=4 or bits=8, to which the target's weights are rounded, layers=N, its first N layers, or skip=LIST, layers "
              "that it leaves out, or some of these");
    return STATUS_USAGE;
}

static enum status check_file(const struct options_draft *draft)
{
    const struct options_draft_kind *kind = options_draft_kind(draft);

    if (draft->file != NULL && *draft->file != '\0')
        return STATUS_OK;
    log_error("--draft %s needs a file, as %s:FILE; tandem %s makes one of texts", kind->name, kind->name, kind->made_by);
    return STATUS_USAGE;
}

int options_draft_own_tree(const struct options_draft *draft)
{
    return (draft->window + draft->guesses) * (draft->ngram - 1);
}

static enum status check_lookahead(const struct options_draft *draft)
{
    if (draft->ngram < 2)
        log_error("--draft lookahead: ngram is %d, expected a whole number from 2 to 8", draft->ngram);
    else if (options_draft_own_tree(draft) > SAMPLING_MAX_DRAFT)
        log_error("--draft lookahead: window=%d,ngram=%d,guesses=%d make (window + guesses) * (ngram - 1) = %d drafts, expected %d at most",
                  draft->window, draft->ngram, draft->guesses, options_draft_own_tree(draft), SAMPLING_MAX_DRAFT);
    else
        return STATUS_OK;
    return STATUS_USAGE;
}

const struct options_draft_kind options_draft_kinds[DRAFTER_KINDS] = {
    /* This kind is chosen by giving a model's path, never by its name. */
    [DRAFT_MODEL] = {.name = "model",
                     .form = "PATH",
                     .what = "a smaller model of the same tokenizer, which is usually the fastest",
                     .source = "Leviathan et al. 2023, section 2",
                     .own_model = 1,
                     .draws = 1,
                     .usual = {.kind = DRAFT_MODEL}},
    [DRAFT_LOOKUP] = {.name = "lookup",
                      .form = "lookup[:min=N,max=N,job=1]",
                      .what = "copies of what followed the last tokens before, in prompt and output, and with job=1 in the job's other texts",
                      .source = "Saxena 2023, prompt lookup; Yang et al. 2023, LLMA",
                      .architecture = "copies",
                      .usual = {.kind = DRAFT_LOOKUP, .min = 1, .max = 4},
                      .key = {{"min", offsetof(struct options_draft, min), 1, OPTIONS_DRAFT_LONGEST, "a whole number from 1 to 16"},
                              {"max", offsetof(struct options_draft, max), 1, OPTIONS_DRAFT_LONGEST, "a whole number from 1 to 16"},
                              {"job", offsetof(struct options_draft, job), 1, 1, "1"}},
                      .check = check_lookup},
    [DRAFT_SELF] = {.name = "self",
                    .form = "self:[bits=4|8][,layers=N][,skip=LIST]",
                    .what = "the target's own weights, rounded to so many bits, or its first layers alone, or without some of its layers (skip=3+8-11, from 0; "
                            "tandem layers finds them), or several of these",
                    .source = "Elhoushi et al. 2024, LayerSkip, without its training; Zhang et al. 2024, Draft & Verify",
                    .target_model = 1,
                    .draws = 1,
                    .usual = {.kind = DRAFT_SELF},
                    .key = {{"bits", offsetof(struct options_draft, bits), 4, 8, "4 or 8"},
                            {"layers", offsetof(struct options_draft, layers), 1, 4096, "a whole number from 1 to 4096"},
                            {"skip", offsetof(struct options_draft, skip), 0, 0, "rising layers from 0 to 127, as 3+8-11, in less than 200 characters"}},
                    .check = check_self},
    [DRAFT_NGRAM] = {.name = "ngram",
                     .form = "ngram:FILE",
                     .what = "how often each token followed the last ones in texts that tandem ngram counted",
                     .source = "Leviathan et al. 2023, section 3.6; Kneser and Ney 1995, smoothed as by Chen and Goodman 1998",
                     .made_by = "ngram",
                     .draws = 1,
                     .architecture = "n-grams",
                     .usual = {.kind = DRAFT_NGRAM},
                     .check = check_file},
    [DRAFT_RETRIEVAL] = {.name = "retrieval",
                         .form = "retrieval:FILE",
                         .what = "what followed the longest end of the text, of 2 tokens or more, in the texts of a tandem datastore",
                         .source = "He et al. 2023, REST; Liu et al. 2024, infini-gram",
                         .made_by = "datastore",
                         .draws = 1,
                         .architecture = "texts",
                         .usual = {.kind = DRAFT_RETRIEVAL},
                         .check = check_file},
    [DRAFT_RANDOM] = {.name = "random",
                      .form = "random",
                      .what = "any tokens, all nearly as probable: what drafts are worth that know nothing",
                      .source = "Leviathan et al. 2023, section 3.6",
                      .target_tokens = 1,
                      .draws = 1,
                      .architecture = "nothing",
                      .usual = {.kind = DRAFT_RANDOM}},
    [DRAFT_LOOKAHEAD] =
        {.name = "lookahead",
         .form = "lookahead[:window=N,ngram=N,guesses=N]",
         .what = "n-grams of the target's own guesses, which rows beside the drafts make: `window` places are guessed at once (4), an n-gram has "
                 "`ngram` tokens (3), `guesses` of them are tried (2)",
         .source = "Fu et al. 2024, Lookahead Decoding; Santilli et al. 2023, Jacobi decoding",
         .own_tree = 1,
         .hears_target = 1,
         .architecture = "guesses",
         .usual = {.kind = DRAFT_LOOKAHEAD, .window = 4, .ngram = 3, .guesses = 2},
         .key = {{"window", offsetof(struct options_draft, window), 1, 31, "a whole number from 1 to 31"},
                 {"ngram", offsetof(struct options_draft, ngram), 1, 8, "a whole number from 2 to 8"},
                 {"guesses", offsetof(struct options_draft, guesses), 1, 8, "a whole number from 1 to 8"}},
         .check = check_lookahead},
};
