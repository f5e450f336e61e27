/* A round: the draft feeds the committed tokens that it has not seen and then its own guesses, as a drafter does; the target feeds the newest
 * committed token and all guesses in one step; guesses are kept as long as they are the target's argmax, and the target's next token
 * follows. Both caches are cut by feeding again from an earlier place.
 *
 * The tokens are compared with those of the target alone: bits of a row do not depend on the rows beside it, so they must be the same. */
#include "launch/dev/gpu/speculation.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/try.h"
#include "launch/dev/gpu/rig.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pair {
    struct rig target, draft;
    int context, tokens, length;
    int32_t *solo;   /* [context + tokens + BACKEND_MAX_ROWS] the prompt and what the target says */
    int32_t *paired; /* the same by both */
};

struct tally {
    int64_t draft_ns, verify_ns, all_ns;
    int rounds, draft_steps, accepted;
};

static enum status decode_solo(struct pair *pair, double *seconds)
{
    int64_t start = clock_ns();

    for (int n = pair->context; n < pair->context + pair->tokens; n++) {
        TRY(rig_ask(&pair->target, &pair->solo[n - 1], n - 1, 1, 1));
        pair->solo[n] = rig_best(&pair->target, 0);
    }
    *seconds = (double)(clock_ns() - start) * 1e-9;
    return STATUS_OK;
}

/* tokens[n ..] become the guesses; the draft has seen the places before `seen`. */
static enum status draft(struct pair *pair, int n, int seen, struct tally *tally)
{
    int64_t start = clock_ns();

    TRY(rig_draft(&pair->draft, &pair->paired[seen], seen, n - seen, pair->length, &pair->paired[n]));
    tally->draft_steps += pair->length;
    tally->draft_ns += clock_ns() - start;
    return STATUS_OK;
}

/* Returns in `kept` how many of the guesses at tokens[n ..] stay, and puts the target's own token behind them. */
static enum status verify(struct pair *pair, int n, int *kept, struct tally *tally)
{
    int64_t start = clock_ns();
    int i = 0;

    TRY(rig_ask(&pair->target, &pair->paired[n - 1], n - 1, pair->length + 1, pair->length + 1));
    tally->verify_ns += clock_ns() - start;
    while (i < pair->length && rig_best(&pair->target, i) == pair->paired[n + i])
        i++;
    pair->paired[n + i] = rig_best(&pair->target, i);
    *kept = i;
    return STATUS_OK;
}

static enum status decode_paired(struct pair *pair, struct tally *tally)
{
    int64_t start = clock_ns();
    int n = pair->context, seen = n - 1, kept;

    *tally = (struct tally){0};
    while (n < pair->context + pair->tokens) {
        TRY(draft(pair, n, seen, tally));
        TRY(verify(pair, n, &kept, tally));
        seen = kept < pair->length ? n + kept : n + kept - 1; /* the last guess was never fed to the draft */
        n += kept + 1;
        tally->accepted += kept;
        tally->rounds++;
    }
    tally->all_ns = clock_ns() - start;
    return STATUS_OK;
}

static void tell(const struct pair *pair, const struct tally *tally, double solo_seconds)
{
    double rounds = tally->rounds, tokens = tally->accepted + rounds;
    int rows = pair->length + 1, at = pair->context;

    printf("solo,1,%d,%.2f,tokens/s\n", at, pair->tokens / solo_seconds);
    printf("speculation,%d,%d,%.2f,tokens/s\n", rows, at, tokens / ((double)tally->all_ns * 1e-9));
    printf("acceptance,%d,%d,%.4f,of drafts\n", rows, at, tally->accepted / (rounds * pair->length));
    printf("tokens_per_round,%d,%d,%.4f,tokens\n", rows, at, tokens / rounds);
    printf("draft_step,1,%d,%.2f,us\n", at, (double)tally->draft_ns * 1e-3 / tally->draft_steps);
    printf("verify,%d,%d,%.2f,us\n", rows, at, (double)tally->verify_ns * 1e-3 / rounds);
    printf("round_overhead,%d,%d,%.2f,us\n", rows, at, (double)(tally->all_ns - tally->draft_ns - tally->verify_ns) * 1e-3 / rounds);
}

static enum status measure(struct pair *pair, int say)
{
    struct tally tally;
    double seconds;
    size_t end = (size_t)(pair->context + pair->tokens);

    TRY(decode_solo(pair, &seconds));
    TRY(decode_paired(pair, &tally));
    if (say)
        tell(pair, &tally, seconds);
    if (memcmp(pair->solo, pair->paired, end * sizeof *pair->solo) == 0)
        return STATUS_OK;
    for (int n = 0; n < (int)end; n++)
        if (pair->solo[n] != pair->paired[n]) {
            log_error("token %d is %d with drafts and %d without: a row's bits depend on the rows beside it", n, pair->paired[n],
                      pair->solo[n]);
            break;
        }
    return STATUS_CHECK;
}

static enum status fill(struct pair *pair)
{
    size_t count = (size_t)(pair->context + pair->tokens + BACKEND_MAX_ROWS);

    pair->solo = calloc(count, sizeof *pair->solo);
    pair->paired = calloc(count, sizeof *pair->paired);
    if (pair->solo == NULL || pair->paired == NULL) {
        log_error("no memory for %zu tokens", count);
        return STATUS_INTERNAL;
    }
    for (int n = 0; n < pair->context; n++)
        pair->solo[n] = pair->paired[n] = rig_token(&pair->target, n);
    TRY(rig_fill(&pair->draft, 0, pair->context));
    return rig_fill(&pair->target, 0, pair->context);
}

enum status speculation_run(const struct settings *settings, const struct backend *backend)
{
    struct pair pair = {.context = settings->context[0], .tokens = settings->tokens, .length = settings->length};
    struct seeded_options options = {.shape = settings->shape,
                                     .first = settings->first,
                                     .further = settings->further,
                                     .context = pair.context + pair.tokens + BACKEND_MAX_ROWS,
                                     .max_rows = backend->step.prompt_rows,
                                     .max_outputs = BACKEND_MAX_ROWS,
                                     .threads = settings->threads};
    enum status status;

    TRY(rig_open_seeded(&pair.target, &options, backend));
    options.layers = settings->first;
    options.drafts = 1;
    TRY_TO(rig_open_seeded(&pair.draft, &options, backend), close_target);
    printf("# %s, %s\n", settings->shape->name, backend->describe(pair.target.model->context));
    TRY_TO(fill(&pair), close_draft);
    TRY_TO(measure(&pair, 0), close_draft); /* to warm up */
    for (int turn = 0; settings_next_turn(settings, turn); turn++)
        TRY_TO(measure(&pair, 1), close_draft);

close_draft:
    rig_close(&pair.draft);
close_target:
    rig_close(&pair.target);
    free(pair.solo);
    free(pair.paired);
    return status;
}
