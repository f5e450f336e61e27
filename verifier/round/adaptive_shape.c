/* The shape in use is held against the others in trials of a few rounds, one shape after the other, each beginning where its last trial ended. A
 * shape that seems faster then stays, until another one does. Trials come the seldomer the longer none is won. Where drafting stops, the next probe
 * is of the shape whose expected rate is highest; of one that was never tried that is what a new job expects. */
#include "verifier/round/adaptive_shape.h"

#define WORTH_CHANGING 1.03 /* times the rate of the shape that was the fastest */

enum { TRIAL_ROUNDS = 16, TRIAL_FIRST_REST = 32, TRIAL_LONGEST_REST = 1024 };

static const enum tree_kind kinds[ADAPTIVE_SHAPES] = {TREE_CHAIN, TREE_DYNAMIC, TREE_SEQUOIA, TREE_TOP_K};

void adaptive_shape_begin(struct adaptive_shape *shape, int ranks)
{
    *shape = (struct adaptive_shape){.count = ranks ? ADAPTIVE_SHAPES : 2, .trial_rest = TRIAL_FIRST_REST};
    for (int i = 0; i < shape->count; i++)
        shape->seen[i].tokens.is_tree = kinds[i] != TREE_CHAIN;
}

enum tree_kind adaptive_shape_now(const struct adaptive_shape *shape)
{
    return kinds[shape->now];
}

enum tree_kind adaptive_shape_best(const struct adaptive_shape *shape)
{
    return kinds[shape->home];
}

static void use(struct adaptive_shape *shape, struct adaptive *adaptive, int which)
{
    if (which == shape->now)
        return;
    adaptive_swap(adaptive, &shape->seen[which], &shape->seen[shape->now]);
    shape->now = which;
}

/* Expected tokens per microsecond of the shape's best size. */
static double rate_of(const struct adaptive_shape *shape, const struct adaptive *adaptive, int which, int sequences)
{
    struct adaptive other = *adaptive;
    struct adaptive_seen left;

    if (which != shape->now)
        adaptive_swap(&other, &shape->seen[which], &left);
    return adaptive_best_rate(&other, sequences);
}

/* Drafting stops, or has stopped. */
static void leave(struct adaptive_shape *shape, struct adaptive *adaptive, int sequences)
{
    int best = shape->now;

    if (!shape->drafted)
        return;
    for (int i = 0; i < shape->count; i++)
        if (rate_of(shape, adaptive, i, sequences) > rate_of(shape, adaptive, best, sequences))
            best = i;
    use(shape, adaptive, best);
    shape->home = best;
    shape->since_trial = shape->drafted = 0;
}

static void begin_trial(struct adaptive_shape *shape, struct adaptive *adaptive)
{
    do
        shape->tried = (shape->tried + 1) % shape->count;
    while (shape->tried == shape->home);
    shape->trial_rounds = TRIAL_ROUNDS;
    use(shape, adaptive, shape->tried);
}

static void end_trial(struct adaptive_shape *shape, struct adaptive *adaptive, int sequences)
{
    double here = rate_of(shape, adaptive, shape->now, sequences), home = rate_of(shape, adaptive, shape->home, sequences);

    shape->since_trial = 0;
    if (here > WORTH_CHANGING * home) {
        shape->home = shape->now;
        shape->trial_rest = TRIAL_FIRST_REST;
        return;
    }
    use(shape, adaptive, shape->home);
    shape->trial_rest = 2 * shape->trial_rest < TRIAL_LONGEST_REST ? 2 * shape->trial_rest : TRIAL_LONGEST_REST;
}

void adaptive_shape_turn(struct adaptive_shape *shape, struct adaptive *adaptive, int sequences)
{
    if (shape->count == 0)
        return;
    if (!adaptive->drafts) {
        leave(shape, adaptive, sequences);
        return;
    }
    shape->drafted = 1;
    if (adaptive->look_rounds > 0 || adaptive->probe_rounds > 0)
        return; /* these rounds say nothing of a shape */
    if (shape->now == shape->home) {
        if (++shape->since_trial >= shape->trial_rest)
            begin_trial(shape, adaptive);
    } else if (--shape->trial_rounds <= 0 || adaptive_best_rate(adaptive, sequences) <= adaptive_rate(adaptive, sequences, 0)) {
        end_trial(shape, adaptive, sequences);
    }
}
