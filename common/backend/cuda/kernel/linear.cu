/* Linear maps of few rows, as they are asked for: which kernels there are says linear_kernel.h, and each type of weights has a file of its own. */
#include "common/backend/cuda/kernel/linear_plan.h"

extern "C" int linear_rows(int block_bytes)
{
    return block_bytes >= linear_plan_shared(KERNEL_ROWS) ? KERNEL_ROWS : block_bytes >= linear_plan_shared(FEW_ROWS) ? FEW_ROWS : 0;
}

extern "C" int linear_prepare(int block_bytes)
{
    int error = linear_plan_prepare_bf16(block_bytes);

    return error != 0 ? error : linear_plan_prepare_f16(block_bytes);
}

extern "C" int linear_parts(int outputs, int processors)
{
    int panels = (outputs + 15) / 16;

    return pairs_of(panels, processors) ? (panels + 1) / 2 : panels;
}

extern "C" void linear_start(const struct linear_launch *launch, struct CUstream_st *stream)
{
    struct plan plan = {};

    plan.launch = *launch;
    plan.tiles = (launch->columns + 15) / 16;
    plan.panels = (launch->outputs + 15) / 16;
    plan.segments = (launch->columns + SWEEP - 1) / SWEEP * WARPS;
    plan.aligned = launch->columns % (launch->is_rounded ? 8 : 4) == 0 && (uintptr_t)launch->from % 16 == 0 && (uintptr_t)launch->norm % 16 == 0;
    if (launch->is_f16)
        linear_plan_start_f16(plan, stream);
    else
        linear_plan_start_bf16(plan, stream);
}
