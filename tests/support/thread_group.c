#include "tests/support/thread_group.h"

#include "common/backend/backend.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static unsigned char *of(const struct thread_group *all, int rank)
{
    return all->bytes + (size_t)rank * all->largest;
}

static void meet(struct thread_group *all)
{
    pthread_barrier_wait(&all->meeting);
}

static size_t part(const struct thread_group *all, size_t count, size_t at)
{
    return count - at < all->largest ? count - at : all->largest;
}

static enum status thread_sum(struct group *group, float *x, size_t count)
{
    struct thread_group *all = group->state;
    size_t most = all->largest / sizeof *x;

    for (size_t at = 0; at < count; at += most) {
        size_t size = count - at < most ? count - at : most;

        memcpy(of(all, group->rank), x + at, size * sizeof *x);
        meet(all);
        for (size_t i = 0; i < size; i++) {
            float terms[THREAD_GROUP_MOST];

            for (int r = 0; r < all->ranks; r++)
                terms[r] = ((const float *)(const void *)of(all, r))[i];
            x[at + i] = backend_tree_sum(terms, all->ranks);
        }
        meet(all);
    }
    return STATUS_OK;
}

static enum status thread_broadcast(struct group *group, void *bytes, size_t count)
{
    struct thread_group *all = group->state;

    for (size_t at = 0; at < count; at += all->largest) {
        if (group->rank == 0)
            memcpy(of(all, 0), (unsigned char *)bytes + at, part(all, count, at));
        meet(all);
        if (group->rank > 0)
            memcpy((unsigned char *)bytes + at, of(all, 0), part(all, count, at));
        meet(all);
    }
    return STATUS_OK;
}

static enum status thread_gather(struct group *group, const void *mine, size_t count, void *to)
{
    struct thread_group *all = group->state;

    for (size_t at = 0; at < count; at += all->largest) {
        memcpy(of(all, group->rank), (const unsigned char *)mine + at, part(all, count, at));
        meet(all);
        for (int r = 0; r < all->ranks && group->rank == 0; r++)
            memcpy((unsigned char *)to + (size_t)r * count + at, of(all, r), part(all, count, at));
        meet(all);
    }
    return STATUS_OK;
}

static void thread_close(struct group *group)
{
    (void)group;
}

static const struct group_kind thread_kind = {
    .name = "threads", .sum = thread_sum, .broadcast = thread_broadcast, .gather = thread_gather, .close = thread_close};

void thread_group_open(struct thread_group *all, int ranks, size_t largest, struct group *groups)
{
    assert_in_range(ranks, 1, THREAD_GROUP_MOST);
    *all = (struct thread_group){.ranks = ranks, .largest = largest};
    all->bytes = calloc((size_t)ranks, largest);
    assert_non_null(all->bytes);
    assert_int_equal(pthread_barrier_init(&all->meeting, NULL, (unsigned)ranks), 0);
    for (int r = 0; r < ranks; r++)
        groups[r] = (struct group){.rank = r, .size = ranks, .kind = &thread_kind, .state = all};
}

void thread_group_close(struct thread_group *all)
{
    pthread_barrier_destroy(&all->meeting);
    free(all->bytes);
}
