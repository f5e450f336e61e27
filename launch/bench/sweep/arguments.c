/* The command line of `tandem bench`: its own options, then those of a run. */
#include "launch/bench/sweep/bench.h"

#include "common/base/log.h"
#include "common/base/shell_word.h"
#include "common/base/spelling.h"
#include "common/base/try.h"
#include "common/base/wrapped.h"
#include "common/options/options_table.h"
#include "common/sample/sampling.h"
#include "launch/bench/report/alpha_file.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 64, USUAL_TOKENS = 128 /* a run's own, where nothing was asked for */ };

void bench_print_usage(void)
{
    struct plan_options quick, usual;
    char text[8192];

    plan_defaults(1, &quick);
    plan_defaults(0, &usual);
    snprintf(
        text, sizeof text,
        "Usage: tandem bench [--quick] [--output DIR] [OPTION]... [any option of tandem run]\n"
        "Measures speculative decoding on these ranks (1 drafter, 1 verifier; or --drafters, --verifiers), models and hosts against the target alone "
        "on the same ranks, in turns, and writes a report with the theory beside the measurement: DIR/report.md, report.html, summary.json, "
        "rounds.csv, trace.json.\n"
        "\n"
        "  --quick               fewer and shorter passes: under 90 seconds with the embedded pair\n"
        "  --output DIR          a new folder for everything; default tandem-bench-DATE-TIME here\n"
        "  --draft-lengths LIST  0 to 63, and auto; default 1,2,3,4,5,6,8,12,auto (--quick: 1,2,3,4,6,8,auto). Several sequences, and with --quick "
        "all rules but the first, get one of the numbers, the largest up to %d or else the first, and auto, where they are in the list\n"
        "  --temperatures LIST   default 0,1\n"
        "  --accepts LIST        rules, as rejection,block; default rejection,coupled; at temperature 0 lossless ones are one. "
        "rejection,lenience=0.5,lenience=0.1 is the paper's Table 5, lenience against speed; threshold=0.3 and typical=0.09 likewise\n"
        "  --batches LIST        sequences at once; default 1,2,4\n"
        "  --repetitions N       passes of each cell after the warm-up; default %d (--quick: %d)\n"
        "  --requests N          prompts of a pass; default %d (--quick: %d)\n"
        "  --noise-limit P       percent of standard error up to which a speedup is known; one beyond is marked, and where most are, no headline is "
        "drawn from them; default %g\n"
        "  --batch-terms WHICH   first: several sequences at the first temperature and rule; all: at each; default first\n"
        "  --task NAME=FILE      a kind of prompts; may be given several times, and --draft, too: then each task is measured with each draft, and "
        "one report has the tables of the paper by task, draft and temperature; `embedded` is the draft of the embedded pair\n"
        "  --tree SHAPE          shapes of drafts, as of tandem run; may be given several times (chain, top-k, dynamic ..): the same numbers of "
        "drafts in "
        "each, beside each other in one report; nothing is predicted of trees\n"
        "  --alpha FILE          predict from what tandem alpha --json wrote, one file for each temperature and rule; without it the bench "
        "decodes prompts that it does not measure\n"
        "  --extra-time S        seconds for which cells beyond that limit get further repetitions; default %g (--quick: %g)\n"
        "\n"
        "Where --hosts or a --config names several hosts it measures with all ranks on one of them, too. --synthetic-acceptance R draws the "
        "verdicts, to study a network without a trained pair: NOT LOSSLESS, and marked so.\n"
        "\n"
        "Exit codes: 0 done; 1 the machine was too noisy for a headline: the report is there and says by how much; 64 usage; 74 I/O; else that of "
        "the job that failed.\n",
        usual.length_for_batches, usual.repetitions, quick.repetitions, usual.prompts, quick.prompts, 100 * usual.noise_limit, usual.extra_s,
        quick.extra_s);
    wrapped_put_help(stdout, text);
}

static enum status read_number(const char *name, const char *text, double low, double high, double *value)
{
    char *end;
    double number = strtod(text, &end);

    if (end != text && *end == '\0' && number >= low && number <= high) {
        *value = number;
        return STATUS_OK;
    }
    log_error("--%s is '%s', expected a number from %g to %g", name, text, low, high);
    return STATUS_USAGE;
}

static enum status read_count(const char *name, const char *text, int most, int *value)
{
    double number = 0;

    if (strspn(text, "0123456789") == strlen(text) && (number = strtod(text, NULL)) >= 1 && number <= most) {
        *value = (int)number;
        return STATUS_OK;
    }
    log_error("--%s is '%s', expected a whole number from 1 to %d", name, text, most);
    return STATUS_USAGE;
}

static enum status read_batch_terms(const char *text, int *everywhere)
{
    *everywhere = strcmp(text, "all") == 0;
    if (*everywhere || strcmp(text, "first") == 0)
        return STATUS_OK;
    log_error("--batch-terms is '%s', expected first or all", text);
    return STATUS_USAGE;
}

