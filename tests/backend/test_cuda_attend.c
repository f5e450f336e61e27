/* Attention of the CUDA backend against the CPU's, over caches that hold the same numbers. The bound is derived for each output (allowed).
 */
#include "tests/backend/device_rig.h"
#include "tests/support/e4m3.h"

#include "common/backend/cuda/kernels.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 3, MOST_CONTEXT = 5200, MOST_ROWS = 64 };

/* Of the cache */
static int context_length = 400;
static int processors; /* that a launch is told of; 0: those of the device */

/* Consecutive rows of one slot: a chain, or a tree whose rows see random ones before them. */
struct run {
    int slot, base, count, is_tree;
};

struct step {
    struct layer_shape shape;
    struct rows rows;
    int32_t token[MOST_ROWS], position[MOST_ROWS], slot[MOST_ROWS], place[MOST_ROWS], base[MOST_ROWS];
    uint64_t ancestors[MOST_ROWS];
    float *q;                 /* [rows][heads][head_dim] */
    uint16_t *keys, *values;  /* [SLOTS][kv_heads][context_length][head_dim] */
    uint8_t *bytes[2];        /* the same in E4M3, which the device is then given; NULL: it is not */
    struct cache_layer cache; /* the same, as the CPU wants it */
};

static size_t cache_count(const struct step *step)
{
    return (size_t)SLOTS * (size_t)step->shape.kv_heads * (size_t)context_length * (size_t)step->shape.head_dim;
}

static size_t row_count(const struct step *step)
{
    return (size_t)step->shape.heads * (size_t)step->shape.head_dim;
}

static size_t cache_at(const struct step *step, int slot, int h, int place, int d)
{
    return (((size_t)slot * (size_t)step->shape.kv_heads + (size_t)h) * (size_t)context_length + (size_t)place) * (size_t)step->shape.head_dim +
           (size_t)d;
}

static void add_run(struct step *step, struct run run, struct random *random)
{
    for (int i = 0; i < run.count; i++) {
        int r = step->rows.count++;
        uint64_t before = (UINT64_C(1) << i) - 1, own = UINT64_C(1) << i;

        step->slot[r] = run.slot;
        step->base[r] = run.base;
        step->place[r] = run.base + i;
        step->ancestors[r] = own | (run.is_tree ? ((uint64_t)random_word(random) << 32 | random_word(random)) & before : before);
    }
}

/* The numbers of the cache into both forms of it. */
static void copy_cache(const struct step *step)
{
    for (int head = 0; head < SLOTS * step->shape.kv_heads; head++)
        for (int place = 0; place < context_length; place++)
            for (int d = 0; d < step->shape.head_dim; d++) {
                size_t at = cache_at(step, 0, head, place, d), tile = cache_at(step, 0, head, place / 16 * 16, 0);

                ((float *)step->cache.keys)[tile + (size_t)(d * 16 + place % 16)] = bf16_wide(step->keys[at]);
                ((float *)step->cache.values)[at] = bf16_wide(step->values[at]);
            }
}

static void step_init(struct step *step, int heads, int kv_heads, int head_dim, const struct run *runs, int run_count)
{
    struct random random = {.state = (uint32_t)(heads * 1000 + head_dim)};

    *step = (struct step){.shape = {.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim, .context = context_length}};
    step->rows = (struct rows){.token = step->token,
                               .position = step->position,
                               .slot = step->slot,
                               .place = step->place,
                               .base = step->base,
                               .ancestors = step->ancestors};
    for (int i = 0; i < run_count; i++)
        add_run(step, runs[i], &random);
    step->q = zeroed((size_t)step->rows.count * row_count(step), sizeof(float));
    for (size_t i = 0; i < (size_t)step->rows.count * row_count(step); i++)
        step->q[i] = 3.0f * random_float(&random) / sqrtf((float)head_dim);
    step->keys = zeroed(cache_count(step), sizeof(uint16_t));
    step->values = zeroed(cache_count(step), sizeof(uint16_t));
    for (size_t i = 0; i < cache_count(step); i++) {
        step->keys[i] = bf16_of(random_float(&random));
        step->values[i] = bf16_of(random_float(&random));
    }
    step->cache.keys = zeroed(cache_count(step), sizeof(float));
    step->cache.values = zeroed(cache_count(step), sizeof(float));
    copy_cache(step);
}

