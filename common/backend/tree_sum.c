#include "common/backend/backend.h"

float backend_tree_sum(float *terms, int count)
{
    while (count > 1) {
        int pairs = count / 2;

        for (int i = 0; i < pairs; i++)
            terms[i] = terms[2 * i] + terms[2 * i + 1];
        if (count % 2 != 0)
            terms[pairs] = terms[count - 1];
        count = pairs + count % 2;
    }
    return terms[0];
}
