#include "group_rig.h"

#include "common/backend/backend.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct world world;
struct group group;

void check(int good, const char *what, long at)
{
    if (good)
        return;
    print_error("rank %d of %d, group %s: %s (%ld)\n", world.rank, world.size, group.kind != NULL ? group.kind->name : "not open", what, at);
    world_abort(STATUS_INTERNAL);
}

uint32_t mixed(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t x = a * 0x9e3779b9u ^ b * 0x85ebca6bu ^ c * 0xc2b2ae35u;

    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

float given(int rank, size_t i, int number)
{
    uint32_t word = mixed((uint32_t)rank, (uint32_t)i, (uint32_t)number);
    float part = (float)(int32_t)word * 0x1p-31f;

    return part * (float)(1 << word % 20);
}

float tree(size_t i, int number)
{
    float terms[GROUP_RIG_RANKS];

    for (int r = 0; r < group.size; r++)
        terms[r] = given(r, i, number);
    return backend_tree_sum(terms, group.size);
}
