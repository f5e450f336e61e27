#include "common/base/clock.h"
#include "common/base/progress.h"
#include "common/world/doorbells.h"
#include "tests/support/capture.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND_NS ((int64_t)1000000000)

/* A drafter and the lead on one core, without MPI. */
static struct doorbell own, other;
static struct doorbells doorbells = {.mine = &own, .first = &own, .of = {&own, &other}};
static struct world world = {.role = ROLE_DRAFTER, .lead = 1, .size = 2, .node_size = 2, .cores = 1, .doorbells = &doorbells};

/* As if the core had been given to another rank for a second. */
static void lose_the_core(struct wait *wait)
{
    wait->started_ns -= SECOND_NS;
    wait->look_ns -= SECOND_NS;
    wait->rung_ns -= SECOND_NS;
}

static void step_off_core(struct wait *wait, int count)
{
    for (int i = 0; i < count; i++) {
        lose_the_core(wait);
        world_wait_step(&world, wait, INT64_MAX);
    }
}

/* MPI_Improbe finds a message and only the next one shows it: who sleeps after one look sleeps on what has come. */
static void test_wait__a_rank_that_lost_its_core_looks_again_before_it_sleeps(void **state)
{
    struct wait wait;

    (void)state;
    world_wait_begin(&world, &wait);
    step_off_core(&wait, 3);
    assert_int_equal(wait.naps, 0);
    step_off_core(&wait, 2);
    assert_int_equal(wait.naps, 1);
}

static void test_wait__a_ring_is_looked_for_as_often(void **state)
{
    struct wait wait;

    (void)state;
    world_wait_begin(&world, &wait);
    step_off_core(&wait, 5);
    assert_int_equal(wait.naps, 1);
    world_ring(&world, 0);
    world_wait_step(&world, &wait, INT64_MAX); /* sleeps on a doorbell that has rung: returns at once */
    step_off_core(&wait, 4);
    assert_int_equal(wait.naps, 2);
    step_off_core(&wait, 1);
    assert_int_equal(wait.naps, 3);
}

static int yields, late;

static int64_t pretended;

/* The kernel's may come back late. */
int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
    yields++;
    pretended += late ? 3000000 : 0;
    return 0;
}

/* What comes before the first sleep of a wait that began when others had the cores, or not. */
static int yields_before_a_sleep(void)
{
    struct wait wait;

    yields = 0;
    world_wait_begin(&world, &wait);
    step_off_core(&wait, 5);
    assert_int_equal(wait.naps, 1);
    return yields;
}

/* Though it could look for long. */
static int sleeps_after_four_looks(void)
{
    struct wait wait;

    world_wait_begin(&world, &wait);
    wait.look_ns = INT64_MAX;
    wait.rung_ns -= SECOND_NS;
    wait.started_ns -= SECOND_NS;
    for (int i = 0; i < 5; i++)
        world_wait_step(&world, &wait, INT64_MAX);
    return wait.naps;
}

static void test_wait__where_a_yield_came_back_late_it_sleeps_and_does_not_yield(void **state)
{
    (void)state;
    pretended = SECOND_NS;
    clock_pretend(&pretended);
    assert_int_equal(yields_before_a_sleep(), 4);
    assert_int_equal(sleeps_after_four_looks(), 0);
    late = 1;
    assert_int_equal(yields_before_a_sleep(), 1); /* the one that shows it */
    late = 0;
    assert_int_equal(yields_before_a_sleep(), 0);
    assert_int_equal(sleeps_after_four_looks(), 1);
    pretended += SECOND_NS;
    assert_int_equal(sleeps_after_four_looks(), 0);
    clock_pretend(NULL);
}

/* MPI needs several looks to show what rang: they are not naps, for nobody rings again. */
static void test_wait__soon_after_a_ring_it_sleeps_nowhere(void **state)
{
    struct wait wait;

    (void)state;
    pretended = SECOND_NS;
    clock_pretend(&pretended);
    late = 1;
    (void)yields_before_a_sleep();
    late = 0;
    world_wait_begin(&world, &wait);
    for (int i = 0; i < 9; i++, pretended += 6000)
        world_wait_step(&world, &wait, INT64_MAX);
    assert_int_equal(wait.naps, 0);
    pretended += 60000;
    world_wait_step(&world, &wait, INT64_MAX);
    assert_int_equal(wait.naps, 1);
    clock_pretend(NULL);
}