static enum status add_alpha(struct bench *bench, const char *path)
{
    if (bench->alphas == BENCH_ALPHAS) {
        log_error("--alpha names more than %d files", BENCH_ALPHAS);
        return STATUS_USAGE;
    }
    bench->alpha[bench->alphas++] = path;
    return STATUS_OK;
}

/* A name is part of a folder's. */
static enum status add_task(struct bench *bench, const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t length = strcspn(text, "=");
    struct bench_task *task = &bench->task[bench->tasks];

    if (text[length] != '=' || length == 0 || length >= BENCH_NAME || strspn(text, letters) != length || text[length + 1] == '\0') {
        log_error("--task is '%s', expected NAME=FILE, a name of letters, digits, '.', '_' and '-', at most %d", text, BENCH_NAME - 1);
        return STATUS_USAGE;
    }
    if (bench->tasks == BENCH_TASKS) {
        log_error("--task names more than %d tasks", BENCH_TASKS);
        return STATUS_USAGE;
    }
    snprintf(task->name, sizeof task->name, "%.*s", (int)length, text);
    task->file = text + length + 1;
    for (int i = 0; i < bench->tasks; i++)
        if (strcmp(bench->task[i].name, task->name) == 0) {
            log_error("--task has the name '%s' twice, for %s and for %s", task->name, bench->task[i].file, task->file);
            return STATUS_USAGE;
        }
    if (access(task->file, R_OK) != 0) {
        log_error("--task %s: %s: %s", task->name, task->file, strerror(errno));
        return STATUS_NOINPUT;
    }
    bench->tasks++;
    return STATUS_OK;
}

/* One more of an option that may be given several times.  all: [most], of which there are *count  what: what it names, as "drafts" */
static enum status add_name(const char *option, const char *what, const char *name, const char **all, int most, int *count)
{
    for (int i = 0; i < *count; i++)
        if (strcmp(all[i], name) == 0) {
            log_error("--%s has '%s' twice", option, name);
            return STATUS_USAGE;
        }
    if (*count == most) {
        log_error("--%s names more than %d %s", option, most, what);
        return STATUS_USAGE;
    }
    all[(*count)++] = name;
    return STATUS_OK;
}

/* One option of ours; *known is 0 when it is none. */
static enum status take(struct bench *bench, const char *name, const char *value, int *known)
{
    struct plan_options *options = &bench->plan.options;
    double number = 0;

    *known = 1;
    if (strcmp(name, "output") == 0) {
        if (*value == '\0') {
            log_error("--output is '', expected a new folder");
            return STATUS_USAGE;
        }
        bench->output = value;
    } else if (strcmp(name, "tandem") == 0)
        bench->tandem = value;
    else if (strcmp(name, "draft-lengths") == 0)
        return plan_read_list(name, value, 0, SAMPLING_MAX_DRAFT, 1, 1, &options->draft_lengths);
    else if (strcmp(name, "temperatures") == 0)
        return plan_read_list(name, value, 0, 100, 0, 0, &options->temperatures);
    else if (strcmp(name, "batches") == 0)
        return plan_read_list(name, value, 1, 256, 1, 0, &options->batches);
    else if (strcmp(name, "accepts") == 0)
        return plan_read_rules(name, value, &options->accepts);
    else if (strcmp(name, "repetitions") == 0)
        return read_count(name, value, 1000, &options->repetitions);
    else if (strcmp(name, "requests") == 0)
        return read_count(name, value, 100000, &options->prompts);
    else if (strcmp(name, "noise-limit") == 0) {
        TRY(read_number(name, value, 0, 1000, &number));
        options->noise_limit = number / 100;
    } else if (strcmp(name, "extra-time") == 0) {
        return read_number(name, value, 0, 1e6, &options->extra_s);
    } else if (strcmp(name, "batch-terms") == 0) {
        return read_batch_terms(value, &options->batch_everywhere);
    } else if (strcmp(name, "alpha") == 0) {
        return add_alpha(bench, value);
    } else if (strcmp(name, "task") == 0) {
        return add_task(bench, value);
    } else if (strcmp(name, "draft") == 0) {
        return add_name(name, "drafts", value, bench->draft, BENCH_DRAFTS, &bench->drafts);
    } else if (strcmp(name, "tree") == 0) {
        return add_name(name, "shapes", value, bench->tree, BENCH_TREES, &bench->trees);
    } else {
        *known = 0;
    }
    return STATUS_OK;
}

static const char *const own_names[] = {"quick",    "output",      "tandem",     "draft-lengths", "temperatures", "batches", "accepts", "repetitions",
                                        "requests", "noise-limit", "extra-time", "batch-terms",   "alpha",        "task",    "draft",   "tree"};

