/* Every option of the two programs and of `tandem run`, in one table: parsing, --help, the manual pages and config files (INI, the same names) all
 * come from it. The struct owns the texts of a config file and the paths that names of models stand for; all others point into argv. Invariant: after
 * options_parse every value is in its range. A value that is out of range or an unknown name gives one line that names it. Local; one thread. */
#ifndef TANDEM_COMMON_OPTIONS_OPTIONS_H
#define TANDEM_COMMON_OPTIONS_OPTIONS_H

#include "common/base/breakage.h"
#include "common/base/status.h"
#include "common/options/options_draft.h"
#include "common/sample/bias.h"
#include "common/sample/sampling.h"
#include "common/sample/stopping.h"
#include "common/sample/tree_shape.h"
#include <stdio.h>

enum {
    OPTIONS_MOST = 192, /* rows of the table, at most */
    OPTIONS_MAX_STOPS = 16,
    OPTIONS_MAX_TEXTS = BIAS_MAX_WORDS,
    OPTIONS_MERGED_MOST = 3, /* kinds of drafters beside the first */
    OPTIONS_MAX_IDS = BIAS_MAX_STOPS,
    OPTIONS_NOT_LOSSLESS = 64,
    OPTIONS_NUMBER_EXPECTED = 96,
    OPTIONS_MAX_CHOICES = 128
};

/* What the launcher knows of where a job's streams go: bits of `terminal`. */
enum terminal {
    TERMINAL_STDOUT = 1, /* it is a terminal */
    TERMINAL_STDERR = 2,
    TERMINAL_STDIN = 4,
    TERMINAL_WILL_START = 8,  /* the launcher starts the ranks itself: they look at the machine, and warn */
    TERMINAL_ONE_PLACE = 16,  /* stdout and stderr go to one place */
    TERMINAL_FROM_STDIN = 32, /* the prompts are those that stdin had */
    TERMINAL_PLAIN = 64,      /* nobody wants colours */
    TERMINAL_ALL = 127,
};

enum quantise { QUANTISE_NONE, QUANTISE_Q8_0, QUANTISE_Q4_0 };
enum colour { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };
enum launcher { LAUNCHER_MPIRUN, LAUNCHER_SRUN };
enum slurm_layout { SLURM_LAYOUT_GROUP, SLURM_LAYOUT_HETJOB };
enum cascade_kind { CASCADE_NONE, CASCADE_LOOKUP };
enum run_ahead_when { RUN_AHEAD_AUTO, RUN_AHEAD_ON, RUN_AHEAD_OFF };
enum check_size { CHECK_OFF, CHECK_BRIEF, CHECK_QUICK, CHECK_LONG };

/* The values of an option that may be given several times. */
struct option_texts {
    int count;
    const char *text[OPTIONS_MAX_TEXTS];
};

struct option_ids {
    int count;
    int32_t id[OPTIONS_MAX_IDS];
};

enum { OPTIONS_CHAIN = 32 /* drafts of a chain, of which more seldom stand; each row that a step may have takes memory */ };

