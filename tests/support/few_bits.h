/* A Hugging Face folder whose linear maps are kept in few bits, made of one in F32, F16 or BF16: for tests of what reads such folders. The numbers
 * and the layout are the tests' own, by the definition of each format. */
#ifndef TANDEM_TESTS_SUPPORT_FEW_BITS_H
#define TANDEM_TESTS_SUPPORT_FEW_BITS_H

enum few_bits_kind {
    FEW_BITS_AWQ,       /* groups of 32 columns, each with a zero point */
    FEW_BITS_GPTQ,      /* groups of 32, all zero points 8 */
    FEW_BITS_GPTQ_ZERO, /* one group for a row, with a zero point; checkpoint_format gptq_v2 */
    FEW_BITS_FP8_BLOCK, /* a scale for each block of 64 x 32, in F32 */
    FEW_BITS_FP8_LARGE, /* the same of 128 x 128, as published */
    FEW_BITS_FP8_ROW,   /* a scale for each row, in BF16: compressed-tensors */
    FEW_BITS_FP8_ALL,   /* one scale */
    FEW_BITS_KINDS
};

/* As few_bits_main has them. */
extern const char *const few_bits_name[FEW_BITS_KINDS];

/* Reads the folder `from`, and writes the folder `to`, and the folder `values` (NULL: none) in F32 with what the numbers stand for: (q - z) s; for
 * FP8 the value times its scale, rounded to F32 where few_bits_is_f8, else to BF16. Both are made; what goes wrong ends the process. */
void few_bits_write(const char *from, const char *to, const char *values, enum few_bits_kind kind);

/* Whether a map of so many columns is read as F8: blocks of 128 columns have one scale each. */
int few_bits_is_f8(enum few_bits_kind kind, int columns);

#endif
