/* A chat template turns messages into the text that a chat model was trained to go on from, and ends where its answer begins. Models ship theirs as a
 * program for Jinja. None is run here: a program is recognised by what it spells, as one of the families below, and the family's form is written,
 * with what the program says of its own (a system message that it puts in where there is none). It owns that message; immutable after open, so any
 * thread may use it. Tools are left out of all of them, and the date of llama3.1 is the one that its template has where there is no clock, so that
 * the same input is the same prompt tomorrow.
 *
 * Invariant: what the messages say is data. The marks between them become special tokens; the same spelling inside a message stays plain text. */
#ifndef TANDEM_COMMON_TEXT_CHAT_TEMPLATE_H
#define TANDEM_COMMON_TEXT_CHAT_TEMPLATE_H

#include "common/text/byte_buffer.h"
#include "common/text/tokenizer.h"

/* As the values of --template are numbered. */
enum chat_family {
    CHAT_AUTO, /* what the model's own template is */
    CHAT_CHATML,
    CHAT_LLAMA2,
    CHAT_LLAMA3,
    CHAT_LLAMA3_1,   /* and 3.2, 3.3: with dates */
    CHAT_MISTRAL_V0, /* the first one: no system message */
    CHAT_MISTRAL_V1,
    CHAT_MISTRAL_V3,
    CHAT_MISTRAL_V3_TEKKEN,
    CHAT_GEMMA,
    CHAT_PHI3,
    CHAT_ZEPHYR,
    CHAT_FAMILIES
};

enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT, CHAT_ROLES };

struct chat_message {
    enum chat_role role;
    const char *content; /* [length] UTF-8 */
    size_t length;
};

enum { CHAT_TOKEN_BYTES = 64, CHAT_SYSTEM_BYTES = 4096, CHAT_FAULT_BYTES = 320, CHAT_TEMPLATE_FILE_BYTES = 16 << 20 };

struct chat_template {
    enum chat_family family;             /* CHAT_AUTO: messages cannot be rendered, and `fault` says why */
    char bos[CHAT_TOKEN_BYTES];          /* the tokens that forms call by these names; empty: it has none */
    char eos[CHAT_TOKEN_BYTES];
    char *system;                        /* put in front of messages that begin without one; NULL: none */
    int starts_with_bos;                 /* beside the families whose form does */
    int takes_system;                    /* Gemma's later templates do */
    int system_first;                    /* in the first user's turn, where the form has it in the last */
    /* Phi-3's first templates drop what is not the user's or the assistant's, and open an answer behind each user's turn */
    int only_turns;
    int drops_empty_system;              /* Phi-3.5's does */
    int drops_thoughts;                  /* what assistants said before </think> is not repeated */
    int keeps_last_thoughts;             /* ... but for what comes after the last question, which the answer of a tool is not */
    int begins_thought;                  /* the answer begins inside of <think> */
    char fault[CHAT_FAULT_BYTES];
};

/* A rendered prompt: its text, and in it the marks that are to become special tokens. */
struct chat_prompt {
    struct byte_buffer text;
    struct byte_buffer marks; /* of struct tokenizer_mark */
};

/* "chatml", ...; "auto". */
const char *chat_template_name(enum chat_family family);
/* A family's form alone; nothing is allocated. */
void chat_template_init(struct chat_template *template, enum chat_family family);
/* Which family a template's program is of; CHAT_AUTO: none that is known. */
enum chat_family chat_template_recognise(const char *text);
/* Takes from a template's program what it has to say. A template of CHAT_AUTO gets its family too, or a fault. STATUS_INTERNAL: no memory. */
enum status chat_template_learn(struct chat_template *template, const char *text);
/* The template that a model ships: chat_template.jinja or tokenizer_config.json in its folder, or the keys of its GGUF file; or the `family`, if
 * one is given. A model without one, or with one that is no template, is no failure: there may be no messages. STATUS_NOINPUT: a file is there and
 * cannot be read. STATUS_INTERNAL: no memory. Logged. */
enum status chat_template_open(const char *model, enum chat_family family, struct chat_template *template);
void chat_template_release(struct chat_template *template);

/* STATUS_DATA: the family refuses these messages, as its template does; `reason` says why (not logged). STATUS_INTERNAL: no memory. The prompt
 * is empty before and released by chat_template_discard in any case. */
enum status chat_template_render(const struct chat_template *template, const struct chat_message *messages, size_t count,
                                 struct chat_prompt *prompt, char *reason, size_t size);
void chat_template_discard(struct chat_prompt *prompt);
/* The tokens of a prompt, as tokenizer_encode_marked. */
enum status chat_template_encode(const struct chat_template *template, const struct tokenizer *tokenizer, const struct chat_prompt *prompt,
                                 int32_t **tokens, int *count, size_t *bad_offset);
/* What ends the answer: its spelling, and its token or -1 where the tokenizer has none. */
const char *chat_template_end(const struct chat_template *template);
enum status chat_template_end_token(const struct chat_template *template, const struct tokenizer *tokenizer, int32_t *token);

#endif
