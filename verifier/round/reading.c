#include "verifier/round/reading.h"

#include "common/base/try.h"

enum { LEAST_COPY = 16 }; /* tokens: reading fewer is as fast as copying them */

size_t reading_bytes(int slots)
{
    size_t count = (size_t)slots;

    return arena_round(count * sizeof(struct source)) + arena_round(count * sizeof(struct sequence *)) + 2 * arena_round(count * sizeof(int));
}

void reading_init(struct reading *reading, struct arena *arena, struct verify *verify, struct sequence *sequences, int slots, int chunk)
{
    size_t count = (size_t)slots;

    *reading = (struct reading){.verify = verify, .sequence = sequences, .slots = slots, .prefill = {.chunk = chunk}};
    reading->source = arena_take(arena, count * sizeof *reading->source);
    reading->reader = arena_take(arena, count * sizeof(struct sequence *));
    reading->left = arena_take(arena, count * sizeof *reading->left);
    reading->share = arena_take(arena, count * sizeof *reading->share);
}

struct sequence *reading_choose_slot(const struct reading *reading, const struct request *request, int choice)
{
    struct sequence *best = NULL;
    int held = -1;

    for (int i = 0; i < reading->slots; i++) {
        struct sequence *sequence = &reading->sequence[i];
        int common = sequence->request == NULL ? sequence_common(sequence, request->tokens, sequence_reusable(request, choice)) : -1;

        if (common > held) {
            held = common;
            best = sequence;
        }
    }
    return best;
}

/* Tokens that the sequence may copy from the other one, now or later. An earlier request's prompt is read first, so all of it counts; of a later one,
 * which may itself wait for this sequence, only what is in the cache now: two sequences never wait for each other. */
static int offers(const struct sequence *other, const struct sequence *sequence)
{
    int common = sequence_common(other, sequence->tokens, sequence_reusable(sequence->request, sequence->choice));

    if (other->request != NULL && other->ticket > sequence->ticket && common > other->cached)
        return other->cached;
    return common;
}

static void find_source(struct reading *reading, const struct sequence *sequence)
{
    struct source *source = &reading->source[sequence->slot];

    *source = (struct source){.slot = -1, .shared = sequence->cached + LEAST_COPY - 1};
    for (int i = 0; i < reading->slots; i++) {
        const struct sequence *other = &reading->sequence[i];
        int offered = other != sequence ? offers(other, sequence) : 0;

        if (offered > source->shared)
            *source = (struct source){.slot = i, .shared = offered, .openings = other->openings};
    }
}

void reading_begin(struct reading *reading, struct sequence *sequence)
{
    reading->reused += sequence->cached;
    find_source(reading, sequence);
}

/* Copies the shared tokens once the source's cache has all of them; then the sequence reads the rest itself. Until then it waits. A source whose slot
 * was given to another request is looked for again. */
static enum status take_shared(struct reading *reading, struct sequence *sequence)
{
    struct source *source = &reading->source[sequence->slot];

    if (source->slot >= 0 && reading->sequence[source->slot].openings != source->openings)
        find_source(reading, sequence);
    if (source->slot < 0 || reading->sequence[source->slot].cached < source->shared)
        return STATUS_OK;
    const struct copy_order copy = {
        .from = source->slot, .to = sequence->slot, .first = sequence->cached, .count = source->shared - sequence->cached};
    TRY(team_copy(reading->verify->team, &copy));
    reading->reused += copy.count;
    sequence->cached = source->shared;
    source->slot = -1;
    return STATUS_OK;
}

static int reads(const struct sequence *sequence)
{
    return sequence->request != NULL && !sequence_is_read(sequence);
}

enum status reading_copy(struct reading *reading)
{
    for (int i = 0; i < reading->slots; i++)
        if (reads(&reading->sequence[i]))
            TRY(take_shared(reading, &reading->sequence[i]));
    return STATUS_OK;
}

/* Inserts the sequence into the list of readers, the oldest request first. */
static void add_reader(struct reading *reading, struct sequence *sequence, int count)
{
    int i = count;

    for (; i > 0 && reading->reader[i - 1]->ticket > sequence->ticket; i--)
        reading->reader[i] = reading->reader[i - 1];
    reading->reader[i] = sequence;
}

static int less(int a, int b)
{
    return a < b ? a : b;
}

/* Prompt tokens that the sequence lacks, of those whose logits are wanted as many as there is room for. */
static int lacking(const struct sequence *sequence, int *output_rows)
{
    int left = sequence->length - 1 - sequence->cached, scored = sequence_scored_rows(sequence, left), fit = less(scored, *output_rows);

    *output_rows -= fit;
    return left - scored + fit;
}

/* What a step has room for, and no more than the prompts lack. */
static int most_rows(const struct reading *reading, int readers, int taken)
{
    const struct model *model = reading->verify->team->shard.model;
    int usual = model_prompt_rows(model), room = less(reading->prefill.chunk > usual ? reading->prefill.chunk : usual, model->max_rows - taken);
    int64_t lacking = 0;

    for (int i = 0; i < readers; i++)
        lacking += reading->left[i];
    return lacking < room ? (int)lacking : room;
}

enum status reading_plan(struct reading *reading, int runners, int taken, int *rows)
{
    int readers = 0, output_rows = reading->verify->team->shard.max_outputs - taken;

    TRY(reading_copy(reading));
    for (int i = 0; i < reading->slots; i++)
        if (reads(&reading->sequence[i]) && reading->source[i].slot < 0)
            add_reader(reading, &reading->sequence[i], readers++);
    for (int i = 0; i < readers; i++)
        reading->left[i] = lacking(reading->reader[i], &output_rows);
    *rows = prefill_rows(&reading->prefill, readers, runners, most_rows(reading, readers, taken));
    prefill_share(reading->left, readers, *rows, reading->share);
    *rows = 0;
    for (int i = 0; i < readers; i++) {
        if (reading->share[i] > 0)
            verify_add_prompt(reading->verify, reading->reader[i], reading->share[i]);
        *rows += reading->share[i];
    }
    reading->read += *rows;
    return STATUS_OK;
}

int64_t reading_left(const struct reading *reading)
{
    int64_t left = 0;

    for (int i = 0; i < reading->slots; i++)
        if (reading->sequence[i].request != NULL)
            left += reading->sequence[i].length - 1 - reading->sequence[i].cached;
    return left;
}
