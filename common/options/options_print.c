/* --help, the help of `tandem run` and the manual pages, from the table. */
#include "common/base/wrapped.h"
#include "common/options/options.h"
#include "common/options/options_table.h"
#include "common/sample/rule.h"

#include <string.h>

#ifndef TANDEM_VERSION
#define TANDEM_VERSION "unknown"
#endif

static int print_name(FILE *to, const struct option_entry *entry)
{
    return fprintf(to, "  --%s%s%s", entry->name, entry->value != NULL ? " " : "", entry->value != NULL ? entry->value : "");
}

/* On a narrow terminal the words have lines of their own below the name. */
static void print_option(FILE *to, const struct option_entry *entry, int width)
{
    int indent = width < 70 ? 8 : 28, used = print_name(to, entry);

    if (indent < 28)
        fprintf(to, "\n%*s", indent, "");
    else
        fprintf(to, "%*s", used < indent - 1 ? indent - used : 1, "");
    wrapped_put(to, entry->help, indent, width);
    if (entry->choices != NULL) {
        fprintf(to, "%*s(", indent, "");
        wrapped_put_choices(to, entry->choices, indent, width);
    }
}

static void print_group(FILE *to, int group, int width)
{
    fprintf(to, "\n%s:\n", option_group_title[group]);
    for (int i = 0; i < option_count; i++)
        if ((int)option_table[i].group == group)
            print_option(to, &option_table[i], width);
}

/* Of the programs and of `tandem`, which has some of its own. */
static const char *const endings =
    "Exit codes: 0 done; 1 (10 from a bare mpirun) a check found what does not hold; 64 usage; 65 bad input or model; 66 input missing, or a model "
    "that is not fetched yet; 69 (of tandem alone) a package or a GPU is missing; 70 internal; 71 (of tandem alone) the ranks could not be started; "
    "74 I/O; 75 drained, run again; 76 no progress; 128 + N a verifier was killed by signal N, or tandem itself was told to end by it (130, 143), or "
    "nobody reads its stdout any more (141).";

static void print_help(const char *name, const char *what, FILE *to)
{
    const int width = wrapped_width(to);
    char usage[128];

    snprintf(usage, sizeof usage, "Usage: %s [OPTION]...", name);
    wrapped_put(to, usage, 0, width);
    wrapped_put(to, what, 0, width);
    for (int group = 0; group < OPTION_HIDDEN; group++)
        print_group(to, group, width);
    fputc('\n', to);
    wrapped_put(to, endings, 0, width);
}

/* Between them a line may break. */
static void print_man_choices(FILE *to, const char *choices)
{
    fputc('(', to);
    for (; *choices != '\0'; choices++)
        fputs(*choices == '|' ? "|\\:" : (char[]){*choices, '\0'}, to);
    fputs(")\n", to);
}

static void print_man(const char *name, const char *what, FILE *to)
{
    fprintf(to, ".TH %s 1 \"\" \"tandem %s\" \"Tandem\"\n.SH NAME\n%s \\- %s\n", name, TANDEM_VERSION, name, what);
    fprintf(to, ".SH SYNOPSIS\n.B %s\n[\\fIOPTION\\fR]...\n", name);
    for (int group = 0; group < OPTION_HIDDEN; group++) {
        fprintf(to, ".SH %s\n", option_group_title[group]);
        for (int i = 0; i < option_count; i++) {
            const struct option_entry *entry = &option_table[i];

            if ((int)entry->group != group)
                continue;
            fprintf(to, ".TP\n\\fB\\-\\-%s\\fR%s%s%s\n%s\n", entry->name, entry->value != NULL ? " \\fI" : "",
                    entry->value != NULL ? entry->value : "", entry->value != NULL ? "\\fR" : "", entry->help);
            if (entry->choices != NULL)
                print_man_choices(to, entry->choices);
        }
    }
    fprintf(to, ".SH EXIT STATUS\n%s\n", endings);
}

/* An entry of a list: its name, and beside it what it is and more of it. */
static void print_entry(FILE *to, const char *name, const char *what, const char *more)
{
    const int width = wrapped_width(to), indent = width < 70 ? 8 : 15;

    if (width < 70)
        fprintf(to, "%s\n%*s", name, indent, "");
    else
        fprintf(to, "%-14s ", name);
    wrapped_put(to, what, indent, width);
    fprintf(to, "%*s", indent, "");
    wrapped_put(to, more, indent, width);
}

