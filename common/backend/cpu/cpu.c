/* The CPU row of the table: open, close and packing. */
#include "common/backend/cpu/context.h"
#include "common/backend/cpu/nodes.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *cpu_describe(const struct backend_context *context)
{
    return context->description;
}

static size_t floats(int rows, int columns)
{
    return (size_t)rows * (size_t)columns * sizeof(float);
}

static size_t quantised_bytes(const struct backend_context *context)
{
    int columns = context->options.max_columns;

    return SWEEP_ROWS * context->kernels->activations_bytes * (size_t)(columns > 0 ? matrix_most_blocks(columns) : 0);
}

static size_t finding_bytes(const struct backend_options *options)
{
    return (size_t)options->max_rows * sizeof(struct finding);
}

static size_t excluded_bytes(const struct backend_options *options)
{
    return ((size_t)options->max_vocab + 31) / 32 * sizeof(uint32_t);
}

static size_t scratch_bytes(const struct backend_context *context)
{
    const struct backend_options *options = &context->options;
    size_t thread = arena_round(floats(SWEEP_ROWS, options->max_hidden)) + arena_round(quantised_bytes(context)) +
                    arena_round(floats(SWEEP_ROWS, CHUNK_PANELS * BACKEND_PANEL)) + arena_round(floats(ATTEND_QUERIES, options->max_context)) +
                    arena_round(floats(ATTEND_QUERIES, options->max_qkv / 3)) + arena_round(finding_bytes(options)) +
                    arena_round(excluded_bytes(options));

    return arena_round(sizeof(struct scratch) * (size_t)options->threads) + (size_t)options->threads * thread +
           QKV_BUFFERS * arena_round(floats(SWEEP_ROWS, options->max_qkv));
}

static void lay_out_scratch(struct backend_context *context)
{
    const struct backend_options *options = &context->options;
    struct arena *arena = &context->arena;

    context->scratch = arena_take(arena, sizeof *context->scratch * (size_t)options->threads);
    for (int t = 0; t < options->threads; t++)
        context->scratch[t] = (struct scratch){
            .normed = arena_take(arena, floats(SWEEP_ROWS, options->max_hidden)),
            .quantised = arena_take(arena, quantised_bytes(context)),
            .chunk = arena_take(arena, floats(SWEEP_ROWS, CHUNK_PANELS * BACKEND_PANEL)),
            .scores = arena_take(arena, floats(ATTEND_QUERIES, options->max_context)),
            .queries = arena_take(arena, floats(ATTEND_QUERIES, options->max_qkv / 3)),
            .finding = arena_take(arena, finding_bytes(options)),
            .excluded = arena_take(arena, excluded_bytes(options)),
        };
    for (int i = 0; i < QKV_BUFFERS; i++)
        context->qkv[i] = arena_take(arena, floats(SWEEP_ROWS, options->max_qkv));
}

static void describe(struct backend_context *context, int nodes)
{
    int threads = context->options.threads;
    int length =
        snprintf(context->description, sizeof context->description, "cpu, %s, %d thread%s", context->kernels->isa, threads, threads == 1 ? "" : "s");

    if (nodes > 1)
        snprintf(context->description + length, sizeof context->description - (size_t)length, " on %d nodes", nodes);
}

/* TANDEM_ISA selects an instruction set, to measure what other machines get; NULL: the best that this CPU has. */
static const char *isa_asked(const struct backend_options *options)
{
    const char *told = getenv("TANDEM_ISA");

    return options->isa == NULL && told != NULL && told[0] != '\0' ? told : options->isa;
}

static enum status cpu_open(const struct backend_options *options, struct backend_context **context)
{
    const char *isa = isa_asked(options);
    const struct kernels *kernels = kernels_find(isa);
    struct backend_context *new;
    enum status status;

    if (kernels == NULL) {
        log_error("this CPU does not run the instruction set %s; expected scalar, avx2, avxvnni, avx512 or avx512vnni", isa);
        return STATUS_USAGE;
    }
    if (options->threads < 1) {
        log_error("%d threads, expected at least 1", options->threads);
        return STATUS_USAGE;
    }
    new = calloc(1, sizeof *new);
    if (new == NULL) {
        log_error("cannot have memory for the CPU backend");
        return STATUS_INTERNAL;
    }
    new->kernels = kernels;
    new->options = *options;
    TRY_TO(arena_open(&new->arena, scratch_bytes(new), "the CPU backend's scratch"), free_context);
    TRY_TO(pool_open(options->threads, &new->pool), close_arena);
    lay_out_scratch(new);
    new->nodes = nodes_settle(new->pool);
    describe(new, new->nodes);
    *context = new;
    return STATUS_OK;

close_arena:
    arena_close(&new->arena);
free_context:
    free(new);
    return status;
}

