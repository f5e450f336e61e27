/* What the program believes of NCCL's types, against NCCL's own header where the machine has it; and the real library, which answers a few
 * questions without a device. */
#include "common/group/nccl_library.h"
#include "tests/support/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef TANDEM_NCCL_HEADER
#include <nccl.h>

#define SAME_FIELD(theirs, ours)                                                                                                           \
    do {                                                                                                                                   \
        assert_int_equal(offsetof(ncclConfig_t, theirs), offsetof(struct nccl_config, ours));                                              \
        assert_int_equal(sizeof((ncclConfig_t){0}.theirs), sizeof((struct nccl_config){0}.ours));                                          \
    } while (0)

static void test_nccl_library__matches_nccl_h(void **state)
{
    ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;

    (void)state;
    SAME_FIELD(size, size);
    SAME_FIELD(magic, magic);
    SAME_FIELD(version, version);
    SAME_FIELD(blocking, blocking);
    SAME_FIELD(cgaClusterSize, cga_cluster_size);
    SAME_FIELD(minCTAs, min_ctas);
    SAME_FIELD(maxCTAs, max_ctas);
    SAME_FIELD(netName, net_name);
    SAME_FIELD(splitShare, split_share);
    assert_true(sizeof(struct nccl_config) <= sizeof(ncclConfig_t));
    assert_int_equal(theirs.magic, NCCL_CONFIG_MAGIC);
    assert_int_equal(theirs.blocking, NCCL_UNDEFINED);
    assert_int_equal(sizeof(ncclUniqueId), sizeof(struct nccl_unique_id));
    assert_int_equal(sizeof(ncclResult_t), sizeof(int));
    assert_int_equal(ncclSuccess, NCCL_SUCCESS);
    assert_int_equal(ncclUnhandledCudaError, NCCL_UNHANDLED_CUDA_ERROR);
    assert_int_equal(ncclSystemError, NCCL_SYSTEM_ERROR);
    assert_int_equal(ncclInternalError, NCCL_INTERNAL_ERROR);
    assert_int_equal(ncclInvalidArgument, NCCL_INVALID_ARGUMENT);
    assert_int_equal(ncclInvalidUsage, NCCL_INVALID_USAGE);
    assert_int_equal(ncclRemoteError, NCCL_REMOTE_ERROR);
    assert_int_equal(ncclInProgress, NCCL_IN_PROGRESS);
    assert_int_equal(ncclSum, NCCL_SUM);
    assert_int_equal(ncclFloat32, NCCL_FLOAT32);
#ifdef NCCL_WIN_COLL_SYMMETRIC
    assert_int_equal(NCCL_WIN_COLL_SYMMETRIC, NCCL_WINDOW_SYMMETRIC);
    assert_int_equal(NCCL_WIN_REQUIRED_ALIGNMENT, NCCL_WINDOW_ALIGN);
#endif
}
#else
static void test_nccl_library__matches_nccl_h(void **state)
{
    (void)state;
    print_message("skipped: no nccl.h on this machine\n");
    skip();
}
#endif

static void test_nccl_library__finds_every_function_in_the_real_one(void **state)
{
    struct nccl_library library = {0};
    struct nccl_unique_id id = {{0}};
    struct capture capture;
    char text[1000];
    enum status status;

    (void)state;
    capture_begin(&capture);
    status = nccl_library_open(&library);
    capture_end(&capture, text, sizeof text);
    if (status != STATUS_OK) {
        capture_assert_one_line(text, "verifiers on several GPUs need NCCL");
        print_message("skipped: no NCCL on this machine\n");
        skip();
    }
    print_message("NCCL %d\n", library.version);
    assert_true(library.version >= NCCL_LEAST_VERSION);
    int hasty = library.version >= NCCL_HASTY_VERSION && library.version < NCCL_MENDED_VERSION;
    assert_true((library.comm_window_register != NULL) == (library.version >= NCCL_WINDOW_VERSION && !hasty));
    assert_string_equal(library.get_error_string(NCCL_INVALID_USAGE), "invalid usage (run with NCCL_DEBUG=WARN for details)");
    assert_int_equal(library.get_unique_id(&id), NCCL_SUCCESS);
}

/* A config that says that it is an older one than the library's is read as such; without a device the library then says that it has none.
 */
static void test_nccl_library__the_real_one_takes_the_config(void **state)
{
    struct nccl_library library;
    struct nccl_config config = {.size = sizeof config, .magic = NCCL_CONFIG_MAGIC, .version = NCCL_LEAST_VERSION};
    struct nccl_unique_id id = {{0}};
    struct nccl_comm *comm = NULL;
    struct capture capture;
    char text[1000];
    int result;

    (void)state;
    capture_begin(&capture);
    enum status status = nccl_library_open(&library);
    capture_end(&capture, text, sizeof text);
    if (status != STATUS_OK)
        skip();
    config.cga_cluster_size = config.min_ctas = config.max_ctas = config.split_share = NCCL_UNDEFINED;
    assert_int_equal(library.get_unique_id(&id), NCCL_SUCCESS);
    result = library.comm_init_rank_config(&comm, 1, id, 0, &config);
    print_message("ncclCommInitRankConfig: %s\n", library.get_error_string(result));
    assert_true(result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS || result == NCCL_UNHANDLED_CUDA_ERROR);
    if (comm != NULL)
        library.comm_abort(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nccl_library__matches_nccl_h),
        cmocka_unit_test(test_nccl_library__finds_every_function_in_the_real_one),
        cmocka_unit_test(test_nccl_library__the_real_one_takes_the_config),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
