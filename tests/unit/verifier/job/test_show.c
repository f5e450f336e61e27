/* Progress over many prompts: what is counted, and what it says is left. */
#include "verifier/job/show.h"

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
    show->progress.to = show->notes;
    show->progress.said_ns = 0;
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
    show_begin(&show, &requests, NULL);
    assert_int_equal(show.reads, 160); /* not that of the one that asks for nothing */
    assert_int_equal(show.whole, 300);
    assert_says(&show, 10, 100, 0, "0 of 5 prompts, about 20 s left, 0 tokens, 0 tokens/s, 100 of 160 prompt tokens read\n");
    assert_says(&show, 20, 0, 20, "0 of 5 prompts, about 30 s left, 20 tokens, 1.0 tokens/s, 100 of 160 prompt tokens read\n");
    ended.completion.count = 20;
    show_end(&show, &ended);
    show_progress(&show, 1, 0);
    show_skip(&show, &asked[2]);
    show_skip(&show, &asked[1]);
    assert_int_equal(show.whole, 250);
    assert_says(&show, 150, 0, 30, "3 of 5 prompts, about 58 s left, 50 tokens, 0.3 tokens/s, 100 of 140 prompt tokens read\n");
    assert_says(&show, 36000, 40, 0, "3 of 5 prompts, about 1 h 21 min left, 50 tokens, 0.0 tokens/s\n");
}

/* Nine seconds, or two tokens of 300, say too little of the rest. */
static void test_show__too_little_says_nothing_of_what_is_left(void **state)
{
    struct show show = {.total = 5};

    (void)state;
    show_begin(&show, &requests, NULL);
    assert_says(&show, 600, 2, 0, "0 of 5 prompts, 0 tokens, 0 tokens/s, 2 of 160 prompt tokens read\n");
    assert_says(&show, 9, 98, 0, "0 of 5 prompts, 0 tokens, 0 tokens/s, 100 of 160 prompt tokens read\n");
}

/* A bar is there from the start, at the beginning of its line, and lets nothing wrap. */
static void test_show__a_bar_stands_from_the_start(void **state)
{
    char *text = NULL;
    size_t size;
    struct show show = {.total = 5, .bar = 1, .notes = open_memstream(&text, &size)};

    (void)state;
    show_begin(&show, &requests, NULL);
    fclose(show.notes);
    assert_string_equal(text, "\r\033[K\033[?7l[                    ] 0/5, 0 tokens, 0 tokens/s, 0 of 160 prompt tokens read \033[?7h");
    free(text);
}

/* Of what an earlier job has written no line says that it is yet to be read. */
static void test_show__what_is_kept_counts_from_the_start(void **state)
{
    struct journal_place place[5] = {[0] = {.bytes = 1}, [2] = {.bytes = 1}, [3] = {.bytes = 1}};
    const struct output kept = {.journaled = 1, .journal.place = place};
    char *text = NULL;
    size_t size;
    struct show show = {.bar = 1, .notes = open_memstream(&text, &size)};

    (void)state;
    show_begin(&show, &requests, &kept);
    fclose(show.notes);
    assert_string_equal(text, "\r\033[K\033[?7l[############        ] 3/5, 0 tokens, 0 tokens/s, 0 of 60 prompt tokens read \033[?7h");
    assert_int_equal(show.whole, 150);
    free(text);
}

/* What a show writes to its one stream, by now. */
struct screen {
    char *text;
    size_t size;
    struct show show;
};

static int64_t now;

static void open_screen(struct screen *screen, int redrawn)
{
    now = SECOND;
    clock_pretend(&now);
    *screen = (struct screen){.text = NULL};
    screen->show.text = screen->show.reading.to = open_memstream(&screen->text, &screen->size);
    screen->show.reading.redrawn = redrawn;
}

static void close_screen(struct screen *screen)
{
    fclose(screen->show.text);
    free(screen->text);
    clock_pretend(NULL);
}

