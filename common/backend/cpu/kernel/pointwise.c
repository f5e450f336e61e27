/* What is done to a row value by value, and the RMS norm. */
#include "common/backend/cpu/kernel/table.h"
#include "common/backend/cpu/kernel/vec.h"

#include <math.h>
#include <string.h>

void KERNEL(norm)(const float *x, const float *weight, int count, float eps, float *to)
{
    vec squares = vec_zero(), scale;

    for (int i = 0; i < count; i += LANES) {
        vec v = vec_load_left(x + i, count - i);

        squares = vec_fma(v, v, squares);
    }
    scale = vec_set(1.0f / sqrtf(vec_sum(squares) / (float)count + eps));
    for (int i = 0; i < count; i += LANES) {
        vec v = vec_load_left(x + i, count - i), w = vec_load_left(weight + i, count - i);

        vec_store_left(to + i, vec_mul(vec_mul(v, scale), w), count - i);
    }
}

void KERNEL(rope)(float *head, const float *cosine, const float *sine, int half, float scale)
{
    vec s = vec_set(scale);

    for (int i = 0; i < half; i += LANES) {
        vec a = vec_load_left(head + i, half - i), b = vec_load_left(head + half + i, half - i);
        vec c = vec_load_left(cosine + i, half - i), n = vec_load_left(sine + i, half - i);

        vec_store_left(head + i, vec_mul(vec_fma(a, c, vec_negate(vec_mul(b, n))), s), half - i);
        vec_store_left(head + half + i, vec_mul(vec_fma(b, c, vec_mul(a, n)), s), half - i);
    }
}

void KERNEL(swiglu)(const float *pairs, int count, float *to)
{
    for (int i = 0; i < count; i += LANES) {
        vec gate = vec_load(pairs + 2 * i), up = vec_load(pairs + 2 * i + LANES);
        vec below = vec_add(vec_set(1.0f), vec_exp(vec_negate(gate)));

        vec_store_left(to + i, vec_mul(vec_div(gate, below), up), count - i);
    }
}

void KERNEL(add)(float *x, const float *y, size_t count)
{
    size_t i = 0;

    for (; i + LANES <= count; i += LANES)
        vec_store(x + i, vec_add(vec_load(x + i), vec_load(y + i)));
    if (i < count)
        vec_store_part(x + i, vec_add(vec_load_part(x + i, (int)(count - i)), vec_load_part(y + i, (int)(count - i))), (int)(count - i));
}

/* What is cut off may make the rest larger by one, where it is more than half, or half and the rest odd; the sign takes no part. */
void KERNEL(round_bf16)(float *x, int count)
{
    for (int i = 0; i < count; i += LANES) {
        vec v = vec_load_left(x + i, count - i);
        veci bits = veci_of_vec_bits(v), odd = veci_and(veci_right(bits, 16), veci_set(1));
        veci nearest = veci_add(bits, veci_add(odd, veci_set(0x7fff))), quiet = veci_or(bits, veci_set(0x00400000));
        vec rounded = vec_select(vec_equal(v, v), vec_of_bits(nearest), vec_of_bits(quiet));

        vec_store_left(x + i, vec_of_bits(veci_and(veci_of_vec_bits(rounded), veci_set(0xffff0000))), count - i);
    }
}

/* A number of E4M3 has a sign, 4 bits of exponent and 3 of fraction. Below 2^-6 it is a multiple of 2^-9, which is the last place of a float32 of
 * 2^14. */
void KERNEL(round_e4m3)(const float *x, int count, unsigned char *to)
{
    for (int i = 0; i < count; i += LANES) {
        vec v = vec_load_left(x + i, count - i);
        veci bits = veci_of_vec_bits(v), sign = veci_left(veci_right(bits, 31), 7);
        vec size = vec_min(vec_of_bits(veci_and(bits, veci_set(0x7fffffff))), vec_set(448));
        veci large = veci_of_vec_bits(size), odd = veci_and(veci_right(large, 20), veci_set(1));
        veci nearest = veci_right(veci_add(large, veci_add(odd, veci_set(0x7ffff - (120u << 23)))), 20);
        veci small = veci_and(veci_of_vec_bits(vec_add(size, vec_set(0x1p14f))), veci_set(15));
        vec rounded = vec_select(vec_less(size, vec_set(0x1p-6f)), vec_of_bits(small), vec_of_bits(nearest));
        veci number = veci_of_vec_bits(vec_select(vec_equal(v, v), rounded, vec_of_bits(veci_set(0x7f))));
        veci minus = veci_add(veci_xor(sign, veci_set(0xffffffff)), veci_set(1)); /* -128 or 0 */
        int8_t bytes[LANES];

        veci_store_bytes(bytes, veci_or(number, minus));
        memcpy(to + i, bytes, (size_t)(count - i < LANES ? count - i : LANES));
    }
}

void KERNEL(map_exp)(const float *from, float *to, int count)
{
    for (int i = 0; i < count; i += LANES)
        vec_store_left(to + i, vec_exp(vec_load_left(from + i, count - i)), count - i);
}

void KERNEL(map_log)(const float *from, float *to, int count)
{
    for (int i = 0; i < count; i += LANES)
        vec_store_left(to + i, vec_log(vec_load_left(from + i, count - i)), count - i);
}

void KERNEL(map_gumbel)(const uint32_t *from, float *to, int count)
{
    for (int i = 0; i < count; i += LANES) {
        uint32_t words[LANES] = {0};

        for (int j = 0; j < LANES && i + j < count; j++)
            words[j] = from[i + j];
        vec_store_left(to + i, vec_gumbel(veci_load(words)), count - i);
    }
}
