/* How a model's publisher advises to sample: what of it is told, as options. */
#include "common/model/config_advice.h"

#include "common/file/gguf.h"
#include "tests/support/gguf_file.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_advises(const char *generation, const char *expected)
{
    struct config_advice advice = {{0}};
    char text[CONFIG_ADVICE_TEXT];
    json_t *object = json_loads(generation, 0, NULL);

    assert_non_null(object);
    config_advice_of_json(object, &advice);
    config_advice_write(&advice, text);
    assert_string_equal(text, expected);
    json_decref(object);
}

static void test_config_advice__is_told_as_options_where_it_changes_something(void **state)
{
    (void)state;
    assert_advises("{}", "");
    assert_advises("{\"do_sample\": true, \"temperature\": 0.7, \"top_k\": 20, \"top_p\": 0.8, \"repetition_penalty\": 1.1, \"min_p\": 0.05}",
                   "--temperature 0.7 --top-k 20 --top-p 0.8 --min-p 0.05 --repetition-penalty 1.1");
    assert_advises("{\"temperature\": 1, \"top_p\": 1.0, \"repetition_penalty\": 1, \"top_k\": 0}", "--temperature 1");
    assert_advises("{\"do_sample\": false, \"temperature\": 0.6}", "");
}

static void test_config_advice__what_no_option_would_take_is_none(void **state)
{
    (void)state;
    assert_advises("{\"temperature\": \"hot\", \"top_k\": -5, \"top_p\": 1.5, \"min_p\": [0.1], \"repetition_penalty\": null}", "");
    assert_advises("{\"temperature\": 101, \"top_k\": 20.5, \"top_p\": -1e300, \"min_p\": 1, \"repetition_penalty\": 0.001}", "");
    assert_advises("[1, 2]", "");
    assert_advises("{\"temperature\": 1.23456789e-300, \"top_k\": 99999, \"top_p\": 1.23456789e-300, \"min_p\": 1.23456789e-300, "
                   "\"repetition_penalty\": 0.0100000001}",
                   "--temperature 1.23457e-300 --top-k 99999 --top-p 1.23457e-300 --min-p 1.23457e-300 --repetition-penalty 0.01"); /* the longest */
}

static void test_config_advice__of_a_gguf_file_is_its_keys(void **state)
{
    static const char chained[] = "penalties;top_k;temperature";
    struct config_advice advice = {{0}};
    char text[CONFIG_ADVICE_TEXT];
    struct gguf_file file;
    struct gguf gguf;
    unsigned char *bytes;
    size_t size;

    (void)state;
    gguf_file_open(&file);
    gguf_file_text(&file, "general.architecture", "llama");
    gguf_file_text(&file, "general.sampling.sequence", chained);
    gguf_file_u32(&file, "general.sampling.top_k", 40);
    gguf_file_f32(&file, "general.sampling.temp", 0.5f);
    gguf_file_text(&file, "general.sampling.top_p", "0.9");
    bytes = gguf_file_bytes(&file, &size);
    assert_int_equal(gguf_read("file", bytes, size, &gguf), 0);
    config_advice_of_gguf(&gguf, &advice);
    config_advice_write(&advice, text);
    assert_string_equal(text, "--temperature 0.5 --top-k 40");
    gguf_release(&gguf);
    gguf_file_close(&file);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_advice__is_told_as_options_where_it_changes_something),
        cmocka_unit_test(test_config_advice__what_no_option_would_take_is_none),
        cmocka_unit_test(test_config_advice__of_a_gguf_file_is_its_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