/* Who waits for frames alone need not look for what no ring tells; but soon after a ring, whose frame may not be there yet. */
static void test_wait__in_silence_it_sleeps_ever_longer(void **state)
{
    const int64_t ms = 1000000;
    struct wait wait = {.started_ns = 0, .settled = 1};

    (void)state;
    for (int64_t now = ms, before = 0; now < 100 * ms; now += ms) {
        int64_t nap = world_wait_nap_ns(&wait, now);

        assert_true(nap >= 2 * ms && nap <= 20 * ms && nap >= before);
        before = nap;
    }
    assert_int_equal(world_wait_nap_ns(&wait, 10 * ms), 5 * ms);
    assert_int_equal(world_wait_nap_ns(&wait, 99 * ms), 20 * ms);
    wait.settled = 0;
    assert_int_equal(world_wait_nap_ns(&wait, 99 * ms), 2 * ms);
    wait.settled = wait.deaf = 1; /* what is awaited may ring no doorbell */
    assert_int_equal(world_wait_nap_ns(&wait, 99 * ms), 99 * ms / 64);
}

static void test_wait__a_ring_ends_the_silence(void **state)
{
    struct wait wait;
    int64_t begun = clock_ns() - SECOND_NS;

    (void)state;
    world_wait_begin(&world, &wait);
    wait.settled = 1;
    wait.started_ns = wait.rung_ns = begun;
    assert_int_equal(world_wait_nap_ns(&wait, clock_ns()), 20000000);
    step_off_core(&wait, 4);
    world_ring(&world, 0);
    step_off_core(&wait, 1);
    assert_true(wait.rung_ns >= begun + SECOND_NS);
    assert_int_equal(world_wait_nap_ns(&wait, wait.rung_ns), 2000000);
}

static void test_wait__a_deadline_that_is_over_ends_the_sleep(void **state)
{
    struct wait wait;

    (void)state;
    world_wait_begin(&world, &wait);
    for (int i = 0; i < 8; i++) {
        lose_the_core(&wait);
        world_wait_step(&world, &wait, clock_ns() - 1);
    }
    assert_int_equal(wait.naps, 0);
}

/* Sleeps once, long after it last listened; whether the watchdog was told that all is well. */
static int sleeps_content(struct wait *wait)
{
    uint64_t before = progress_look().count;
    int naps = wait->naps;

    doorbells.listen_ns = 0;
    while (wait->naps == naps)
        step_off_core(wait, 1);
    return progress_look().count != before;
}

static void test_wait__goes_on_while_others_get_something_done(void **state)
{
    struct wait wait;

    (void)state;
    world_wait_begin(&world, &wait);
    (void)sleeps_content(&wait);
    assert_false(sleeps_content(&wait));
    atomic_fetch_add(&other.made, 1);
    assert_true(sleeps_content(&wait));
    assert_false(sleeps_content(&wait));
    atomic_fetch_add(&own.afar, 1); /* some rank of another host */
    assert_true(sleeps_content(&wait));
    atomic_fetch_add(&own.made, 1);
    assert_false(sleeps_content(&wait));
    assert_true(progress_look().awaits);
}

/* Of two that wait for each other neither is at work. */
static void test_wait__is_no_progress_for_others(void **state)
{
    struct wait wait;

    (void)state;
    progress_publish(&own.made);
    world_wait_begin(&world, &wait);
    uint64_t before = own.made;
    atomic_fetch_add(&other.made, 1);
    assert_true(sleeps_content(&wait));
    assert_true(own.made == before);
    progress_publish(NULL);
}

/* How long a wait of a rank of two looks, on so many cores with so many threads in all. */
static int64_t look_ns(enum role role, int cores, int threads)
{
    struct doorbell doorbell = {.threads = 0};
    struct doorbells page = {.mine = &doorbell, .first = &doorbell};
    struct world here = {.role = role, .node_size = 2, .cores = cores, .doorbells = &page};
    struct wait wait;

    for (int i = 0; i < threads; i++)
        world_claim_threads(&here, 1);
    world_wait_begin(&here, &wait);
    return wait.look_ns - wait.started_ns;
}

