/* The group's operations by size, in place, in the form of nccl-tests. Numbers are small whole ones, so every sum is exact and can be checked. */
#include "common/backend/choose.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/base/try.h"
#include "launch/bench/latency/latency.h"
#include <stdlib.h>
#include <string.h>

enum { SMALLEST = 16, LARGEST = 1 << 20, PART = 256 << 10, WARM_UP = 20, TIMES = 200 };

enum operation { SUM, BROADCAST, GATHER, OPERATIONS };

struct rig {
    struct latency *latency;
    struct group group;
    const struct backend *backend;
    struct backend_context *context; /* NULL where sums are of the host's memory */
    struct arena arena;
    float *sums; /* [LARGEST / 4] where they are made */
    float *x;    /* [LARGEST / 4] of a device: what they are added to */
    float *host; /* [LARGEST / 4] */
    char *all;   /* [group.size][LARGEST] on rank 0 */
    double us[TIMES];
};

static float given(int rank, size_t i)
{
    return (float)((i * 7 + (size_t)rank * 3) % 64);
}

static void fill(struct rig *rig, enum operation operation, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rig->host[i] = given(rig->group.rank, i);
    if (operation == SUM && rig->context != NULL)
        rig->backend->memory.write(rig->context, rig->sums, rig->host, count * sizeof(float));
}

static enum status run_once(struct rig *rig, enum operation operation, size_t count)
{
    size_t bytes = count * sizeof(float);

    if (operation == BROADCAST)
        return group_broadcast(&rig->group, rig->host, bytes);
    if (operation == GATHER)
        return group_gather(&rig->group, rig->host, bytes, rig->all);
    if (rig->context == NULL)
        return group_sum(&rig->group, rig->sums, count);
    if (group_sums_alone(&rig->group, count)) /* as a forward pass asks for it */
        TRY(group_add(&rig->group, rig->x, rig->sums, count));
    else
        TRY(group_sum(&rig->group, rig->sums, count));
    TRY(group_settle(&rig->group));
    return rig->backend->step.finish(rig->context);
}

/* How many numbers are not what they must be, on the lead; -1 where they are on a device. */
static long count_wrong(struct rig *rig, enum operation operation, size_t count)
{
    long wrong = 0;

    if (operation == SUM && rig->context != NULL)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (operation == SUM) {
            float sum = 0;

            for (int r = 0; r < rig->group.size; r++)
                sum += given(r, i);
            wrong += rig->sums[i] != sum;
        } else if (operation == BROADCAST) {
            wrong += rig->host[i] != given(0, i);
        } else {
            for (int r = 0; r < rig->group.size && rig->group.rank == 0; r++)
                wrong += ((const float *)(const void *)(rig->all + (size_t)r * count * sizeof(float)))[i] != given(r, i);
        }
    return wrong;
}

static void write_row(struct rig *rig, enum operation operation, size_t count, long wrong)
{
    static const char *const name[] = {"all_reduce", "broadcast", "gather"}, *const type[] = {"float", "byte", "byte"};
    static const char *const redop[] = {"sum", "none", "none"};
    double n = rig->group.size, factor = operation == SUM ? 2 * (n - 1) / n : operation == GATHER ? (n - 1) / n : 1;
    size_t bytes = count * sizeof(float), whole = operation == GATHER ? bytes * (size_t)rig->group.size : bytes;
    struct latency_times times = latency_times_of(rig->us, TIMES);
    double algbw = (double)whole / times.avg / 1000, busbw = algbw * factor;
    int root = operation == SUM ? -1 : 0;
    struct latency *latency = rig->latency;

    fprintf(latency->text, "%12zu  %12zu  %8s  %6s  %6d  %7.2f  %6.2f  %6.2f  %5ld\n", whole, operation == SUM ? count : whole, type[operation],
            redop[operation], root, times.avg, algbw, busbw, wrong);
    if (latency->json != NULL)
        fprintf(latency->json,
                "{\"kind\":\"collective\",\"operation\":\"%s\",\"bytes\":%zu,\"count\":%zu,\"type\":\"%s\",\"redop\":\"%s\",\"root\":%d,"
                "\"avg_us\":%.3f,"
                "\"p50_us\":%.3f,\"p99_us\":%.3f,\"min_us\":%.3f,\"algbw\":%.4f,\"busbw\":%.4f,\"wrong\":%ld}\n",
                name[operation], whole, operation == SUM ? count : whole, type[operation], redop[operation], root, times.avg, times.p50,
                times.p99, times.min, algbw, busbw, wrong);
}