static void step_release(struct step *step)
{
    free(step->q);
    free(step->keys);
    free(step->values);
    free(step->cache.keys);
    free(step->cache.values);
}

static int sees(const struct step *step, int row, int place)
{
    int past = place - step->base[row];

    return past < 0 || (past < 64 && (step->ancestors[row] >> past & 1) != 0);
}

/* Keys or values of the cache. */
static void *put_side(const struct step *step, int is_value)
{
    if (step->bytes[is_value] != NULL)
        return device_put(step->bytes[is_value], cache_count(step));
    return device_put(is_value ? step->values : step->keys, cache_count(step) * sizeof(uint16_t));
}

/* Attends the `count` rows order[i] of the step on the device, in this order, with room for `room` at once.
 * to: [count][heads][head_dim] of what it gives */
static void attend_giving(const struct step *step, const int *order, int count, int longest, int room, enum kernel_numbers gives, void *to)
{
    size_t row = row_count(step), to_bytes = (size_t)count * row * kernel_numbers_bytes(gives),
           scratch_bytes = attend_scratch_bytes((int)row, context_length) / KERNEL_ROWS * (size_t)room;
    int32_t slot[MOST_ROWS], base[MOST_ROWS], place[MOST_ROWS];
    uint64_t ancestors[MOST_ROWS];
    float *q = zeroed((size_t)count * row, sizeof *q);

    for (int i = 0; i < count; i++) {
        slot[i] = step->slot[order[i]];
        base[i] = step->base[order[i]];
        place[i] = step->place[order[i]];
        ancestors[i] = step->ancestors[order[i]];
        memcpy(q + (size_t)i * row, step->q + (size_t)order[i] * row, row * sizeof *q);
    }
    struct attend_launch launch = {.rows = {.count = count,
                                            .position = device_put(place, sizeof place),
                                            .slot = device_put(slot, (size_t)count * sizeof *slot),
                                            .place = device_put(place, (size_t)count * sizeof *place),
                                            .base = device_put(base, (size_t)count * sizeof *base),
                                            .ancestors = device_put(ancestors, (size_t)count * sizeof *ancestors)},
                                   .cache = {.keys = put_side(step, 0),
                                             .values = put_side(step, 1),
                                             .is_e4m3 = step->bytes[0] != NULL,
                                             .heads = step->shape.heads,
                                             .kv_heads = step->shape.kv_heads,
                                             .head_dim = step->shape.head_dim,
                                             .context = context_length},
                                   .q = device_put(q, (size_t)count * row * sizeof *q),
                                   .to = device_blank(to_bytes),
                                   .gives = gives,
                                   .scratch = device_blank(scratch_bytes),
                                   .scratch_bytes = scratch_bytes,
                                   .longest = longest,
                                   .processors = processors > 0 ? processors : device_processors(device_rig_open()),
                                   .runs = 1,
                                   .overlaps = device_overlaps(device_rig_open())};

    attend_start(&launch, device_stream(device_rig_open()));
    device_launched(device_rig_open(), "attend");
    device_get(to, launch.to, to_bytes);
    const void *given[] = {launch.rows.position, launch.rows.slot,    launch.rows.place, launch.rows.base, launch.rows.ancestors,
                           launch.cache.keys,    launch.cache.values, launch.q,          launch.to,        launch.scratch};

    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        device_free((void *)(uintptr_t)given[i]);
    free(q);
}

static void attend(const struct step *step, const int *order, int count, int longest, int room, float *to)
{
    attend_giving(step, order, count, longest, room, KERNEL_F32, to);
}

static int longest_of(const struct step *step)
{
    int longest = 0;

    for (int r = 0; r < step->rows.count; r++)
        longest = step->place[r] + 1 > longest ? step->place[r] + 1 : longest;
    return longest;
}

static void attend_all(const struct step *step, float *to)
{
    int order[MOST_ROWS];

    for (int r = 0; r < step->rows.count; r++)
        order[r] = r;
    attend(step, order, step->rows.count, longest_of(step), MOST_ROWS, to);
}

