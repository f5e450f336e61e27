#include "common/options/options_elsewhere.h"

#include "common/options/options_table.h"
#include <stdio.h>
#include <string.h>

static const char no_beams[] = "texts are drawn, not searched for; n is how many, best_of of how many";
static const char no_grammar[] = "nothing follows a grammar; logit_bias, bad_words and stop are what can be asked of a text";
static const char no_server[] = "there is no server; --prompts takes files, OpenAI's batches among them, and `tandem chat` turns";
static const char whole_shards[] = "a rank's device holds its whole shard; --verifiers N makes shards smaller";
static const char devices[] = "--backend says whether GPUs are used, --verifiers N how many, --verifier-devices and --drafter-devices which";
static const char bounded_memory[] = "--context and --max-sequences bound the memory that is used";
static const char kept_shares[] = "top_k, top_p and min_p choose what is kept";
static const char own_dtype[] =
    "weights are taken as the model's files have them; --quantise q8_0 makes them smaller, --cache says what keys and values are";
static const char lines_of_json[] =
    "--prompts FILE has a line of JSON for each prompt, as {\"prompt\": \"...\"}; a file that is one prompt: --prompt \"$(cat FILE)\"";
static const char of_sbatch[] = "sbatch's own options stand behind --, as in `tandem sbatch --prompts FILE -- --time=60`";

static const struct {
    const char *name; /* elsewhere */
    const char *here; /* the option that means it, or NULL */
    const char *why;  /* else: what there is instead */
} rows[] = {
    {"model", "target", NULL},
    {"hf-repo", "target", NULL},
    {"pretrained", "target", NULL},
    {"hf", "target", NULL},
    {"model-draft", "draft", NULL},
    {"draft-model", "draft", NULL},
    {"assistant-model", "draft", NULL},
    {"speculative-model", "draft", NULL},
    {"ctx", "context", NULL},
    {"ctx-size", "context", NULL},
    {"n-ctx", "context", NULL},
    {"num-ctx", "context", NULL},
    {"max-model-len", "context", NULL},
    {"n-predict", "max-tokens", NULL},
    {"predict", "max-tokens", NULL},
    {"num-predict", "max-tokens", NULL},
    {"max-new-tokens", "max-tokens", NULL},
    {"max-completion-tokens", "max-tokens", NULL},
    {"min-new-tokens", "min-tokens", NULL},
    {"speculative-config", "draft", NULL},
    {"num-speculative-tokens", "draft-length", NULL},
    {"num-assistant-tokens", "draft-length", NULL},
    {"draft-max", "draft-length", NULL},
    {"draft-min", "draft-length", NULL},
    {"gamma", "draft-length", NULL},
    {"no-speculation", "solo", NULL},
    {"temp", "temperature", NULL},
    {"do-sample", "temperature", NULL},
    {"repeat-penalty", "repetition-penalty", NULL},
    {"stop-sequence", "stop", NULL},
    {"reverse-prompt", "stop", NULL},
    {"stop-strings", "stop", NULL},
    {"eos-token-id", "stop-token-id", NULL},
    {"bad-words-ids", "bad-word", NULL},
    {"return-full-text", "echo", NULL},
    {"no-repeat-ngram-size", NULL, "repetition_penalty, presence_penalty and frequency_penalty are what there is against repetition"},
    {"repeat-last-n", NULL, "penalties count tokens of the whole text, however far back"},
    {"random-seed", "seed", NULL},
    {"tensor-parallel-size", "verifiers", NULL},
    {"tp", "verifiers", NULL},
    {"parallel", "max-sequences", NULL},
    {"batch", "max-sequences", NULL},
    {"batch-size", "max-sequences", NULL},
    {"max-num-seqs", "max-sequences", NULL},
    {"threads-batch", "threads", NULL},
    {"device", "backend", NULL},
    {"quantization", "quantise", NULL},
    {"quantize", "quantise", NULL},
    {"load-in-8bit", "quantise", NULL},
    {"dtype", NULL, own_dtype},
    {"torch-dtype", NULL, own_dtype},
    {"kv-cache-dtype", "cache", NULL},
    {"cache-type-k", "cache", NULL},
    {"cache-type-v", "cache", NULL},
    {"chat-template", "template", NULL},
    {"file", NULL, lines_of_json},
    {"input", "prompts", NULL},
    {"input-file", "prompts", NULL},
    {"output-file", "output", NULL},
    {"num-return-sequences", "n", NULL},
    {"n-cmpl", "n", NULL},
    {"num-beams", NULL, no_beams},
    {"top-logprobs", "logprobs", NULL},
    {"n-probs", "logprobs", NULL},
    {"prompt-logprobs", NULL, "with echo, logprobs tells them of the prompt's tokens, too"},
    {"suffix", NULL, "a text is continued; nothing is filled in before another one"},
    {"tools", NULL, "a template is given messages alone"},
    {"user", NULL, "id names a line, and its result has it"},
    {"grammar", NULL, no_grammar},
    {"grammar-file", NULL, no_grammar},
    {"json-schema", NULL, no_grammar},
    {"guided-json", NULL, no_grammar},
    {"response-format", NULL, no_grammar},
    {"port", NULL, no_server},
    {"api-key", NULL, no_server},
    {"host", NULL, "there is no server; --hosts HOST[:SLOTS],... says where ranks are"},
    {"stream", NULL, "`tandem run --prompt` and `tandem chat` show a text as it grows, and --prompts writes whole results"},
    {"interactive", NULL, "`tandem chat` takes turns"},
    {"conversation-mode", NULL, "`tandem chat` takes turns"},
    {"system-prompt", NULL, "messages of a line begin with one of the role system"},
    {"system", NULL, "messages of a line begin with one of the role system"},
    {"gpu", NULL, devices},
    {"gpus", NULL, devices},
    {"n-gpu-layers", NULL, whole_shards},
    {"gpu-layers", NULL, whole_shards},
    {"ngl", NULL, whole_shards},
    {"tensor-split", NULL, whole_shards},
    {"shards", NULL, "--parts N cuts a file of prompts into N jobs, --verifiers N cuts the target"},
    {"shard", NULL, "--part I/N takes a part of the lines, --verifiers N cuts the target"},
    {"pipeline-parallel-size", NULL, whole_shards},
    {"gpu-memory-utilization", NULL, bounded_memory},
    {"mirostat", NULL, kept_shares},
    {"typical-p", NULL, kept_shares},
    {"typical", NULL, kept_shares},
    {"dynatemp-range", NULL, kept_shares},
    {"lora", NULL, "a model is one folder or file, its adapters merged"},
    {"time", NULL, of_sbatch},
    {"partition", NULL, of_sbatch},
    {"account", NULL, of_sbatch},
    {"qos", NULL, of_sbatch},
    {"nodes", NULL, of_sbatch},
    {"nodelist", NULL, of_sbatch},
    {"ntasks", NULL, of_sbatch},
    {"ntasks-per-node", NULL, of_sbatch},
    {"cpus-per-task", NULL, of_sbatch},
    {"gres", NULL, of_sbatch},
    {"mem", NULL, of_sbatch},
    {"job-name", NULL, of_sbatch},
    {"exclusive", NULL, of_sbatch},
    {"trust-remote-code", NULL, "no model brings code that is run"},
};

