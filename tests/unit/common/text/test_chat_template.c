/* Messages become the text that the published templates make of them. The expected texts are what Jinja makes of those, with the settings of Hugging
 * Face's apply_chat_template. */
#include "common/file/json_text.h"
#include "common/options/options.h"
#include "common/options/options_table.h"
#include "common/text/chat_template.h"
#include "test_tokenizer_files.h"
#include "tests/support/gguf_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MESSAGE(role, text) {role, text, sizeof text - 1}
#define COUNT(list) (sizeof(list) / sizeof *(list))

static const struct chat_message one[] = {MESSAGE(CHAT_USER, "Hi")};
/* With white space that some families take away, an ideographic space among it. */
static const struct chat_message spaced[] = {MESSAGE(CHAT_SYSTEM, "  Be brief. \n"), MESSAGE(CHAT_USER, " Hi \u3000\n"),
                                             MESSAGE(CHAT_ASSISTANT, "\t Hello. "), MESSAGE(CHAT_USER, "  Why? ")};
static const struct chat_message no_system[] = {MESSAGE(CHAT_USER, " Hi \u3000\n"), MESSAGE(CHAT_ASSISTANT, "\t Hello. "),
                                                MESSAGE(CHAT_USER, "  Why? ")};
static const struct chat_message system_alone[] = {MESSAGE(CHAT_SYSTEM, "Be brief.")};
static const struct chat_message two_users[] = {MESSAGE(CHAT_USER, "a"), MESSAGE(CHAT_USER, "b")};
static const struct chat_message assistant_first[] = {MESSAGE(CHAT_ASSISTANT, "a"), MESSAGE(CHAT_USER, "b")};
static const struct chat_message assistant_last[] = {MESSAGE(CHAT_USER, "a"), MESSAGE(CHAT_ASSISTANT, "b")};
static const struct chat_message late_system[] = {MESSAGE(CHAT_USER, "a"), MESSAGE(CHAT_SYSTEM, "b")};
static const struct chat_message thought[] = {MESSAGE(CHAT_USER, "Hi"), MESSAGE(CHAT_ASSISTANT, "<think>\nhm\n</think>\n\nHello."),
                                              MESSAGE(CHAT_USER, "Why?")};

static void assert_renders(const struct chat_template *template, const struct chat_message *messages, size_t count, const char *expected)
{
    struct chat_prompt prompt = {0};
    char reason[CHAT_FAULT_BYTES] = "";

    if (chat_template_render(template, messages, count, &prompt, reason, sizeof reason) != STATUS_OK)
        fail_msg("%s: %s", chat_template_name(template->family), reason);
    if (prompt.text.count != strlen(expected) || memcmp(prompt.text.data, expected, prompt.text.count) != 0)
        fail_msg("%s: \"%.*s\", expected \"%s\"", chat_template_name(template->family), (int)prompt.text.count, prompt.text.data, expected);
    chat_template_discard(&prompt);
}

static void assert_refuses(const struct chat_template *template, const struct chat_message *messages, size_t count, const char *words)
{
    struct chat_prompt prompt = {0};
    char reason[CHAT_FAULT_BYTES] = "";

    assert_int_equal(chat_template_render(template, messages, count, &prompt, reason, sizeof reason), STATUS_DATA);
    if (strstr(reason, words) == NULL)
        fail_msg("%s: \"%s\", expected \"%s\"", chat_template_name(template->family), reason, words);
    chat_template_discard(&prompt);
}

