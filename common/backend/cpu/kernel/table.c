#include "common/backend/cpu/kernel/table.h"
#include "common/backend/cpu/kernel/activations.h"

const struct kernels KERNEL_QUANTISED(kernels) = {
    .isa = KERNEL_NAME,
    .activations_bytes = sizeof(struct activations),
    .attend_group = KERNEL_QUERIES,
    .matmul = KERNEL(matmul),
    .quantise = KERNEL_QUANTISED(quantise),
    .matmul_quantised = KERNEL_QUANTISED(matmul_quantised),
    .norm = KERNEL(norm),
    .rope = KERNEL(rope),
    .swiglu = KERNEL(swiglu),
    .add = KERNEL(add),
    .round_bf16 = KERNEL(round_bf16),
    .round_e4m3 = KERNEL(round_e4m3),
    .attend = KERNEL(attend),
    .attend_bf16 = KERNEL(attend_bf16),
    .attend_e4m3 = KERNEL(attend_e4m3),
    .row_max = KERNEL(row_max),
    .row_sum = KERNEL(row_sum),
    .row_below = KERNEL(row_below),
    .row_gumbel_max = KERNEL(row_gumbel_max),
    .row_find = KERNEL(row_find),
    .map_exp = KERNEL(map_exp),
    .map_log = KERNEL(map_log),
    .map_gumbel = KERNEL(map_gumbel),
};
