/* What `quantise` leaves for `matmul_quantised`, each instruction set its own. */
#ifndef TANDEM_COMMON_BACKEND_CPU_KERNEL_ACTIVATIONS_H
#define TANDEM_COMMON_BACKEND_CPU_KERNEL_ACTIVATIONS_H

#include "common/backend/cpu/kernel/vec.h"
#include "common/backend/backend.h"

/* 32 activations of one row as a quantised matrix takes them: x is about scale * value. */
struct activations {
    union { /* 0 for columns of other slices */
        activation value[DTYPE_BLOCK]; /* for bytes */
        int8_t byte[DTYPE_BLOCK];      /* for nibbles */
    };
    float scale;   /* not a number when one of them is infinite or none */
    int32_t start; /* of the sum of products with the matrix's bytes: minus what their offset adds to it */
    float total;   /* scale * sum of value */
    float sum;     /* of value */
    int32_t start_half[2]; /* the same of each half */
    float sum_half[2];     /* of value */
};

#endif