/* One row and head as it should be, and how far the device's outputs may be from the CPU's, in parts of the sum of p |v|. The unit is
 * 2^-23, one addition of a matrix unit that cuts off; the CPU's is half of it. With S the largest sum of |q k| over a place that is seen:
 * - q is split in two and loses 2^-18 of each factor; a score has 2 head_dim additions here and head_dim there. So scores differ by no more
 *   than e = S (2^-18 + 3 head_dim units), and what is divided, as what it is divided by, by a factor of exp(e);
 * - a weight has 4 units of its own (the difference, exp), here and there; its split loses 2^-18; sums over n places have 2 n additions
 * here and n there, and some to join warps and chunks; all this twice, for what is divided and what it is divided by. */
struct bound {
    double p[MOST_CONTEXT]; /* 0 where the row does not see */
    double part;
};

static void bound_init(struct bound *bound, const struct step *step, int row, int head)
{
    int dim = step->shape.head_dim, h = head / (step->shape.heads / step->shape.kv_heads), n = 0;
    const float *q = step->q + (size_t)row * row_count(step) + (size_t)head * (size_t)dim;
    double size_most = 0, max = -INFINITY, total = 0, unit = 0x1p-23;

    for (int place = 0; place < context_length; place++) {
        double size = 0, score = 0;

        for (int k = 0; k < dim && sees(step, row, place); k++) {
            double product = (double)q[k] * (double)bf16_wide(step->keys[cache_at(step, step->slot[row], h, place, k)]);

            score += product;
            size += fabs(product);
        }
        n += sees(step, row, place);
        size_most = fmax(size_most, size);
        bound->p[place] = sees(step, row, place) ? score : -INFINITY;
        max = fmax(max, bound->p[place]);
    }
    for (int place = 0; place < context_length; place++)
        total += bound->p[place] = exp(bound->p[place] - max);
    for (int place = 0; place < context_length; place++)
        bound->p[place] /= total;
    bound->part = expm1(2 * size_most * (0x1p-18 + 3 * dim * unit)) + 2 * (8 * unit + 0x1p-18 + (3 * n + 16) * unit);
}

static double bound_of(const struct bound *bound, const struct step *step, int row, int head, int d)
{
    int h = head / (step->shape.heads / step->shape.kv_heads);
    double sizes = 0;

    for (int place = 0; place < context_length; place++)
        if (bound->p[place] > 0)
            sizes += bound->p[place] * fabs((double)bf16_wide(step->values[cache_at(step, step->slot[row], h, place, d)]));
    return sizes * bound->part;
}

/* Returns the largest part of what is allowed that was used. */
static double check_against_cpu(const struct step *step, const float *to)
{
    const struct backend_options options = {
        .threads = 1, .max_rows = MOST_ROWS, .max_hidden = RIG_HIDDEN, .max_qkv = RIG_QKV, .max_columns = RIG_COLUMNS, .max_context = context_length};
    struct backend_context *context = NULL;
    float *expected = zeroed((size_t)step->rows.count * row_count(step), sizeof *expected);
    struct bound bound;
    double used = 0;

    assert_int_equal(backend_cpu.open(&options, &context), STATUS_OK);
    backend_cpu.layer.attend(context, &step->shape, NULL, &step->rows, step->q, &step->cache, expected);
    for (int r = 0; r < step->rows.count; r++)
        for (int head = 0; head < step->shape.heads; head++) {
            bound_init(&bound, step, r, head);
            for (int d = 0; d < step->shape.head_dim; d++) {
                size_t at = (size_t)r * row_count(step) + (size_t)(head * step->shape.head_dim + d);
                double most = bound_of(&bound, step, r, head, d), error = fabs((double)to[at] - (double)expected[at]);

                if (!(error <= most))
                    fail_msg("heads of %d, row %d head %d dimension %d: %.9g is farther than %.3g from %.9g", step->shape.head_dim, r, head,
                             d, (double)to[at], most, (double)expected[at]);
                used = fmax(used, error / most);
            }
        }
    free(expected);
    backend_cpu.close(context);
    return used;
}

