/* The table of model families: each name is found once, a tensor's name is of one part, and what lists families lists these. */
#include "common/model/family.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const enum family_format formats[] = {FAMILY_CONFIG_JSON, FAMILY_GGUF};

static void test_family__each_name_finds_its_row(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        for (int i = 0; i < FAMILIES; i++) {
            const char *name = family_name_in(&model_families[i], formats[f]);

            if (name != NULL)
                assert_ptr_equal(family_find(formats[f], name, strlen(name)), &model_families[i]);
        }
    for (int i = 0; i < FAMILIES; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(model_families[i].architecture, model_families[k].architecture);
}

static void test_family__no_other_name_finds_one(void **state)
{
    static const char *const others[] = {"", "llam", "llama2", "Llama", "mamba", "qwen", "LlamaForCausalLM", "llama2.c"};

    (void)state;
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            assert_null(family_find(formats[f], others[i], strlen(others[i])));
    assert_null(family_find(FAMILY_GGUF, "mistral", 7)); /* whose files say llama */
    assert_null(family_find(FAMILY_GGUF, "llama", 4));
    assert_null(family_find(FAMILY_GGUF, "llama\0", 6));
}

static void test_family__the_list_names_each_once(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        char list[256], quoted[64];
        int named = 0, quotes = 0;

        family_list(formats[f], list, sizeof list);
        for (int i = 0; i < FAMILIES; i++) {
            const char *name = family_name_in(&model_families[i], formats[f]);

            if (name == NULL)
                continue;
            snprintf(quoted, sizeof quoted, "\"%s\"", name);
            assert_non_null(strstr(list, quoted));
            named++;
        }
        for (const char *at = list; *at != '\0'; at++)
            quotes += *at == '"';
        assert_int_equal(quotes, 2 * named);
    }
}

static void test_family__a_tensor_has_a_name_of_its_own(void **state)
{
    char names[2 * FAMILY_PARTS][FAMILY_NAME_MAX];

    (void)state;
    for (int i = 0; i < FAMILIES; i++) {
        int count = 0;

        for (int part = 0; part < FAMILY_PARTS; part++)
            for (int layer = 0; layer < (part < FAMILY_SELF_NORM ? 1 : 2); layer++)
                family_tensor(&model_families[i], (enum family_part)part, layer, names[count++]);
        for (int a = 0; a < count; a++)
            for (int b = 0; b < a; b++)
                assert_string_not_equal(names[a], names[b]);
        for (int a = 0; a < FAMILY_PARTS; a++)
            for (int b = 0; b < a; b++)
                assert_string_not_equal(model_families[i].names->part[a].gguf, model_families[i].names->part[b].gguf);
    }
    family_tensor(&model_families[FAMILY_QWEN2], FAMILY_K_BIAS, 12, names[0]);
    assert_string_equal(names[0], "model.layers.12.self_attn.k_proj.bias");
}

/* A name leads back to its part and layer; one that is nearly a name, to none. */
static void test_family__a_name_leads_back(void **state)
{
    static const char *const others[] = {"",
                                         "model.layers.",
                                         "model.layers.3",
                                         "model.layers.3.",
                                         "model.layers.03.mlp.up_proj.weight",
                                         "model.layers.-1.mlp.up_proj.weight",
                                         "model.layers.3.model.norm.weight",
                                         "mlp.up_proj.weight",
                                         "model.layers.99999999999.mlp.up_proj.weight",
                                         "model.layers.3.mlp.up_proj.weights",
                                         "blk.3.ffn_up.weight"};
    const struct model_family *family = &model_families[FAMILY_QWEN3];
    char name[FAMILY_NAME_MAX];
    int layer;

    (void)state;
    for (int part = 0; part < FAMILY_PARTS; part++)
        for (int of = 0; of < (part < FAMILY_SELF_NORM ? 1 : 1000); of += 37) {
            family_tensor(family, (enum family_part)part, of, name);
            layer = -1;
            assert_int_equal(family_part_of(family, FAMILY_CONFIG_JSON, name, &layer), part);
            assert_int_equal(layer, of);
        }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(family_part_of(family, FAMILY_CONFIG_JSON, others[i], &layer), FAMILY_PARTS);
    assert_int_equal(family_part_of(family, FAMILY_GGUF, "blk.3.ffn_up.weight", &layer), FAMILY_UP);
    assert_int_equal(layer, 3);
    assert_int_equal(family_part_of(family, FAMILY_GGUF, "model.layers.3.mlp.up_proj.weight", &layer), FAMILY_PARTS);
}

/* Every block that a row lists ends the list, too: a layer is not walked beyond it. */
static void test_family__a_layer_is_a_list_of_blocks_that_ends(void **state)
{
    (void)state;
    for (int i = 0; i < FAMILIES; i++) {
        assert_int_not_equal(model_families[i].block[0], FAMILY_END);
        assert_int_equal(model_families[i].block[FAMILY_MOST_BLOCKS], FAMILY_END);
    }
}

/* Its table of families has one line for each row. */
static void test_family__the_readme_lists_them(void **state)
{
    static char text[64 << 10];
    FILE *file = fopen(TANDEM_SOURCE_DIR "/common/model/README.md", "r");

    (void)state;
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (int i = 0; i < FAMILIES; i++) {
        const struct model_family *family = &model_families[i];
        char line[160];

        snprintf(line, sizeof line, "\n| %s | %s | %s |", family->architecture, family->model_type != NULL ? family->model_type : "-",
                 family->gguf != NULL ? family->gguf : "-");
        if (strstr(text, line) == NULL)
            fail_msg("common/model/README.md has no line that begins with%s", line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_family__each_name_finds_its_row),  cmocka_unit_test(test_family__no_other_name_finds_one),
        cmocka_unit_test(test_family__the_list_names_each_once), cmocka_unit_test(test_family__a_tensor_has_a_name_of_its_own),
        cmocka_unit_test(test_family__a_name_leads_back),        cmocka_unit_test(test_family__a_layer_is_a_list_of_blocks_that_ends),
        cmocka_unit_test(test_family__the_readme_lists_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
