/* Names of the kernels by instruction set: each file of this folder is compiled once per set, KERNEL(matmul) is matmul_avx2. Products of bytes
 * (TANDEM_VNNI) are an extension of two sets: it has kernels of its own for quantised matrices, KERNEL_QUANTISED, and the set's for the rest. */
#ifndef TANDEM_COMMON_BACKEND_CPU_KERNEL_TABLE_H
#define TANDEM_COMMON_BACKEND_CPU_KERNEL_TABLE_H

#include "common/backend/cpu/kernels.h"

#if defined(TANDEM_ISA_AVX512)
#define KERNEL(name)      name##_avx512
#define KERNEL_VNNI(name) name##_avx512vnni
#define KERNEL_ISA        "avx512"
#define KERNEL_ISA_VNNI   "avx512vnni"
#define KERNEL_QUERIES    8 /* of attention that a thread takes at least */
#define KERNEL_SCORES     8 /* queries whose scores are summed up at once: their sums are registers */
#elif defined(TANDEM_ISA_AVX2)
#define KERNEL(name)      name##_avx2
#define KERNEL_VNNI(name) name##_avxvnni
#define KERNEL_ISA        "avx2"
#define KERNEL_ISA_VNNI   "avxvnni"
#define KERNEL_QUERIES    4
#define KERNEL_SCORES     6
#else
#define KERNEL(name)   name##_scalar
#define KERNEL_ISA     "scalar"
#define KERNEL_QUERIES 4
#define KERNEL_SCORES  4
#endif

#if defined(TANDEM_VNNI)
#define KERNEL_QUANTISED(name) KERNEL_VNNI(name)
#define KERNEL_NAME            KERNEL_ISA_VNNI
#else
#define KERNEL_QUANTISED(name) KERNEL(name)
#define KERNEL_NAME            KERNEL_ISA
#endif

/* See kernels.h. */
void KERNEL(matmul)(const struct matrix *matrix, int first, int last, int rows, const float *from, size_t from_stride, float *to,
                    size_t to_stride);
void KERNEL_QUANTISED(quantise)(const struct matrix *matrix, const float *from, struct activations *to, size_t stride);
void KERNEL_QUANTISED(matmul_quantised)(const struct matrix *matrix, int first, int last, int rows, const struct activations *from,
                                        size_t stride, float *to, size_t to_stride);
void KERNEL(norm)(const float *x, const float *weight, int count, float eps, float *to);
void KERNEL(rope)(float *head, const float *cosine, const float *sine, int half, float scale);
void KERNEL(swiglu)(const float *pairs, int count, float *to);
void KERNEL(add)(float *x, const float *y, size_t count);
void KERNEL(round_bf16)(float *x, int count);
void KERNEL(round_e4m3)(const float *x, int count, unsigned char *to);
void KERNEL(attend)(const struct attend_block *block);
void KERNEL(attend_bf16)(const struct attend_block *block);
void KERNEL(attend_e4m3)(const struct attend_block *block);
void KERNEL(row_max)(const float *logits, float scale, int first, int last, struct scored_token *best);
double KERNEL(row_sum)(const float *logits, float scale, int count, float max);
double KERNEL(row_below)(const float *logits, float scale, int count, float max);
void KERNEL(row_gumbel_max)(const float *logits, float scale, int first, int last, int32_t first_token, const struct rng_key *key,
                      enum rng_purpose purpose, const uint32_t *excluded, struct scored_token *winner);
int KERNEL(row_find)(const float *logits, float scale, int first, int count, float threshold);
void KERNEL(map_exp)(const float *from, float *to, int count);
void KERNEL(map_log)(const float *from, float *to, int count);
void KERNEL(map_gumbel)(const uint32_t *from, float *to, int count);

#endif
