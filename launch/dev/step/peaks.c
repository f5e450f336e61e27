#include "launch/dev/step/peaks.h"

#include "common/base/clock.h"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { TIMES = 5, CHAINS = 12, STEPS = 1 << 21 };
#define LEAST_READ ((size_t)1 << 30) /* in one go: a thread takes as long to start as a cache to be read */

struct part;
typedef void work_function(struct part *part);

/* One thread's part, and what it came to, so that no compiler leaves it out. */
struct part {
    work_function *work;
    float *memory; /* [count] */
    size_t count, times;
    volatile float sum;
};

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void read_wide(struct part *part)
{
    __m512 sum[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};

    for (size_t i = 0; i + 64 <= part->count; i += 64)
        for (size_t j = 0; j < 4; j++)
            sum[j] = _mm512_add_ps(sum[j], _mm512_loadu_ps(part->memory + i + 16 * j));
    part->sum = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(sum[0], sum[1]), _mm512_add_ps(sum[2], sum[3])));
}

__attribute__((target("avx2"))) static float sum_of(__m256 v)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(four) + _mm_cvtss_f32(_mm_shuffle_ps(four, four, 1));
}

__attribute__((target("avx2"))) static void read_half(struct part *part)
{
    __m256 sum[8];

    for (int j = 0; j < 8; j++)
        sum[j] = _mm256_setzero_ps();
    for (size_t i = 0; i + 64 <= part->count; i += 64)
        for (size_t j = 0; j < 8; j++)
            sum[j] = _mm256_add_ps(sum[j], _mm256_loadu_ps(part->memory + i + 8 * j));
    for (int j = 1; j < 8; j++)
        sum[0] = _mm256_add_ps(sum[0], sum[j]);
    part->sum = sum_of(sum[0]);
}

__attribute__((target("avx2,fma"))) static void multiply_add_half(struct part *part)
{
    const __m256 factor = _mm256_set1_ps(0.999f), term = _mm256_set1_ps(0.001f);
    __m256 chain[CHAINS], sum = _mm256_setzero_ps();

    for (int j = 0; j < CHAINS; j++)
        chain[j] = _mm256_set1_ps((float)j);
    for (int i = 0; i < STEPS; i++)
        for (int j = 0; j < CHAINS; j++)
            chain[j] = _mm256_fmadd_ps(chain[j], factor, term);
    for (int j = 0; j < CHAINS; j++)
        sum = _mm256_add_ps(sum, chain[j]);
    part->sum = sum_of(sum);
}

__attribute__((target("avx512f"))) static void multiply_add(struct part *part)
{
    const __m512 factor = _mm512_set1_ps(0.999f), term = _mm512_set1_ps(0.001f);
    __m512 chain[CHAINS], sum = _mm512_setzero_ps();

    for (int j = 0; j < CHAINS; j++)
        chain[j] = _mm512_set1_ps((float)j);
    for (int i = 0; i < STEPS; i++)
        for (int j = 0; j < CHAINS; j++)
            chain[j] = _mm512_fmadd_ps(chain[j], factor, term);
    for (int j = 0; j < CHAINS; j++)
        sum = _mm512_add_ps(sum, chain[j]);
    part->sum = _mm512_reduce_add_ps(sum);
}

__attribute__((target("avx512f,avx512vnni"))) static void multiply_add_bytes(struct part *part)
{
    __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8((char)(part->count & 1)), chain[CHAINS], sum = _mm512_setzero_si512();

    for (int j = 0; j < CHAINS; j++)
        chain[j] = _mm512_set1_epi32(j);
    for (int i = 0; i < STEPS; i++) {
        __asm__ volatile("" : "+v"(a), "+v"(b)); /* each product is made anew */
        for (int j = 0; j < CHAINS; j++)
            chain[j] = _mm512_dpbusd_epi32(chain[j], a, b);
    }
    for (int j = 0; j < CHAINS; j++)
        sum = _mm512_add_epi32(sum, chain[j]);
    part->sum = (float)_mm512_reduce_add_epi32(sum);
}
#endif

static void read_plain(struct part *part)
{
    float sum[16] = {0}, total = 0;

    for (size_t i = 0; i + 16 <= part->count; i += 16)
        for (size_t j = 0; j < 16; j++)
            sum[j] += part->memory[i + j];
    for (int j = 0; j < 16; j++)
        total += sum[j];
    part->sum = total;
}

static void *begin(void *argument)
{
    struct part *part = argument;

    for (size_t i = 0; i < part->times; i++)
        part->work(part);
    return NULL;
}

/* Nanoseconds until all threads have done it so many times, at best; 0 where one does not start. */
static double best_ns(struct part *part, int threads, work_function *work, size_t times)
{
    pthread_t thread[PEAKS_MAX_THREADS];
    int64_t best = INT64_MAX;

    for (int t = 0; t < TIMES; t++) {
        int64_t start = clock_ns(), took;
        int begun = 0;

        for (; begun < threads; begun++) {
            part[begun].work = work;
            part[begun].times = times;
            if (pthread_create(&thread[begun], NULL, begin, &part[begun]) != 0)
                break;
        }
        for (int i = 0; i < begun; i++)
            pthread_join(thread[i], NULL);
        took = clock_ns() - start;
        if (begun < threads)
            return 0;
        best = took < best ? took : best;
    }
    return (double)best;
}

/* What this processor has, widest first; NULL where it has none of it. */
static work_function *reader(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return read_wide;
    if (__builtin_cpu_supports("avx2"))
        return read_half;
#endif
    return read_plain;
}

static work_function *narrow_multiplier(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return multiply_add_half;
#endif
    return NULL;
}

/* lanes: floats that one instruction multiplies. */
static work_function *multiplier(int *lanes)
{
#if defined(__x86_64__)
    *lanes = __builtin_cpu_supports("avx512f") ? 16 : 8;
    if (*lanes == 16)
        return multiply_add;
#else
    *lanes = 1;
#endif
    return narrow_multiplier();
}

static work_function *byte_multiplier(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni"))
        return multiply_add_bytes;
#endif
    return NULL;
}

int peaks_measure(int threads, size_t bytes, struct peaks *peaks)
{
    struct part part[PEAKS_MAX_THREADS] = {0};
    size_t count = bytes / sizeof(float) / (size_t)threads;
    float *memory = malloc((size_t)threads * count * sizeof *memory);
    double ns, work = (double)threads * STEPS * CHAINS;
    size_t times = (LEAST_READ + bytes - 1) / bytes;
    int lanes;

    if (memory == NULL)
        return 0;
    for (size_t i = 0; i < (size_t)threads * count; i++)
        memory[i] = 1.0f; /* which makes it there */
    for (int i = 0; i < threads; i++)
        part[i] = (struct part){.memory = memory + (size_t)i * count, .count = count};
    *peaks = (struct peaks){0};
    if ((ns = best_ns(part, threads, reader(), times)) > 0)
        peaks->read = (double)threads * (double)count * sizeof(float) * (double)times / ns;
    if (multiplier(&lanes) != NULL && (ns = best_ns(part, threads, multiplier(&lanes), 1)) > 0)
        peaks->fma = 2 * lanes * work / ns;
    if (narrow_multiplier() != NULL && (ns = best_ns(part, threads, narrow_multiplier(), 1)) > 0)
        peaks->fma_avx2 = 2 * 8 * work / ns;
    if (byte_multiplier() != NULL && (ns = best_ns(part, threads, byte_multiplier(), 1)) > 0)
        peaks->vnni = 2 * 64 * work / ns;
    free(memory);
    return peaks->read > 0;
}