static void cpu_close(struct backend_context *context)
{
    if (context == NULL)
        return;
    pool_close(context->pool);
    arena_close(&context->arena);
    free(context);
}

static enum status cpu_memory_open(struct backend_context *context, size_t bytes, const char *what, struct arena *arena)
{
    (void)context;
    return arena_open(arena, bytes, what);
}

static void cpu_memory_close(struct backend_context *context, struct arena *arena)
{
    (void)context;
    arena_close(arena);
}

/* On a host of several NUMA nodes a copy of one's own lies nearer. */
static int cpu_memory_lend(struct backend_context *context, size_t bytes, struct arena *arena, struct arena_loan *loan)
{
    return context->nodes == 1 && arena_open_lent(arena, bytes, loan);
}

static int cpu_memory_borrow(struct backend_context *context, const struct arena_loan *loan, struct arena *arena)
{
    return context->nodes == 1 && arena_borrow(arena, loan);
}

static void cpu_write(struct backend_context *context, void *to, const void *from, size_t bytes)
{
    (void)context;
    memcpy(to, from, bytes);
}

static enum status cpu_finish(struct backend_context *context)
{
    (void)context;
    return STATUS_OK;
}

struct pack {
    struct pool *pool;
    struct matrix *matrix;
    const struct matrix_source *source;
};

/* Each thread packs the panels that it will read, so that their pages are its own. */
static void pack_part(void *argument, int thread)
{
    struct pack *pack = argument;
    struct stretch panels = pool_stretch(pack->pool, thread, pack->matrix->panels);

    matrix_fill(pack->matrix, pack->source, panels.first, panels.last);
}

static enum status cpu_matrix_pack(struct backend_context *context, const struct matrix_source *source, struct arena *arena,
                                   struct matrix **matrix)
{
    struct pack pack = {.pool = context->pool, .source = source};

    if (dtype_is_quantised(source->dtype) && source->columns > context->options.max_columns) {
        log_error("internal: a quantised matrix of %d columns, and the backend was opened for %d", source->columns, context->options.max_columns);
        return STATUS_INTERNAL;
    }
    TRY(matrix_lay_out(source, arena, &pack.matrix));
    pool_run(context->pool, pack_part, &pack);
    *matrix = pack.matrix;
    return STATUS_OK;
}

const struct backend backend_cpu = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .memory = {
        .check = cpu_memory_check,
        .open = cpu_memory_open,
        .close = cpu_memory_close,
        .lend = cpu_memory_lend,
        .borrow = cpu_memory_borrow,
        .write = cpu_write,
    },
    .linear = {
        .packs = (1u << DTYPES) - 1,
        .rounds = 1u << DTYPE_Q8_0 | 1u << DTYPE_Q4_0,
        .cuts_blocks = 1,
        .matrix_bytes = matrix_bytes,
        .matrix_pack = cpu_matrix_pack,
        .matmul = cpu_matmul,
        .matmul_add = cpu_matmul_add,
        .add = cpu_add,
        .tree_sum = cpu_tree_sum,
    },
    .step = {
        .prompt_rows = BACKEND_MAX_ROWS,
        .embed = cpu_embed,
        .pick = cpu_pick,
        .finish = cpu_finish,
    },
    .layer = {
        .attend_in = cpu_attend_in,
        .attend = cpu_attend,
        .attend_out = cpu_attend_out,
        .mlp_in = cpu_mlp_in,
        .mlp_out = cpu_mlp_out,
    },
    .cache = {
        .dtype = DTYPE_F32,
        .dtypes = 1u << DTYPE_F32 | 1u << DTYPE_BF16 | 1u << DTYPE_E4M3,
        .copy = cpu_cache_copy,
    },
    .output = {
        .head = cpu_head,
        .ask = cpu_ask,
        .ask_begin = cpu_ask_begin,
        .ask_run = cpu_ask_run,
        .ask_end = cpu_ask_end,
    },
    .row = {
        .scan = cpu_row_scan,
        .gumbel_max = cpu_row_gumbel_max,
        .top = cpu_row_top,
    },
};
