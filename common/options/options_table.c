#include "common/options/options_table.h"

#include "common/base/spelling.h"
#include "common/sample/rule.h"
#include "common/sample/sparse_q.h"
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define AT(field) offsetof(struct options, field)
#define BIG 1e9

const char *const option_group_title[] = {"Models",      "Ranks and hosts", "Clusters and SLURM", "Input and output", "Sampling",
                                          "Speculation", "Reports",         "Checking (`tandem check`)", "Other", NULL};

const struct option_entry option_table[] = {
    {"target", "M", OPTION_TEXT, OPTION_MODELS, AT(model.target), 0, 0, NULL, 0, RESULTS_BY_CONTENT, RANKS_ALWAYS,
     "target model: a Hugging Face folder (config.json, safetensors, tokenizer.json), a .gguf or a llama2.c .bin; default: the embedded "
     "pair"},
    {"draft", "M", OPTION_TEXT, OPTION_MODELS, AT(model.draft), 0, 0, NULL, 0, RESULTS_BY_CONTENT, RANKS_ALWAYS,
     "draft model, with the same vocabulary; or `lookup`, which copies what followed the last tokens before (lookup:min=1,max=4, the tokens that "
     "must be the same; job=1: also from the job's other sequences and what they have ended with); or `self:bits=4`, the target's own weights "
     "rounded to 4 (or 8) bits, on the CPU alone; or `self:layers=N`, its first N "
     "layers; or `self:skip=3+8-11`, without these, which tandem layers finds; or several of the three, self:bits=4,layers=N; or `ngram:FILE` or `retrieval:FILE`, which tandem ngram or tandem datastore made of texts; or `lookahead`, "
     "the target's own guesses (greedy, or --accept walk or coupled), 12 drafts a round or as its keys say, fewer by --draft-length, none of which is chosen; see "
     "--list-drafters. A folder of such a name is ./lookup. `auto`: the model that belongs to the target, where tandem fetch "
     "knows one, which is also what a fetched target has without it. Else without it and with --target given, decoding is solo"},
    {"quantise", "WHAT", OPTION_CHOICE, OPTION_MODELS, AT(model.quantise), 0, 0, "none|q8_0", 0, RESULTS_FROM_1, RANKS_ALWAYS,
     "round the matrices that a model's file has in F32, F16 or BF16 to Q8_0 while they are loaded, of target and draft, as a GGUF file in Q8_0 has "
     "them; on the CPU alone; default none. The output is that of the rounded target"},
    {"draft-quantise", "WHAT", OPTION_CHOICE, OPTION_MODELS, AT(model.draft_quantise), 0, 0, "none|q8_0|q4_0", 0, RESULTS_DRAFTED, RANKS_ALWAYS,
     "the same of the draft model alone, and of all that its file has in more bits than that, a GGUF file's Q6_K or Q5_0, too: a draft of half "
     "the bytes takes half the time, guesses a little worse, and what comes out has the target's distribution all the same; on the CPU alone. "
     "Default none: as --quantise says"},
    {"cache", "WHAT", OPTION_CHOICE, OPTION_MODELS, AT(model.cache), 0, 0, "auto|f32|bf16|fp8", 0, RESULTS_FROM_2, RANKS_ALWAYS,
     "numbers that keys and values are kept as, of target and draft: bf16 takes half the memory, and at long contexts attention reads half the "
     "bytes; fp8 (E4M3, without scales) a quarter, and rounds to 4 significant bits; default auto: f32 on the CPU, bf16 on GPUs, which have no f32. "
     "The output is that of the target with such a cache"},
    {"context", "N", OPTION_INT, OPTION_MODELS, AT(model.context), 0, BIG, NULL, 0, RESULTS_BY_CONTENT, RANKS_ALWAYS,
     "tokens that a sequence may have, prompt included; 0: the model's own, at most 8192. Above the original context of a model with LongRoPE "
     "its factors for long texts are used"},
    {"drafters", "N", OPTION_INT, OPTION_RANKS, AT(ranks.drafters), 0, 512, NULL, 0, RESULTS_NEVER, RANKS_NEVER, "drafter ranks; default 1"},
    {"verifiers", "N", OPTION_INT, OPTION_RANKS, AT(ranks.verifiers), 1, 512, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "verifier ranks, which share the target by tensor parallelism; default 2 where they compute on the CPU and the model and the cores "
     "allow it, else 1"},
    {"backend", "WHICH", OPTION_CHOICE, OPTION_RANKS, AT(ranks.backend), 0, 0, "auto|cpu|cuda", 0, RESULTS_NEVER, RANKS_ALWAYS,
     "what computes; default auto: each rank takes a CUDA device where this build and its host have one, else the CPU. The ranks of a host share out "
     "its devices in turns"},
    {"all-reduce", "HOW", OPTION_CHOICE, OPTION_RANKS, AT(ranks.all_reduce), 0, 0, "auto|nccl|one-shot", 0, RESULTS_NEVER, RANKS_ALWAYS,
     "how verifiers with a device each sum small numbers: over NCCL, or by writing into each other's memory (one host, up to 8 devices); default "
     "auto: what is faster, measured at the start"},
    {"threads", "N", OPTION_INT, OPTION_RANKS, AT(ranks.threads), 0, 1024, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "threads of each rank; 0: the cores of a host divided by its ranks; of a model of 32 M weights and more by those of its role, for drafters and "
     "verifiers take turns; never more than the cores that the rank may run on"},
    {"hosts", "LIST", OPTION_TEXT, OPTION_RANKS, AT(launch.hosts), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "hosts for mpirun, as HOST[:SLOTS],..."},
    {"mpirun-options", "TEXT", OPTION_TEXT, OPTION_RANKS, AT(launch.mpirun_options), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "more options for mpirun, put into the line as they are"},
    {"drafter-devices", "LIST", OPTION_TEXT, OPTION_RANKS, AT(ranks.drafter_devices), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "devices for the drafters of a host, in turn, as 0 or 2,3, of those that a rank sees; default: device R for the rank that is number R of its "
     "host, and from the first again"},
    {"verifier-devices", "LIST", OPTION_TEXT, OPTION_RANKS, AT(ranks.verifier_devices), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "the same for the verifiers, which need a device each; a drafter may share one with a verifier"},
    {"config", "FILE", OPTION_TEXT, OPTION_RANKS, AT(launch.config), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_BY_SCRIPT,
     "read options from an INI file first (cluster-configs/); the command line wins"},
    {"dry-run", NULL, OPTION_FLAG, OPTION_RANKS, AT(launch.dry_run), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "check everything, print the mpirun line, run nothing"},
    {"launcher", "WHICH", OPTION_CHOICE, OPTION_CLUSTER, AT(launch.launcher), 0, 0, "mpirun|srun", 0, RESULTS_NEVER, RANKS_NEVER,
     "what starts the ranks: mpirun (the default of `tandem run`), or srun with PMIx inside of what SLURM has allocated (that of `tandem "
     "sbatch`)"},
    {"environment", "TEXT", OPTION_TEXT, OPTION_CLUSTER, AT(launch.environment), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "variables for all ranks, as NAME=VALUE NAME=VALUE: what UCX, NCCL and Open MPI are told"},
    {"drafter-environment", "TEXT", OPTION_TEXT, OPTION_CLUSTER, AT(launch.drafter_environment), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "more of them for drafters"},
    {"verifier-environment", "TEXT", OPTION_TEXT, OPTION_CLUSTER, AT(launch.verifier_environment), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "more of them for verifiers"},
    {"slurm-layout", "WHICH", OPTION_CHOICE, OPTION_CLUSTER, AT(slurm.layout), 0, 0, "group|hetjob", 0, RESULTS_NEVER, RANKS_NEVER,
     "one group of nodes for all ranks (the default), or a heterogeneous job: one group for drafters, one for verifiers"},
    {"cpus-per-rank", "N", OPTION_INT, OPTION_CLUSTER, AT(slurm.cpus_per_rank), 0, 1024, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "cores that SLURM gives each rank, which has so many --threads; default 0: as SLURM likes"},
    {"sbatch-options", "TEXT", OPTION_TEXT, OPTION_CLUSTER, AT(slurm.sbatch_options), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "options of sbatch for every group, as --nodes=2 --time=4:00:00"},
    {"drafter-sbatch", "TEXT", OPTION_TEXT, OPTION_CLUSTER, AT(slurm.drafter_sbatch), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "more of them for the drafters' group of a heterogeneous job"},
    {"verifier-sbatch", "TEXT", OPTION_TEXT, OPTION_CLUSTER, AT(slurm.verifier_sbatch), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "more of them for the verifiers' group"},
    {"srun-options", "TEXT", OPTION_TEXT, OPTION_CLUSTER, AT(slurm.srun_options), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "more options for srun, of every group"},
    {"parts", "N", OPTION_INT, OPTION_CLUSTER, AT(slurm.parts), 0, 1e6, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "`tandem sbatch`: an array of N tasks that share the lines of --prompts; with --output out.jsonl task I writes out-I-of-N.jsonl"},
    {"draft-lengths", "LIST", OPTION_TEXT, OPTION_CLUSTER, AT(slurm.draft_lengths), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "`tandem sbatch`: an array of one task for each draft length, as 1,2,4,8; with --output out.jsonl task K writes out-kK.jsonl"},
    {"prompt", "TEXT", OPTION_TEXT, OPTION_INPUT, AT(input.prompt), 0, 0, NULL, 0, RESULTS_BY_CONTENT, RANKS_ALWAYS,
     "complete one prompt; its completion alone goes to stdout when that is not a terminal"},
    {"prompts", "FILE", OPTION_TEXT, OPTION_INPUT, AT(input.prompts), 0, 0, NULL, 0, RESULTS_BY_CONTENT, RANKS_ALWAYS,
     "complete every line of a JSON-lines file, or of stdin with -: {\"id\"?, \"prompt\" or \"prompt_tokens\" or "
     "\"messages\", any sampling option in snake_case}, or OpenAI's batch form"},
    {"perplexity", "FILE", OPTION_TEXT, OPTION_INPUT, AT(input.perplexity), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "complete nothing: print the target's perplexity on a plain text, with its standard error, over windows of --context tokens (default "
     "512), as llama.cpp's llama-perplexity does"},
    {"chat", "[TEXT]", OPTION_TEXT, OPTION_INPUT, AT(input.chat), 0, 0, NULL, 0, RESULTS_ALWAYS, RANKS_ALWAYS,
     "answer TEXT as a user's message, through the target's chat template. Without TEXT: prompts, of --prompt or --prompts, are such "
     "messages"},
    {"template", "NAME", OPTION_CHOICE, OPTION_INPUT, AT(input.chat_family), 0, 0,
     "auto|chatml|llama2|llama3|llama3.1|mistral-v0|mistral-v1|mistral-v3|mistral-v3-tekken|gemma|phi3|zephyr", 0, RESULTS_ALWAYS, RANKS_ALWAYS,
     "how messages become a prompt; default auto: as the model's own chat template says, where it is one of these. With a model that knows no such "
     "tokens the marks are plain text"},
    {"output", "FILE", OPTION_TEXT, OPTION_INPUT, AT(results.path), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_BY_SCRIPT,
     "write results as JSON lines, in input order; - is stdout. Until all are there, FILE.journal holds them"},
    {"resume", NULL, OPTION_FLAG, OPTION_INPUT, AT(results.resume), 0, 1, NULL, 0, RESULTS_NEVER, RANKS_BY_SCRIPT,
     "go on from FILE.journal of an earlier job with the same prompts and options; begins afresh where there is none"},
    {"plain-results", NULL, OPTION_FLAG, OPTION_INPUT, AT(results.plain_results), 0, 1, NULL, 0, RESULTS_ALWAYS, RANKS_ALWAYS,
     "leave timing and speculation out of the results: what is left is the same in every run, where the text is"},
    {"drain-seconds", "S", OPTION_DOUBLE, OPTION_INPUT, AT(limits.drain_s), 0, 1e6, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "on SIGUSR1, let running requests go on for this long; default 5. Then the job ends with 75, and --resume goes on"},
    {"first-index", "N", OPTION_INT, OPTION_INPUT, AT(input.first_index), 0, BIG, NULL, 0, RESULTS_ALWAYS, RANKS_ALWAYS,
     "number of the first prompt; default 0. Random draws and --hash-logits go by it, so that parts of a file give what the whole gives"},
    {"part", "I/N", OPTION_TEXT, OPTION_INPUT, AT(input.part), 0, 0, NULL, 0, RESULTS_ALWAYS, RANKS_ALWAYS,
     "complete part I, from 0, of N equal parts of the lines of --prompts alone. A line has the number that it has in the whole"},
    {"max-tokens", "N", OPTION_INT, OPTION_INPUT, AT(request.max_tokens), 0, BIG, NULL, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "tokens to generate at most for each prompt; default 128"},
    {"n", "N", OPTION_INT, OPTION_INPUT, AT(request.n), 1, OPTIONS_MAX_CHOICES, NULL, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "completions of each prompt, with the seeds S, S + 1, ...; default 1. With --prompt it needs --output"},
    {"best-of", "N", OPTION_INT, OPTION_INPUT, AT(request.best_of), 1, OPTIONS_MAX_CHOICES, NULL, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "decode N completions of each prompt, at least --n, and keep those whose tokens have the highest log p in the mean, by the model alone"},
    {"min-tokens", "N", OPTION_INT, OPTION_INPUT, AT(request.min_tokens), 0, BIG, NULL, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "tokens to generate before EOS, a stop token or a stop text may end a completion; default 0"},
    {"logprobs", "N", OPTION_INT, OPTION_INPUT, AT(request.logprobs), 0, ROW_MAX_LOGPROBS, NULL, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "write log p of each token of a result, and of the N most probable ones at its place, by the model alone: without temperature, penalties "
     "and biases; default: neither"},
    {"echo", NULL, OPTION_FLAG, OPTION_INPUT, AT(request.echo), 0, 1, NULL, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "begin each result with its prompt; with --logprobs log p of the prompt's tokens is in it, too"},
    {"stop", "STR", OPTION_TEXTS, OPTION_INPUT, AT(request.stop), 0, OPTIONS_MAX_STOPS, NULL, 0, RESULTS_ALWAYS, RANKS_ALWAYS,
     "end a completion before this text; may be given up to 16 times"},
    {"stop-token-id", "ID", OPTION_IDS, OPTION_INPUT, AT(request.stop_token), 0, 0, NULL, 0, RESULTS_ALWAYS, RANKS_ALWAYS,
     "end a completion at this token, as at EOS; may be given up to 64 times (in a line: stop_token_ids, a list)"},
    {"ignore-eos", NULL, OPTION_FLAG, OPTION_INPUT, AT(request.ignore_eos), 0, 1, NULL, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "go on after the end-of-sequence token"},
    {"temperature", "T", OPTION_DOUBLE, OPTION_SAMPLING, AT(request.sampling.temperature), 0, 100, NULL, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "0 (the default) is greedy"},
    {"top-k", "K", OPTION_INT, OPTION_SAMPLING, AT(request.sampling.top_k), 0, BIG, NULL, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "keep the K most probable tokens; 0: all"},
    {"top-p", "P", OPTION_DOUBLE, OPTION_SAMPLING, AT(request.sampling.top_p), 0, 1, SAMPLING_TOP_P, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "keep the fewest tokens that together have probability P; 1: all"},
    {"min-p", "P", OPTION_DOUBLE, OPTION_SAMPLING, AT(request.sampling.min_p), 0, 1, SAMPLING_MIN_P, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "keep tokens at least P times as probable as the best; 0: all"},
    {"repetition-penalty", "R", OPTION_DOUBLE, OPTION_SAMPLING, AT(request.sampling.repetition_penalty), 0.01, 100, NULL, 1, RESULTS_ALWAYS,
     RANKS_ALWAYS, "divide positive and multiply negative logits of tokens seen before; 1: off"},
    {"presence-penalty", "R", OPTION_DOUBLE, OPTION_SAMPLING, AT(request.sampling.presence_penalty), -2, 2, NULL, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "subtract from the logits of tokens generated before; 0: off"},
    {"frequency-penalty", "R", OPTION_DOUBLE, OPTION_SAMPLING, AT(request.sampling.frequency_penalty), -2, 2, NULL, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "subtract once for each time a token was generated before; 0: off"},
    {"logit-bias", "ID:BIAS", OPTION_BIAS, OPTION_SAMPLING, AT(request.bias), 0, 0, NULL, 0, RESULTS_ALWAYS, RANKS_ALWAYS,
     "add BIAS, from -100 to 100, to the logit of token ID; may be given up to 300 times (in a line: an object, {\"ID\": BIAS})"},
    {"bad-word", "TEXT", OPTION_TEXTS, OPTION_SAMPLING, AT(request.bad_word), 0, OPTIONS_MAX_TEXTS, NULL, 0, RESULTS_ALWAYS, RANKS_ALWAYS,
     "never generate the tokens of TEXT, with a space before it and without; may be given several times (in a line: bad_words, a list of "
     "texts and lists of token ids)"},
    {"seed", "S", OPTION_U64, OPTION_SAMPLING, AT(request.sampling.seed), 0, 0, NULL, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "seed of every random number; default 0"},
    {"accept", "MODE", OPTION_CHOICE, OPTION_SPECULATION, AT(request.sampling.accept), 0, 0, RULE_NAMES, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "the rule by which a draft is accepted: rejection (Leviathan et al. 2023, Algorithm 1; the default), coupled (the output depends on seed "
     "and target alone), walk, also called exact, or another one of --list-rules, which says which are lossless"},
    {"lenience", "L", OPTION_DOUBLE, OPTION_SPECULATION, AT(request.sampling.lenience), 0, 1, SAMPLING_LENIENCE, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "of --accept lenience: what q is multiplied by before p is compared with it; 1 is rejection, default 0.5. NOT LOSSLESS"},
    {"threshold", "P", OPTION_DOUBLE, OPTION_SPECULATION, AT(request.sampling.threshold), 0, 1, SAMPLING_THRESHOLD, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "of --accept threshold: p of a draft that is accepted is above it; default 0.3. NOT LOSSLESS"},
    {"typical-epsilon", "E", OPTION_DOUBLE, OPTION_SPECULATION, AT(request.sampling.typical_epsilon), 0, 1, NULL, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "of --accept typical, Medusa's: p of a draft that is accepted is above E, or above D exp(-entropy of p) where that is less; default 0.09. NOT "
     "LOSSLESS"},
    {"typical-delta", "D", OPTION_DOUBLE, OPTION_SPECULATION, AT(request.sampling.typical_delta), 0, 1, NULL, 1, RESULTS_ALWAYS, RANKS_ALWAYS,
     "the D beside it; default 0.3"},
    {"list-rules", NULL, OPTION_PRINT, OPTION_SPECULATION, OPTIONS_PRINT_RULES, 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "show the rules of --accept, what each does and whose it is, and exit"},
    {"list-drafters", NULL, OPTION_PRINT, OPTION_SPECULATION, OPTIONS_PRINT_DRAFTERS, 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "show what --draft may be, what each needs and whose it is, and exit"},
    {"draft-length", "K", OPTION_INT, OPTION_SPECULATION, AT(rounds.draft_length), 0, SAMPLING_MAX_DRAFT, NULL, 1, RESULTS_DRAFTED, RANKS_ALWAYS,
     "tokens drafted in each round; by default chosen from what is measured, and none where drafts do not pay. Above temperature 0 the text then "
     "depends on timing (under lossless rules its distribution does not) with every rule but coupled and walk: for the same text twice give K, or "
     "one of these"},
    {"tree", "SHAPE", OPTION_TEXT, OPTION_SPECULATION, AT(rounds.tree), 0, 0, NULL, 0, RESULTS_DRAFTED, RANKS_ALWAYS,
     "what a draft model proposes: chain (the default), or a tree of --draft-length tokens (where that is not given, as many as pay; 12 by rules that draw them), of which the target's own "
     "path is accepted: dynamic (the tokens of the likeliest paths by the draft model), top-k (the same tree, by how often a first, "
     "second .. choice is right as a rule), sequoia (by how often it is in this job), or auto (whichever of these and a chain is the fastest by what the job measures, of a size that it chooses, too), each with :depth=N, the longest path. With --accept coupled and walk, and at temperature 0 with every rule that "
     "is greedy there, where the text is the same, and top-k, or iid (chains beside each other), with --accept "
     "multistep, without-replacement, k-sequential and traversal; a line whose rule decides about chains alone gets chains"},
    {"solo", NULL, OPTION_FLAG, OPTION_SPECULATION, AT(rounds.solo), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "decode with the target alone: the baseline and the oracle"},
    {"merge", "KIND", OPTION_TEXTS, OPTION_SPECULATION, AT(rounds.merge), 0, OPTIONS_MERGED_MOST, NULL, 0, RESULTS_BY_CONTENT, RANKS_ALWAYS,
     "another drafter for each request beside --draft, a model or a kind of --list-drafters, on ranks of its own (--drafters is one of each kind by "
     "default); may be given 3 times, and those of a config come on top. What they propose is merged into one tree, of which as many drafts as one "
     "would propose are verified: those that are most probable by what was accepted of each kind before. With --accept coupled or walk, or at "
     "temperature 0, where what comes out does not depend on it, and with --accept multistep, where its distribution does not; for a line of prompts "
     "with another rule --draft alone drafts"},
    {"synthetic-acceptance", "R", OPTION_DOUBLE, OPTION_SPECULATION, AT(rounds.synthetic_acceptance), 0, 1, NULL, 0, RESULTS_FROM_0, RANKS_ALWAYS,
     "each draft is accepted with probability R, whatever the target says: to study a network without a trained pair. NOT LOSSLESS, and marked so "
     "wherever the job says anything"},
    {"support", "N", OPTION_INT, OPTION_SPECULATION, AT(rounds.support), 1, SPARSE_Q_MAX, NULL, 0, RESULTS_DRAFTED, RANKS_ALWAYS,
     "tokens that a draft distribution keeps at most; default 256. Fewer are faster to send and are accepted less often"},
    {"draft-vocabulary", "N", OPTION_INT, OPTION_SPECULATION, AT(rounds.draft_vocabulary), 0, 1 << 30, NULL, 0, RESULTS_DRAFTED, RANKS_ALWAYS,
     "a draft model drafts from its first N ids alone, so its head reads no more weights than theirs; in vocabularies made by merging, as BPE's, "
     "those are the frequent ones. Default 0: all, as with more than there are. What comes out has the target's distribution all the same. Lookup "
     "copies any"},
    {"draft-temperature", "T", OPTION_DOUBLE, OPTION_SPECULATION, AT(rounds.draft_temperature), 0, 100, NULL, 0, RESULTS_DRAFTED, RANKS_ALWAYS,
     "a draft model's own temperature, beside the request's, which is the default: its tokens are drawn from that distribution, and decided by it, "
     "so what comes out has the target's all the same. It may be accepted more often: `tandem alpha` says whether. Not at temperature 0, nor with "
     "--accept coupled, walk, threshold or typical"},
    {"stop-drafting", "WHEN", OPTION_TEXT, OPTION_SPECULATION, AT(rounds.stop_drafting), 0, 0, NULL, 0, RESULTS_DRAFTED, RANKS_ALWAYS,
     "when drafting stops before a proposal is full: never (the default), confidence=P (the draft model's most probable token has less than P; 0.4 "
     "where no number is given) or entropy=L (1 - sqrt(0.2 H), a lower bound of the chance to be accepted by the entropy H of its distribution, is "
     "less than L; 0.3); batch: the chance that the draft stands, by the draft model's own probabilities, is less than its row costs by measured "
     "times and with the sequences of the moment, so that a text which depends on its drafts is another one each time; or heuristic, which chooses each sequence's draft length instead of what is measured: first 5, two more, up to 12, after a "
     "proposal that was accepted whole, else one fewer, down to 1. None looks at the token drawn, so what comes out has the target's distribution all the same"},
    {"draft-deadline", "MS", OPTION_DOUBLE, OPTION_SPECULATION, AT(limits.draft_deadline_ms), 0, 1e6, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "longest wait for a proposal before the target decodes without it; default 1000, of a check 20000. A drafter's usual time shortens "
     "it, but where --draft-length is given and the text depends on drafts: so that the same seed gives it again"},
    {"run-ahead", "WHEN", OPTION_CHOICE, OPTION_SPECULATION, AT(rounds.run_ahead), 0, 0, "auto|on|off", 0, RESULTS_NEVER, RANKS_ALWAYS,
     "while the target verifies a draft, the drafter drafts for the texts that are most likely to come of it: where one of them comes, the next "
     "round waits for no draft. Default auto: where each rank has cores of its own. Of trees it drafts none: with --tree auto it runs ahead of chains. The text is the same"},
    {"cascade", "KIND", OPTION_CHOICE, OPTION_SPECULATION, AT(rounds.cascade), 0, 0, "none|lookup", 0, RESULTS_NEVER, RANKS_ALWAYS,
     "what drafts for the draft model: `lookup`, copies of what followed its last tokens before, of which it reads several in one step, and goes on "
     "from those that it would have drafted itself. Its drafts are the same, in fewer steps where texts repeat themselves. For rules that compare "
     "tokens (greedy, coupled, walk); by others it drafts as without. Default none"},
    {"copy-first", "N", OPTION_INT, OPTION_SPECULATION, AT(rounds.copy_first), 0, 16, NULL, 0, RESULTS_DRAFTED, RANKS_ALWAYS,
     "where the last N tokens of a text or more have occurred in it before, propose what followed them there, which costs the draft model no step; "
     "elsewhere the draft model drafts as without. 2 to 16; default 0: never. What comes out has the target's distribution all the same. Copies may have ids beyond "
     "--draft-vocabulary"},
    {"copy-after", "N", OPTION_INT, OPTION_SPECULATION, AT(rounds.copy_after), 0, SAMPLING_MAX_DRAFT, NULL, 0, RESULTS_DRAFTED, RANKS_ALWAYS,
     "the draft model drafts the first N tokens of a proposal, and behind them stands what followed the text's last two tokens or more before, which costs no "
     "step (a horizontal cascade); where nothing did the proposal ends there. Default 0: never. What comes out has the target's distribution all the same"},
    {"branches", "N", OPTION_INT, OPTION_SPECULATION, AT(rounds.branches), 0, 12, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "texts that a drafter drafts for while it runs ahead, of each draft at most; default 0: as many as it has time for"},
    {"max-sequences", "N", OPTION_INT, OPTION_SPECULATION, AT(rounds.max_sequences), 1, 256, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "sequences decoded together; default 4 (1 with --prompt)"},
    {"prefill-chunk", "N", OPTION_INT, OPTION_SPECULATION, AT(rounds.prefill_chunk), 0, 65536, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "tokens of prompts that a step reads beside the sequences that run; default 0: chosen from measured times, so that one prompt that "
     "comes in makes others slower by a quarter at most, and more of them, as many as run, are read first. No text depends on it"},
    {"stats", "FILE", OPTION_TEXT, OPTION_REPORT, AT(report.stats), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_BY_SCRIPT,
     "write figures of the run as one JSON object; `tandem help stats` says what each is"},
    {"hash-logits", NULL, OPTION_FLAG, OPTION_REPORT, AT(report.hash_logits), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "add to --stats a digest of the target's logits at all committed positions"},
    {"compare", NULL, OPTION_FLAG, OPTION_REPORT, AT(report.compare), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "decode every prompt solo, then speculatively, again and again until the speedup's standard error is 1 % or 10 s have passed, and show both "
     "speeds, their medians and spread; the default without a prompt"},
    {"show-drafts", NULL, OPTION_FLAG, OPTION_REPORT, AT(report.show_drafts), 0, 1, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "show the completion with its drafts, in colour: green: accepted draft tokens; red: the rejected one, struck out; blue: its "
     "replacement. There are some where none would pay, too. Without a prompt that is the default; else the text alone is shown"},
    {"explain", NULL, OPTION_FLAG, OPTION_REPORT, AT(report.explain), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "show each round of --prompt before its text: every draft, how probable drafter (q) and target (p) found it, whether it was accepted and, where "
     "one coin or the target's own token decides, why, and what the round's last token was drawn from. There are some drafts where none would pay, "
     "too"},
    {"explain-page", "FILE", OPTION_TEXT, OPTION_REPORT, AT(report.explain_page), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "write the rounds of --prompt, as --explain shows them, as a page of HTML to step through in a browser: the text so far, the tree of drafts with "
     "q and p of each, and why it stands or not. The keys left and right go from round to round"},
    {"colour", "WHEN", OPTION_CHOICE, OPTION_REPORT, AT(report.colour), 0, 0, "auto|always|never", 0, RESULTS_NEVER, RANKS_ALWAYS,
     "whether to colour what is shown; default auto: on a terminal"},
    {"recorder", "DIR", OPTION_TEXT, OPTION_REPORT, AT(report.recorder), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "where each rank writes its last events when the job breaks; default: a new folder in TMPDIR. Nothing is written when it ends well"},
    {"trace", "DIR", OPTION_TEXT, OPTION_REPORT, AT(report.trace), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "each rank writes what it did in every round, by phase, to DIR/rank-NNNN.csv, a folder that is there and that all hosts share"},
    {"quiet", NULL, OPTION_FLAG, OPTION_REPORT, AT(report.quiet), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS, "only errors and results"},
    {"verbose", NULL, OPTION_FLAG, OPTION_REPORT, AT(report.verbose), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "ranks, memory, instruction set, deadlines"},
    {"check", "SIZE", OPTION_CHOICE, OPTION_CHECK, AT(checks.size), 0, 0, "off|brief|quick|long", 0, RESULTS_NEVER, RANKS_ALWAYS,
     "check that speculative output follows the target's distribution, for these models and options, instead of completing prompts. "
     "`tandem check` gives it: quick, or long with --long"},
    {"break", "KIND", OPTION_CHOICE, OPTION_CHECK, AT(checks.breakage), 0, 0, BREAKAGE_NAMES, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "put a known fault into the code, to see that the check finds it; refused without --check"},
    {"list-breaks", NULL, OPTION_PRINT, OPTION_CHECK, OPTIONS_PRINT_BREAKS, 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "show what --break can break, and exit"},
    {"json", "FILE", OPTION_TEXT, OPTION_CHECK, AT(checks.json), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "write all figures of the check as one JSON object; - is stdout"},
    {"law-contexts", "N", OPTION_INT, OPTION_CHECK, AT(checks.law_contexts), 0, 1000, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "texts after which the distribution of the next two tokens is tested; default 12"},
    {"law-samples", "N", OPTION_INT, OPTION_CHECK, AT(checks.law_samples), 0, 1e6, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "requests after each of them; default 4000, and 40000 with --long"},
    {"watchdog", "S", OPTION_DOUBLE, OPTION_OTHER, AT(limits.watchdog_s), 0, 1e6, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "end the job with 76 after this many seconds without progress; default 60, 0: never"},
    {"help", NULL, OPTION_PRINT, OPTION_OTHER, OPTIONS_PRINT_HELP, 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS, "show this and exit"},
    {"version", NULL, OPTION_PRINT, OPTION_OTHER, OPTIONS_PRINT_VERSION, 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS, "show the version and exit"},
    {"help-run", NULL, OPTION_PRINT, OPTION_HIDDEN, OPTIONS_PRINT_RUN_HELP, 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS, "the help of `tandem run`"},
    {"help-chat", NULL, OPTION_PRINT, OPTION_HIDDEN, OPTIONS_PRINT_CHAT_HELP, 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "the help of `tandem chat`"},
    {"help-check", NULL, OPTION_PRINT, OPTION_HIDDEN, OPTIONS_PRINT_CHECK_HELP, 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "the help of `tandem check`"},
    {"help-sbatch", NULL, OPTION_PRINT, OPTION_HIDDEN, OPTIONS_PRINT_SBATCH_HELP, 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "the help of `tandem sbatch`"},
    {"help-man", NULL, OPTION_PRINT, OPTION_HIDDEN, OPTIONS_PRINT_MAN, 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS, "the manual page"},
    {"sweep", "FILE", OPTION_TEXT, OPTION_HIDDEN, AT(report.sweep), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "passes over the prompts, as JSON; `tandem bench` writes it"},
    {"measure-plain", NULL, OPTION_FLAG, OPTION_HIDDEN, AT(report.measures_plain), 0, 1, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "measure the target alone, and print its speed and threads, for a shell"},
    {"plain-speed", "V", OPTION_DOUBLE, OPTION_HIDDEN, AT(report.plain_speed), 0, 1e9, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "tokens per second of the target alone in one process, which the launcher has measured"},
    {"plain-threads", "N", OPTION_INT, OPTION_HIDDEN, AT(report.plain_threads), 0, 1024, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "threads of that process"},
    {"programs", "NAME", OPTION_TEXT, OPTION_HIDDEN, AT(launch.programs), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "start NAME-drafter and NAME-verifier (with --dry-run)"},
    {"tell-journal", NULL, OPTION_FLAG, OPTION_HIDDEN, AT(launch.tell_journal), 0, 1, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "say how far --output has come: `tandem run` does when it is interrupted"},
    {"batch-script", NULL, OPTION_FLAG, OPTION_HIDDEN, AT(slurm.batch_script), 0, 1, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "print the script of `tandem sbatch`"},
    {"sbatch-word", "TEXT", OPTION_TEXTS, OPTION_HIDDEN, AT(slurm.sbatch_word), 0, OPTIONS_MAX_TEXTS, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "what `tandem sbatch` has behind --"},
    {"launch-facts", NULL, OPTION_FLAG, OPTION_HIDDEN, AT(launch.launch_facts), 0, 1, NULL, 0, RESULTS_NEVER, RANKS_NEVER,
     "print what the launcher must know, the line among it, for a shell"},
    {"terminal", "BITS", OPTION_INT, OPTION_HIDDEN, AT(launch.terminal), 0, TERMINAL_ALL, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "stdout, stderr, stdin are terminals; the ranks will be started; stdout and stderr go to one place; the prompts are stdin's (the "
     "launcher tells)"},
    {"conversation", NULL, OPTION_FLAG, OPTION_HIDDEN, AT(input.conversation), 0, 1, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "answer the lines of stdin in turns: `tandem chat`"},
    {"silent-drafter", "HOW", OPTION_TEXT, OPTION_HIDDEN, AT(launch.silent_drafter), 0, 0, NULL, 0, RESULTS_NEVER, RANKS_ALWAYS,
     "for tests: a drafter that never answers"},
};

