#include "common/base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { STEP = 2 << 20, STEPS = 16 };

static size_t resident_pages(const struct arena *arena)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (arena->size + page - 1) / page, count = 0;
    unsigned char *is_there = calloc(pages, 1);

    assert_non_null(is_there);
    assert_int_equal(mincore(arena->base, arena->size, is_there), 0);
    for (size_t i = 0; i < pages; i++)
        count += is_there[i] & 1;
    free(is_there);
    return count;
}

/* One byte in each two megabytes, as a short sequence uses a cache: where the system has huge pages, each would be one, cleared whole. */
static void test_arena__with_gaps_has_the_pages_that_are_used(void **state)
{
    struct arena arena;

    (void)state;
    assert_int_equal(arena_open(&arena, (size_t)STEPS * STEP, "a test"), STATUS_OK);
    arena_expect_gaps(&arena);
    for (size_t i = 0; i < STEPS; i++)
        arena.base[i * STEP] = 1;
    assert_int_equal(resident_pages(&arena), STEPS);
    arena_close(&arena);
}

static void test_arena__takes_from_the_front_and_gives_back(void **state)
{
    struct arena arena;
    char *first, *second;

    (void)state;
    assert_int_equal(arena_open(&arena, 3 * ARENA_ALIGN, "a test"), STATUS_OK);
    first = arena_take(&arena, 1);
    second = arena_take(&arena, ARENA_ALIGN + 1);
    assert_ptr_equal(second, first + ARENA_ALIGN);
    assert_int_equal(arena.used, 3 * ARENA_ALIGN);
    arena_rewind(&arena, ARENA_ALIGN);
    assert_ptr_equal(arena_take(&arena, 1), second);
    arena_close(&arena);
    assert_null(arena.base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena__with_gaps_has_the_pages_that_are_used),
        cmocka_unit_test(test_arena__takes_from_the_front_and_gives_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