/* Rows that end before, at and after the edges of warps and chunks (32, 128); three slots, two runs of one of them. */
static const struct run edges[] = {{0, 0, 3, 0}, {2, 30, 4, 0}, {1, 126, 5, 0}, {2, 254, 4, 1}, {0, 379, 6, 1}};
/* More rows than a tile has queries, and a tree that lies across a chunk's edge. */
static const struct run wide[] = {{1, 100, 40, 1}, {0, 255, 9, 0}};

/* As many rows as a step may have of one slot, so that every bit of the mask has a place, on both sides of an edge. */
static const struct run whole[] = {{2, 90, 64, 1}};

static const struct run whole_twice[] = {{2, 90, 32, 0}, {2, 255, 32, 1}};

static int any_nan(const float *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (isnan(x[i]))
            return 1;
    return 0;
}

static void check_shape(int heads, int kv_heads, int head_dim, const struct run *runs, int run_count)
{
    struct step step;
    float *to;
    double used;

    step_init(&step, heads, kv_heads, head_dim, runs, run_count);
    to = zeroed((size_t)step.rows.count * row_count(&step), sizeof *to);
    attend_all(&step, to);
    used = check_against_cpu(&step, to);
    print_message("%d heads, %d of keys, of %d: %.3f of what is allowed\n", heads, kv_heads, head_dim, used);
    free(to);
    step_release(&step);
}

static void test_cuda_attend__matches_cpu(void **state)
{
    (void)state;
    check_shape(9, 3, 64, edges, 5);
    check_shape(4, 1, 128, edges, 5);
    check_shape(2, 2, 16, edges, 5);
    check_shape(6, 2, 80, edges, 5);
    check_shape(3, 1, 256, edges, 5);
    check_shape(8, 1, 136, edges, 5);
    check_shape(3, 1, 18, edges, 5);
    check_shape(2, 1, 250, edges, 5);
    check_shape(20, 1, 32, edges, 5);
    check_shape(3, 1, 64, wide, 2);
    check_shape(2, 1, 16, whole, 1);
}

/* Rows of one chunk, of as many as are on their way to a chain at once (32 for all chains), and of more. */
static void test_cuda_attend__many_chunks_match_cpu(void **state)
{
    static const struct run runs[] = {{0, 100, 1, 0}, {1, 4090, 9, 0}, {2, 5150, 5, 1}};

    (void)state;
    context_length = MOST_CONTEXT;
    device_rig_order(3);
    check_shape(2, 1, 18, runs, 3);
    check_shape(1, 1, 72, runs, 3);
    check_shape(1, 1, 250, runs, 3);
    device_rig_order(0);
    context_length = 400;
}

/* So that a step of one text and its drafts reads keys once: one launch, of heads of 128 where the widest of models has them. */
static void test_cuda_attend__sixteen_rows_have_room_at_any_context(void **state)
{
    static const int widths[] = {512, 4096, 16384}, contexts[] = {128, 8192, 65536, 131072, 1 << 20};
    size_t least = 0;

    (void)state;
    for (int w = 0; w < 3; w++, least = 0)
        for (int c = 0; c < 5; c++) {
            size_t chunks = (size_t)contexts[c] / 128,
                   row = chunks * ((size_t)widths[w] * sizeof(float) + (size_t)widths[w] / 128 * 2 * sizeof(float));
            size_t given = attend_scratch_bytes(widths[w], contexts[c]);

            assert_true(given >= 16 * row && given >= least);
            assert_true(given <= 17 * row || given <= (size_t)128 << 20); /* and no more */
            least = given;
        }
}

/* Each row alone; all in falling order and a few at once; every third; in a longer grid. */
static void check_company(int heads, int kv_heads, int head_dim)
{
    struct step step;
    int order[MOST_ROWS] = {0}, count, few = 0;
    float *first, *to;
    size_t row;

    step_init(&step, heads, kv_heads, head_dim, edges, 5);
    count = step.rows.count;
    row = row_count(&step);
    first = zeroed((size_t)count * row, sizeof *first);
    to = zeroed((size_t)count * row, sizeof *to);
    attend_all(&step, first);
    for (int r = 0; r < count; r++) {
        attend(&step, &r, 1, step.place[r] + 1, 1, to);
        assert_same_bits(to, first + (size_t)r * row, row);
        order[r] = count - 1 - r;
    }
    attend(&step, order, count, context_length, 4, to);
    for (int r = 0; r < count; r++)
        assert_same_bits(to + (size_t)r * row, first + (size_t)(count - 1 - r) * row, row);
    for (int r = 0; r < count; r += 3)
        order[few++] = r;
    attend(&step, order, few, context_length, MOST_ROWS, to);
    for (int i = 0; i < few; i++)
        assert_same_bits(to + (size_t)i * row, first + (size_t)order[i] * row, row);
    free(first);
    free(to);
    step_release(&step);
}