static void assert_shows(struct screen *screen, const char *expected)
{
    fflush(screen->show.text);
    if (strcmp(screen->text, expected) != 0)
        fail_msg("got \"%s\", expected \"%s\"", screen->text, expected);
}

/* So many more tokens of the prompt in so many ms. */
static void read_on(struct screen *screen, int tokens, int ms)
{
    now += ms * SECOND / 1000;
    show_read(&screen->show, tokens);
}

static void write_words(struct screen *screen, struct sequence *sequence, const char *words)
{
    const struct outcome outcome = {.refused = -1};

    sequence->completion.text = (char *)words;
    sequence->completion.shown = strlen(words);
    show_round(&screen->show, sequence, &outcome, NULL, 1);
}

#define CLEARED "\r\033[K"

/* It stands after a second, is redrawn in place, and is gone before the text. */
static void test_show__a_long_prompt_is_a_line_that_the_text_clears(void **state)
{
    struct sequence sequence = {.request = &asked[0]};
    struct screen screen;

    (void)state;
    open_screen(&screen, 1);
    show_prompt(&screen.show, &sequence);
    read_on(&screen, 10, 900);
    assert_shows(&screen, "");
    read_on(&screen, 10, 1100);
    assert_shows(&screen, CLEARED "reading the prompt, 20 of 100 tokens");
    read_on(&screen, 30, 8000);
    assert_shows(&screen, CLEARED "reading the prompt, 20 of 100 tokens" CLEARED "reading the prompt, 50 of 100 tokens, about 10 s left");
    write_words(&screen, &sequence, "The sea");
    write_words(&screen, &sequence, "The sea was");
    show_end(&screen.show, &sequence);
    assert_shows(&screen, CLEARED "reading the prompt, 20 of 100 tokens" CLEARED "reading the prompt, 50 of 100 tokens, about 10 s left" CLEARED
                                  "The sea was\n");
    close_screen(&screen);
}

/* Off a terminal: a whole line, every five seconds. The next prompt is counted from its own beginning. */
static void test_show__a_long_prompt_is_a_line_every_five_seconds(void **state)
{
    struct sequence first = {.request = &asked[0]}, second = {.request = &asked[4]};
    struct screen screen;

    (void)state;
    open_screen(&screen, 0);
    show_prompt(&screen.show, &first);
    read_on(&screen, 50, 4900);
    assert_shows(&screen, "");
    read_on(&screen, 50, 100);
    write_words(&screen, &first, "The sea");
    show_end(&screen.show, &first);
    show_prompt(&screen.show, &second);
    read_on(&screen, 10, 5000);
    read_on(&screen, 10, 4900);
    assert_shows(&screen, "reading the prompt, 100 of 100 tokens\nThe sea\nreading the prompt, 10 of 40 tokens\n");
    close_screen(&screen);
}

/* One of which nothing is shown but progress, as of many. */
static void test_show__one_prompt_is_counted_while_it_is_read(void **state)
{
    const struct request_list one = {.request = asked, .count = 1};
    struct show show = {0};

    (void)state;
    show_begin(&show, &one, NULL);
    assert_says(&show, 10, 60, 0, "0 of 1 prompts, about 15 s left, 0 tokens, 0 tokens/s, 60 of 100 prompt tokens read\n");
    assert_says(&show, 20, 40, 0, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_show__prompts_are_counted_apart),
        cmocka_unit_test(test_show__too_little_says_nothing_of_what_is_left),
        cmocka_unit_test(test_show__a_bar_stands_from_the_start),
        cmocka_unit_test(test_show__what_is_kept_counts_from_the_start),
        cmocka_unit_test(test_show__a_long_prompt_is_a_line_that_the_text_clears),
        cmocka_unit_test(test_show__a_long_prompt_is_a_line_every_five_seconds),
        cmocka_unit_test(test_show__one_prompt_is_counted_while_it_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
