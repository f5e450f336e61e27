/* Kernels that do nothing but read or copy: what a device's memory can give, which every other figure is a fraction of. Launchers return at once; the
 * work is done in `stream`. They own no memory. */
#ifndef TANDEM_LAUNCH_DEV_GPU_BANDWIDTH_H
#define TANDEM_LAUNCH_DEV_GPU_BANDWIDTH_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* How a reading is cut: `blocks` blocks of `threads` threads, each with `loads` loads of 16 bytes under way at once (1, 4, 8 or 16). */
struct bandwidth_cut {
    int blocks, threads, loads;
};

/* Numbers that follow from their places: memory of zeros may read faster than real data. bytes: a multiple of 16 */
void bandwidth_fill_start(void *memory, size_t bytes, const struct bandwidth_cut *cut, struct CUstream_st *stream);
/* sink: 16 bytes, where nearly always nothing is written */
void bandwidth_read_start(const void *memory, size_t bytes, const struct bandwidth_cut *cut, void *sink, struct CUstream_st *stream);
void bandwidth_copy_start(void *to, const void *from, size_t bytes, const struct bandwidth_cut *cut, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
