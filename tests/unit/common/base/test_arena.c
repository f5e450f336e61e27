#include "common/base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
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

/* Another process sees what is there and what comes, at the same place. */
static void test_arena__what_is_lent_is_seen_by_another_process(void **state)
{
    struct arena arena, other;
    struct arena_loan loan;
    int status;

    (void)state;
    assert_int_equal(arena_open_lent(&arena, 3 * STEP, &loan), 1);
    assert_true(loan.pid == (int)getpid() && loan.base == arena.base && loan.bytes == arena.size);
    arena.base[STEP + 5] = 42;
    assert_int_equal(arena_borrow(&other, &loan), 0); /* its place is taken here */
    assert_int_equal(arena_borrow(&other, &(struct arena_loan){0}), 0);
    pid_t child = fork();

    if (child == 0) {
        munmap(arena.base, arena.size);
        struct arena_loan wrong = loan;

        wrong.file++; /* as where the numbers mean another file here */
        if (arena_borrow(&other, &wrong) || !arena_borrow(&other, &loan))
            _exit(1);
        _exit(other.base == loan.base && other.size == loan.bytes && other.base[STEP + 5] == 42 && other.base[STEP] == 0 ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(loan.descriptor);
    assert_int_equal(arena.base[STEP + 5], 42); /* the lender keeps it */
    arena_close(&arena);
    assert_int_equal(arena_borrow(&other, &loan), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena__with_gaps_has_the_pages_that_are_used),
        cmocka_unit_test(test_arena__what_is_lent_is_seen_by_another_process),
        cmocka_unit_test(test_arena__takes_from_the_front_and_gives_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
