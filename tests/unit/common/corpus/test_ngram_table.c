/* Tables of n-grams: rows against the recursion as the papers write it, counted without a thought for speed; and files that are wrong. */
#include "common/corpus/ngram_count.h"
#include "tests/support/capture.h"
#include "tests/support/corpus_file.h"
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h> /* needs those above */

enum { VOCAB = 7, TEXTS = 5, LENGTH = 60, NONE = TEXTS_NONE };

/* Texts of different lengths, one of a single token and one that repeats itself. */
static int32_t texts[TEXTS][LENGTH];
static const int lengths[TEXTS] = {LENGTH, 1, 17, LENGTH, 33};

static void make_texts(uint32_t seed)
{
    for (int t = 0; t < TEXTS; t++)
        for (int i = 0; i < lengths[t]; i++) {
            seed = seed * 1664525 + 1013904223;
            texts[t][i] = t == 3 ? i % 3 : (int32_t)(seed >> 16) % (VOCAB - 1); /* the last token never occurs */
        }
}

static int occurs_at(int t, int i, const int32_t *gram, int n)
{
    for (int j = 0; j < n; j++) {
        int32_t token = i + j == -1 ? NONE : i + j >= 0 && i + j < lengths[t] ? texts[t][i + j] : -2;

        if (token != gram[j])
            return 0;
    }
    return 1;
}

static int occurrences(const int32_t *gram, int n)
{
    int count = 0;

    for (int t = 0; t < TEXTS; t++)
        for (int i = -1; i < lengths[t]; i++)
            count += occurs_at(t, i, gram, n);
    return count;
}

/* How often it occurs, or, below the highest order, how many different tokens stood in front, the beginning of a text being one. */
static int count_of(const int32_t *gram, int n, int order)
{
    int32_t longer[NGRAM_ORDER + 1];
    int count = 0;

    if (n == order)
        return occurrences(gram, n);
    memcpy(longer + 1, gram, (size_t)n * sizeof *gram);
    for (longer[0] = NONE; longer[0] < VOCAB; longer[0]++)
        count += occurrences(longer, n + 1) > 0;
    return count;
}

/* All n-grams, as numbers to the base of the vocabulary. */
static int read_gram(long number, int n, int32_t *gram)
{
    for (int j = n - 1; j >= 0; j--, number /= VOCAB)
        gram[j] = (int32_t)(number % VOCAB);
    return number == 0;
}

static void find_discounts(int n, int order, double *discount)
{
    double of[5] = {0}, y;
    int32_t gram[NGRAM_ORDER];

    for (long g = 0; read_gram(g, n, gram); g++) {
        int count = count_of(gram, n, order);

        if (count >= 1 && count <= 4)
            of[count]++;
    }
    y = of[1] > 0 ? of[1] / (of[1] + 2 * of[2]) : 0;
    for (int c = 1; c <= 3; c++) {
        double d = of[c] > 0 ? c - (c + 1) * y * of[c + 1] / of[c] : 0;

        discount[c] = d > 0 && d < c ? d : c / 2.0;
    }
}

static double discounts[NGRAM_ORDER + 1][4];

static double naive_p(const int32_t *context, int known, int32_t token, int order)
{
    int32_t gram[NGRAM_ORDER];
    double total = 0, left = 0, count, shorter = known > 0 ? naive_p(context + 1, known - 1, token, order) : 1.0 / VOCAB;

    memcpy(gram, context, (size_t)known * sizeof *gram);
    for (gram[known] = 0; gram[known] < VOCAB; gram[known]++) {
        int some = count_of(gram, known + 1, order);

        total += some;
        left += discounts[known + 1][some < 3 ? some : 3];
    }
    if (total == 0)
        return shorter;
    gram[known] = token;
    count = count_of(gram, known + 1, order);
    return (count - discounts[known + 1][(int)fmin(count, 3)]) / total + left / total * shorter;
}

static void open_counted(int order, struct ngram_table *table)
{
    const struct ngram_terms terms = {.order = order, .vocab = VOCAB, .tokenizer = 5};
    struct texts all = {0};
    char path[] = "/tmp/tandem-ngram-XXXXXX";
    int file = mkstemp(path);
    void *bytes;
    size_t size;

    for (int t = 0; t < TEXTS; t++)
        assert_int_equal(texts_add(&all, texts[t], (size_t)lengths[t]), STATUS_OK);
    assert_int_equal(ngram_count(&all, &terms, &bytes, &size), STATUS_OK);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
    free(bytes);
    texts_release(&all);
    assert_int_equal(ngram_table_open(path, table), STATUS_OK);
    unlink(path);
}

