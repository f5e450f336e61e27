/* Ping-pong of real frames through the real channel, packed and unpacked each time, as OSU's latency test does: half of a round trip with the same
 * message both ways. The `round` is what a round of decoding sends: a Commit one way and a Proposal the other, the whole way around. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/patience.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include "launch/bench/latency/latency.h"
#include <stdlib.h>

enum { VOCAB = 32768, WARM_UP = 20, LEAST_TIMES = 50, MOST_TIMES = 500, DRAFT_US = 100 };
#define PATIENCE_NS ((int64_t)10 * 1000000000)
#define LOOK_NS     ((int64_t)100 * 1000000)
#define ROW_NS      ((int64_t)40 * 1000000) /* a row that has taken so long has no more than LEAST_TIMES: a slow wire would take minutes */
#define PACKING_NS  ((int64_t)5 * 1000000)
#define DIGEST      (~0ULL)

enum kind { PROPOSE, COMMIT, ROUND };

/* One row of the tables. */
struct test {
    enum kind kind;
    int length;  /* drafted tokens; a Commit has one more */
    int support; /* tokens of each q; 0: the point mass, as greedy drafts are sent */
};

static const char *const kind_name[] = {"propose", "commit", "round"};

/* Supports spread over the vocabulary, so that ids take as many bytes as they do in earnest. */
struct content {
    int32_t id[MESSAGE_MAX_SUPPORT];
    uint32_t weight[MESSAGE_MAX_SUPPORT];
    int32_t token[MESSAGE_MAX_COMMIT];
    struct proposal proposal;
    struct commit commit;
};

static void fill(const struct test *test, struct content *content)
{
    int support = test->support;

    for (int i = 0; i < support; i++) {
        content->id[i] = (int32_t)((int64_t)i * VOCAB / support);
        content->weight[i] = (uint32_t)(MESSAGE_Q_SUM / support);
    }
    if (support > 0)
        content->weight[0] += (uint32_t)(MESSAGE_Q_SUM - MESSAGE_Q_SUM / support * support);
    for (int i = 0; i < MESSAGE_MAX_COMMIT; i++)
        content->token[i] = 777 * i % VOCAB;
    content->proposal =
        (struct proposal){.run = 1, .request = 1, .base_length = 1000, .base_digest = DIGEST, .sampling_digest = DIGEST, .count = test->length};
    for (int i = 0; i < test->length; i++) {
        content->proposal.token[i] = support > 0 ? content->id[support / 2] : content->token[i];
        content->proposal.q[i] = (struct support){.count = support, .id = content->id, .weight = content->weight};
    }
    content->commit = (struct commit){.run = 1,
                                      .request = 1,
                                      .old_length = 1000,
                                      .accepted = (uint32_t)test->length,
                                      .tokens = content->token,
                                      .count = test->length + 1,
                                      .keep = (uint32_t)(1000 + test->length),
                                      .draft_length = (uint32_t)test->length};
}

/* The last message there of a row says that it is; it is as long as the others. */
static void mark(struct content *content, int is_last)
{
    content->proposal.draft_us = DRAFT_US + is_last;
    content->commit.digest = DIGEST - (uint64_t)is_last;
}

static struct frame pack(struct latency *latency, const struct content *content, int commits)
{
    return commits ? message_pack_commit(latency->space, &content->commit) : message_pack_proposal(latency->space, &content->proposal);
}

static const char *unpack(struct latency *latency, struct frame frame, int commits, int *is_last)
{
    struct proposal proposal = {0};
    struct commit commit = {.digest = DIGEST};
    const char *wrong =
        commits ? message_unpack_commit(latency->space, frame, VOCAB, &commit) : message_unpack_proposal(latency->space, frame, VOCAB, &proposal);

    *is_last = commits ? commit.digest != DIGEST : proposal.draft_us != DRAFT_US;
    return wrong;
}

static enum status send(struct latency *latency, int peer, const struct content *content, int commits, size_t *bytes)
{
    struct frame frame = pack(latency, content, commits);
    int taken;

    *bytes = frame.count;
    TRY(channel_send(latency->channel, peer, frame, &taken));
    if (taken)
        return STATUS_OK;
    log_error("rank %d takes no messages", peer);
    return STATUS_IO;
}

static enum status receive(struct latency *latency, int peer, int commits, int *is_last)
{
    struct patience patience = patience_begin(2 * LOOK_NS);
    struct frame frame = {0};
    const char *wrong;
    int from, refused;

    while (frame.count == 0 && patience_spent(&patience) < PATIENCE_NS)
        TRY(channel_wait(latency->channel, clock_ns() + LOOK_NS, &from, &frame, &refused));
    if (frame.count == 0) {
        log_error("rank %d did not answer within %d s", peer, (int)(PATIENCE_NS / 1000000000));
        return STATUS_WATCHDOG;
    }
    wrong = unpack(latency, frame, commits, is_last);
    if (wrong == NULL)
        return STATUS_OK;
    log_error("a message of rank %d is not what was sent: %s", from, wrong);
    return STATUS_DATA;
}

