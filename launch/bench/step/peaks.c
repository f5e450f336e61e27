#include "launch/bench/step/peaks.h"

#include "common/base/clock.h"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { TIMES = 5, CHAINS = 12, STEPS = 1 << 21 };

/* One thread's part, and what it came to, so that no compiler leaves it out. */
struct part {
    void (*work)(struct part *part);
    float *memory; /* [count] */
    size_t count;
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

    part->work(part);
    return NULL;
}

/* Nanoseconds until all threads have ended, at best; 0 where one does not start. */
static double best_ns(struct part *part, int threads, void (*work)(struct part *part))
{
    pthread_t thread[PEAKS_MAX_THREADS];
    int64_t best = INT64_MAX;

    for (int t = 0; t < TIMES; t++) {
        int64_t start = clock_ns(), took;
        int begun = 0;

        for (; begun < threads; begun++) {
            part[begun].work = work;
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

static int has_wide(int with_bytes)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") && (!with_bytes || __builtin_cpu_supports("avx512vnni"));
#else
    return with_bytes - with_bytes;
#endif
}

int peaks_measure(int threads, size_t bytes, struct peaks *peaks)
{
    struct part part[PEAKS_MAX_THREADS] = {0};
    size_t count = bytes / sizeof(float) / (size_t)threads;
    float *memory = malloc((size_t)threads * count * sizeof *memory);
    double ns, work = (double)threads * STEPS * CHAINS;

    if (memory == NULL)
        return 0;
    for (size_t i = 0; i < (size_t)threads * count; i++)
        memory[i] = 1.0f; /* which makes it there */
    for (int i = 0; i < threads; i++)
        part[i] = (struct part){.memory = memory + (size_t)i * count, .count = count};
    *peaks = (struct peaks){0};
#if defined(__x86_64__)
    ns = best_ns(part, threads, has_wide(0) ? read_wide : read_plain);
    peaks->read = ns > 0 ? (double)threads * (double)count * sizeof(float) / ns : 0;
    if (has_wide(0) && (ns = best_ns(part, threads, multiply_add)) > 0)
        peaks->fma = 2 * 16 * work / ns;
    if (has_wide(1) && (ns = best_ns(part, threads, multiply_add_bytes)) > 0)
        peaks->vnni = 2 * 64 * work / ns;
#else
    ns = best_ns(part, threads, read_plain);
    peaks->read = ns > 0 ? (double)threads * (double)count * sizeof(float) / ns : 0;
    (void)work;
#endif
    free(memory);
    return peaks->read > 0;
}
