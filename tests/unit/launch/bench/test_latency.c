/* What measures messages and the group without a model reports as it goes: for each row of its tables. Nobody is there to answer: the channel and
 * the group are the test's. */
#include "common/backend/choose.h"
#include "common/base/progress.h"
#include "launch/bench/latency/latency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Of main.c. */
struct latency_times latency_times_of(double *us, int count)
{
    return (struct latency_times){.avg = us[0], .p50 = us[count / 2], .p99 = us[count - 1], .min = us[0]};
}

static struct frame sent;

enum status __wrap_channel_send(struct channel *channel, int peer, struct frame frame, int *taken);
enum status __wrap_channel_send(struct channel *channel, int peer, struct frame frame, int *taken)
{
    (void)channel;
    (void)peer;
    sent = frame;
    *taken = 1;
    return STATUS_OK;
}

enum status __wrap_channel_wait(struct channel *channel, int64_t deadline_ns, int *peer, struct frame *frame, int *refused);
enum status __wrap_channel_wait(struct channel *channel, int64_t deadline_ns, int *peer, struct frame *frame, int *refused)
{
    (void)channel;
    (void)deadline_ns;
    *peer = 0;
    *refused = 0;
    *frame = sent;
    return STATUS_OK;
}

/* A round gets another message back than it sends; here it gets its own. */
const char *__wrap_message_unpack_commit(struct message_space *space, struct frame frame, int vocab, struct commit *commit);
const char *__wrap_message_unpack_commit(struct message_space *space, struct frame frame, int vocab, struct commit *commit)
{
    (void)space;
    (void)frame;
    (void)vocab;
    (void)commit;
    return NULL;
}

const char *__wrap_message_unpack_proposal(struct message_space *space, struct frame frame, int vocab, struct proposal *proposal);
const char *__wrap_message_unpack_proposal(struct message_space *space, struct frame frame, int vocab, struct proposal *proposal)
{
    (void)space;
    (void)frame;
    (void)vocab;
    (void)proposal;
    return NULL;
}

static enum status sum_nothing(struct group *group, float *x, size_t count)
{
    (void)group;
    (void)x;
    (void)count;
    return STATUS_OK;
}

static enum status broadcast_nothing(struct group *group, void *bytes, size_t count)
{
    (void)group;
    (void)bytes;
    (void)count;
    return STATUS_OK;
}

static enum status gather_own(struct group *group, const void *mine, size_t count, void *all)
{
    for (int r = 0; r < group->size; r++)
        memcpy((char *)all + (size_t)r * count, mine, count);
    return STATUS_OK;
}

static void close_nothing(struct group *group)
{
    (void)group;
}

static const struct group_kind pretended = {
    .name = "pretended", .sum = sum_nothing, .broadcast = broadcast_nothing, .gather = gather_own, .close = close_nothing};

enum status __wrap_group_open_team(struct world *world, size_t largest, struct group *group);
enum status __wrap_group_open_team(struct world *world, size_t largest, struct group *group)
{
    (void)world;
    (void)largest;
    *group = (struct group){.size = 2, .kind = &pretended};
    return STATUS_OK;
}

enum status __wrap_group_meet(struct world *world, enum status status);
enum status __wrap_group_meet(struct world *world, enum status status)
{
    (void)world;
    return status;
}

/* There is a report for each row that was written. */
static void assert_reports(enum status (*measure)(struct latency *latency), int least)
{
    struct options options = {.ranks.backend = BACKEND_CPU};
    int drafter = 1;
    struct latency latency = {.options = &options, .world = {.size = 2, .drafter_rank = &drafter}};
    uint64_t before = progress_look().count;
    char *text = NULL;
    size_t size;
    int rows = 0;

    latency.text = open_memstream(&text, &size);
    assert_int_equal(message_space_open(&latency.space), STATUS_OK);
    assert_int_equal(measure(&latency), STATUS_OK);
    assert_int_equal(fclose(latency.text), 0);
    for (char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n') + 1)
        rows += *line != '#' && *line != '\n';
    assert_true(rows >= least);
    assert_true(progress_look().count - before >= (uint64_t)rows);
    message_space_close(latency.space);
    free(text);
}

static void test_latency__each_size_of_a_message_is_progress(void **state)
{
    (void)state;
    assert_reports(latency_messages, 54);
}

static void test_latency__each_size_of_a_sum_is_progress(void **state)
{
    (void)state;
    assert_reports(latency_collectives, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_latency__each_size_of_a_message_is_progress),
        cmocka_unit_test(test_latency__each_size_of_a_sum_is_progress),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