static enum status measure(struct rig *rig, enum operation operation, size_t count)
{
    long wrong;

    for (int i = -WARM_UP; i < TIMES; i++) {
        int64_t start = clock_ns();

        TRY(run_once(rig, operation, count));
        if (i >= 0)
            rig->us[i] = (double)(clock_ns() - start) / 1000;
    }
    fill(rig, operation, count); /* the result is checked on fresh input, for repeated sums have grown too large */
    TRY(run_once(rig, operation, count));
    wrong = count_wrong(rig, operation, count);
    if (rig->latency->text != NULL)
        write_row(rig, operation, count, wrong);
    return STATUS_OK;
}

static void write_head(struct rig *rig, enum operation operation)
{
    static const char *const name[] = {"sums (all_reduce)", "orders (broadcast)", "evidence (gather)"};
    FILE *to = rig->latency->text;

    if (to == NULL)
        return;
    fprintf(to, "\n# Tandem group test: %s, %d ranks over %s, %d iterations after %d\n#\n", name[operation], rig->group.size,
            group_describe(&rig->group), TIMES, WARM_UP);
    fprintf(to, "#                                                                   in-place\n");
    fprintf(to, "#%11s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s\n", "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong");
    fprintf(to, "#%11s  %12s  %8s  %6s  %6s  %7s  %6s  %6s\n", "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)");
}

static enum status open_rig(struct rig *rig, struct latency *latency)
{
    struct world *world = &latency->world;
    enum status status = backend_choose((enum backend_choice)latency->options->ranks.backend, &rig->backend);

    TRY(group_meet(world, status));
    if (world->node_role_rank == 0)
        backend_choose_warn((enum backend_choice)latency->options->ranks.backend, rig->backend);
    TRY(group_open_team(world, PART, &rig->group));
    rig->host = calloc(1, LARGEST);
    rig->all = calloc((size_t)rig->group.size, LARGEST);
    if (rig->host == NULL || rig->all == NULL)
        status = STATUS_INTERNAL;
    rig->sums = rig->host;
    if (status == STATUS_OK && rig->backend->device.which != NULL) {
        const char *devices = latency->options->ranks.verifier_devices;
        struct backend_options options = {.threads = 1, .max_rows = 1};

        status = backend_choose_device(rig->backend, devices, devices != NULL ? world->node_role_rank : world->node_rank, &options.device);
        if (status == STATUS_OK)
            status = rig->backend->open(&options, &rig->context);
        if (status == STATUS_OK)
            status = rig->backend->memory.open(rig->context, 2 * (size_t)LARGEST, "the numbers to be summed", &rig->arena);
    }
    TRY(group_agree(&rig->group, status));
    TRY(group_attach(world, rig->backend, rig->context, LARGEST, (enum group_sums)latency->options->ranks.all_reduce, &rig->group));
    if (rig->context == NULL)
        return STATUS_OK;
    rig->sums = group_buffer(&rig->group, LARGEST);
    if (rig->sums == NULL)
        rig->sums = (float *)(void *)(rig->arena.base + LARGEST);
    rig->x = (float *)(void *)rig->arena.base;
    return STATUS_OK;
}

static void close_rig(struct rig *rig)
{
    group_close(&rig->group);
    if (rig->context != NULL) {
        rig->backend->memory.close(rig->context, &rig->arena);
        rig->backend->close(rig->context);
    }
    free(rig->host);
    free(rig->all);
}

enum status latency_collectives(struct latency *latency)
{
    static struct rig rig;
    enum status status;

    rig.latency = latency;
    status = open_rig(&rig, latency);
    if (status == STATUS_OK && rig.group.size == 1 && latency->text != NULL)
        fprintf(latency->text, "\n# Tandem group test: one rank, nothing is sent\n");
    for (int operation = SUM; status == STATUS_OK && rig.group.size > 1 && operation < OPERATIONS; operation++) {
        write_head(&rig, (enum operation)operation);
        for (size_t bytes = SMALLEST; status == STATUS_OK && bytes <= LARGEST; bytes *= 4) {
            size_t most = operation == SUM ? LARGEST : PART; /* the others are of one part */

            progress_made("measuring the group");
            fill(&rig, (enum operation)operation, bytes / sizeof(float));
            if (bytes <= most)
                status = measure(&rig, (enum operation)operation, bytes / sizeof(float));
        }
    }
    close_rig(&rig);
    return status;
}
