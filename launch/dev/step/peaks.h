/* What the cores of this machine can do at most, in the minute in which something is measured against it: a plain sum over memory, and chains of
 * multiply-adds in registers. Each thread does its own part; the rate is that of all until the last has ended, the best of several. It owns its
 * threads and memory while it runs. */
#ifndef TANDEM_LAUNCH_DEV_STEP_PEAKS_H
#define TANDEM_LAUNCH_DEV_STEP_PEAKS_H

#include <stddef.h>

enum { PEAKS_MAX_THREADS = 256 };

struct peaks {
    double read;   /* GB/s of a sum over memory, again and again where it is small, so that it comes out of whatever holds as much */
    double fma;    /* GFLOP/s in float32, AVX-512 or AVX2; 0 where there is neither */
    double fma_avx2; /* the same of AVX2 alone */
    double vnni;   /* 1e9 8-bit operations per second (a multiply and an add are two), AVX-512 VNNI; 0 where there is none */
};

/* bytes: of the memory that is read, shared out to the threads, 1 ... 0 without memory or threads. */
int peaks_measure(int threads, size_t bytes, struct peaks *peaks);

#endif