static void test_cuda_attend__a_row_has_the_same_bits_in_any_company(void **state)
{
    (void)state;
    check_company(3, 1, 64);
    check_company(2, 2, 24);
    check_company(7, 1, 16);
}

/* Whether blocks take tiles one by one, as a device wants them that has many multiprocessors, or four. */
static void check_tiles(int heads, int kv_heads, int head_dim, const struct run *runs, int run_count)
{
    struct step step;
    float *alone, *together;
    size_t count;

    step_init(&step, heads, kv_heads, head_dim, runs, run_count);
    count = (size_t)step.rows.count * row_count(&step);
    alone = zeroed(count, sizeof *alone);
    together = zeroed(count, sizeof *together);
    for (int odd = 0; odd < 2; odd++) { /* infinities of places that some rows see and others do not */
        for (int i = 0; odd && i < 2; i++)
            for (int h = 0; h < kv_heads; h++)
                step.values[cache_at(&step, runs[i].slot, h, runs[i].base + runs[i].count / 2, i)] = 0x7f80;
        processors = 1 << 20;
        attend_all(&step, alone);
        processors = 1;
        attend_all(&step, together);
        processors = 0;
        assert_same_bits(together, alone, count);
        assert_int_equal(odd, any_nan(alone, count));
    }
    free(alone);
    free(together);
    step_release(&step);
}

static const struct run slots[] = {{0, 120, 21, 0}, {1, 250, 40, 1}, {2, 3, 3, 0}};

static void test_cuda_attend__tiles_have_the_same_bits_alone_and_together(void **state)
{
    (void)state;
    device_rig_order(5);
    check_tiles(9, 3, 64, slots, 3);
    check_tiles(4, 1, 128, slots, 3);
    check_tiles(20, 1, 72, slots, 3);
    check_tiles(6, 2, 16, whole_twice, 2);
    check_tiles(33, 1, 8, slots, 3);
    device_rig_order(0);
}

/* A chain as verified, base and ancestors, and as decoded token by token, all of it base but the last. */
static void test_cuda_attend__the_same_places_have_the_same_bits_however_they_are_told(void **state)
{
    static const struct run chains[] = {{0, 100, 40, 0}, {1, 240, 20, 0}};
    struct step step;
    float *first, *to;
    size_t count;

    (void)state;
    step_init(&step, 3, 1, 32, chains, 2);
    count = (size_t)step.rows.count * row_count(&step);
    first = zeroed(count, sizeof *first);
    to = zeroed(count, sizeof *to);
    attend_all(&step, first);
    for (int r = 0; r < step.rows.count; r++) {
        step.base[r] = step.place[r];
        step.ancestors[r] = 1;
    }
    attend_all(&step, to);
    assert_same_bits(to, first, count);
    free(first);
    free(to);
    step_release(&step);
}

/* In rows that end in the first chunk and others, several of them at once. */
static void test_cuda_attend__gives_the_nearest_numbers_of_a_type(void **state)
{
    static const enum kernel_numbers types[] = {KERNEL_BF16, KERNEL_F16};
    struct step step;
    size_t count;

    (void)state;
    step_init(&step, 6, 2, 72, edges, 5);
    count = (size_t)step.rows.count * row_count(&step);
    float *exact = zeroed(count, sizeof *exact), *given = zeroed(count, sizeof *given);
    uint16_t *to = zeroed(count, sizeof *to);
    int order[MOST_ROWS];

    for (int r = 0; r < MOST_ROWS; r++)
        order[r] = r;
    attend_all(&step, exact);
    for (int t = 0; t < 2; t++) {
        attend_giving(&step, order, step.rows.count, longest_of(&step), 4, types[t], to);
        dtype_widen(t == 0 ? DTYPE_BF16 : DTYPE_F16, to, given, count);
        for (size_t i = 0; i < count; i++) {
            if (t == 0)
                assert_int_equal(to[i], bf16_of(exact[i]));
            assert_true(fabsf(given[i] - exact[i]) <= (t == 0 ? 0x1p-8f : 0x1p-11f) * fabsf(exact[i]) + 0x1p-25f);
        }
    }
    free(exact);
    free(given);
    free(to);
    step_release(&step);
}

