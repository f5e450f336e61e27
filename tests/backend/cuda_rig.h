/* What the tests of the CUDA backend's operations share: a context on a device, emulated or real, beside one of the CPU backend, and arrays
 * on the device. What goes wrong ends the test. */
#ifndef TANDEM_TESTS_BACKEND_CUDA_RIG_H
#define TANDEM_TESTS_BACKEND_CUDA_RIG_H

#include "tests/backend/rig.h"

enum {
    CUDA_RIG_ROWS = 160,    /* of a step */
    CUDA_RIG_COMPANY = 150, /* for wide.cu: more than a block has */
};

struct cuda_rig {
    struct backend_context *cuda, *cpu;
    struct arena *arena; /* [count], of the device, one for each array */
    int count;
};

/* Whether this test's device is the emulation. */
int cuda_rig_is_emulated(void);
/* In the emulation, the order of threads and blocks from here on; elsewhere they have their own. */
void cuda_rig_order(unsigned seed);
/* The device of rigs that are opened from here on; 0 at first. */
void cuda_rig_on(int number);
/* The exit code for a test of a device where none answers, with the reason printed, else 0. */
int cuda_rig_skip(void);

/* Both contexts for steps of up to CUDA_RIG_ROWS rows. */
void cuda_rig_open(struct cuda_rig *rig, int max_hidden, int max_qkv, int max_context, int max_vocab);
void cuda_rig_close(struct cuda_rig *rig);

/* An array of the device of exactly this size, with these numbers, or NaN for from == NULL. */
float *cuda_rig_put(struct cuda_rig *rig, const float *from, size_t count);
/* What is there once all work is done. */
void cuda_rig_get(struct cuda_rig *rig, const float *from, float *to, size_t count);

/* Packs the columns [first, first + columns) of the weights for both. */
struct cuda_pair {
    struct matrix *cuda, *cpu;
    struct arena arena; /* the CPU's */
};
void cuda_rig_pack(struct cuda_rig *rig, const struct weights *weights, int first, int columns, struct cuda_pair *pair);

struct matrix *cuda_rig_pack_source(struct cuda_rig *rig, const struct matrix_source *source);

/* An operation of `rows` rows of `width` results each. Rows alone, and the same rows among up to CUDA_RIG_COMPANY, have the same bits, in every order
 * of threads that is tried. */
typedef void cuda_operation(struct cuda_rig *rig, int rows, const float *from, float *to);
void cuda_rig_check_company(struct cuda_rig *rig, cuda_operation *run, struct random *random, int columns, int width);

/* A test once more, on a device without clusters, whose maps of 17 to 64 rows are others. */
#define CUDA_RIG_APART(test) cmocka_unit_test_setup_teardown(test, cuda_rig_leave_clusters, cuda_rig_take_clusters)
int cuda_rig_leave_clusters(void **state);
int cuda_rig_take_clusters(void **state);

#endif