/* A drafter's yields take a core from the threads that compute meanwhile, and not from ranks alone. */
static void test_wait__who_has_no_core_of_its_own_looks_for_a_shorter_time(void **state)
{
    (void)state;
    assert_true(look_ns(ROLE_DRAFTER, 2, 3) < look_ns(ROLE_VERIFIER, 2, 3));
    assert_true(look_ns(ROLE_VERIFIER, 2, 3) < look_ns(ROLE_VERIFIER, 2, 2));
    assert_true(look_ns(ROLE_DRAFTER, 2, 2) == look_ns(ROLE_VERIFIER, 2, 2));
    assert_true(look_ns(ROLE_DRAFTER, 2, 3) == look_ns(ROLE_DRAFTER, 1, 2)); /* more ranks than cores */
}

/* How long a wait of a kind looks after `count` waits of so many nanoseconds, one after the other, on two cores with so many threads. */
static int64_t looks_after_most(int64_t most_ns, int threads, const int64_t *waits, int count)
{
    struct doorbell doorbell = {.threads = (uint32_t)threads};
    struct doorbells page = {.mine = &doorbell, .first = &doorbell};
    struct world here = {.role = ROLE_DRAFTER, .node_size = 2, .cores = 2, .doorbells = &page};
    struct wait_usual usual = {.most_ns = most_ns};
    struct wait wait;

    for (int i = 0; i < count; i++) {
        world_wait_begin_usual(&here, &wait, &usual);
        world_wait_end(&wait, wait.started_ns + waits[i]);
    }
    world_wait_begin_usual(&here, &wait, &usual);
    return wait.look_ns - wait.started_ns;
}

static int64_t looks_after(int threads, const int64_t *waits, int count)
{
    return looks_after_most(0, threads, waits, count);
}

/* A verify step of 2 ms: who sleeps after 1 wakes late. */
static void test_wait__looks_until_it_should_have_ended(void **state)
{
    const int64_t ms = 1000000, two = 2 * ms, short_one = ms / 5, no_wait = 500, long_one = 20 * ms, change[] = {two, two + ms};

    (void)state;
    assert_int_equal(looks_after(2, NULL, 0), ms); /* nothing is known */
    assert_int_equal(looks_after(2, &two, 1), 3 * ms);
    assert_int_equal(looks_after(2, &short_one, 1), ms); /* never less than without */
    assert_int_equal(looks_after(2, &no_wait, 1), ms);
    assert_int_equal(looks_after(2, &long_one, 1), ms); /* it would look in vain */
    assert_int_equal(looks_after(2, change, 2), (two + ms / 8) * 3 / 2);
    assert_int_equal(looks_after(3, &two, 1), 4000); /* more threads than cores: somebody else needs this one */
}

/* A step of 8 ms of a device whose host has nothing else to do. */
static void test_wait__looks_as_long_as_a_kind_of_wait_allows(void **state)
{
    const int64_t ms = 1000000, eight = 8 * ms, prompt = 900 * ms;

    (void)state;
    assert_int_equal(looks_after(2, &eight, 1), ms);
    assert_int_equal(looks_after_most(200 * ms, 2, &eight, 1), 12 * ms);
    assert_int_equal(looks_after_most(200 * ms, 2, &prompt, 1), ms); /* counts as 400 ms, which is longer than is looked */
    assert_int_equal(looks_after_most(200 * ms, 3, &eight, 1), 4000);
}

/* What comes at once was not waited for, and a pause of a minute is not what is usual. */
static void test_wait__odd_waits_do_not_hide_the_usual_one(void **state)
{
    const int64_t ms = 1000000, at_once[] = {2 * ms, 100, 100, 100}, pause[] = {2 * ms, 60000 * ms}, back[] = {2 * ms, 60000 * ms, 2 * ms, 2 * ms};

    (void)state;
    assert_int_equal(looks_after(2, at_once, 4), 3 * ms);
    assert_int_equal(looks_after(2, pause, 2), 3 * (2 * ms + ms) / 2); /* counts as 10 ms */
    assert_true(looks_after(2, back, 4) < looks_after(2, pause, 2));
}