static void print_breaks(FILE *to)
{
    char like[512];

    for (int kind = BREAKAGE_NONE + 1; kind < BREAKAGE_COUNT; kind++) {
        const struct breakage_entry *entry = &breakage_table[kind];
        int length = snprintf(like, sizeof like, "like %s; the check `%s` must see it%s", entry->resembles, entry->seen_by,
                              entry->of == BREAKAGE_OF_CHAINS || entry->of == BREAKAGE_OF_BRANCHES ? "" : "; it needs --tree top-k");

        for (const char *rule = entry->rules; rule != NULL && *rule != '\0';) { /* each a word of its own, for narrow terminals */
            size_t width = strcspn(rule, "|");

            length +=
                snprintf(like + length, sizeof like - (size_t)length, "%s%.*s", rule == entry->rules ? " and --accept " : " or ", (int)width, rule);
            rule += width + (rule[width] == '|');
        }
        print_entry(to, entry->name, entry->what, like);
    }
}

static void print_rules(FILE *to)
{
    const struct rule *rule;
    char more[512];

    for (int accept = 0; (rule = rule_row(accept)) != NULL; accept++) {
        snprintf(more, sizeof more, "%s; %s; decides about %s; %s. %s", rule->lossless ? "lossless" : "NOT LOSSLESS",
                 rule->needs_q ? "needs q" : "needs no q", rule->trees ? "trees, too" : "chains",
                 !rule->lossless           ? "the text and its distribution depend on drafts"
                 : rule->depends_on_drafts ? "the text depends on drafts, its distribution does not"
                                           : "the text is that of --solo with this rule",
                 rule->source);
        print_entry(to, rule->name, rule->what, more);
    }
}

static void print_drafters(FILE *to)
{
    char more[512];

    for (int i = 0; i < DRAFTER_KINDS; i++) {
        const struct options_draft_kind *kind = &options_draft_kinds[i];

        snprintf(more, sizeof more, "--draft %s; needs %s; %s; proposes %s. %s", kind->form,
                 kind->own_model       ? "a model of the target's vocabulary"
                 : kind->target_model  ? "the target's file"
                 : kind->made_by       ? "a file"
                 : kind->target_tokens ? "the target's tokenizer"
                                       : "nothing",
                 kind->draws ? "has a q" : "q is one token",
                 kind->own_tree ? "a tree of its own" : "trees, too", kind->source);
        print_entry(to, kind->name, kind->what, more);
    }
}

const char *options_version(void)
{
    return TANDEM_VERSION;
}

void options_print(const struct options *options, const char *name, const char *what, FILE *to)
{
    if (options->print == OPTIONS_PRINT_VERSION)
        fprintf(to, "tandem %s\n", TANDEM_VERSION);
    else if (options->print == OPTIONS_PRINT_MAN)
        print_man(name, what, to);
    else if (options->print == OPTIONS_PRINT_RUN_HELP)
        print_help("tandem run",
                   "Completes prompts with the target model, faster by a draft model and with exactly the target's distribution: starts "
                   "tandem-drafter and tandem-verifier ranks with mpirun. Without a prompt it shows the embedded pair at work.",
                   to);
    else if (options->print == OPTIONS_PRINT_CHAT_HELP)
        print_help("tandem chat",
                   "Answers line after line of stdin as a user's messages, through the target's chat template; each reply knows the turns before it. "
                   "/reset begins anew, /exit or the end of input ends, Ctrl-C stops a reply. It takes the options of tandem run but for prompts and "
                   "--output; --max-tokens is 1024 where it is not given.",
                   to);
    else if (options->print == OPTIONS_PRINT_CHECK_HELP)
        print_help("tandem check [--quick | --long]",
                   "Checks that speculative output is lossless, for your models, prompts and options: output equal to the target's own where it is "
                   "a function of the seed, its distribution where it is drawn, and the drafts' own draws. Ends with 0 when all holds, with 1 when "
                   "not. --quick is the default and takes less than 30 seconds with the embedded pair and the default options.",
                   to);
    else if (options->print == OPTIONS_PRINT_SBATCH_HELP)
        print_help("tandem sbatch [--print]",
                   "Writes and submits a SLURM job that completes --prompts FILE to --output FILE, drains before its time limit, is queued again and "
                   "goes on. --print, or --dry-run, shows the script and submits nothing. What stands behind -- goes to sbatch: tandem sbatch ... -- "
                   "--time=4:00:00 -p gpu",
                   to);
    else if (options->print == OPTIONS_PRINT_BREAKS)
        print_breaks(to);
    else if (options->print == OPTIONS_PRINT_RULES)
        print_rules(to);
    else if (options->print == OPTIONS_PRINT_DRAFTERS)
        print_drafters(to);
    else
        print_help(name, what, to);
}