/* messages: NULL where the family refuses a system message. */
static const struct {
    enum chat_family family;
    const char *one, *spaced;
} published[] = {
    {CHAT_CHATML, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
     "<|im_start|>system\n  Be brief. \n<|im_end|>\n<|im_start|>user\n Hi \u3000\n<|im_end|>\n<|im_start|>assistant\n\t Hello. <|im_end|>\n"
     "<|im_start|>user\n  Why? <|im_end|>\n<|im_start|>assistant\n"},
    {CHAT_LLAMA2, "<s>[INST] Hi [/INST]",
     "<s>[INST] <<SYS>>\n  Be brief. \n\n<</SYS>>\n\n Hi [/INST] Hello. </s><s>[INST] Why? [/INST]"},
    {CHAT_LLAMA3, "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
     "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
     "<|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nWhy?<|eot_id|>"
     "<|start_header_id|>assistant<|end_header_id|>\n\n"},
    {CHAT_LLAMA3_1,
     "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n<|eot_id|>"
     "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
     "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\nBe brief."
     "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|>"
     "<|start_header_id|>user<|end_header_id|>\n\nWhy?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
    {CHAT_MISTRAL_V0, "<s>[INST] Hi [/INST]", NULL},
    {CHAT_MISTRAL_V1, "<s> [INST] Hi [/INST]",
     "<s> [INST]   Be brief. \n\n\n Hi \u3000\n [/INST] \t Hello. </s> [INST]   Why?  [/INST]"},
    {CHAT_MISTRAL_V3, "<s>[INST] Hi[/INST]", "<s>[INST]  Hi \u3000\n[/INST] Hello.</s>[INST]   Be brief. \n\n\n  Why? [/INST]"},
    {CHAT_MISTRAL_V3_TEKKEN, "<s>[INST]Hi[/INST]", "<s>[INST] Hi \u3000\n[/INST]\t Hello. </s>[INST]  Be brief. \n\n\n  Why? [/INST]"},
    {CHAT_GEMMA, "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n", NULL},
    {CHAT_PHI3, "<|user|>\nHi<|end|>\n<|assistant|>\n",
     "<|system|>\n  Be brief. \n<|end|>\n<|user|>\n Hi \u3000\n<|end|>\n<|assistant|>\n\t Hello. <|end|>\n<|user|>\n  Why? <|end|>\n<|assistant|>\n"},
    {CHAT_ZEPHYR, "<|user|>\nHi</s>\n<|assistant|>\n",
     "<|system|>\n  Be brief. \n</s>\n<|user|>\n Hi \u3000\n</s>\n<|assistant|>\n\t Hello. </s>\n<|user|>\n  Why? </s>\n<|assistant|>\n"},
};

static void test_chat_template__each_family_is_as_published(void **state)
{
    struct chat_template template;

    (void)state;
    assert_int_equal(COUNT(published), CHAT_FAMILIES - 1);
    for (size_t i = 0; i < COUNT(published); i++) {
        chat_template_init(&template, published[i].family);
        assert_renders(&template, one, 1, published[i].one);
        if (published[i].spaced != NULL)
            assert_renders(&template, spaced, COUNT(spaced), published[i].spaced);
        else
            assert_refuses(&template, spaced, COUNT(spaced), "messages[0] is of the role system");
    }
    chat_template_init(&template, CHAT_MISTRAL_V0);
    assert_renders(&template, no_system, COUNT(no_system), "<s>[INST]  Hi \u3000\n [/INST]\t Hello. </s>[INST]   Why?  [/INST]");
    chat_template_init(&template, CHAT_GEMMA);
    assert_renders(&template, no_system, COUNT(no_system),
                   "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nHello.<end_of_turn>\n<start_of_turn>user\nWhy?<end_of_turn>\n"
                   "<start_of_turn>model\n");
}

/* A blank question loses the white space before it too, as strip() of the whole turn has it. */
static void test_chat_template__llama2_trims_a_turn_as_a_whole(void **state)
{
    static const struct chat_message blank[] = {MESSAGE(CHAT_SYSTEM, "Be brief."), MESSAGE(CHAT_USER, "  \n ")};
    struct chat_template template;

    (void)state;
    chat_template_init(&template, CHAT_LLAMA2);
    assert_renders(&template, blank, 2, "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>> [/INST]");
}

static void test_chat_template__what_a_family_refuses_is_said(void **state)
{
    static const enum chat_family takes_turns[] = {CHAT_LLAMA2,     CHAT_MISTRAL_V0,        CHAT_MISTRAL_V1,
                                                   CHAT_MISTRAL_V3, CHAT_MISTRAL_V3_TEKKEN, CHAT_GEMMA};
    struct chat_template template;

    (void)state;
    for (size_t i = 0; i < COUNT(takes_turns); i++) {
        chat_template_init(&template, takes_turns[i]);
        assert_refuses(&template, two_users, 2, "messages[1] is of the role user where user and assistant take turns, expected assistant");
        assert_refuses(&template, assistant_first, 2, "messages[0] is of the role assistant where user and assistant take turns, expected user");
        assert_refuses(&template, late_system, 2, "messages[1] is of the role system where user and assistant take turns, expected assistant");
        assert_refuses(&template, one, 0, "messages is empty");
    }
    chat_template_init(&template, CHAT_LLAMA2);
    assert_refuses(&template, system_alone, 1, "messages has a system message alone");
    assert_refuses(&template, assistant_last, 2, "messages ends with the role assistant");
    chat_template_init(&template, CHAT_CHATML); /* which takes all of these */
    assert_renders(&template, two_users, 2, "<|im_start|>user\na<|im_end|>\n<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n");
    assert_renders(&template, assistant_last, 2, "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n<|im_start|>assistant\n");
    assert_refuses(&template, one, 0, "messages is empty");
}

/* What stands in the published programs, and little else. */
static const struct {
    const char *program;
    enum chat_family family;
} tell_tales[] = {
    {"{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>'}}", CHAT_CHATML},
    {"{{ '<|im_start|>user<|im_sep|>' }}", CHAT_AUTO},
    {"{{ '<|im_start|>system\\n## Metadata\\n\\n' }}", CHAT_AUTO},
    {"{% set content = '<<SYS>>\\n' + system %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}", CHAT_LLAMA2},
    {"{{ '[INST] <<SYS>>\\n' + messages[0]['content'] }}", CHAT_AUTO},
    {"{{ ' [INST] ' + system_message + '\\n\\n' }}", CHAT_MISTRAL_V1},
    {"{{- \"[AVAILABLE_TOOLS] [\" }}{{- \"[INST] \" + message[\"content\"] + \"[/INST]\" }}", CHAT_MISTRAL_V3},
    {"{{- \"[AVAILABLE_TOOLS][\" }}{{- \"[INST]\" + message[\"content\"] + \"[/INST]\" }}", CHAT_MISTRAL_V3_TEKKEN},
    {"{{ '[INST] ' }}{{ raise_exception('Only user and assistant roles are supported!') }}", CHAT_MISTRAL_V0},
    {"{{ '[SYSTEM_PROMPT]' }}{{ '[INST]' }}", CHAT_AUTO},
    {"{{ '<|start_header_id|>' + role + '<|end_header_id|>\\n\\n' }}", CHAT_LLAMA3},
    {"{{ '<|start_header_id|>' + role + '<|end_header_id|>' }}{{ 'Cutting Knowledge Date: ' }}", CHAT_LLAMA3_1},
    {"{{ '<start_of_turn>' + role }}", CHAT_GEMMA},
    {"{{'<|user|>\\n' + message['content'] + '<|end|>\\n<|assistant|>\\n'}}", CHAT_PHI3},
    {"{{'<|' + message['role'] + '|>' + '\\n' + message['content'] + '<|end|>\\n' }}{{ '<|assistant|>\\n' }}", CHAT_PHI3},
    {"{{'<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{{ '<|assistant|>' }}", CHAT_AUTO},
    {"{{ '<|user|>\\n' + message['content'] + eos_token }}{{ '<|assistant|>' }}", CHAT_ZEPHYR},
    {"{{ '<|user|>\\n' + message['content'] }}{{ '<|assistant|>\\n' + message['content'] + eos_token }}", CHAT_AUTO},
    {"{{ message['content'] }}", CHAT_AUTO},
    {"", CHAT_AUTO},
};

static void test_chat_template__a_family_is_known_by_its_marks(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(tell_tales); i++)
        if (chat_template_recognise(tell_tales[i].program) != tell_tales[i].family)
            fail_msg("%s: %s, expected %s", tell_tales[i].program, chat_template_name(chat_template_recognise(tell_tales[i].program)),
                     chat_template_name(tell_tales[i].family));
}