/* A wait that nobody counts is as it was. */
static void test_wait__of_no_kind_learns_nothing(void **state)
{
    struct wait wait;

    (void)state;
    world_wait_begin(&world, &wait);
    world_wait_end(&wait, wait.started_ns + SECOND_NS);
    assert_null(wait.usual);
}

static int counts_its_one_core(void)
{
    const struct world crowd = {.node_size = 3, .node_role_size = 2};
    cpu_set_t all, one;

    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return 0;
    for (int i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0 && world_threads(&(struct world){.node_size = 1, .node_role_size = 1}, 0, 0) == 1 &&
           world_threads(&crowd, 5, 0) == 1;
}

/* In a process of its own, for each learns its cores once. */
static void test_world__a_rank_that_is_bound_to_a_core_has_one_thread(void **state)
{
    pid_t child = fork();
    int ended = -1;

    (void)state;
    if (child == 0)
        _exit(counts_its_one_core() ? 0 : 1);
    assert_true(child > 0 && waitpid(child, &ended, 0) == child);
    assert_int_equal(ended, 0);
}

/* Three ranks on this host, two of this one's role. */
static void test_world__threads_are_the_cores_by_who_computes_at_once_and_those_it_may_use(void **state)
{
    const struct world crowd = {.node_size = 3, .node_role_size = 2};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t all;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_int_equal(world_threads(&crowd, CPU_COUNT(&all), 0), CPU_COUNT(&all));     /* who asks gets them, */
    assert_int_equal(world_threads(&crowd, CPU_COUNT(&all) + 1, 0), CPU_COUNT(&all)); /* but no more than there are */
    if (CPU_COUNT(&all) == cores) {
        assert_int_equal(world_threads(&crowd, 0, 0), cores < 6 ? 1 : cores / 3);
        assert_int_equal(world_threads(&crowd, 0, 1), cores < 4 ? 1 : cores / 2);
        assert_int_equal(world_threads(&(struct world){.node_size = 3, .node_role_size = 1}, 0, 1), cores);
    }
}

/* A drafter and a verifier, each the first of its role on this host. */
static void test_world__too_many_threads_are_warned_of_once_on_a_host(void **state)
{
    struct doorbell first = {.threads = 0}, second = {.threads = 0};
    struct doorbells pages[] = {{.mine = &first, .first = &first}, {.mine = &second, .first = &first}};
    struct capture capture;
    char said[1024];

    (void)state;
    capture_begin(&capture);
    for (int i = 0; i < 2; i++)
        (void)world_threads(&(struct world){.role = (enum role)i, .node_rank = i, .node_size = 2, .node_role_size = 1, .doorbells = &pages[i]},
                            1 << 20, 0);
    capture_end(&capture, said, sizeof said);
    capture_assert_one_line(said, "--threads 1048576, but a rank may run on");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait__a_rank_that_lost_its_core_looks_again_before_it_sleeps),
        cmocka_unit_test(test_wait__a_ring_is_looked_for_as_often),
        cmocka_unit_test(test_wait__in_silence_it_sleeps_ever_longer),
        cmocka_unit_test(test_wait__a_ring_ends_the_silence),
        cmocka_unit_test(test_wait__a_deadline_that_is_over_ends_the_sleep),
        cmocka_unit_test(test_wait__goes_on_while_others_get_something_done),
        cmocka_unit_test(test_wait__is_no_progress_for_others),
        cmocka_unit_test(test_wait__who_has_no_core_of_its_own_looks_for_a_shorter_time),
        cmocka_unit_test(test_wait__looks_until_it_should_have_ended),
        cmocka_unit_test(test_wait__looks_as_long_as_a_kind_of_wait_allows),
        cmocka_unit_test(test_wait__odd_waits_do_not_hide_the_usual_one),
        cmocka_unit_test(test_wait__of_no_kind_learns_nothing),
        cmocka_unit_test(test_world__a_rank_that_is_bound_to_a_core_has_one_thread), /* before this process has learnt its cores */
        cmocka_unit_test(test_world__threads_are_the_cores_by_who_computes_at_once_and_those_it_may_use),
        cmocka_unit_test(test_world__too_many_threads_are_warned_of_once_on_a_host),
        cmocka_unit_test(test_wait__where_a_yield_came_back_late_it_sleeps_and_does_not_yield),
        cmocka_unit_test(test_wait__soon_after_a_ring_it_sleeps_nowhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