/* Only the emulation has orders to choose from; a device is asked again, and has its own. */
static void test_cuda_attend__the_order_of_threads_and_blocks_changes_no_bits(void **state)
{
    struct step step;
    float *first, *to;
    size_t count;

    (void)state;
    step_init(&step, 6, 2, 72, edges, 5);
    count = (size_t)step.rows.count * row_count(&step);
    first = zeroed(count, sizeof *first);
    to = zeroed(count, sizeof *to);
    attend_all(&step, first);
    for (unsigned seed = 1; seed < 6; seed++) {
        device_rig_order(seed);
        attend_all(&step, to);
        assert_same_bits(to, first, count);
    }
    device_rig_order(0);
    free(first);
    free(to);
    step_release(&step);
}

/* Fills the places that no row sees, or that this one does not, with what is not finite. */
static void poison(struct step *step, int row)
{
    static const uint16_t bad[] = {0x7fc0, 0xff80, 0x7f80, 0xffff};
    int dim = step->shape.head_dim;

    for (int slot = 0; slot < SLOTS; slot++)
        for (int place = 0; place < context_length; place++) {
            int seen = 0;

            for (int r = 0; r < step->rows.count; r++)
                seen |= step->slot[r] == slot && sees(step, r, place);
            if (row >= 0 && step->slot[row] == slot)
                seen = sees(step, row, place);
            for (int i = 0; i < step->shape.kv_heads * dim && !seen; i++) {
                step->keys[cache_at(step, slot, i / dim, place, i % dim)] = bad[(place + i) % 4];
                step->values[cache_at(step, slot, i / dim, place, i % dim)] = bad[(place + i) % 3];
            }
        }
}

static void check_unseen(int heads, int kv_heads, int head_dim)
{
    struct step step;
    float *first, *to;
    size_t row;
    int odd = 0;

    step_init(&step, heads, kv_heads, head_dim, edges, 5);
    row = row_count(&step);
    first = zeroed((size_t)step.rows.count * row, sizeof *first);
    to = zeroed((size_t)step.rows.count * row, sizeof *to);
    attend_all(&step, first);
    poison(&step, -1);
    attend_all(&step, to);
    assert_same_bits(to, first, (size_t)step.rows.count * row);
    step.ancestors[21] = UINT64_C(0x21); /* the base, its first row and itself: between them places that other rows see */
    attend_all(&step, first);
    poison(&step, 21);
    attend_all(&step, to);
    assert_same_bits(to + 21 * row, first + 21 * row, row);
    for (int r = 0; r < step.rows.count; r++)
        for (size_t i = 0; i < row; i++)
            odd += isnan(to[(size_t)r * row + i]) != 0;
    assert_true(odd > 0); /* those who see it get it */
    free(first);
    free(to);
    step_release(&step);
}

static void test_cuda_attend__what_a_row_does_not_see_does_not_matter_to_it(void **state)
{
    (void)state;
    check_unseen(4, 2, 32);
    check_unseen(3, 1, 96);
    check_unseen(2, 1, 26);
}

