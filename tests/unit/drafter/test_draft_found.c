/* Drafts from a datastore: what followed, as far as anything did. */
#include "common/corpus/datastore.h"
#include "drafter/draft.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h> /* needs those above */

enum { VOCAB = 20, CONTEXT = 64, WANTED = 8 };

static struct corpus_rows found;
static struct draft draft;
static struct arena arena;
static struct mirror mirror;

/* Two texts that have 2 3 4 in common, which end 7 and 9. */
static int open_all(void **state)
{
    const int32_t one[] = {1, 2, 3, 4, 5, 6, 7}, other[] = {8, 2, 3, 4, 9}, again[] = {11, 3, 4, 5, 12};
    const struct draft_parts parts = {.slots = 1, .support = 8, .runs_ahead = 1};
    char path[] = "/tmp/tandem-found-XXXXXX";
    struct texts texts = {0};
    int file = mkstemp(path);
    void *bytes;
    size_t size;

    (void)state;
    if (texts_add(&texts, one, 7) != STATUS_OK || texts_add(&texts, other, 5) != STATUS_OK || texts_add(&texts, again, 5) != STATUS_OK ||
        datastore_make(&texts, VOCAB, 1, &bytes, &size) != STATUS_OK || write(file, bytes, size) != (ssize_t)size)
        return 1;
    close(file);
    free(bytes);
    texts_release(&texts);
    if (corpus_rows_open(path, "datastore", &found) != STATUS_OK || draft_open_found(&draft, &found, &parts) != STATUS_OK ||
        arena_open(&arena, mirror_bytes(CONTEXT), "the mirror") != STATUS_OK)
        return 1;
    mirror_init(&mirror, &arena, 0, CONTEXT);
    return unlink(path);
}

static int close_all(void **state)
{
    (void)state;
    draft_close(&draft);
    corpus_rows_close(&found);
    arena_close(&arena);
    return 0;
}

/* What is proposed behind a text. */
static const struct draft_output *propose(const int32_t *text, int count, enum accept_mode accept)
{
    static struct draft_output output;
    struct draft_output *outputs[] = {&output};
    struct mirror *mirrors[] = {&mirror};
    struct open_message open = {.request = 1, .line = 1, .prompt_count = (uint32_t)count, .tokens = text, .count = count, .draft_length = WANTED};

    open.sampling = sampling_default;
    open.sampling.temperature = accept == ACCEPT_COUPLED ? 0 : 0.8;
    open.sampling.accept = accept;
    assert_true(mirror_open(&mirror, &open));
    memset(&output, 0, sizeof output);
    assert_int_equal(draft.kind->propose(draft.state, mirrors, 1, outputs), STATUS_OK);
    return &output;
}

static void test_draft_found__a_draft_ends_where_nothing_followed(void **state)
{
    const int32_t known[] = {15, 1, 2, 3, 4}, ends[] = {4, 5, 6, 7}, strange[] = {1, 2, 3, 14}, alone[] = {2};
    const struct tree_shape chain = {.kind = TREE_CHAIN};
    const struct draft_output *output;

    (void)state;
    draft_shape(&draft, &chain);
    for (int drawn = 0; drawn < 2; drawn++) {
        enum accept_mode accept = drawn ? ACCEPT_REJECTION : ACCEPT_COUPLED;

        output = propose(known, 5, accept);
        assert_int_equal(output->count, 3);
        assert_true(output->token[0] == 5 && output->token[1] == 6 && output->token[2] == 7 && mirror.is_stopped);
        assert_int_equal(output->q[2].count > 0, drawn);
        assert_int_equal(propose(ends, 4, accept)->count, 0);
        assert_true(mirror.is_stopped);
        assert_int_equal(propose(strange, 4, accept)->count, 0);
        assert_int_equal(propose(alone, 1, accept)->count, 0); /* fewer than two tokens are not looked for */
    }
}

/* The child of a node that has this token, -2 where it has none; -1: of the root. */
static int child_of(const struct draft_output *output, int parent, int32_t token)
{
    for (int i = 0; i < output->count; i++)
        if (parent >= -1 && output->parent[i] == parent && output->token[i] == token)
            return i;
    return -2;
}

/* Behind 2 3 4 both 5 and 9 follow, behind 3 4 5 also 12; behind 7 and 9 nothing. */
static void test_draft_found__a_tree_has_all_that_followed(void **state)
{
    const int32_t known[] = {15, 2, 3, 4}, strange[] = {1, 2, 3, 14};
    const struct tree_shape shape = {.kind = TREE_DYNAMIC};
    const struct draft_output *output;
    int five, nine, seven;

    (void)state;
    draft_shape(&draft, &shape);
    output = propose(known, 4, ACCEPT_COUPLED);
    assert_true(output->is_tree);
    five = child_of(output, -1, 5);
    nine = child_of(output, -1, 9);
    seven = child_of(output, child_of(output, five, 6), 7);
    assert_true(five >= 0 && nine >= 0 && seven >= 0);
    for (int i = 0; i < output->count; i++)
        assert_true(output->parent[i] != nine && output->parent[i] != seven);
    assert_int_equal(propose(strange, 4, ACCEPT_COUPLED)->count, 0);
}

/* Drawn siblings, by each rule that draws them: what stands where nothing is known to follow has no children. */
static void test_draft_found__a_drawn_tree_ends_where_nothing_followed(void **state)
{
    static const enum accept_mode rules[] = {ACCEPT_MULTISTEP, ACCEPT_WITHOUT_REPLACEMENT, ACCEPT_K_SEQUENTIAL, ACCEPT_TRAVERSAL};
    const int32_t known[] = {15, 2, 3, 4}, strange[] = {1, 2, 3, 14};
    const struct tree_shape shape = {.kind = TREE_TOP_K};
    const struct draft_output *output;

    (void)state;
    draft_shape(&draft, &shape);
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        output = propose(known, 4, rules[r]);
        assert_true(output->is_tree && output->count >= 2);
        for (int i = 0; i < output->count; i++) {
            int parent = output->parent[i], token = parent < 0 ? 4 : output->token[parent];

            assert_true(token != 9 && token != 7 && token != 12);
            assert_true(token == 4 ? output->token[i] == 5 || output->token[i] == 9 : output->token[i] > 4);
        }
        assert_int_equal(propose(strange, 4, rules[r])->count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draft_found__a_draft_ends_where_nothing_followed),
        cmocka_unit_test(test_draft_found__a_tree_has_all_that_followed),
        cmocka_unit_test(test_draft_found__a_drawn_tree_ends_where_nothing_followed),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