/* Options of one dash, and what means them: an option, or a name of the rows above. Where several programs have the same one, llama.cpp's meaning is
 * taken. */
static const struct {
    const char *name, *here;
} short_rows[] = {
    {"m", "target"},        {"md", "draft"},         {"p", "prompt"}, {"n", "max-tokens"}, {"c", "context"}, {"t", "threads"},
    {"b", "max-sequences"}, {"np", "max-sequences"}, {"s", "seed"},   {"f", "file"},       {"o", "output"},  {"r", "stop"},
    {"q", "quiet"},         {"v", "verbose"},        {"h", "help"},   {"ctk", "cache"},    {"ctv", "cache"}, {"tp", "verifiers"},
};

static int is_same(const char *a, const char *b)
{
    for (; *a != '\0' && (*a == *b || (*a == '-' && *b == '_')); a++)
        b++;
    return *a == '\0' && *b == '\0';
}

/* Options that are given once for each, and the keys that have all of them in a list. */
static const struct {
    const char *option, *key;
} lists[] = {{"stop", "stop"}, {"stop-token-id", "stop_token_ids"}, {"bad-word", "bad_words"}, {"logit-bias", "logit_bias"}};

/* An option as it is given, or as a line has it. */
static void write_here(const struct option_entry *entry, int is_key, char *words, size_t size)
{
    for (size_t i = 0; is_key && i < sizeof lists / sizeof *lists; i++)
        if (strcmp(lists[i].option, entry->name) == 0) {
            snprintf(words, size, ", expected %s", lists[i].key);
            return;
        }
    if (!is_key || !entry->per_request) {
        snprintf(words, size, ", expected --%s%s%s", entry->name, entry->value != NULL ? " " : "", entry->value != NULL ? entry->value : "");
        return;
    }
    snprintf(words, size, ", expected %s", entry->name);
    for (char *at = words + strlen(", expected "); *at != '\0'; at++)
        *at = *at == '-' ? '_' : *at;
}

int options_elsewhere(const char *name, int is_key, char *words, size_t size)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!is_same(rows[i].name, name))
            continue;
        if (rows[i].here != NULL)
            write_here(option_find(rows[i].here), is_key, words, size);
        else
            snprintf(words, size, ": %s", rows[i].why);
        return 1;
    }
    return 0;
}

int options_elsewhere_short(const char *name, char *words, size_t size)
{
    for (size_t i = 0; i < sizeof short_rows / sizeof *short_rows; i++)
        if (strcmp(short_rows[i].name, name) == 0) {
            const struct option_entry *entry = option_find(short_rows[i].here);

            if (entry == NULL)
                return options_elsewhere(short_rows[i].here, 0, words, size);
            write_here(entry, 0, words, size);
            return 1;
        }
    return name[0] != '\0' && name[1] != '\0' && options_elsewhere(name, 0, words, size);
}
