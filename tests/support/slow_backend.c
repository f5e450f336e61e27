/* The CPU backend and a tokenizer on a machine that is very slow, or hangs: linked in place of the choice of a backend, for tests of who is taken for
 * hung. The environment says what is slow, and on which rank:
 * SLOW_RANK=N  SLOW_PACK=MS of a matrix  SLOW_WIDEN=MS of a row  SLOW_LAYER=MS of a layer's attention  SLOW_ROW=MS of a row of it
 * SLOW_ENCODE=MS of a prompt
 * SLOW_STUCK=pack|widen|layer: the first of these, once the job is past its beginning, never ends. */
#include "common/backend/choose.h"
#include "common/text/tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STUCK_AT = 3 }; /* as something has got done before */

static int is_mine(void)
{
    const char *slow = getenv("SLOW_RANK"), *rank = getenv("OMPI_COMM_WORLD_RANK");

    return slow == NULL || (rank != NULL && strcmp(slow, rank) == 0);
}

static int is_stuck(const char *name)
{
    const char *stuck = getenv("SLOW_STUCK");

    return stuck != NULL && strcmp(stuck, name) == 0;
}

/* So many times what the variable says. */
static void take_times(const char *variable, const char *name, int times)
{
    const char *ms = getenv(variable);
    int64_t ns = ms != NULL ? (int64_t)(atof(ms) * times * 1e6) : 0;
    static int done;

    if (!is_mine())
        return;
    if (is_stuck(name) && ++done >= STUCK_AT)
        for (;;)
            pause();
    if (ns > 0)
        nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}

static void take_time(const char *variable, const char *name)
{
    take_times(variable, name, 1);
}

static enum status slow_pack(struct backend_context *context, const struct matrix_source *source, struct arena *arena, struct matrix **matrix)
{
    take_time("SLOW_PACK", "pack");
    return backend_cpu.linear.matrix_pack(context, source, arena, matrix);
}

static void slow_attend(struct backend_context *context, const struct layer_shape *shape, const struct layer_weights *layer, const struct rows *rows,
                        const float *q, const struct cache_layer *cache, float *attended)
{
    take_time("SLOW_LAYER", "layer");
    take_times("SLOW_ROW", "row", rows->count);
    backend_cpu.layer.attend(context, shape, layer, rows, q, cache, attended);
}

void __real_dtype_widen_columns(enum dtype dtype, const void *row, size_t first, size_t count, float *to);
void __wrap_dtype_widen_columns(enum dtype dtype, const void *row, size_t first, size_t count, float *to);
void __wrap_dtype_widen_columns(enum dtype dtype, const void *row, size_t first, size_t count, float *to)
{
    take_time("SLOW_WIDEN", "widen");
    __real_dtype_widen_columns(dtype, row, first, count, to);
}

enum status __real_tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t length, int flags, int32_t **tokens, int *count,
                                    size_t *bad_offset);
enum status __wrap_tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t length, int flags, int32_t **tokens, int *count,
                                    size_t *bad_offset);
enum status __wrap_tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t length, int flags, int32_t **tokens, int *count,
                                    size_t *bad_offset)
{
    take_time("SLOW_ENCODE", "encode");
    return __real_tokenizer_encode(tokenizer, text, length, flags, tokens, count, bad_offset);
}

enum status backend_choose(enum backend_choice choice, const struct backend **backend)
{
    static struct backend slow;

    (void)choice;
    slow = backend_cpu;
    slow.linear.matrix_pack = slow_pack;
    slow.layer.attend = slow_attend;
    if (getenv("SLOW_WIDEN") != NULL || is_stuck("widen"))
        slow.linear.packs = 1u << DTYPE_F32;
    *backend = &slow;
    return STATUS_OK;
}

void backend_choose_warn(enum backend_choice choice, const struct backend *backend)
{
    (void)choice;
    (void)backend;
}

enum status backend_choose_device(const struct backend *backend, const char *list, int turn, int *device)
{
    (void)backend;
    (void)list;
    (void)turn;
    *device = 0;
    return STATUS_OK;
}