struct options {
    struct { /* the pair and how it is held */
        const char *target; /* NULL: the embedded pair */
        const char *draft;
        int draft_is_known;             /* that it belongs to the target, which alone was named */
        struct options_draft draft_way; /* what that text says */
        int quantise;  /* enum quantise: what weights of more bits are rounded to */
        int draft_quantise; /* the same of what drafts alone; QUANTISE_NONE: as `quantise` says */
        int cache;     /* enum cache_choice: the numbers that keys and values are kept as */
        int context; /* 0: the model's */
    } model;
    struct { /* how many there are, and what each computes on */
        int drafters;  /* -1: the default */
        int verifiers; /* -1: the default */
        int backend; /* enum backend_choice */
        int all_reduce; /* enum group_sums */
        int threads; /* 0: what world_threads says */
        const char *drafter_devices, *verifier_devices; /* "0,1": devices of the ranks of a role on one host, in turn; NULL: by rank of the host */
    } ranks;
    struct { /* what starts them, and what it tells */
        const char *config;
        int dry_run;
        int launch_facts; /* print what a launcher must know, the command line of the ranks among it */
        const char *programs; /* what the names of the programs in the line of --dry-run begin with; NULL: tandem */
        const char *hosts;
        const char *mpirun_options;
        int launcher; /* enum launcher */
        const char *environment, *drafter_environment, *verifier_environment; /* "NAME=VALUE ..." */
        int tell_journal;                /* say what of --output is there, and exit */
        int terminal; /* bits of enum terminal, told by the launcher */
        const char *silent_drafter; /* for tests: the drafter takes its messages and never answers */
    } launch;
    struct { /* of batch scripts */
        int cpus_per_rank;    /* that the batch system gives; 0: as it likes */
        int layout;     /* enum slurm_layout */
        const char *srun_options;
        const char *sbatch_options, *drafter_sbatch, *verifier_sbatch; /* words for a batch script, of all groups or of one of a heterogeneous job */
        struct option_texts sbatch_word; /* what `tandem sbatch` was given behind -- */
        int parts;                       /* array tasks that share the lines; 0: no array */
        const char *draft_lengths;       /* "1,2,4": an array task each; NULL: no array */
        int batch_script;                /* print a batch script instead of a line to run */
    } slurm;
    struct { /* where prompts come from */
        const char *prompt;
        const char *prompts;
        const char *perplexity; /* the text whose perplexity is asked for, in the place of completions; NULL: of none */
        const char *chat;  /* not NULL: prompts are a user's messages. Not empty: it is the one prompt */
        int conversation;  /* turns from stdin instead of prompts */
        int chat_family; /* enum chat_family: how messages become a prompt */
        int first_index; /* of the first request */
        const char *part;  /* "I/N": that part of the lines alone; NULL: all */
    } input;
    struct { /* what a line of prompts may say itself */
        int max_tokens;
        struct sampling sampling;
        int min_tokens;
        int n;        /* completions that a result has */
        int best_of;  /* that are decoded, of which it has the best; -1: n */
        int logprobs; /* so many of the most probable tokens; -1: no log p at all */
        int echo;     /* a result begins with its prompt */
        struct option_texts stop; /* at most OPTIONS_MAX_STOPS */
        struct option_texts bad_word;
        struct option_ids stop_token;
        struct bias bias; /* --logit-bias: its tokens and values alone */
        int ignore_eos;
    } request;
    struct { /* how rounds are made */
        int solo;
        int draft_length; /* -1: the default */
        int support;
        int draft_vocabulary; /* ids that are drafted: the first so many; 0: all */
        double draft_temperature; /* of a draft model's q; -1: the request's */
        const char *tree;         /* as it was given, and what it says */
        struct tree_shape shape;
        struct option_texts merge; /* what else drafts for each request; what each says: */
        struct options_draft merged_way[OPTIONS_MERGED_MOST];
        const char *stop_drafting; /* the same */
        struct stopping stopping;
        int run_ahead;        /* enum run_ahead_when */
        int cascade;          /* enum cascade_kind: what drafts for the draft model */
        int copy_after;       /* drafts of a draft model before copies are the rest of a proposal; 0: never */
        int copy_first;       /* tokens that must have occurred before for copies to be proposed in its place; 0: never */
        int branches;         /* texts that are drafted for at once, of each draft; 0: as many as time allows */
        int max_sequences;
        int prefill_chunk; /* rows of prompts in a step; 0: chosen */
        double synthetic_acceptance; /* verdicts are drawn with this rate; -1: they are those of the acceptance rule */
    } rounds;
    struct { /* where they go */
        const char *path;
        int resume;           /* go on from the journal of the output */
        int plain_results;    /* without timing and speculation */
    } results;
    struct { /* of time */
        double drain_s;       /* how long running requests may go on when the job is told to stop */
        double draft_deadline_ms;
        double watchdog_s;
    } limits;
    struct { /* what is said of a run */
        const char *stats;
        const char *recorder; /* NULL: a folder in TMPDIR */
        const char *trace;    /* folder for the spans of every round; NULL: none are kept */
        const char *sweep;    /* of `tandem bench`: the passes to be made instead of completing the prompts once */
        int hash_logits;
        int show_drafts;
        int explain; /* each round of a prompt */
        const char *explain_page; /* file for them, as a page; NULL: none */
        int colour;
        int quiet;
        int verbose;
        int measures_plain;  /* the target alone in this one process, and nothing but its speed is told */
        double plain_speed;  /* what that told, tokens per second; 0: nothing */
        int plain_threads;   /* of that process */
        int compare;  /* solo, then speculative, and a table of both: what `tandem run` without prompts does */
    } report;
    struct { /* of `tandem check` */
        int size;        /* enum check_size: check losslessness instead of completing prompts */
        int breakage;     /* enum breakage: a fault put in on purpose, in a check alone */
        const char *json; /* where the check's figures go */
        int law_contexts, law_samples; /* of the check; 0: as its size has it */
    } checks;
    unsigned char given[OPTIONS_MOST]; /* by rows of the table: on the command line or in a config, whatever the value */
    struct options_text *texts; /* those of a config file, and paths that names of models stand for */
    int print; /* what to print instead of running: enum options_print */
};

