/* Rounds as a page. */
#include "verifier/job/explain_page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct tokenizer *tokenizer;

static int open_tokenizer(void **state)
{
    (void)state;
    return tokenizer_open(TANDEM_SOURCE_DIR "/launch/demo/target/tokenizer.json", 0, &tokenizer) != STATUS_OK;
}

static int close_tokenizer(void **state)
{
    (void)state;
    tokenizer_close(tokenizer);
    return 0;
}

static int32_t token(const char *text)
{
    int32_t found = tokenizer_find(tokenizer, text);

    assert_true(found >= 0);
    return found;
}

/* Writes the page and reads it. To be freed. */
static char *written(struct explain_page *page)
{
    char path[] = "/tmp/tandem-page-XXXXXX", *text = calloc(1, 1 << 16);
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(explain_page_write(page, path), STATUS_OK);
    assert_in_range(read(fd, text, (1 << 16) - 1), 1, (1 << 16) - 2);
    close(fd);
    unlink(path);
    explain_page_close(page);
    return text;
}

#define ASSERT_HAS(text, part)                                                                                                                       \
    do {                                                                                                                                             \
        if (strstr(text, part) == NULL)                                                                                                              \
            fail_msg("no \"%s\" in \"%s\"", part, text);                                                                                             \
    } while (0)

/* A draft that follows another is in its item, and so is the last token; a probability is a width and a number. */
static void test_explain_page__a_tree_is_one_of_lists(void **state)
{
    const struct explained round = {
        .rule = "rejection",
        .count = 3,
        .node = {{.token = token("<"), .parent = -1, .q = 0.25, .p = 0.125, .own = -1, .coin = 0.75, .fate = EXPLAINED_REJECTED},
                 {.token = token(";"), .parent = -1, .q = 0.5, .p = 1, .own = -1, .coin = 0.25, .fate = EXPLAINED_ACCEPTED},
                 {.token = token(","), .parent = 0, .depth = 1, .q = -1, .p = -1, .own = -1, .coin = -1, .fate = EXPLAINED_PASSED}},
        .draw = DRAW_PLAIN,
        .token = token("!")};
    struct explain_page page;
    char *text;

    (void)state;
    assert_int_equal(explain_page_open(&page), STATUS_OK);
    explain_page_round(&page, &round, tokenizer, 2);
    text = written(&page);
    ASSERT_HAS(text,
               "<section>\n<h2>round 1, rejection, a tree: 1 of 3 drafts accepted, 2 tokens</h2>\n"
               "<div class=\"tree\"><ul>\n"
               "<li class=\"rejected\"><div class=\"card\"><b>&quot;&lt;&quot;</b>"
               "<div class=\"bar q\">q<i style=\"width:25.0%\"></i><u>0.2500</u></div>"
               "<div class=\"bar p\">p<i style=\"width:12.5%\"></i><u>0.1250</u></div><p>rejected: coin 0.750 &gt;= p / q = 0.500</p></div><ul>\n"
               "<li class=\"passed\"><div class=\"card\"><b>&quot;,&quot;</b><p>not looked at</p></div></li></ul></li>\n"
               "<li class=\"accepted\"><div class=\"card\"><b>&quot;;&quot;</b>"
               "<div class=\"bar q\">q<i style=\"width:50.0%\"></i><u>0.5000</u></div>"
               "<div class=\"bar p\">p<i style=\"width:100.0%\"></i><u>1.0000</u></div><p>accepted: p is not below q</p></div><ul>\n"
               "<li class=\"last\"><div class=\"card\"><b>&quot;!&quot;</b><p>drawn from p</p></div></li></ul></li></ul></div>\n"
               "</section>\n");
    ASSERT_HAS(text, "<span data-round=\"1\"><ins>;</ins><b>!</b></span>");
    ASSERT_HAS(text, "<p class=\"soft\">2 tokens in 1 round; 1 of 3 drafts accepted.");
    free(text);
}

/* Committed is what was kept; the rounds are counted; the text is the page's own, and so is a character of two tokens. */
static void test_explain_page__the_text_has_what_was_kept(void **state)
{
    struct explained round = {
        .rule = "coupled",
        .count = 2,
        .node = {{.token = token("<"), .parent = -1, .q = -1, .p = -1, .own = token("<"), .coin = -1, .fate = EXPLAINED_ACCEPTED},
                 {.token = token("&"), .parent = 0, .depth = 1, .q = -1, .p = -1, .own = token("&"), .coin = -1, .fate = EXPLAINED_ACCEPTED}},
        .token = token("!")};
    const int32_t prompt[] = {token("\""), token(">")};
    struct explain_page page;
    char *text;
    size_t length;
    int32_t half[2];

    (void)state;
    half[0] = half[1] = -1;
    for (int32_t t = 0; t < tokenizer_size(tokenizer); t++) {
        const char *piece = tokenizer_piece(tokenizer, t, 0, 0, &length);

        for (int i = 0; i < 2; i++)
            if (length == 1 && *piece == "\xc3\xa9"[i])
                half[i] = t;
    }
    assert_int_equal(explain_page_open(&page), STATUS_OK);
    explain_page_prompt(&page, tokenizer, prompt, 2);
    explain_page_round(&page, &round, tokenizer, 1);
    round.count = 0;
    explain_page_round(&page, &round, tokenizer, 1);
    round.token = half[0];
    explain_page_round(&page, &round, tokenizer, 1);
    round.token = half[1];
    explain_page_round(&page, &round, tokenizer, 1);
    text = written(&page);
    ASSERT_HAS(text, "<div id=\"text\"><span class=\"prompt\">&quot;&gt;</span><span data-round=\"1\"><ins>&lt;</ins><b></b></span>"
                     "<span data-round=\"2\"><ins></ins><b>!</b></span><span data-round=\"3\"><ins></ins><b></b></span>"
                     "<span data-round=\"4\"><ins></ins><b>\xc3\xa9</b></span></div>\n");
    ASSERT_HAS(text, "<p>the completion ends with 1 of these tokens\n</section>\n<section>\n<h2>round 2, coupled: no draft, 1 token</h2>\n");
    ASSERT_HAS(text, "max=\"4\"");
    free(text);
}

static void test_explain_page__a_place_that_cannot_be_written(void **state)
{
    struct explain_page page;

    (void)state;
    assert_int_equal(explain_page_open(&page), STATUS_OK);
    assert_int_equal(explain_page_write(&page, "/proc/none/page"), STATUS_IO);
    assert_int_equal(explain_page_write(&page, "/dev/full"), STATUS_IO);
    explain_page_close(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_explain_page__a_tree_is_one_of_lists),
        cmocka_unit_test(test_explain_page__the_text_has_what_was_kept),
        cmocka_unit_test(test_explain_page__a_place_that_cannot_be_written),
    };

    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