static int is_own(const char *name)
{
    for (size_t i = 0; i < sizeof own_names / sizeof *own_names; i++)
        if (strcmp(own_names[i], name) == 0)
            return 1;
    return 0;
}

/* The run, which reads what is left, knows of its own options alone: a name that no option has and that is nearest to one of ours is refused here. */
static enum status check_name(const char *name)
{
    const char *nearest = option_nearest(name);

    if (name[0] == '\0' || option_find(name) != NULL)
        return STATUS_OK;
    for (size_t i = 0; i < sizeof own_names / sizeof *own_names; i++)
        if (spelling_distance(own_names[i], name) < spelling_distance(nearest, name))
            nearest = own_names[i];
    if (!is_own(nearest))
        return STATUS_OK;
    log_error("unknown option '--%s'; did you mean '--%s'?", name, nearest);
    return STATUS_USAGE;
}

/* Takes ours; what is left goes to the run. */
static enum status take_own(struct bench *bench, int argc, char **argv)
{
    int quick = 0, known;

    for (int i = 1; i < argc; i++)
        quick |= strcmp(argv[i], "--quick") == 0;
    plan_defaults(quick, &bench->plan.options);
    bench->argv[bench->argc++] = argv[0];
    for (int i = 1; i < argc; i++) {
        const char *name = strncmp(argv[i], "--", 2) == 0 ? argv[i] + 2 : "";
        size_t length = strcspn(name, "=");
        char copy[NAME] = "";

        if (strcmp(argv[i], "--quick") == 0)
            continue;
        snprintf(copy, sizeof copy, "%.*s", (int)length, name);
        if (!is_own(copy)) {
            TRY(check_name(copy));
            bench->argv[bench->argc++] = argv[i];
            continue;
        }
        if (name[length] == '\0' && i + 1 == argc) {
            log_error("--%s needs a value", copy);
            return STATUS_USAGE;
        }
        TRY(take(bench, copy, name[length] == '=' ? name + length + 1 : argv[++i], &known));
    }
    return STATUS_OK;
}

/* Options that a sweep varies are refused on its command line. A config may have them, for it serves other runs, too. */
static enum status check_varied(const struct bench *bench)
{
    static const char *const varied[][2] = {
        {"draft-length", "draft-lengths"}, {"temperature", "temperatures"}, {"accept", "accepts"}, {"max-sequences", "batches"}};

    for (int i = 1; i < bench->argc; i++)
        for (size_t v = 0; v < sizeof varied / sizeof *varied; v++) {
            size_t length = strlen(varied[v][0]);

            if (strncmp(bench->argv[i], "--", 2) != 0 || strncmp(bench->argv[i] + 2, varied[v][0], length) != 0 ||
                (bench->argv[i][2 + length] != '\0' && bench->argv[i][2 + length] != '='))
                continue;
            log_error("--%s is what a bench varies, expected --%s with a list", varied[v][0], varied[v][1]);
            return STATUS_USAGE;
        }
    return STATUS_OK;
}

static enum status check_tasks(const struct bench *bench)
{
    for (int i = 1; i < bench->argc && bench->tasks > 0; i++)
        if (strncmp(bench->argv[i], "--prompt", 8) == 0 && strchr("=s", bench->argv[i][8]) != NULL) {
            log_error("--task names files of prompts, expected no %.*s beside it", (int)strcspn(bench->argv[i], "="), bench->argv[i]);
            return STATUS_USAGE;
        }
    return STATUS_OK;
}

static enum status check_run(const struct bench *bench)
{
    const struct options *run = &bench->run;

    if (run->input.prompts != NULL && strcmp(run->input.prompts, "-") == 0) {
        log_error("--prompts is -, expected a file: several jobs read it");
        return STATUS_USAGE;
    }
    if (!options_drafts(run)) {
        log_error("a bench compares drafts with the target alone, expected --draft beside --target, a drafter, and no --solo");
        return STATUS_USAGE;
    }
    if (run->rounds.merge.count > 0) {
        log_error("a bench measures one kind of drafter, expected no --merge; `tandem run --compare` measures several against the target alone");
        return STATUS_USAGE;
    }
    if (run->rounds.shape.kind == TREE_AUTO) {
        log_error("a bench measures one shape at given lengths, expected --tree chain, dynamic, sequoia or top-k, each once, not %s",
                  run->rounds.tree);
        return STATUS_USAGE;
    }
    if (run->checks.size != CHECK_OFF || run->launch.dry_run || run->results.resume) {
        log_error("a bench takes no --check, --dry-run or --resume");
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* The command as it was typed, for the report, from which people copy it; long ones are cut. */
static void keep_command(struct bench *bench, int argc, char **argv)
{
    FILE *to = fmemopen(bench->command, sizeof bench->command, "w");

    if (to == NULL)
        return;
    fputs("tandem bench", to);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--tandem") == 0) { /* the launcher's own word */
            i++;
            continue;
        }
        fputc(' ', to);
        shell_word_put(argv[i], to);
    }
    fclose(to);
    bench->command[sizeof bench->command - 1] = '\0';
}