enum options_print {
    OPTIONS_PRINT_NOTHING,
    OPTIONS_PRINT_HELP,
    OPTIONS_PRINT_RUN_HELP,
    OPTIONS_PRINT_CHAT_HELP,
    OPTIONS_PRINT_CHECK_HELP,
    OPTIONS_PRINT_SBATCH_HELP,
    OPTIONS_PRINT_BREAKS,
    OPTIONS_PRINT_RULES,
    OPTIONS_PRINT_DRAFTERS,
    OPTIONS_PRINT_MAN,
    OPTIONS_PRINT_VERSION
};

/* Parses the command line, a --config file first. The texts point into argv or live until options_release. A model that was named as `tandem fetch`
 * names it becomes the path of its file. STATUS_USAGE, STATUS_NOINPUT (config file, a model that has not been fetched), each with one logged line. */
enum status options_parse(int argc, char **argv, struct options *options);
void options_release(struct options *options);

/* Writes what options->print asks for, about the program `name` that does `what` ("drafts tokens ..."). */
void options_print(const struct options *options, const char *name, const char *what, FILE *to);

/* Does progress stand on the terminal as a line that is redrawn? Not where results come there, too. */
int options_have_bar(const struct options *options);

/* Is it shown, or written, how each round was decided? */
int options_explains(const struct options *options);

/* Is text on stdout coloured? */
int options_have_colours(const struct options *options);

/* Is log p of the tokens of prompts asked for, by the options alone? */
int options_score_prompts(const struct options *options);

/* Is it `tandem run` without anything to complete: the built-in prompts, shown to whom it is new? */
int options_is_showcase(const struct options *options);
/* Are the completion and the figures written to one stream? They are where stdout and stderr go to one place, as on a terminal: mpirun passes two
 * streams on in any order, and the figures could come in the midst of the text. */
int options_show_whole(const struct options *options);
/* Where figures and notes go: to stdout, behind the completion, where the two are written to one stream; else to stderr. */
FILE *options_notes(const struct options *options);
/* To how many bits weights are rounded as they are read; 0: they are not. For the target (`drafts` is 0) --quantise says so; for what drafts,
 * --draft self:bits=N does, else --draft-quantise, else --quantise. */
int options_bits(const struct options *options, int drafts);
/* Does the drafter compute with the target's own weights, as the target has them, so that one copy does for both on one host? */
int options_draft_shares(const struct options *options);
/* Ids that a draft model of `vocab` gives logits. Any q is valid (Leviathan et al. 2023, section 2.3), one that leaves tokens out, too. */
int options_draft_vocab(const struct options *options, int vocab);

/* Is anything drafted, but for requests that ask for none: are there a drafter and what drafts, and no --solo? */
int options_drafts(const struct options *options);
/* What --run-ahead says, as it is written. */
const char *options_run_ahead(const struct options *options);
/* The draft length of requests that name neither one nor another rule; -1: it is left to the lead, as it is not of trees of drawn drafts. */
int options_length(const struct options *options);
/* Drafts of a sequence's round at most: OPTIONS_CHAIN, or SAMPLING_MAX_DRAFT where trees or a longer --draft-length are asked for, for which steps
 * then have room. */
int options_most_drafts(const struct options *options);
/* Are there copies beside a draft model? */
int options_copies(const struct options *options);
/* Does something that is asked of all requests keep what comes out from having the target's distribution? Then `option` says what: a rate with which
 * verdicts are drawn, or a rule of --accept that is not lossless, where drafts are asked for. A request that names another rule has its row. */
int options_not_lossless(const struct options *options, char option[OPTIONS_NOT_LOSSLESS]);

/* The program's version, "0.1.0". */
const char *options_version(void);

/* Sets one sampling-related value of a request line by its snake_case name ("top_k"); `reason` on failure. 1 when there is such a
 * number, 0 when the name is unknown, -1 when the value does not fit. A long double is exact for each whole number of 64 bits. */
int options_set_number(struct options *options, const char *name, long double value, char *reason, size_t reason_size);
/* What such a value may be, "a whole number from 1 to 128"; the name is known. */
void options_number_expected(const char *name, char expected[OPTIONS_NUMBER_EXPECTED]);

#endif
