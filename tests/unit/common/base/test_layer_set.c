#include "common/base/layer_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_layer_set__a_list_is_written_as_it_was_read(void **state)
{
    static const struct {
        const char *text, *written;
        int of_12;
    } cases[] = {{"0", "0", 1}, {"3+8-11", "3+8-11", 5}, {"3+4+5", "3-5", 3}, {"0-11", "0-11", 12}, {"2+11-13+127", "2+11-13+127", 2}};
    char text[LAYER_SET_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct layer_set set = {0};

        assert_int_equal(layer_set_read(cases[i].text, &set), 1);
        layer_set_write(&set, text);
        assert_string_equal(text, cases[i].written);
        assert_int_equal(layer_set_count(&set, 12), cases[i].of_12);
    }
}

static void test_layer_set__what_is_no_rising_list_is_refused(void **state)
{
    static const char *const texts[] = {"",    "+",     "a",   "-1",    "3+",    "3++4", "3-",  "3-3", "4-3", "3+3",
                                        "4+3", "2-5+5", "128", "0-128", "1-2-3", "1 2",  "1,2", " 1",  "1+x", "99999999999999999999"};
    struct layer_set set = {{5, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (layer_set_read(texts[i], &set))
            fail_msg("'%s' is read", texts[i]);
        assert_true(set.bits[0] == 5 && set.bits[1] == 0);
    }
}

/* Pairs with a layer between make the longest text. */
static void test_layer_set__a_set_of_a_long_text_is_refused(void **state)
{
    struct layer_set pairs = {0}, read = {0};
    char text[LAYER_SET_TEXT], all[512] = "";
    int length = 0;

    (void)state;
    for (int i = 0; i < LAYER_SET_LAYERS; i++)
        if (i % 3 != 2) {
            layer_set_add(&pairs, i);
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s%d", i > 0 ? "+" : "", i);
            length = layer_set_write(&pairs, text);
            assert_true(strlen(text) == (size_t)(length < LAYER_SET_TEXT ? length : LAYER_SET_TEXT - 1));
            assert_int_equal(layer_set_read(all, &read), length < LAYER_SET_TEXT);
            assert_int_equal(memcmp(&read, &pairs, sizeof pairs) == 0, length < LAYER_SET_TEXT);
        }
    assert_true(length >= LAYER_SET_TEXT);
    assert_int_equal(layer_set_count(&pairs, LAYER_SET_LAYERS), 86);
    assert_false(layer_set_has(&pairs, -1) || layer_set_has(&pairs, LAYER_SET_LAYERS) || layer_set_has(&pairs, 2));
    for (int i = 0; i < LAYER_SET_LAYERS; i++)
        layer_set_remove(&pairs, i);
    layer_set_write(&pairs, text);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layer_set__a_list_is_written_as_it_was_read),
        cmocka_unit_test(test_layer_set__what_is_no_rising_list_is_refused),
        cmocka_unit_test(test_layer_set__a_set_of_a_long_text_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