/* Behind texts of 0 to 5 tokens, those that occurred and those that did not. */
static void compare_rows(const struct ngram_table *table, int order)
{
    float logits[VOCAB];

    for (int known = 0; known <= 5; known++)
        for (int which = 0; which < 30; which++) {
            const int32_t *context = which < 20 ? &texts[which % 2 * 3][which] : (int32_t[]){which % 7, 2, (which + 1) % 6, 0, 5};
            int used = known < order - 1 ? known : order - 1;
            double sum = 0;

            ngram_table_row(table, context, known, VOCAB, logits);
            for (int token = 0; token < VOCAB; token++) {
                double p = naive_p(context + known - used, used, token, order);

                assert_true(p > 0 && fabs(exp((double)logits[token]) - p) < 2e-6);
                sum += exp((double)logits[token]);
            }
            assert_true(fabs(sum - 1) < 1e-5);
        }
}

static void test_ngram_table__rows_are_those_of_the_recursion(void **state)
{
    struct ngram_table table;

    (void)state;
    for (int order = 1; order <= NGRAM_ORDER; order++) {
        make_texts((uint32_t)order);
        for (int n = 1; n <= order; n++)
            find_discounts(n, order, discounts[n]);
        open_counted(order, &table);
        assert_int_equal(table.header.tokens, 171);
        compare_rows(&table, order);
        ngram_table_close(&table);
    }
}

/* The ids beyond are as if they were not asked for. */
static void test_ngram_table__a_row_may_be_cut(void **state)
{
    float whole[VOCAB], cut[VOCAB] = {0};
    struct ngram_table table;

    (void)state;
    make_texts(9);
    open_counted(5, &table);
    for (int known = 0; known < 5; known++)
        for (int vocab = 1; vocab < VOCAB; vocab++) {
            ngram_table_row(&table, texts[0] + 7, known, VOCAB, whole);
            cut[vocab] = 77;
            ngram_table_row(&table, texts[0] + 7, known, vocab, cut);
            assert_memory_equal(cut, whole, (size_t)vocab * sizeof *cut);
            assert_true(cut[vocab] == 77);
        }
    ngram_table_close(&table);
    ngram_table_close(&table);
}

/* A text may end in tokens that the table has not: added ones, which the tokenizer has and texts have not. */
static void test_ngram_table__an_unknown_token_ends_a_context(void **state)
{
    const int32_t with[] = {1, 2, 0, VOCAB + 3, 1}, without[] = {1};
    float one[VOCAB], other[VOCAB];
    struct ngram_table table;

    (void)state;
    make_texts(3);
    open_counted(4, &table);
    ngram_table_row(&table, with, 5, VOCAB, one);
    ngram_table_row(&table, without, 1, VOCAB, other);
    assert_memory_equal(one, other, sizeof one);
    ngram_table_row(&table, with, 4, VOCAB, one);
    ngram_table_row(&table, without, 0, VOCAB, other);
    assert_memory_equal(one, other, sizeof one);
    ngram_table_close(&table);
}

/* Where in the file something is, as the header has it. */
struct places {
    size_t alone, first, left, token, last, share, end;
};

static void find_places(const char *path, struct places *places)
{
    struct ngram_table table;
    const unsigned char *bytes;

    assert_int_equal(ngram_table_open(path, &table), STATUS_OK);
    bytes = table.file.bytes;
    *places = (struct places){.alone = (size_t)((const unsigned char *)table.body.alone - bytes),
                              .first = (size_t)((const unsigned char *)table.body.level[0].first - bytes),
                              .left = (size_t)((const unsigned char *)table.body.level[1].left - bytes),
                              .token = (size_t)((const unsigned char *)table.body.level[0].token - bytes),
                              .last = (size_t)((const unsigned char *)(table.body.level[0].token + table.header.followers[0] - 1) - bytes),
                              .share = (size_t)((const unsigned char *)table.body.level[1].share - bytes),
                              .end = table.file.size};
    ngram_table_close(&table);
}

