/* Progress over many prompts: what is counted, and what it says is left. */
#include "verifier/show.h"

#include "common/base/clock.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND ((int64_t)1000000000)

static struct request asked[] = {{.prompt_count = 100, .max_tokens = 50}, {.prompt_count = 20, .max_tokens = 30}, {.error = (char *)"wrong"},
                                 {.prompt_count = 7, .max_tokens = 0}, {.prompt_count = 40, .max_tokens = 60}};
static const struct request_list requests = {.request = asked, .count = 5};

/* What it writes where so many seconds have passed and its next line is due. */
static void assert_says(struct show *show, int seconds, int read, int tokens, const char *expected)
{
    char *text = NULL;
    size_t size;

    show->notes = open_memstream(&text, &size);
    show->started_ns = clock_ns() - seconds * SECOND;
    show->last_ns = 0;
    if (read > 0)
        show_read(show, read);
    else
        show_progress(show, 0, tokens);
    fclose(show->notes);
    show->notes = NULL;
    if (strcmp(text, expected) != 0)
        fail_msg("got \"%s\", expected \"%s\"", text, expected);
    free(text);
}

/* The rate is that of the whole time: reading prompts is a part of it. Of what may come yet, an end that comes early takes its rest away. */
static void test_show__prompts_are_counted_apart(void **state)
{
    struct show show = {.total = 5};
    struct sequence ended = {.request = &asked[0]};

    (void)state;
    show_begin(&show, &requests);
    assert_int_equal(show.reads, 160); /* not that of the one that asks for nothing */
    assert_int_equal(show.whole, 300);
    assert_says(&show, 10, 100, 0, "0 of 5 prompts, about 20 s left, 0 tokens, 0 tokens/s, 100 of 160 prompt tokens read\n");
    assert_says(&show, 20, 0, 20, "0 of 5 prompts, about 30 s left, 20 tokens, 1.0 tokens/s, 100 of 160 prompt tokens read\n");
    ended.completion.count = 20;
    show_end(&show, &ended);
    show_progress(&show, 1, 0);
    show_skip(&show, &asked[2]);
    show_skip(&show, &asked[1]); /* its result was there */
    assert_int_equal(show.whole, 250);
    assert_says(&show, 150, 0, 30, "3 of 5 prompts, about 58 s left, 50 tokens, 0.3 tokens/s, 100 of 140 prompt tokens read\n");
    assert_says(&show, 36000, 40, 0, "3 of 5 prompts, about 1 h 21 min left, 50 tokens, 0.0 tokens/s\n");
}

/* A bar is there from the start, at the beginning of its line, and lets nothing wrap. */
static void test_show__a_bar_stands_from_the_start(void **state)
{
    char *text = NULL;
    size_t size;
    struct show show = {.total = 5, .bar = 1, .notes = open_memstream(&text, &size)};

    (void)state;
    show_begin(&show, &requests);
    fclose(show.notes);
    assert_string_equal(text, "\r\033[K\033[?7l[                    ] 0/5, 0 tokens, 0 tokens/s, 0 of 160 prompt tokens read \033[?7h");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_show__prompts_are_counted_apart),
        cmocka_unit_test(test_show__a_bar_stands_from_the_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
