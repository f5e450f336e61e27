/* Datastores: rows against a search of every place, and files that are wrong. */
#include "common/corpus/datastore.h"
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

enum { VOCAB = 5, TEXTS = 4, LENGTH = 90, ASKED = 300 };

/* Texts that repeat themselves over tens of tokens, and each other; one is of a single token. */
static int32_t texts[TEXTS][LENGTH];
static const int lengths[TEXTS] = {LENGTH, 1, 50, LENGTH};

static void make_texts(void)
{
    uint32_t seed = 7;

    for (int i = 0; i < LENGTH; i++) {
        seed = seed * 1664525 + 1013904223;
        texts[0][i] = i >= 45 && i < 82 ? texts[0][i - 45] : (int32_t)(seed >> 16) % VOCAB;
        texts[1][i] = 3;
        texts[2][i] = texts[0][i + 20 < LENGTH ? i + 20 : i];
        texts[3][i] = i % 2;
    }
}

static void open_made(struct datastore *store)
{
    char path[] = "/tmp/tandem-datastore-XXXXXX";
    struct texts all = {0};
    int file = mkstemp(path);
    void *bytes;
    size_t size;

    for (int t = 0; t < TEXTS; t++)
        assert_int_equal(texts_add(&all, texts[t], (size_t)lengths[t]), STATUS_OK);
    assert_int_equal(datastore_make(&all, VOCAB, 5, &bytes, &size), STATUS_OK);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
    free(bytes);
    texts_release(&all);
    assert_int_equal(datastore_open(path, store), STATUS_OK);
    unlink(path);
}

/* How often each token followed these tokens. Returns how often any did. */
static int count_followers(const int32_t *tokens, int count, int *followed)
{
    int all = 0;

    memset(followed, 0, VOCAB * sizeof *followed);
    for (int t = 0; t < TEXTS; t++)
        for (int i = 0; i + count < lengths[t]; i++)
            if (memcmp(texts[t] + i, tokens, (size_t)count * sizeof *tokens) == 0) {
                followed[texts[t][i + count]]++;
                all++;
            }
    return all;
}

static void test_datastore__rows_are_what_followed_the_longest_end(void **state)
{
    int lengths_found[DATASTORE_LONGEST + 1] = {0}, followed[VOCAB] = {0}, nothing_within = 0;
    float logits[VOCAB], cut[VOCAB];
    struct datastore store;

    (void)state;
    make_texts();
    open_made(&store);
    for (int asked = 0; asked < ASKED; asked++) {
        /* an end of one of the texts, of some tokens, before which are others, and of some the last one is another */
        int t = asked % 2 == 0 ? 0 : asked % 4 == 1 ? 2 : 3, known = asked % 41, at = known + asked % (lengths[t] - known), longest = 0, all = 0;
        int32_t last[64];

        memcpy(last, texts[t] + at - known, (size_t)known * sizeof *last);
        if (known > 3)
            last[asked % (known - 3)] = VOCAB + 2;
        if (asked % 11 == 0 && known > 0)
            last[known - 1] = (last[known - 1] + 1) % VOCAB;
        for (int n = known < DATASTORE_LONGEST ? known : DATASTORE_LONGEST; n >= DATASTORE_LEAST && longest == 0; n--)
            if ((all = count_followers(last + known - n, n, followed)) > 0)
                longest = n;
        assert_int_equal(datastore_row(&store, last, known, VOCAB, logits), longest);
        lengths_found[longest]++;
        for (int token = 0; token < VOCAB && longest > 0; token++)
            assert_true(followed[token] == 0 ? logits[token] <= DATASTORE_FLOOR
                                             : fabs(exp((double)logits[token]) - (double)followed[token] / all) < 1e-6);
        assert_int_equal(datastore_row(&store, last, known, 2, cut), longest > 0 && followed[0] + followed[1] > 0 ? longest : 0);
        assert_true(longest == 0 || followed[0] + followed[1] == 0 || memcmp(cut, logits, 2 * sizeof *cut) == 0);
        nothing_within += longest > 0 && followed[0] + followed[1] == 0;
    }
    assert_true(lengths_found[0] > 0 && lengths_found[DATASTORE_LEAST] > 0 && lengths_found[3] > 0 && lengths_found[20] > 0 && nothing_within > 0);
    datastore_close(&store);
    datastore_close(&store);
}

