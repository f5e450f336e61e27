#include "tests/backend/cuda_rig.h"

#include "common/backend/cuda/context.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void emulation_order(unsigned seed) __attribute__((weak)); /* of emulation.h, which is C++; not there on a device */
int emulation_unprepared(void) __attribute__((weak));

int cuda_rig_is_emulated(void)
{
    return emulation_order != NULL;
}

void cuda_rig_order(unsigned seed)
{
    if (emulation_order != NULL)
        emulation_order(seed);
}

static int device_number;

void cuda_rig_on(int number)
{
    device_number = number;
}

int cuda_rig_skip(void)
{
    struct device_lack lack;

    if (device_count(&lack) > 0)
        return 0;
    printf("skipped: no CUDA device: %s\n", lack.why);
    return 77;
}

void cuda_rig_open(struct cuda_rig *rig, int max_hidden, int max_qkv, int max_context, int max_vocab)
{
    const struct backend_options options = {.threads = 2,
                                            .max_rows = CUDA_RIG_ROWS,
                                            .max_hidden = max_hidden,
                                            .max_columns = max_hidden,
                                            .max_qkv = max_qkv,
                                            .max_context = max_context,
                                            .max_vocab = max_vocab,
                                            .device = device_number};

    *rig = (struct cuda_rig){0};
    assert_int_equal(backend_cuda.open(&options, &rig->cuda), STATUS_OK);
    assert_int_equal(backend_cpu.open(&options, &rig->cpu), STATUS_OK);
}

void cuda_rig_close(struct cuda_rig *rig)
{
    for (int i = 0; i < rig->count; i++)
        backend_cuda.memory.close(rig->cuda, &rig->arena[i]);
    free(rig->arena);
    backend_cuda.close(rig->cuda);
    backend_cpu.close(rig->cpu);
    if (emulation_unprepared != NULL)
        assert_int_equal(emulation_unprepared(), 0);
}

static struct arena *take(struct cuda_rig *rig, size_t bytes)
{
    struct arena *arena = realloc(rig->arena, (size_t)(rig->count + 1) * sizeof *arena);

    assert_non_null(arena);
    rig->arena = arena;
    arena += rig->count++;
    assert_int_equal(backend_cuda.memory.open(rig->cuda, bytes, "a test's array", arena), STATUS_OK);
    return arena;
}

float *cuda_rig_put(struct cuda_rig *rig, const float *from, size_t count)
{
    float *nothing = zeroed(count, sizeof *nothing), *at = (float *)(void *)take(rig, count * sizeof *at)->base;

    for (size_t i = 0; i < count; i++)
        nothing[i] = NAN;
    backend_cuda.memory.write(rig->cuda, at, from != NULL ? from : nothing, count * sizeof *at);
    free(nothing);
    return at;
}

void cuda_rig_get(struct cuda_rig *rig, const float *from, float *to, size_t count)
{
    device_copy_out(rig->cuda->device, to, from, count * sizeof *to);
    assert_int_equal(backend_cuda.step.finish(rig->cuda), STATUS_OK);
}

void cuda_rig_pack(struct cuda_rig *rig, const struct weights *weights, int first, int columns, struct cuda_pair *pair)
{
    const void **rows = zeroed((size_t)weights->outputs, sizeof *rows);
    struct matrix_source source = {
        .rows = rows, .outputs = weights->outputs, .columns = columns, .column_first = first, .dtype = weights->dtype, .slices = 1};

    for (int o = 0; o < weights->outputs; o++)
        rows[o] = (const char *)weights->data + (size_t)o * dtype_row_bytes(weights->dtype, (size_t)weights->columns);
    assert_int_equal(arena_open(&pair->arena, backend_cpu.linear.matrix_bytes(&source), "a test's matrix"), STATUS_OK);
    assert_int_equal(backend_cpu.linear.matrix_pack(rig->cpu, &source, &pair->arena, &pair->cpu), STATUS_OK);
    pair->cuda = cuda_rig_pack_source(rig, &source);
    free(rows);
}

struct matrix *cuda_rig_pack_source(struct cuda_rig *rig, const struct matrix_source *source)
{
    struct matrix *matrix = NULL;

    assert_int_equal(backend_cuda.linear.matrix_pack(rig->cuda, source, take(rig, backend_cuda.linear.matrix_bytes(source)), &matrix), STATUS_OK);
    return matrix;
}

void cuda_rig_check_company(struct cuda_rig *rig, cuda_operation *run, struct random *random, int columns, int width)
{
    static const int counts[] = {2, 5, 7, 8, 9, 16, 17, 25, 33, 64, 65, CUDA_RIG_COMPANY};
    size_t in = (size_t)columns, out = (size_t)width;
    float *from = zeroed(CUDA_RIG_COMPANY * in, sizeof *from), *alone = zeroed(CUDA_RIG_COMPANY * out, sizeof *alone),
          *to = zeroed(CUDA_RIG_COMPANY * out, sizeof *to);
    float *device_from, *device_to;

    random_floats(random, from, CUDA_RIG_COMPANY * in);
    device_from = cuda_rig_put(rig, from, CUDA_RIG_COMPANY * in);
    device_to = cuda_rig_put(rig, NULL, CUDA_RIG_COMPANY * out);
    for (int r = 0; r < CUDA_RIG_COMPANY; r += 3)
        run(rig, 1, device_from + (size_t)r * in, device_to + (size_t)r * out);
    cuda_rig_get(rig, device_to, alone, CUDA_RIG_COMPANY * out);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        cuda_rig_order((unsigned)c % 4);
        run(rig, counts[c], device_from, device_to);
        cuda_rig_get(rig, device_to, to, CUDA_RIG_COMPANY * out);
        for (int r = 0; r < counts[c]; r += 3)
            assert_same_bits(to + (size_t)r * out, alone + (size_t)r * out, out);
    }
    cuda_rig_order(0);
    free(from);
    free(alone);
    free(to);
}

int cuda_rig_leave_clusters(void **state)
{
    (void)state;
    return setenv("TANDEM_CUDA", "noclusters", 1);
}

int cuda_rig_take_clusters(void **state)
{
    (void)state;
    return unsetenv("TANDEM_CUDA");
}