const int option_count = (int)(sizeof option_table / sizeof option_table[0]);
_Static_assert(sizeof option_table / sizeof option_table[0] <= OPTIONS_MOST, "a place for each in what was given");

static int same_name(const char *a, const char *b)
{
    while (*a != '\0' && spelling_fold(*a) == spelling_fold(*b))
        a++, b++;
    return *a == '\0' && *b == '\0';
}

const char *option_cut(const char *word, char *name)
{
    size_t length = strcspn(word + 2, "=");

    snprintf(name, OPTION_NAME, "%.*s", (int)length, word + 2);
    return word[2 + length] == '=' ? word + 2 + length + 1 : NULL;
}

int option_takes_next(const struct option_entry *entry, int argc, char **argv, int at)
{
    if (entry->value == NULL)
        return 0;
    return entry->value[0] != '[' || (at < argc && strncmp(argv[at], "--", 2) != 0);
}

const struct option_entry *option_find(const char *name)
{
    for (int i = 0; i < option_count; i++)
        if (same_name(option_table[i].name, name))
            return &option_table[i];
    return NULL;
}

/* A word that was not written to its end is as near as one wrong character. Of two that are as near it is the one that a line may say as well:
 * --temp is the temperature, not the template. */
static int far_from(const struct option_entry *entry, const char *name)
{
    size_t length = strlen(name), same = 0;

    while (same < length && spelling_fold(entry->name[same]) == spelling_fold(name[same]))
        same++;
    return 2 * (same == length && length > 0 ? 1 : spelling_distance(entry->name, name)) - entry->per_request;
}

const char *option_nearest(const char *name)
{
    int best = INT_MAX;
    const char *nearest = option_table[0].name;

    for (int i = 0; i < option_count; i++)
        if (option_table[i].group != OPTION_HIDDEN && far_from(&option_table[i], name) < best) {
            best = far_from(&option_table[i], name);
            nearest = option_table[i].name;
        }
    return nearest;
}
