/* A job that sums over NCCL and does nothing else, made as the verifiers' is: for group_nccl.sh, which puts faults into the library and
 * looks at how it ends. nccl_job [same-device] [parts] [one-uuid] [patience=S] [watchdog=S] [sums=N] [absent=RANK] [numbers=N] */
#include "common/base/log.h"
#include "common/base/progress.h"
#include "common/group/group.h"
#include "common/world/watchdog.h"
#include "tests/support/pretended_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1000, MOST = 1200000 };

struct terms {
    int same_device;
    int parts;    /* of one device: one bus id, and a UUID for each */
    int one_uuid; /* and a bus id for each */
    double patience_s;
    double watchdog_s;
    int sums, numbers; /* of each sum */
    int absent; /* a rank that dies before the last sum */
};

static double value(const char *argument, const char *name, double otherwise)
{
    size_t length = strlen(name);

    return strncmp(argument, name, length) == 0 && argument[length] == '=' ? atof(argument + length + 1) : otherwise;
}

static struct terms terms_of(int argc, char **argv)
{
    struct terms terms = {.patience_s = 60, .watchdog_s = 60, .sums = 5, .numbers = COUNT, .absent = -1};

    for (int i = 1; i < argc; i++) {
        terms.parts |= strcmp(argv[i], "parts") == 0;
        terms.one_uuid |= strcmp(argv[i], "one-uuid") == 0;
        terms.same_device |= strcmp(argv[i], "same-device") == 0;
        terms.patience_s = value(argv[i], "patience", terms.patience_s);
        terms.watchdog_s = value(argv[i], "watchdog", terms.watchdog_s);
        terms.sums = (int)value(argv[i], "sums", terms.sums);
        terms.numbers = (int)value(argv[i], "numbers", terms.numbers);
        terms.absent = (int)value(argv[i], "absent", terms.absent);
    }
    return terms;
}

static enum status sum(struct group *group, const struct terms *terms, int rank)
{
    enum status status = STATUS_OK;
    static float x[MOST];

    for (int i = 0; i < terms->sums && status == STATUS_OK; i++) {
        progress_made("summing");
        for (int k = 0; k < terms->numbers; k++)
            x[k] = (float)(k % 1024);
        if (rank == terms->absent && i == terms->sums - 1)
            pause();
        status = group_sum(group, x, (size_t)terms->numbers);
        if (status == STATUS_OK)
            status = group_settle(group);
        for (int k = 0; k < terms->numbers && status == STATUS_OK; k++)
            if (x[k] < (float)(k % 1024 * group->size) || x[k] > (float)(k % 1024 * group->size))
                status = STATUS_INTERNAL;
    }
    return status;
}

static enum status run(struct world *world, const struct terms *terms, struct pretended_device *rig, struct group *group)
{
    enum status status;

    log_hold();
    status = group_open_team(world, 4096, group);
    if (status == STATUS_OK)
        status = group_open_nccl(world, &rig->backend, rig->context, (size_t)terms->numbers * sizeof(float), terms->patience_s, GROUP_SUMS_AUTO, group);
    status = world_agree(world, status);
    if (status == STATUS_OK) {
        if (world->rank == 0)
            log_info("group over %s", group_describe(group));
        status = sum(group, terms, world->rank);
    }
    group_close(group);
    return status;
}

int main(int argc, char **argv)
{
    struct terms terms = terms_of(argc, argv);
    struct pretended_device rig;
    struct world world;
    struct group group = {0};
    char label[32];
    enum status status;

    if (watchdog_open(terms.watchdog_s) != STATUS_OK || world_open(&argc, &argv, ROLE_VERIFIER, &world) != STATUS_OK)
        world_abort(STATUS_INTERNAL);
    watchdog_stand_behind(world.role_rank);
    snprintf(label, sizeof label, "nccl_job[%d]", world.rank);
    log_init(label, LOG_DEBUG);
    if (pretended_device_open(&rig, terms.same_device || terms.parts ? 0 : world.rank) != STATUS_OK)
        world_abort(STATUS_INTERNAL);
    if (terms.parts || terms.one_uuid)
        pretended_device_rename(terms.one_uuid ? 0 : world.rank);
    status = run(&world, &terms, &rig, &group);
    pretended_device_close(&rig);
    world_close(&world, status);
    watchdog_close();
    return (int)status;
}