static void assert_learns(const char *program, const struct chat_message *messages, size_t count, const char *expected)
{
    struct chat_template template;

    chat_template_init(&template, CHAT_AUTO);
    assert_int_equal(chat_template_learn(&template, program), STATUS_OK);
    assert_renders(&template, messages, count, expected);
    chat_template_release(&template);
}

static void test_chat_template__a_system_message_of_its_own_comes_where_there_is_none(void **state)
{
    static const char smollm[] = "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nYou are a helpful AI assistant named SmolLM, "
                                 "trained by Hugging Face<|im_end|>\\n' }}{% endif %}";

    (void)state;
    assert_learns(smollm, one, 1,
                  "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
                  "Face<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
                  "<|im_start|>assistant\n");
    assert_learns(smollm, system_alone, 1, "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>assistant\n");
    /* One that is put together of other things is not a text to be taken; one with escapes is. */
    assert_learns("{{ '<|im_start|>system\\n' + tools + '<|im_end|>' }}", one, 1, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    assert_learns("{{ '<|im_start|>system\\nIt\\'s\\na test<|im_end|>\\n' }}", one, 1,
                  "<|im_start|>system\nIt's\na test<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

static void test_chat_template__what_programs_do_beside_their_form(void **state)
{
    static const char qwen3[] = "{{ '<|im_start|>' }}{% if '</think>' in content %}{% endif %}";
    struct chat_template template;

    (void)state;
    assert_learns(
        qwen3, thought, 3,
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello.<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n");
    assert_learns("{{ '<|im_start|>assistant\\n<think>\\n' }}", one, 1, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n");
    assert_learns("{{ first_user_prefix }}{{ '<start_of_turn>' }}", spaced, COUNT(spaced),
                  "<bos><start_of_turn>user\n  Be brief. \n\n\nHi<end_of_turn>\n<start_of_turn>model\nHello.<end_of_turn>\n<start_of_turn>user\nWhy?"
                  "<end_of_turn>\n<start_of_turn>model\n");
    assert_learns("{{ '[AVAILABLE_TOOLS] [INST] ' }}{% if loop.first and system_message %}", spaced, COUNT(spaced),
                  "<s>[INST]   Be brief. \n\n\n Hi \u3000\n[/INST] Hello.</s>[INST]   Why? [/INST]");
    assert_learns("{{ bos_token }}{{'<|user|>\\n' + '<|end|>\\n' + '<|assistant|>\\n'}}", one, 1, "<s><|user|>\nHi<|end|>\n<|assistant|>\n");
    chat_template_init(&template, CHAT_AUTO);
    assert_int_equal(chat_template_learn(&template, qwen3), STATUS_OK);
    assert_refuses(&template, assistant_last, 2, "messages ends with the role assistant");
    chat_template_release(&template);
    /* A family that was asked for stays, and takes nothing from a program of another one. */
    chat_template_init(&template, CHAT_LLAMA3);
    assert_int_equal(chat_template_learn(&template, qwen3), STATUS_OK);
    assert_int_equal(template.family, CHAT_LLAMA3);
    assert_false(template.drops_thoughts);
}

/* What an assistant thought behind the last question is still at work: an answer of a tool is no question, and a late system message is none
 * either. */
static void test_chat_template__thoughts_behind_the_last_question_stay(void **state)
{
    static const char qwen3[] = "{%- set ns = namespace(last_query_index=0) %}{{ '<|im_start|>' }}{% if '</think>' in content %}{% endif %}";
    static const struct chat_message tool[] = {MESSAGE(CHAT_USER, "a"), MESSAGE(CHAT_ASSISTANT, "<think>\n\nhm\n</think>\n\ncall"),
                                               MESSAGE(CHAT_USER, "<tool_response>7</tool_response>")};
    static const struct chat_message late[] = {MESSAGE(CHAT_USER, "a"), MESSAGE(CHAT_ASSISTANT, "b</think>c<think>d</think>\n\ne"),
                                               MESSAGE(CHAT_SYSTEM, "f")};
    static const struct chat_message no_thought[] = {MESSAGE(CHAT_USER, "a"), MESSAGE(CHAT_ASSISTANT, "<think>\n</think>\nb"),
                                                     MESSAGE(CHAT_SYSTEM, "c")};

    (void)state;
    assert_learns(qwen3, tool, 3,
                  "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n<think>\nhm\n</think>\n\ncall<|im_end|>\n"
                  "<|im_start|>user\n<tool_response>7</tool_response><|im_end|>\n<|im_start|>assistant\n");
    assert_learns(qwen3, late, 3,
                  "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n<think>\nb\n</think>\n\ne<|im_end|>\n<|im_start|>system\nf<|im_end|>\n"
                  "<|im_start|>assistant\n");
    assert_learns(qwen3, no_thought, 3,
                  "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n<|im_start|>system\nc<|im_end|>\n<|im_start|>assistant\n");
    assert_learns(
        qwen3, thought, 3,
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello.<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n");
}

/* Those of Phi-3-mini's first version and of Phi-3-medium, and of Phi-3.5. */
static void test_chat_template__what_a_program_of_phi3_would_drop(void **state)
{
    static const char first[] = "{% if (message['role'] == 'user') %}{{'<|user|>' + '\n' + message['content'] + '<|end|>' + '\n' + '<|assistant|>' + "
                                "'\n'}}{% elif (message['role'] == 'assistant') %}{{message['content'] + '<|end|>' + '\n'}}{% endif %}";
    static const char third[] = "{% if message['role'] == 'system' and message['content'] %}{{'<|system|>\n' + message['content'] + '<|end|>\n'}}{% "
                                "endif %}{{ '<|assistant|>\n' }}";
    static const struct chat_message blank_system[] = {MESSAGE(CHAT_SYSTEM, ""), MESSAGE(CHAT_USER, "Hi")};
    struct chat_template template;

    (void)state;
    chat_template_init(&template, CHAT_AUTO);
    assert_int_equal(chat_template_learn(&template, first), STATUS_OK);
    assert_int_equal(template.family, CHAT_PHI3);
    assert_renders(&template, one, 1, "<|user|>\nHi<|end|>\n<|assistant|>\n");
    assert_refuses(&template, spaced, COUNT(spaced), "messages[0] is of the role system, for which there is no place");
    assert_refuses(&template, two_users, 2, "messages[1] is of the role user where user and assistant take turns");
    assert_refuses(&template, late_system, 2, "messages[1] is of the role system where user and assistant take turns");
    assert_refuses(&template, assistant_last, 2, "messages ends with the role assistant");
    assert_learns(third, blank_system, 2, "<|user|>\nHi<|end|>\n<|assistant|>\n");
    assert_learns(third, system_alone, 1, "<|system|>\nBe brief.<|end|>\n<|assistant|>\n");
}

static const char *folder_of(const char *name, const char *config, const char *jinja)
{
    static char folder[256];
    char path[512];

    snprintf(folder, sizeof folder, "%s", test_tokenizer_files_scratch(name));
    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/tokenizer_config.json", folder);
    unlink(path);
    if (config != NULL)
        test_tokenizer_files_write(path, config, strlen(config));
    snprintf(path, sizeof path, "%s/chat_template.jinja", folder);
    unlink(path);
    if (jinja != NULL)
        test_tokenizer_files_write(path, jinja, strlen(jinja));
    return folder;
}

static void assert_opens(const char *model, enum chat_family asked, enum chat_family family, const char *bos, const char *eos)
{
    struct chat_template template;

    assert_int_equal(chat_template_open(model, asked, &template), STATUS_OK);
    assert_int_equal(template.family, family);
    assert_string_equal(template.bos, bos);
    assert_string_equal(template.eos, eos);
    chat_template_release(&template);
}

static void test_chat_template__a_folder_has_it_in_either_place(void **state)
{
    (void)state;
    assert_opens(folder_of("chat", "{\"chat_template\":\"<start_of_turn>\",\"bos_token\":\"<b>\",\"eos_token\":{\"content\":\"<e>\"}}", NULL),
                 CHAT_AUTO, CHAT_GEMMA, "<b>", "<e>");
    assert_opens(folder_of("chat", "{\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"<start_of_turn>\"},"
                                   "{\"name\":\"default\",\"template\":\"<|im_start|>\"}],\"bos_token\":null}", NULL),
                 CHAT_AUTO, CHAT_CHATML, "", "<|im_end|>");
    assert_opens(folder_of("chat", "{\"chat_template\":\"<start_of_turn>\"}", "<|im_start|>"), CHAT_AUTO, CHAT_CHATML, "", "<|im_end|>");
    assert_opens(folder_of("chat", NULL, "<|im_start|>"), CHAT_AUTO, CHAT_CHATML, "", "<|im_end|>");
    assert_opens(folder_of("chat", "{\"chat_template\":\"<start_of_turn>\"}", NULL), CHAT_LLAMA2, CHAT_LLAMA2, "<s>", "</s>");
}

static void assert_faulty(const char *config, const char *jinja, const char *words)
{
    struct chat_template template;

    assert_int_equal(chat_template_open(folder_of("chat", config, jinja), CHAT_AUTO, &template), STATUS_OK);
    assert_int_equal(template.family, CHAT_AUTO);
    assert_refuses(&template, one, 1, words);
    assert_refuses(&template, one, 1, "--template");
    chat_template_release(&template);
}

/* Who has no messages needs no template, so it is said where messages are. */
static void test_chat_template__one_that_is_not_there_or_not_known_is_said_with_the_way_out(void **state)
{
    (void)state;
    assert_faulty(NULL, NULL, "the model has no chat template: --template NAME gives one (chatml, llama2, llama3, llama3.1, ");
    assert_faulty("{}", NULL, "the model has no chat template");
    assert_faulty("{\"chat_template\":[]}", NULL, "the model has no chat template");
    assert_faulty("{\"chat_template\":7}", NULL, "the model has no chat template");
    assert_faulty("{\"chat_template\":\"{{ messages }}\"}", NULL, "of no family that is known here: --template NAME chooses one (chatml, ");
    assert_faulty("{\"chat_template\":", NULL, "tokenizer_config.json is not valid JSON");
    assert_faulty("{\"chat_template\":\"<|im_start|>\"}", "{{ other }}", "of no family that is known here");
}

static void test_chat_template__a_gguf_file_has_it_among_its_keys(void **state)
{
    static const char *const tokens[] = {"<unk>", "<b>", "<e>", "x"};
    const char *path = test_tokenizer_files_scratch("chat.gguf");
    struct gguf_file file;

    (void)state;
    gguf_file_open(&file);
    gguf_file_texts(&file, "tokenizer.ggml.tokens", tokens, 4);
    gguf_file_u32(&file, "tokenizer.ggml.bos_token_id", 1);
    gguf_file_u32(&file, "tokenizer.ggml.eos_token_id", 2);
    gguf_file_text(&file, "tokenizer.chat_template", "{{ '<|user|>\\n' + eos_token }}{{ '<|assistant|>' }}");
    gguf_file_write(&file, path);
    gguf_file_close(&file);
    assert_opens(path, CHAT_AUTO, CHAT_ZEPHYR, "<b>", "<e>");
    assert_opens(path, CHAT_LLAMA2, CHAT_LLAMA2, "<b>", "<e>");
}

/* The model and its tokenizer read such a key as that there is none, so it must not end the job here. */
static void test_chat_template__a_gguf_file_may_say_that_there_is_no_such_token(void **state)
{
    static const char *const tokens[] = {"<unk>", "<b>", "<e>", "x"};
    static const uint32_t ids[] = {UINT32_MAX, 4};
    const char *path = test_tokenizer_files_scratch("chat-none.gguf");
    struct chat_template template;

    (void)state;
    for (size_t i = 0; i < COUNT(ids); i++) {
        struct gguf_file file;

        gguf_file_open(&file);
        gguf_file_texts(&file, "tokenizer.ggml.tokens", tokens, 4);
        gguf_file_u32(&file, "tokenizer.ggml.bos_token_id", ids[i]);
        gguf_file_text(&file, "tokenizer.chat_template", "<start_of_turn>");
        gguf_file_write(&file, path);
        gguf_file_close(&file);
        if (ids[i] == UINT32_MAX)
            assert_opens(path, CHAT_AUTO, CHAT_GEMMA, "", "<eos>");
        else
            assert_int_equal(chat_template_open(path, CHAT_AUTO, &template), STATUS_DATA);
    }
}

static void test_chat_template__qwen_is_as_its_own_template_has_it(void **state)
{
    const char *config = test_tokenizer_files_shared("tokenizers/qwen2.5-tokenizer_config.json");
    struct chat_template template;
    size_t length;
    char *text;

    (void)state;
    if (config == NULL)
        skip();
    text = test_tokenizer_files_read(config, &length);
    assert_int_equal(chat_template_open(folder_of("chat", text, NULL), CHAT_AUTO, &template), STATUS_OK);
    assert_int_equal(template.family, CHAT_CHATML);
    assert_renders(&template, one, 1,
                   "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
                   "assistant.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
                   "<|im_start|>assistant\n");
    assert_renders(&template, system_alone, 1, "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>assistant\n");
    chat_template_release(&template);
    free(text);
}

/* The table of options cannot ask this folder, which is above it, for its names. */
static void test_chat_template__the_option_knows_every_family(void **state)
{
    const struct option_entry *entry = option_find("template");
    char names[512] = "";

    (void)state;
    for (int family = 0; family < CHAT_FAMILIES; family++) {
        strcat(names, family > 0 ? "|" : "");
        strcat(names, chat_template_name((enum chat_family)family));
    }
    assert_non_null(entry);
    assert_string_equal(entry->choices, names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chat_template__each_family_is_as_published),
        cmocka_unit_test(test_chat_template__llama2_trims_a_turn_as_a_whole),
        cmocka_unit_test(test_chat_template__what_a_family_refuses_is_said),
        cmocka_unit_test(test_chat_template__a_family_is_known_by_its_marks),
        cmocka_unit_test(test_chat_template__a_system_message_of_its_own_comes_where_there_is_none),
        cmocka_unit_test(test_chat_template__what_programs_do_beside_their_form),
        cmocka_unit_test(test_chat_template__thoughts_behind_the_last_question_stay),
        cmocka_unit_test(test_chat_template__what_a_program_of_phi3_would_drop),
        cmocka_unit_test(test_chat_template__a_folder_has_it_in_either_place),
        cmocka_unit_test(test_chat_template__one_that_is_not_there_or_not_known_is_said_with_the_way_out),
        cmocka_unit_test(test_chat_template__a_gguf_file_has_it_among_its_keys),
        cmocka_unit_test(test_chat_template__a_gguf_file_may_say_that_there_is_no_such_token),
        cmocka_unit_test(test_chat_template__qwen_is_as_its_own_template_has_it),
        cmocka_unit_test(test_chat_template__the_option_knows_every_family),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