/* Before anything is measured: each is of this pair. */
static enum status check_alphas(const struct bench *bench)
{
    for (int i = 0; i < bench->alphas; i++) {
        const char *target = bench->run.model.target != NULL ? bench->run.model.target : "embedded";
        enum status status;
        json_t *json;

        TRY(alpha_file_read(bench->alpha[i], &json));
        status = alpha_file_check(bench->alpha[i], json, target, bench->run.model.draft != NULL ? bench->run.model.draft : "embedded");
        json_decref(json);
        TRY(status);
    }
    return STATUS_OK;
}

int bench_parts(const struct bench *bench)
{
    return (bench->tasks > 0 ? bench->tasks : 1) * (bench->drafts > 0 ? bench->drafts : 1) * (bench->trees > 0 ? bench->trees : 1);
}

/* A part's shape; NULL: none was named. The shapes of a draft follow each other. */
static const char *tree_of(const struct bench *bench, int part)
{
    return bench->trees > 0 ? bench->tree[part % bench->trees] : NULL;
}

static int draft_of(const struct bench *bench, int part)
{
    part /= bench->trees > 0 ? bench->trees : 1;
    return bench->drafts > 0 ? part % bench->drafts : 0;
}

static int task_of(const struct bench *bench, int part)
{
    part /= bench->trees > 0 ? bench->trees : 1;
    return bench->drafts > 0 ? part / bench->drafts : part;
}

void bench_name_part(const struct bench *bench, int part, char *name, size_t size)
{
    const char *draft = bench->drafts > 0 ? bench->draft[draft_of(bench, part)] : "draft";
    const char *slash = strrchr(draft, '/'), *tree = tree_of(bench, part);

    snprintf(name, size, "%02d-%s-%.40s%s%.20s", part + 1, bench->tasks > 0 ? bench->task[task_of(bench, part)].name : "prompts",
             slash != NULL && slash[1] != '\0' ? slash + 1 : draft, tree != NULL ? "-" : "", tree != NULL ? tree : "");
    for (char *at = name; *at != '\0'; at++)
        if (strchr(":,=/ ", *at) != NULL)
            *at = '_';
}

static void add_words(struct bench *bench, const char *option, const char *value)
{
    bench->argv[bench->part_argc++] = (char *)(uintptr_t)option;
    bench->argv[bench->part_argc++] = (char *)(uintptr_t)value;
    bench->argv[bench->part_argc] = NULL;
}

/* Passes have temperatures and rules of their own; of drafts that are drawn the run is to be told some. */
static void add_tree_words(struct bench *bench, const char *tree)
{
    struct tree_shape shape = {0};

    add_words(bench, "--tree", tree);
    if (tree_shape_read(tree, &shape) && shape.kind == TREE_IID) {
        add_words(bench, "--temperature", "1");
        add_words(bench, "--accept", rule_name(ACCEPT_MULTISTEP));
    }
}

enum status bench_begin_part(struct bench *bench, int part)
{
    options_release(&bench->run);
    bench->part_argc = bench->argc;
    bench->argv[bench->argc] = NULL;
    bench->task_name = bench->tasks > 0 ? bench->task[task_of(bench, part)].name : NULL;
    if (bench->drafts > 0 && strcmp(bench->draft[draft_of(bench, part)], "embedded") != 0)
        add_words(bench, "--draft", bench->draft[draft_of(bench, part)]);
    if (bench->tasks > 0)
        add_words(bench, "--prompts", bench->task[task_of(bench, part)].file);
    if (bench->trees > 0)
        add_tree_words(bench, tree_of(bench, part));
    TRY(options_parse(bench->part_argc, bench->argv, &bench->run));
    TRY(check_run(bench));
    TRY(check_alphas(bench));
    bench->plan.options.shape = bench->run.rounds.shape.kind;
    bench->plan.options.synthetic = bench->run.rounds.synthetic_acceptance >= 0;
    if (bench->run.request.max_tokens != USUAL_TOKENS)
        bench->plan.options.max_tokens = bench->run.request.max_tokens;
    return plan_make(&bench->plan.options, &bench->plan);
}

enum status bench_read_arguments(struct bench *bench, int argc, char **argv)
{
    keep_command(bench, argc, argv);
    TRY(take_own(bench, argc, argv));
    TRY(check_varied(bench));
    TRY(check_tasks(bench));
    for (int part = bench_parts(bench) - 1; part >= 0; part--) /* all, before any is measured; the first one stays */
        TRY(bench_begin_part(bench, part));
    return STATUS_OK;
}