/* Means over many: one is too short for the clock. Each of the two ends after PACKING_NS. */
static void time_packing(struct latency *latency, const struct content *content, int commits, double *pack_us, double *unpack_us)
{
    int64_t start = clock_ns(), packed, unpacked;
    struct frame frame = {0};
    int unused, times = 0;

    do {
        frame = pack(latency, content, commits);
        times++;
    } while (packed = clock_ns(), times < MOST_TIMES && packed - start < PACKING_NS);
    *pack_us = (double)(packed - start) / 1000 / times;
    times = 0;
    do {
        (void)unpack(latency, frame, commits, &unused);
        times++;
    } while (unpacked = clock_ns(), times < MOST_TIMES && unpacked - packed < PACKING_NS);
    *unpack_us = (double)(unpacked - packed) / 1000 / times;
}

/* The lead's side; the drafter's gives back what it takes. count: how often, in us[MOST_TIMES]. */
static enum status ping(struct latency *latency, const struct test *test, struct content *content, double *us, int *count, size_t *bytes)
{
    int peer = latency->world.drafter_rank[0], there = test->kind != PROPOSE, back = test->kind == COMMIT, unused_last;
    int64_t begun = clock_ns();
    size_t unused;

    *count = -WARM_UP;
    for (int is_last = 0; !is_last;) {
        int64_t start = clock_ns();

        is_last = *count == MOST_TIMES - 1 || (*count >= LEAST_TIMES - 1 && start - begun > ROW_NS);
        mark(content, is_last);
        TRY(send(latency, peer, content, there, there ? bytes : &unused));
        TRY(receive(latency, peer, back, &unused_last));
        if (*count >= 0)
            us[*count] = (double)(clock_ns() - start) / (test->kind == ROUND ? 1000 : 2000);
        ++*count;
    }
    if (test->kind != COMMIT) /* what a proposal has, also in a round */
        *bytes = (test->kind == ROUND ? *bytes : 0) + pack(latency, content, 0).count;
    return STATUS_OK;
}

static enum status pong(struct latency *latency, const struct test *test, struct content *content)
{
    int there = test->kind != PROPOSE, back = test->kind == COMMIT;
    size_t unused;

    mark(content, 0);
    for (int is_last = 0; !is_last;) {
        TRY(receive(latency, latency->world.lead, there, &is_last));
        TRY(send(latency, latency->world.lead, content, back, &unused));
    }
    return STATUS_OK;
}

static void write_test(struct latency *latency, const struct test *test, const struct content *content, double *us, int count, size_t bytes)
{
    struct latency_times times = latency_times_of(us, count);
    double pack_us, unpack_us;

    time_packing(latency, content, test->kind == COMMIT, &pack_us, &unpack_us);
    fprintf(latency->text, "%-15zu %.2f\n", bytes, times.avg);
    fflush(latency->text); /* whoever looks on sees each as it comes; close_files asks whether all arrived */
    if (latency->json != NULL)
        fprintf(latency->json,
                "{\"kind\":\"message\",\"message\":\"%s\",\"draft_length\":%d,\"support\":%d,\"bytes\":%zu,\"avg_us\":%.3f,\"p50_us\":%.3f,"
                "\"p99_us\":%.3f,\"min_us\":%.3f,\"pack_us\":%.3f,\"unpack_us\":%.3f,\"times\":%d}\n",
                kind_name[test->kind], test->length, test->support, bytes, times.avg, times.p50, times.p99, times.min, pack_us, unpack_us, count);
}

static void write_head(struct latency *latency, const struct test *test)
{
    if (test->kind == COMMIT)
        fprintf(latency->text, "\n# Tandem Commit Latency Test, by draft length\n");
    else if (test->kind == PROPOSE)
        fprintf(latency->text, "\n# Tandem Proposal Latency Test, support %d, by draft length\n", test->support);
    else
        fprintf(latency->text, "\n# Tandem Round Trip Test: Commit there, Proposal of support %d back, by draft length\n", test->support);
    fprintf(latency->text, "%-15s %s\n", "# Size", test->kind == ROUND ? "Avg Round Trip(us)" : "Avg Latency(us)");
}

/* The rows of all tables, in order; returns how many. */
static int list_tests(struct test *tests)
{
    static const int lengths[] = {1, 2, 4, 8, 16, 32, 63}, supports[] = {0, 16, 64, 256};
    int count = 0;

    for (int kind = PROPOSE; kind <= ROUND; kind++)
        for (size_t s = 0; s < (kind == COMMIT ? 1 : sizeof supports / sizeof *supports); s++)
            for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
                tests[count++] = (struct test){(enum kind)kind, lengths[l], supports[s]};
    return count;
}

enum status latency_messages(struct latency *latency)
{
    struct content *content = calloc(1, sizeof *content);
    double *us = calloc(MOST_TIMES, sizeof *us);
    struct test tests[3 * 4 * 6];
    int count = list_tests(tests);
    enum status status = content != NULL && us != NULL ? STATUS_OK : STATUS_INTERNAL;

    for (int i = 0; i < count && status == STATUS_OK; i++) {
        size_t bytes = 0;
        int times;

        progress_made("measuring messages");
        fill(&tests[i], content);
        if (latency->world.rank != latency->world.lead) {
            status = pong(latency, &tests[i], content);
            continue;
        }
        if (i == 0 || tests[i].kind != tests[i - 1].kind || tests[i].support != tests[i - 1].support)
            write_head(latency, &tests[i]);
        status = ping(latency, &tests[i], content, us, &times, &bytes);
        if (status == STATUS_OK)
            write_test(latency, &tests[i], content, us, times, bytes);
    }
    free(content);
    free(us);
    return status;
}