/* Writes a word at a place of a copy of the file and, where it is to be signed, the digest that fits. */
static void spoil(const char *path, const char *copy, size_t at, uint32_t word, int is_signed, size_t size)
{
    unsigned char *bytes = calloc(1, size + sizeof(struct ngram_header) + 1);
    struct ngram_header header;
    int from = open(path, O_RDONLY), to = open(copy, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(read(from, bytes, size) >= 0);
    memcpy(bytes + at, &word, sizeof word);
    memcpy(&header, bytes, sizeof header);
    if (is_signed) {
        header.digest = ngram_table_digest(&header, bytes + sizeof header);
        memcpy(bytes, &header, sizeof header);
    }
    assert_int_equal(write(to, bytes, size), size);
    close(from);
    close(to);
    free(bytes);
}

static void assert_refused(const char *path, const char *why)
{
    struct capture capture;
    struct ngram_table table;
    char line[512];

    capture_begin(&capture);
    assert_int_equal(ngram_table_open(path, &table), STATUS_DATA);
    capture_end(&capture, line, sizeof line);
    capture_assert_one_line(line, why);
    assert_null(table.log_alone);
}

static void test_ngram_table__a_wrong_file_is_named(void **state)
{
    char path[CORPUS_FILE_PATH], copy[] = "/tmp/tandem-ngram-XXXXXX";
    struct places at;
    uint32_t nan_bits = 0x7fc00000, more_than_one = 0x3f800001, minus = 0xbf000000;

    (void)state;
    corpus_file_make("ngram", 3, 40, 600, path);
    find_places(path, &at);
    close(mkstemp(copy));
    const struct {
        size_t at;
        uint32_t word;
        int is_signed;
        size_t size;
        const char *why;
    } wrong[] = {
        {0, 7, 0, at.end, "no n-gram table"},
        {offsetof(struct ngram_header, version), 2, 0, at.end, "of version 2, expected 1"},
        {offsetof(struct ngram_header, order), 0, 0, at.end, "an order or a vocabulary that no n-gram table has"},
        {offsetof(struct ngram_header, order), NGRAM_ORDER + 1, 0, at.end, "an order or a vocabulary that no n-gram table has"},
        {offsetof(struct ngram_header, vocab), 0, 0, at.end, "an order or a vocabulary that no n-gram table has"},
        {offsetof(struct ngram_header, vocab), UINT32_MAX, 0, at.end, "an order or a vocabulary that no n-gram table has"},
        {offsetof(struct ngram_header, vocab), 41, 0, at.end, "cut or damaged"},
        {offsetof(struct ngram_header, contexts) + 4, 1, 0, at.end, "cut or damaged"}, /* 2^32 more */
        {offsetof(struct ngram_header, followers) + 8, 1, 0, at.end, "cut or damaged"},
        {0, 0x646e6174, 0, at.end - 1, "cut or damaged"},
        {0, 0x646e6174, 0, at.end + 1, "cut or damaged"},
        {0, 0x646e6174, 0, sizeof(struct ngram_header), "cut or damaged"},
        {0, 0x646e6174, 0, sizeof(struct ngram_header) - 1, "too short"},
        {0, 0x646e6174, 0, 0, "too short"},
        {at.share, 0, 0, at.end, "does not have the digest"},
        {offsetof(struct ngram_header, tokens), 1, 0, at.end, "does not have the digest"},
        {at.alone + 4, nan_bits, 1, at.end, "a token alone has no probability"},
        {at.first, 2, 1, at.end, "what followed a context does not fit"}, /* it begins behind its end */
        {at.first + 4, UINT32_MAX, 1, at.end, "what followed a context does not fit"},
        {at.left, minus, 1, at.end, "what followed a context does not fit"},
        {at.last, 40, 1, at.end, "what followed a context does not fit"},
        {at.token, UINT32_MAX, 1, at.end, "what followed a context does not fit"},
        {at.token + 4, 0, 1, at.end, "what followed a context does not fit"}, /* they do not rise */
        {at.share, more_than_one, 1, at.end, "what followed a context does not fit"},
        {at.end - 4, nan_bits, 1, at.end, "what followed a context does not fit"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        size_t at_least = wrong[i].at + 4 > wrong[i].size ? 0 : wrong[i].at; /* of a file that is cut before */

        spoil(path, copy, at_least, wrong[i].word, wrong[i].is_signed, wrong[i].size);
        assert_refused(copy, wrong[i].why);
    }
    unlink(copy);
    unlink(path);
}

static void test_ngram_table__texts_that_cannot_be_counted_are_named(void **state)
{
    const struct ngram_terms terms = {.order = 3, .vocab = 5};
    const int32_t fits[] = {1, 2, 4}, beyond[] = {1, 5}, wrong[] = {3, -1};
    struct texts all = {0};
    struct capture capture;
    char line[512];
    void *bytes;
    size_t size;

    (void)state;
    capture_begin(&capture);
    assert_int_equal(ngram_count(&all, &terms, &bytes, &size), STATUS_DATA);
    capture_end(&capture, line, sizeof line);
    capture_assert_one_line(line, "the texts have no token");
    assert_int_equal(texts_add(&all, fits, 3), STATUS_OK);
    capture_begin(&capture);
    assert_int_equal(texts_add(&all, wrong, 2), STATUS_DATA);
    capture_end(&capture, line, sizeof line);
    capture_assert_one_line(line, "a token is -1, expected 0 to");
    assert_int_equal(ngram_count(&all, &terms, &bytes, &size), STATUS_OK);
    free(bytes);
    assert_int_equal(texts_add(&all, beyond, 2), STATUS_OK);
    capture_begin(&capture);
    assert_int_equal(ngram_count(&all, &terms, &bytes, &size), STATUS_DATA);
    capture_end(&capture, line, sizeof line);
    capture_assert_one_line(line, "a token is 5, expected less than the 5");
    texts_release(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ngram_table__rows_are_those_of_the_recursion),        cmocka_unit_test(test_ngram_table__a_row_may_be_cut),
        cmocka_unit_test(test_ngram_table__an_unknown_token_ends_a_context),        cmocka_unit_test(test_ngram_table__a_wrong_file_is_named),
        cmocka_unit_test(test_ngram_table__texts_that_cannot_be_counted_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
