/* What a build without CUDA knows of a device: what weights, caches and a draft model take there, by the functions that pack them. */
#include "common/backend/choose.h"
#include "common/backend/cuda/matrix.h"

const struct backend backend_cuda_sizes = {
    .name = "cuda",
    .linear = {.packs = CUDA_PACKS, .matrix_bytes = cuda_matrix_bytes},
    .step = {.prompt_rows = CUDA_PROMPT_ROWS},
    .cache = {.dtype = CUDA_CACHE, .dtypes = CUDA_CACHES},
    .draft = {.needs_table = 1},
};
