/* llama_quality: what `bench_step quality` says of Tandem, of llama.cpp: how far its logits are from its own in float32, over the same positions.
 * launch/bench/vs-llama-cpp compiles it against the library of the peer; the build does not know it.
 *
 *   llama_quality THREADS FLOAT32 MODEL TEXT POSITIONS
 *
 * Both models keep their caches in float32 and go without flash attention, which is the peer's best: what is left are the weights and what they are
 * multiplied with. Ends with 64 usage, 66 a file cannot be read, 65 a text that is too short, 70 the library fails. */
#include "launch/dev/step/difference.h"

#include <llama.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = DIFFERENCE_CHUNK, LARGEST_TEXT = 1 << 24 };

struct peer {
    struct llama_model *model;
    struct llama_context *context;
};

static void say_faults(enum ggml_log_level level, const char *text, void *data)
{
    (void)data;
    if (level == GGML_LOG_LEVEL_ERROR)
        fputs(text, stderr);
}

static int peer_open(struct peer *peer, const char *path, int threads)
{
    struct llama_context_params params = llama_context_default_params();

    params.n_ctx = params.n_batch = params.n_ubatch = CHUNK;
    params.n_threads = params.n_threads_batch = threads;
    params.type_k = params.type_v = GGML_TYPE_F32;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    peer->model = llama_model_load_from_file(path, llama_model_default_params());
    peer->context = peer->model != NULL ? llama_init_from_model(peer->model, params) : NULL;
    return peer->context != NULL;
}

static void peer_close(struct peer *peer)
{
    if (peer->context != NULL)
        llama_free(peer->context);
    if (peer->model != NULL)
        llama_model_free(peer->model);
}

/* Feeds a whole chunk to an empty cache, for the logits of its second half. */
static int peer_feed(struct peer *peer, const llama_token *tokens)
{
    struct llama_batch batch = llama_batch_init(CHUNK, 0, 1);
    int fed;

    for (int i = 0; i < CHUNK; i++) {
        batch.token[i] = tokens[i];
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = i >= CHUNK / 2;
    }
    batch.n_tokens = CHUNK;
    llama_memory_clear(llama_get_memory(peer->context), true);
    fed = llama_decode(peer->context, batch) == 0;
    llama_batch_free(batch);
    return fed;
}

static int compare_chunk(struct peer *exact, struct peer *other, const llama_token *tokens, int positions, struct difference *difference)
{
    int vocab = llama_vocab_n_tokens(llama_model_get_vocab(exact->model));

    if (!peer_feed(exact, tokens) || !peer_feed(other, tokens))
        return 0;
    for (int i = CHUNK / 2; i < CHUNK && difference->positions < positions; i++)
        difference_add(difference, llama_get_logits_ith(exact->context, i), llama_get_logits_ith(other->context, i), vocab);
    return 1;
}

/* The tokens of a text, as many as are asked for: malloc'ed, NULL when it cannot be read, and their number. */
static llama_token *read_tokens(const struct llama_model *model, const char *path, int *count)
{
    char *text = malloc(LARGEST_TEXT);
    llama_token *tokens = malloc(LARGEST_TEXT * sizeof *tokens);
    FILE *file = fopen(path, "r");

    if (file != NULL && text != NULL && tokens != NULL) {
        int size = (int)fread(text, 1, LARGEST_TEXT, file);

        *count = llama_tokenize(llama_model_get_vocab(model), text, size, tokens, LARGEST_TEXT, false, false);
    } else {
        free(tokens);
        tokens = NULL;
    }
    if (file != NULL)
        fclose(file);
    free(text);
    return tokens;
}

static int measure(struct peer *exact, struct peer *other, const char *path, int positions)
{
    struct difference difference = {0};
    int count = 0, chunks = (positions + CHUNK / 2 - 1) / (CHUNK / 2), code = 0;
    llama_token *tokens = read_tokens(exact->model, path, &count);

    if (tokens == NULL)
        code = 66;
    else if (count < chunks * CHUNK)
        code = 65;
    for (int i = 0; i < chunks && code == 0; i++)
        code = compare_chunk(exact, other, tokens + (ptrdiff_t)i * CHUNK, positions, &difference) ? 0 : 70;
    if (code == 0)
        difference_print(&difference);
    free(tokens);
    return code;
}

int main(int count, char **arguments)
{
    struct peer exact = {0}, other = {0};
    int code = 70;

    if (count != 6 || atoi(arguments[1]) < 1 || atoi(arguments[5]) < 1) {
        fprintf(stderr, "usage: llama_quality THREADS FLOAT32 MODEL TEXT POSITIONS\n");
        return 64;
    }
    llama_log_set(say_faults, NULL);
    llama_backend_init();
    if (peer_open(&exact, arguments[2], atoi(arguments[1])) && peer_open(&other, arguments[3], atoi(arguments[1])))
        code = measure(&exact, &other, arguments[4], atoi(arguments[5]));
    peer_close(&other);
    peer_close(&exact);
    llama_backend_free();
    return code;
}
