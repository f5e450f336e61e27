/* Linear maps of few rows, as they are asked for: which kernels there are says linear_kernel.h; they are made in linear_*.cu. */
#include "common/backend/cuda/kernel/linear_plan.h"

extern "C" int linear_rows(int block_bytes)
{
    return block_bytes >= linear_plan_shared(KERNEL_ROWS) ? KERNEL_ROWS : block_bytes >= linear_plan_shared(FEW_ROWS) ? FEW_ROWS : 0;
}

static struct linear_kind kind_of(int layout)
{
    if (layout >= DTYPE_Q2_K && layout != BLOCKS_ZEROS)
        return linear_kind_k_quants(layout);
    if (layout >= BLOCKS_FIRST)
        return linear_kind_blocks(layout);
    return layout == DTYPE_F16 ? linear_kind_f16() : linear_kind_bf16();
}

extern "C" int linear_prepare(int layout, int block_bytes)
{
    return kind_of(layout).prepare(block_bytes);
}

extern "C" int linear_parts(int layout, int outputs, int processors)
{
    int panels = (outputs + 15) / 16;

    return pairs_of(layout, panels, processors) ? (panels + 1) / 2 : panels;
}

extern "C" void linear_start(const struct linear_launch *launch, struct CUstream_st *stream)
{
    struct plan plan = {};

    plan.launch = *launch;
    plan.tiles = (launch->columns + 15) / 16;
    plan.units = launch->layout < BLOCKS_FIRST ? plan.tiles : launch->columns / DTYPE_BLOCK;
    plan.panels = (launch->outputs + 15) / 16;
    plan.segments = (launch->columns + SWEEP - 1) / SWEEP * WARPS;
    plan.aligned = launch->columns % (launch->is_rounded ? 8 : 4) == 0 && (uintptr_t)launch->from % 16 == 0 && (uintptr_t)launch->norm % 16 == 0;
    kind_of(launch->layout).start(plan, stream);
}
