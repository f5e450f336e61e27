/* backend_tree_sum for many outputs at once, each in a lane. */
#ifndef TANDEM_COMMON_BACKEND_CPU_KERNEL_TREE_H
#define TANDEM_COMMON_BACKEND_CPU_KERNEL_TREE_H

#include "common/backend/cpu/kernel/vec.h"

/* The terms of slice i stand at terms + i * apart, the sums then at terms.  terms: [slices][apart], of which `count` are used */
static void tree_sum(vec *terms, int apart, int slices, int count)
{
    while (slices > 1) {
        int pairs = slices / 2;

        for (int i = 0; i < pairs; i++)
            for (int j = 0; j < count; j++)
                terms[i * apart + j] = vec_add(terms[2 * i * apart + j], terms[(2 * i + 1) * apart + j]);
        if (slices % 2 != 0)
            for (int j = 0; j < count; j++)
                terms[pairs * apart + j] = terms[(slices - 1) * apart + j];
        slices = pairs + slices % 2;
    }
}

#endif
