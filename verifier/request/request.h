/* A request is one prompt to be completed, or messages to be answered, with everything that was asked about it. A list owns its requests and all that
 * they point at. Invariant: a request is checked when it is added, and immutable afterwards; one that is wrong keeps its place and its reason
 * (`error`), so that its line of output says so. One thread; local. Never runs or sends anything. */
#ifndef TANDEM_VERIFIER_REQUEST_REQUEST_H
#define TANDEM_VERIFIER_REQUEST_REQUEST_H

#include "common/options/options.h"
#include "common/text/chat_template.h"
#include <stdint.h>

enum { REQUEST_DEPTH = 64, REQUEST_VALUES = 4 << 20 }; /* of the JSON of a line, and so of an id */
enum { REQUEST_NUMBERS = 1 << 20 };                    /* tokens, and what is told of them, of all completions of one request */

struct request {
    uint32_t index;   /* its number in the input, from --first-index; also the key of its random numbers */
    uint64_t digest;  /* of its line of input, or of its text */
    int line;         /* of its file, from 1; 0: of none */
    char *id;         /* as JSON text ("\"a\"" or 7), or NULL */
    int openai;       /* its line was one of OpenAI's batch input, and its result is to be one of its output: request_openai.h */
    int chat;         /* its prompt was rendered from messages */
    char *model;      /* that such a line names, or NULL */
    int32_t *tokens;  /* [prompt_count] */
    int prompt_count;
    struct sampling sampling;
    int max_tokens;
    int choices; /* completions that its result has; 0 is 1 */
    int best_of; /* that are decoded, the best of which those are; 0, -1: choices */
    int draft_length;
    int adaptive; /* draft_length was not asked for: the lead chooses it */
    int ignore_eos;
    int min_tokens;
    int logprobs; /* -1: none, or log p of each token and of so many of the most probable ones */
    int echo;     /* its result begins with the prompt */
    char *prompt; /* [prompt_length] the prompt's text, where it is echoed; else NULL */
    size_t prompt_length;
    int scores;  /* log p of so many tokens at the end of its prompt is asked for, too */
    char **stop; /* [stops] */
    int stops;
    int32_t *stop_token; /* [stop_tokens] */
    int stop_tokens;
    int has_turn_end; /* a chat's answer ends at this token as at EOS */
    int32_t turn_end;
    const struct bias *bias; /* its logit biases and bad words alone; NULL: none */
    struct bias *own_bias;   /* where they are not the list's */
    char *error; /* why it cannot be run, or NULL */
};

struct request_list {
    struct request *request; /* [count] */
    int count;
    struct bias *bias; /* what the options say, for all requests that say nothing else */
    int is_prepared;
};

/* What a request is checked against. */
struct request_terms {
    const struct options *options; /* the defaults of every field */
    const struct tokenizer *tokenizer;
    const struct chat_template *chat; /* how messages become a prompt; NULL: they do not */
    int context; /* tokens that a sequence may have */
    int vocab;
};

/* Completions that are decoded for it, at least 1. */
int request_completions(const struct request *request);
/* Are there more than its result has? */
int request_chooses(const struct request *request);
/* The seed of its completion `choice`, from 0: so many above its own, and behind the largest that a line can have, 2^63 - 1, from 0 again. A request
 * with this seed, in its place, gives that one alone. */
uint64_t request_seed(const struct request *request, int choice);

/* Looks at what the options say of single tokens, once for all requests: STATUS_USAGE, with a line, where it does not fit the vocabulary.
 * The two below do it first. */
enum status request_prepare(struct request_list *list, const struct request_terms *terms);
/* One request from a text: a prompt, or with --chat a user's message. */
enum status request_add_text(struct request_list *list, const struct request_terms *terms, const char *text, size_t length);
/* One request from a line of JSON. number: the line's, from 1, by which an error names it. */
enum status request_add_line(struct request_list *list, const struct request_terms *terms, const char *line, size_t length, int number);
/* One request that completes nothing: its prompt is these tokens, and log p of the last `scores` of them is asked for. */
enum status request_add_tokens(struct request_list *list, const struct request_terms *terms, const int32_t *tokens, int count, int scores);
/* All lines of a JSON-lines file ("-" is stdin); a bad line becomes a request with an error. STATUS_NOINPUT when it cannot be read. */
enum status request_read(struct request_list *list, const struct request_terms *terms, const char *path);
/* For what has one completion of each prompt: STATUS_DATA where a request asks for several, with a line that names it. */
enum status request_expect_single(const struct request_list *list, const char *what);
/* Where the number of drafts is left open in a job of trees: trees of drawn drafts have TREE_USUAL nodes, for that one was smaller, as q had no more
 * tokens, depends on coins that are still to be used, so no size may follow from what became of it; chains, which a rule gets that decides about no
 * trees, have the usual length of a chain, for what trees gave says nothing of them. */
void request_settle_tree(struct request *request, const struct options *options);
/* Does it ask for drafts? */
int request_drafts(const struct request *request);
/* Does it draft by a rule that is not lossless? */
int request_is_lossy(const struct request *request);
/* The first one that does, or NULL. */
const struct request *request_lossy(const struct request_list *list);
/* Does the text of any depend on what was drafted for it? */
int request_depends_on_drafts(const struct request_list *list);
void request_release(struct request_list *list);

#endif