/* A value that is not finite makes NaN of its dimension in the rows that see it, and of nothing else. */
static void test_cuda_attend__a_value_that_is_not_finite_is_told_where_it_is_seen(void **state)
{
    struct step step;
    float *first, *to;
    size_t row;

    (void)state;
    step_init(&step, 3, 1, 64, edges, 5);
    row = row_count(&step);
    first = zeroed((size_t)step.rows.count * row, sizeof *first);
    to = zeroed((size_t)step.rows.count * row, sizeof *to);
    attend_all(&step, first);
    step.values[cache_at(&step, 0, 0, 380, 5)] = 0x7f80; /* the second row of the last run */
    attend_all(&step, to);
    for (int r = 0; r < step.rows.count; r++)
        for (int i = 0; i < (int)row; i++) {
            size_t at = (size_t)r * row + (size_t)i;

            if (step.slot[r] == 0 && sees(&step, r, 380) && i % 64 == 5)
                assert_true(isnan(to[at]));
            else
                assert_same_bits(to + at, first + at, 1);
        }
    free(first);
    free(to);
    step_release(&step);
}

/* All bytes, of random ones: subnormals, zeros of both signs, and numbers that are none. In the order of threads, and with tiles together, too. */
static void check_bytes(int heads, int kv_heads, int head_dim, const struct run *runs, int run_count)
{
    struct random random = {.state = (uint32_t)(heads * 100 + head_dim)};
    struct step step;
    uint8_t *bytes[2];
    float *expected, *to;
    size_t count, finite = 0;

    step_init(&step, heads, kv_heads, head_dim, runs, run_count);
    count = (size_t)step.rows.count * row_count(&step);
    expected = zeroed(count, sizeof *expected);
    to = zeroed(count, sizeof *to);
    for (int side = 0; side < 2; side++) {
        uint16_t *numbers = side == 0 ? step.keys : step.values;

        bytes[side] = zeroed(cache_count(&step), 1);
        for (size_t i = 0; i < cache_count(&step); i++) {
            uint32_t word = random_word(&random);

            bytes[side][i] = (uint8_t)(side == 0 ? word & 0xbf : word); /* keys of at most 1.875 */
            if ((bytes[side][i] & 0x7f) == 0x7f && word >> 8 & 7)
                bytes[side][i] ^= 1;
            numbers[i] = bf16_of(e4m3_wide(bytes[side][i]));
        }
    }
    attend_all(&step, expected);
    for (unsigned seed = 0; seed < 3; seed++) {
        device_rig_order(seed);
        processors = seed == 1 ? 1 : 0;
        step.bytes[0] = bytes[0];
        step.bytes[1] = bytes[1];
        attend_all(&step, to);
        assert_same_bits(to, expected, count);
    }
    processors = 0;
    device_rig_order(0);
    for (size_t i = 0; i < count; i++)
        finite += isfinite(expected[i]) != 0;
    assert_true(finite > 0 && finite < count);
    free(bytes[0]);
    free(bytes[1]);
    free(expected);
    free(to);
    step_release(&step);
}

static void test_cuda_attend__a_cache_in_e4m3_is_one_in_bf16_of_the_same_numbers(void **state)
{
    (void)state;
    check_bytes(9, 3, 64, edges, 5);
    check_bytes(4, 1, 128, edges, 5);
    check_bytes(6, 2, 80, edges, 5);
    check_bytes(3, 1, 18, edges, 5);
    check_bytes(2, 1, 250, edges, 5);
    check_bytes(3, 1, 256, edges, 5);
    check_bytes(9, 3, 64, slots, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_attend__matches_cpu),
        cmocka_unit_test(test_cuda_attend__many_chunks_match_cpu),
        cmocka_unit_test(test_cuda_attend__sixteen_rows_have_room_at_any_context),
        cmocka_unit_test(test_cuda_attend__a_row_has_the_same_bits_in_any_company),
        cmocka_unit_test(test_cuda_attend__tiles_have_the_same_bits_alone_and_together),
        cmocka_unit_test(test_cuda_attend__the_same_places_have_the_same_bits_however_they_are_told),
        cmocka_unit_test(test_cuda_attend__gives_the_nearest_numbers_of_a_type),
        cmocka_unit_test(test_cuda_attend__the_order_of_threads_and_blocks_changes_no_bits),
        cmocka_unit_test(test_cuda_attend__what_a_row_does_not_see_does_not_matter_to_it),
        cmocka_unit_test(test_cuda_attend__a_value_that_is_not_finite_is_told_where_it_is_seen),
        cmocka_unit_test(test_cuda_attend__a_cache_in_e4m3_is_one_in_bf16_of_the_same_numbers),
    };

    device_rig_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