/* Of more places than are looked at the share is nearly that of all. */
static void test_datastore__many_places_are_sampled(void **state)
{
    int32_t text[2 * 9000];
    struct texts all = {0};
    struct datastore store;
    char path[] = "/tmp/tandem-datastore-XXXXXX";
    int file = mkstemp(path);
    float logits[8];
    void *bytes;
    size_t size;

    (void)state;
    for (int i = 0; i < 9000; i += 3) { /* behind 0, 1 comes in one of four 4, and else 3 */
        text[i] = 0;
        text[i + 1] = 1;
        text[i + 2] = i % 12 == 0 ? 4 : 3;
    }
    assert_int_equal(texts_add(&all, text, 9000), STATUS_OK);
    assert_int_equal(datastore_make(&all, 8, 5, &bytes, &size), STATUS_OK);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
    free(bytes);
    texts_release(&all);
    assert_int_equal(datastore_open(path, &store), STATUS_OK);
    unlink(path);
    assert_int_equal(datastore_row(&store, (int32_t[]){0, 1}, 2, 8, logits), 2);
    assert_true(fabs(exp((double)logits[4]) - 0.25) < 2.0 / DATASTORE_SEEN && fabs(exp((double)logits[3]) - 0.75) < 2.0 / DATASTORE_SEEN);
    assert_true(logits[0] == DATASTORE_FLOOR && logits[7] == DATASTORE_FLOOR);
    datastore_close(&store);
}

/* Writes a word at a place of a copy of the file and, where it is to be signed, the digest that fits. */
static void spoil(const char *path, const char *copy, size_t at, uint32_t word, int is_signed, size_t size)
{
    unsigned char *bytes = calloc(1, size + sizeof(struct datastore_header) + 1);
    int from = open(path, O_RDONLY), to = open(copy, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    struct datastore_header header;

    assert_true(read(from, bytes, size) >= 0);
    if (at + sizeof word <= size)
        memcpy(bytes + at, &word, sizeof word);
    memcpy(&header, bytes, sizeof header);
    if (is_signed) {
        header.digest = datastore_digest(&header, bytes + sizeof header, size - sizeof header);
        memcpy(bytes, &header, sizeof header);
    }
    assert_int_equal(write(to, bytes, size), size);
    close(from);
    close(to);
    free(bytes);
}

static void test_datastore__a_wrong_file_is_named(void **state)
{
    char path[CORPUS_FILE_PATH], copy[] = "/tmp/tandem-datastore-XXXXXX", line[512];
    const size_t body = sizeof(struct datastore_header), end = body + (302 + 300) * 4, sorted = body + 302 * 4;
    const struct {
        size_t at;
        uint32_t word;
        int is_signed;
        size_t size;
        const char *why;
    } wrong[] = {
        {0, 7, 0, end, "no datastore"},
        {offsetof(struct datastore_header, version), 2, 0, end, "of version 2, expected 1"},
        {offsetof(struct datastore_header, vocab), 0, 0, end, "a vocabulary that no datastore has"},
        {offsetof(struct datastore_header, vocab), UINT32_MAX, 0, end, "a vocabulary that no datastore has"},
        {offsetof(struct datastore_header, vocab), 39, 0, end, "does not have the digest"},
        {offsetof(struct datastore_header, places), 303, 0, end, "cut or damaged"},
        {offsetof(struct datastore_header, places), 0, 0, end, "cut or damaged"},
        {offsetof(struct datastore_header, places) + 4, 1, 0, end, "cut or damaged"},          /* 2^32 more */
        {offsetof(struct datastore_header, sorted) + 4, 0x40000000, 0, end, "cut or damaged"}, /* 2^62, which is 2^64 bytes */
        {end, 0, 0, end - 1, "cut or damaged"},
        {end + 1, 0, 0, end + 1, "cut or damaged"},
        {end, 0, 0, body, "cut or damaged"},
        {end, 0, 0, body - 1, "too short"},
        {end, 0, 0, 0, "too short"},
        {body + 8, 5, 0, end, "does not have the digest"},
        {body + 8, 40, 1, end, "a token or a place is none"},
        {body + 8, (uint32_t)-2, 1, end, "a token or a place is none"},
        {sorted - 4, 3, 1, end, "a token or a place is none"}, /* the texts have no end */
        {sorted, 302, 1, end, "a token or a place is none"},
        {sorted + 4, UINT32_MAX, 1, end, "a token or a place is none"},
        {end - 4, 0, 1, end, "a token or a place is none"}, /* where no token is */
    };

    (void)state;
    corpus_file_make("datastore", 0, 40, 300, path);
    close(mkstemp(copy));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct capture capture;
        struct datastore store;

        spoil(path, copy, wrong[i].at, wrong[i].word, wrong[i].is_signed, wrong[i].size);
        capture_begin(&capture);
        assert_int_equal(datastore_open(copy, &store), STATUS_DATA);
        capture_end(&capture, line, sizeof line);
        capture_assert_one_line(line, wrong[i].why);
        assert_null(store.file.bytes);
    }
    unlink(copy);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_datastore__rows_are_what_followed_the_longest_end),
        cmocka_unit_test(test_datastore__many_places_are_sampled),
        cmocka_unit_test(test_datastore__a_wrong_file_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
