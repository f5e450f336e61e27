/* Which family a template's program is of, and what it says beside its form. */
#include "common/text/chat_template.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/text/chat_form.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *chat_template_name(enum chat_family family)
{
    return chat_form_table[family].name;
}

/* A fault, and the way out of it. */
static void say(struct chat_template *template, const char *what, const char *way)
{
    size_t used = (size_t)snprintf(template->fault, sizeof template->fault, "%s: --template NAME %s (", what, way);

    for (int family = CHAT_AUTO + 1; family < CHAT_FAMILIES && used < sizeof template->fault; family++)
        used += (size_t)snprintf(template->fault + used, sizeof template->fault - used, "%s%s", chat_template_name((enum chat_family)family),
                                 family < CHAT_FAMILIES - 1 ? ", " : ")");
}

void chat_template_init(struct chat_template *template, enum chat_family family)
{
    *template = (struct chat_template){.family = family};
    if (family == CHAT_AUTO) {
        say(template, "the model has no chat template", "gives one");
        return;
    }
    snprintf(template->bos, sizeof template->bos, "%s", chat_form_table[family].bos);
    snprintf(template->eos, sizeof template->eos, "%s", chat_form_table[family].eos);
}

void chat_template_release(struct chat_template *template)
{
    free(template->system);
    template->system = NULL;
}

static int has(const char *text, const char *mark)
{
    return strstr(text, mark) != NULL;
}

/* `word` as a literal of the program begins with it, in either kind of quotes. */
static int has_quoted(const char *text, const char *word)
{
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        if (at > text && (at[-1] == '\'' || at[-1] == '"'))
            return 1;
    return 0;
}

static enum chat_family recognise_inst(const char *text)
{
    if (has(text, "[SYSTEM_PROMPT]"))
        return CHAT_AUTO;
    if (has(text, "<<SYS>>"))
        return (has(text, "bos_token + '[INST]") || has(text, "bos_token + \"[INST]")) && has(text, "content.strip()") ? CHAT_LLAMA2 : CHAT_AUTO;
    if (has_quoted(text, " [INST] "))
        return CHAT_MISTRAL_V1;
    if (has(text, "[AVAILABLE_TOOLS]"))
        return has_quoted(text, "[INST]\"") || has_quoted(text, "[INST]'") ? CHAT_MISTRAL_V3_TEKKEN : CHAT_MISTRAL_V3;
    return has(text, "Only user and assistant roles are supported!") && !has(text, "eos_token + ' '") ? CHAT_MISTRAL_V0 : CHAT_AUTO;
}

/* The end of a turn is the model's own end, and not only that of an answer. */
static int ends_user_by_eos(const char *text)
{
    const char *user = strstr(text, "<|user|>"), *next, *eos;

    if (user == NULL)
        return 0;
    next = strstr(user + 1, "<|");
    eos = strstr(user, "eos_token");
    return eos != NULL && (next == NULL || eos < next);
}

enum chat_family chat_template_recognise(const char *text)
{
    if (has(text, "<|im_start|>")) /* Phi-4, SmolVLM and SmolLM3 spell it too */
        return has(text, "<|im_sep|>") || has(text, "<end_of_utterance>") || has(text, "## Metadata") ? CHAT_AUTO : CHAT_CHATML;
    if (has(text, "[INST]"))
        return recognise_inst(text);
    if (has(text, "<|start_header_id|>") && has(text, "<|end_header_id|>"))
        return has(text, "Cutting Knowledge Date") ? CHAT_LLAMA3_1 : CHAT_LLAMA3;
    if (has(text, "<start_of_turn>"))
        return CHAT_GEMMA;
    if (has(text, "<|assistant|>") && has(text, "<|end|>")) /* Phi-4-mini has no new line behind the role */
        return has(text, "'|>' + message") ? (has(text, "'|>' + '\\n'") || has(text, "'|>' + '\n'") ? CHAT_PHI3 : CHAT_AUTO) : CHAT_PHI3;
    if (has(text, "<|assistant|>") && ends_user_by_eos(text))
        return CHAT_ZEPHYR;
    return CHAT_AUTO;
}

/* The text of a literal up to `end`, without its escapes; 0 where the literal ends before. */
static int take_literal(const char *from, const char *end, char *text)
{
    while (from < end) {
        int escaped = *from == '\\' && from + 1 < end;

        if (strchr("'\"{}", *from) != NULL)
            return 0;
        from += escaped;
        *text++ = escaped && *from == 'n' ? '\n' : *from;
        from++;
    }
    *text = '\0';
    return 1;
}

/* The system message that a program of ChatML puts in, where it is one literal with the marks around it: SmolLM2's, Qwen2's, Qwen2.5's. */
static enum status learn_system(struct chat_template *template, const char *text)
{
    static const char head[] = "<|im_start|>system", tail[] = "<|im_end|>";
    char system[CHAT_SYSTEM_BYTES];

    for (const char *at = text; (at = strstr(at, head)) != NULL;) {
        const char *end;

        at += sizeof head - 1;
        if (strncmp(at, "\\n", 2) != 0 && *at != '\n')
            continue;
        at += *at == '\n' ? 1 : 2;
        end = strstr(at, tail);
        if (end == NULL || (size_t)(end - at) >= sizeof system || end == at || !take_literal(at, end, system))
            continue;
        template->system = strdup(system);
        if (template->system != NULL)
            return STATUS_OK;
        log_error("no memory for a chat template");
        return STATUS_INTERNAL;
    }
    return STATUS_OK;
}

enum status chat_template_learn(struct chat_template *template, const char *text)
{
    enum chat_family found = chat_template_recognise(text);

    if (template->family == CHAT_AUTO && found == CHAT_AUTO) {
        say(template, "the model's chat template is of no family that is known here", "chooses one");
        return STATUS_OK;
    }
    if (template->family == CHAT_AUTO)
        chat_template_init(template, found);
    if (template->family != found)
        return STATUS_OK;
    template->starts_with_bos = (found == CHAT_CHATML || found == CHAT_PHI3 || found == CHAT_ZEPHYR) && has(text, "bos_token");
    template->takes_system = found == CHAT_GEMMA && has(text, "first_user_prefix");
    template->system_first = has(text, "loop.first and system_message");
    template->only_turns = found == CHAT_PHI3 && !has(text, "<|system|>") && !has(text, "'|>'");
    template->drops_empty_system = found == CHAT_PHI3 && has(text, "'system' and message['content']");
    template->keeps_last_thoughts = found == CHAT_CHATML && has(text, "last_query_index");
    template->drops_thoughts = found == CHAT_CHATML && has(text, "</think>");
    template->begins_thought =
        found == CHAT_CHATML && (has(text, "<|im_start|>assistant\\n<think>\\n'") || has(text, "<|im_start|>assistant\n<think>\n'"));
    return found == CHAT_CHATML ? learn_system(template, text) : STATUS_OK;
}
