/* A matrix is packed panel by panel into pinned memory by the threads of the pool, and copied to the device from there. */
#include "common/backend/cuda/context.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <stdlib.h>

enum { PACK_BYTES = 16 << 20 };

struct pack {
    struct pool *pool;
    const struct matrix *matrix;
    const struct matrix_source *source;
    int first, last; /* panels */
    char *to;
};

static void pack_part(void *argument, int thread)
{
    const struct pack *pack = argument;
    struct stretch own = pool_stretch(pack->pool, thread, pack->last - pack->first);

    cuda_matrix_fill(pack->matrix, pack->source, pack->first + own.first, pack->first + own.last,
                     pack->to + (size_t)own.first * pack->matrix->panel_bytes);
}

/* Two halves, each of at least one panel. */
static enum status open_pack(struct backend_context *context, size_t panel_bytes)
{
    size_t bytes = panel_bytes > PACK_BYTES ? panel_bytes : PACK_BYTES;

    if (bytes <= context->pack_bytes)
        return STATUS_OK;
    for (int i = 0; i < PACK_HALVES; i++) {
        void *half;

        if (context->pack[i] != NULL)
            device_host_close(context->device, context->pack[i]);
        context->pack[i] = NULL;
        TRY(device_host_open(context->device, bytes, "the pinned memory for loading", &half));
        context->pack[i] = half;
    }
    context->pack_bytes = bytes;
    return STATUS_OK;
}

/* Packs one half while the other is being copied. */
static enum status pack_panels(struct backend_context *context, const struct matrix_source *source, const struct matrix *matrix)
{
    struct pack pack = {.pool = context->pool, .matrix = matrix, .source = source};
    int stride = (int)(context->pack_bytes / matrix->panel_bytes), half = 0;

    for (pack.first = 0; pack.first < matrix->panels; pack.first = pack.last, half = !half) {
        pack.last = stride < matrix->panels - pack.first ? pack.first + stride : matrix->panels;
        pack.to = context->pack[half];
        pool_run(context->pool, pack_part, &pack);
        TRY(device_finish(context->device));
        device_copy_in(context->device, (char *)matrix->data + (size_t)pack.first * matrix->panel_bytes, pack.to,
                       (size_t)(pack.last - pack.first) * matrix->panel_bytes);
    }
    return device_finish(context->device);
}

enum status cuda_matrix_pack(struct backend_context *context, const struct matrix_source *source, struct arena *arena,
                                    struct matrix **matrix)
{
    struct matrix packed, *new;

    TRY(cuda_matrix_init(&packed, source));
    TRY(cuda_prepare_layout(context, packed.layout));
    TRY(open_pack(context, packed.panel_bytes));
    if (source->dtype == DTYPE_F32 && !context->told_rounding) {
        log_warn("weights of dtype F32 are rounded to BF16 for the device");
        context->told_rounding = 1;
    }
    packed.data = arena_take(arena, cuda_matrix_bytes(source));
    TRY(pack_panels(context, source, &packed));
    new = malloc(sizeof *new);
    if (new == NULL) {
        log_error("no memory for a matrix");
        return STATUS_INTERNAL;
    }
    *new = packed;
    new->next = context->matrices;
    context->matrices = new;
    *matrix = new;
    return STATUS_OK;
}
