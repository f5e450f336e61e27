/* Linear maps of some rows, as a step has them of a tree of drafts or of many texts, on devices whose blocks meet in clusters: eight blocks have 32
 * or 64 rows and eight panels of 16 output channels, a panel for each warp, and each block every eighth tile of the columns. So a row is read once
 * for 128 channels, as in wide.cu, and eight times as many multiprocessors read weights. */
#include "common/backend/cuda/kernel/wide_kernel.h"

namespace
{
typedef struct wide_shape<1, 4, 1, 8, SLICES> few_shape;
typedef struct wide_shape<1, 8, 1, 8, SLICES> many_shape;
} // namespace

extern "C" int wide_clusters_prepare(int layout)
{
    int error = wide_kind<few_shape>(layout).prepare();

    return error != 0 ? error : wide_kind<many_shape>(layout).prepare();
}

extern "C" void wide_clusters_start(const struct wide_launch *launch, struct CUstream_st *stream)
{
    if (launch->rows <= few_shape::ROWS)
        wide_kind<few_shape>(launch->layout).start(launch, stream);
    else
        wide_kind<many_shape>(launch->layout).start(launch, stream);
}
