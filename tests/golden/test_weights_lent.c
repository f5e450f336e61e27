/* A model whose weights another process lends, against one that has read its own: the same logits to the bit, of all layers, of the first ones and
 * without some. */
#include "tests/support/golden.h"
#include "tests/support/model_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { TOKENS = 11, MOST_VOCAB = 4096 };
static const int32_t tokens[TOKENS] = {1, 9, 4, 77, 23, 5, 91, 8, 2, 60, 33};

static char path[GOLDEN_PATH];
static float *whole, *own; /* [TOKENS][MOST_VOCAB] */

static struct model_options options_of(const char *skip, int layers)
{
    struct model_options options = {.threads = 2, .max_rows = MODEL_RIG_ROWS, .slots = MODEL_RIG_SLOTS, .layers = layers};

    if (skip != NULL)
        assert_int_equal(layer_set_read(skip, &options.skip), 1);
    return options;
}

static size_t logits_of(const struct model_options *options, int *borrows, float *logits)
{
    const struct chain chain = {.count = TOKENS, .tokens = tokens};
    struct model_rig rig;
    size_t count;

    model_rig_open_with(&rig, path, NULL, options);
    *borrows = rig.model->borrows;
    count = (size_t)TOKENS * (size_t)rig.model->vocab_count;
    assert_true(count <= (size_t)TOKENS * MOST_VOCAB);
    model_rig_step(&rig, &chain, 1, logits);
    model_rig_close(&rig);
    return count;
}

/* In the child: its own first, then what is lent. Returns its exit code: 0 where they are the same, and were borrowed as expected. */
static int compare_in_child(struct model_options options, const struct arena_loan *loan, int expected)
{
    int borrows;
    size_t count = logits_of(&options, &borrows, own);

    options.loan = loan;
    if (borrows || logits_of(&options, &borrows, whole) != count)
        return 2;
    if (borrows != expected)
        return 3;
    return memcmp(whole, own, count * sizeof *whole) != 0;
}

/* Threads do not survive a fork: the child opens all that it uses. */
static void borrowed_as(struct model_options options, const struct arena_loan *loan, int expected)
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0)
        _exit(compare_in_child(options, loan, expected));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* The lender is a child, too, so that its place is free here and in those who borrow. It says what it lends, and waits until it is told to end. */
static pid_t lend(struct arena_loan *loan, int *end)
{
    int to_us[2], to_child[2];
    pid_t child;

    assert_int_equal(pipe(to_us), 0);
    assert_int_equal(pipe(to_child), 0);
    child = fork();
    if (child == 0) {
        struct model_options options = options_of(NULL, 0);
        struct model_rig rig;
        char byte;

        close(to_child[1]);
        options.lends = 1;
        model_rig_open_with(&rig, path, NULL, &options);
        if (write(to_us[1], &rig.model->loan, sizeof rig.model->loan) == sizeof rig.model->loan)
            (void)!read(to_child[0], &byte, 1);
        model_rig_close(&rig);
        _exit(0);
    }
    close(to_child[0]);
    assert_int_equal(read(to_us[0], loan, sizeof *loan), sizeof *loan);
    close(to_us[0]);
    close(to_us[1]);
    *end = to_child[1];
    return child;
}

static void test_weights_lent__are_as_ones_own(void **state)
{
    struct arena_loan loan, other;
    int end, status;
    pid_t lender = lend(&loan, &end);

    (void)state;
    assert_int_equal(loan.pid, lender);
    borrowed_as(options_of(NULL, 0), &loan, 1);
    borrowed_as(options_of(NULL, 1), &loan, 1);
    borrowed_as(options_of("0", 0), &loan, 1);
    borrowed_as(options_of("1", 0), &loan, 1);

    /* What is another model's, or of other blocks or ids, is read. */
    other = loan;
    other.key++;
    borrowed_as(options_of(NULL, 0), &other, 0);
    struct model_options rounded = options_of(NULL, 0), fewer = rounded;

    rounded.quantise = DTYPE_Q8_0;
    borrowed_as(rounded, &loan, 0);
    fewer.vocab = 64;
    borrowed_as(fewer, &loan, 0);
    other = loan;
    other.descriptor = 1000; /* which it has not */
    borrowed_as(options_of(NULL, 0), &other, 0);

    close(end);
    assert_int_equal(waitpid(lender, &status, 0), lender);
    assert_int_equal(status, 0);
    borrowed_as(options_of(NULL, 0), &loan, 0); /* it has ended */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_weights_lent__are_as_ones_own)};

    golden_path("tests/golden/models/qwen3", path);
    whole = calloc((size_t)TOKENS * MOST_VOCAB, sizeof *whole);
    own = calloc((size_t)TOKENS * MOST_VOCAB, sizeof *own);
    int failed = whole == NULL || own == NULL || cmocka_run_group_tests(tests, NULL, NULL);

    free(whole);
    free(own);
    return failed;
}
