#include "launch/dev/one_process/inner_drafter.h"

#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/try.h"
#include "common/options/options_paths.h"

/* The same tokens for both models, or the drafts mean something else. */
static enum status check_tokenizer(const char *path, const struct tokenizer *tokenizer)
{
    char from[4096];
    struct tokenizer *own;
    int differs;

    paths_tokenizer(path, from, sizeof from);
    TRY(tokenizer_open(from, 0, &own));
    differs = tokenizer_digest(own) != tokenizer_digest(tokenizer);
    tokenizer_close(own);
    if (!differs)
        return STATUS_OK;
    log_error("%s has another tokenizer than the target", path);
    return STATUS_DATA;
}

static enum status open_model(struct inner_drafter *inner, const struct options *options, const struct tokenizer *tokenizer, int threads)
{
    int rows = 2 * options->rounds.max_sequences;
    const struct model_options model = {.threads = threads,
                                        .max_rows = rows > BACKEND_MAX_ROWS ? rows : BACKEND_MAX_ROWS,
                                        .context = options->model.context,
                                        .slots = options->rounds.max_sequences,
                                        .layers = options->model.draft_way.layers,
                                        .skip = options->model.draft_way.skip,
                                        .vocab = options_draft_vocab(options, tokenizer_size(tokenizer)),
                                        .quantise = model_quantise(options_bits(options, 1)),
                                        .cache = options->model.cache,
                                        .drafts = 1};

    TRY(check_tokenizer(inner->path, tokenizer));
    group_open_self(&inner->alone);
    TRY(model_open(inner->path, &inner->alone, &model, &inner->model));
    inner->context = inner->model->shape.context;
    return STATUS_OK;
}

static enum status open_draft(struct inner_drafter *inner, const struct options *options, const struct tokenizer *tokenizer, int threads)
{
    inner->context = draft_context(options->model.context);
    if (options_draft_runs_model(&options->model.draft_way))
        TRY(open_model(inner, options, tokenizer, threads));
    else if (options->model.draft_way.file != NULL)
        TRY(corpus_rows_open(options->model.draft_way.file, options_draft_kind(&options->model.draft_way)->made_by, &inner->found));
    else if (options_draft_kind(&options->model.draft_way)->target_tokens)
        corpus_rows_random(tokenizer_size(tokenizer), tokenizer_digest(tokenizer), &inner->found);
    const struct draft_parts parts = {.way = &options->model.draft_way,
                                      .model = inner->model,
                                      .found = inner->found.kind != NULL ? &inner->found : NULL,
                                      .vocab = options_draft_vocab(options, tokenizer_size(tokenizer)),
                                      .slots = options->rounds.max_sequences,
                                      .support = options->rounds.support,
                                      .context = inner->context,
                                      .runs_ahead = options->rounds.shape.kind != TREE_CHAIN || options_copies(options)};
    TRY(draft_open(&inner->draft, &parts));
    const struct draft_copies copies = {
        .cascade = options->rounds.cascade != CASCADE_NONE, .first = options->rounds.copy_first, .after = options->rounds.copy_after};

    TRY(draft_copy(&inner->draft, &copies, options->rounds.max_sequences, parts.context));
    draft_stop(&inner->draft, &options->rounds.stopping);
    draft_shape(&inner->draft, &options->rounds.shape);
    return STATUS_OK;
}

enum status inner_drafter_open(struct inner_drafter *inner, const struct options *options, const struct tokenizer *tokenizer, int threads)
{
    enum status status;

    *inner = (struct inner_drafter){0};
    options_draft_path(options, inner->path);
    status = open_draft(inner, options, tokenizer, threads);
    if (status != STATUS_OK)
        inner_drafter_close(inner);
    return status;
}

void inner_drafter_close(struct inner_drafter *inner)
{
    draft_close(&inner->draft);
    model_close(inner->model);
    corpus_rows_close(&inner->found);
    *inner = (struct inner_drafter){0};
}
