/* `tandem ngram` and `tandem datastore`: make of texts what `--draft ngram:FILE` and `--draft retrieval:FILE` draft from. tandem-corpus COMMAND ...
 */
#include "launch/corpus/corpus.h"

#include "common/base/log.h"
#include "common/base/new_file.h"
#include "common/base/paths.h"
#include "common/base/plain_file.h"
#include "common/base/standard_output.h"
#include "common/base/try.h"
#include "common/base/wrapped.h"
#include "common/corpus/datastore.h"
#include "common/corpus/ngram_count.h"
#include "common/model/config.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ORDER = 4 };

struct command {
    int is_store; /* a datastore, not a table of n-grams */
    const char *target, *output;
    int order, help;
    char **file; /* [files] */
    int files;
    char path[PATH_MAX], beside[PATH_MAX]; /* that is written, where links lead, and what it is until it is whole */
};

static void print_usage(const struct command *command)
{
    wrapped_put_help(
        stdout,
        command->is_store
            ? "Usage: tandem datastore [--target M] --output FILE TEXT...\n"
              "Sorts texts, so that --draft retrieval:FILE finds in them what followed the end of what the target has said. Texts that it will "
              "repeat in part serve best: the code base that it works on, documents, its own earlier results.\n\n"
            : "Usage: tandem ngram [--target M] [--order N] --output FILE TEXT...\n"
              "Makes a table of n-grams of texts, from which --draft ngram:FILE drafts without a second model. Texts like those that the target "
              "will write serve best: its own earlier results are such.\n\n");
    wrapped_put_help(stdout, "  --target M            the model whose tokenizer cuts the texts; default: the embedded one\n");
    if (!command->is_store)
        wrapped_put_help(stdout, "  --order N             tokens of the longest n-gram, 1 to 5; default 4\n");
    wrapped_put_help(stdout, "  --output FILE         what is written; it takes the place of an earlier one when it is whole\n"
                             "  TEXT...               plain texts, each as one, or files that end in .jsonl: of each line its \"prompt\" and its "
                             "\"text\", and each \"content\", "
                             "as prompts and results of tandem run have them\n\n"
                             "Exit codes: 0 done; 64 usage; 65 a text or a tokenizer; 66 a file that is missing; 70 no memory; 74 I/O.\n");
}

static enum status take_order(struct command *command, const char *value)
{
    char *end;
    long number = strtol(value, &end, 10);

    if (end == value || *end != '\0' || number < 1 || number > NGRAM_ORDER) {
        log_error("--order is '%s', expected a whole number from 1 to %d", value, NGRAM_ORDER);
        return STATUS_USAGE;
    }
    command->order = (int)number;
    return STATUS_OK;
}

static enum status take(struct command *command, const char *name, const char *value)
{
    if (strcmp(name, "target") == 0)
        command->target = value;
    else if (strcmp(name, "output") == 0)
        command->output = value;
    else
        return take_order(command, value);
    return STATUS_OK;
}

/* What begins with a dash, its value behind '=' or as the next argument; returns through *i how far it came. */
static enum status take_option(struct command *command, int argc, char **argv, int *i)
{
    static const char *const names[] = {"target", "order", "output"};
    const char *name = strncmp(argv[*i], "--", 2) == 0 ? argv[*i] + 2 : "";
    size_t length = strcspn(name, "=");

    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        if (strlen(names[n]) != length || strncmp(names[n], name, length) != 0 || (command->is_store && strcmp(names[n], "order") == 0))
            continue;
        if (name[length] == '\0' && *i + 1 == argc) {
            log_error("--%s needs a value", names[n]);
            return STATUS_USAGE;
        }
        return take(command, names[n], name[length] == '=' ? name + length + 1 : argv[++*i]);
    }
    log_error("unknown option '%s', expected --target,%s --output or --help", argv[*i], command->is_store ? "" : " --order,");
    return STATUS_USAGE;
}

static enum status parse(struct command *command, int argc, char **argv)
{
    int only_files = 0;

    *command = (struct command){.is_store = argc > 1 && strcmp(argv[1], "datastore") == 0, .order = ORDER, .file = argv};
    for (int i = 2; i < argc; i++) {
        if (!only_files && strcmp(argv[i], "--") == 0)
            only_files = 1;
        else if (!only_files && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0))
            command->help = 1;
        else if (!only_files && argv[i][0] == '-' && argv[i][1] != '\0')
            TRY(take_option(command, argc, argv, &i));
        else
            command->file[command->files++] = argv[i]; /* where an argument was that is read already */
    }
    if (command->help)
        return STATUS_OK;
    if (command->output == NULL || *command->output == '\0') {
        log_error("expected --output FILE, which is to be written");
        return STATUS_USAGE;
    }
    if (strcmp(command->output, "-") == 0) {
        log_error("--output is -, expected a file");
        return STATUS_USAGE;
    }
    if (command->files == 0) {
        log_error("expected a file of texts, or several");
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* How many of a file's first bytes there are, at most `most`; none where there is no file; -1 where it cannot be read, which errno explains. */
static int first_bytes(const char *path, char *bytes /* [most] */, size_t most)
{
    FILE *file = plain_file_read(path);
    size_t count;
    int why;

    if (file == NULL)
        return errno == ENOENT ? 0 : -1;
    count = fread(bytes, 1, most, file);
    why = ferror(file) ? errno : 0;
    fclose(file);
    errno = why;
    return why != 0 ? -1 : (int)count;
}

/* What is there already may be replaced if it is empty or was made here: any other file is somebody's text, or a model's. */
static enum status check_ours(const char *path)
{
    char magic[sizeof NGRAM_MAGIC - 2]; /* what tables and datastores begin with alike */
    int count = first_bytes(path, magic, sizeof magic);

    if (count < 0) {
        log_error("%s cannot be read, whatever is there: %s; expected another --output", path, plain_file_fault());
        return STATUS_IO;
    }
    if (count == 0 || (count == (int)sizeof magic && memcmp(magic, NGRAM_MAGIC, sizeof magic) == 0))
        return STATUS_OK;
    log_error("%s is there and is no file that tandem ngram or tandem datastore made, expected another --output", path);
    return STATUS_USAGE;
}

/* What is there instead of a file stays, and what a link leads to is written. */
static enum status check_output(struct command *command)
{
    struct stat found;

    if (realpath(command->output, command->path) == NULL) {
        if (lstat(command->output, &found) == 0) {
            log_error("--output %s is a link that leads nowhere", command->output);
            return STATUS_IO;
        }
        snprintf(command->path, sizeof command->path, "%s", command->output);
    }
    if (stat(command->path, &found) == 0 && !S_ISREG(found.st_mode)) {
        log_error("--output %s is not a regular file", command->output);
        return STATUS_IO;
    }
    if (snprintf(command->beside, sizeof command->beside, "%s.new", command->path) >= (int)sizeof command->beside) {
        log_error("--output is a path of %zu bytes, expected fewer", strlen(command->path));
        return STATUS_USAGE;
    }
    TRY(check_ours(command->path));
    return check_ours(command->beside);
}

static enum status open_tokenizer(const struct command *command, struct tokenizer **tokenizer)
{
    char model[PATH_MAX], path[PATH_MAX];
    struct config config;

    if (command->target == NULL) {
        paths_demo("target", model, sizeof model);
    } else if (!paths_model(command->target, model, sizeof model)) {
        log_error("--target %s is not here, expected a model's path or one that `tandem fetch` has fetched", command->target);
        return STATUS_NOINPUT;
    }
    TRY(paths_check("target", model, ""));
    paths_tokenizer(model, path, sizeof path);
    TRY(config_read(model, &config));
    return tokenizer_open(path, config.vocab, tokenizer);
}

static enum status write_file(const struct command *command, const void *bytes, size_t size)
{
    FILE *to = new_file_open(command->beside, command->path, 0600);

    if (to != NULL && new_file_put(to, fwrite(bytes, 1, size, to) == size, command->beside, command->path))
        return STATUS_OK;
    log_error("%s cannot be written: %s", command->output, strerror(errno));
    return STATUS_IO;
}

static enum status make(const struct command *command, const struct tokenizer *tokenizer, struct texts *texts)
{
    const struct ngram_terms terms = {.order = command->order, .vocab = tokenizer_size(tokenizer), .tokenizer = tokenizer_digest(tokenizer)};
    enum status status;
    void *bytes;
    size_t size;

    for (int i = 0; i < command->files; i++)
        TRY(corpus_add(command->file[i], tokenizer, texts));
    TRY(command->is_store ? datastore_make(texts, terms.vocab, terms.tokenizer, &bytes, &size) : ngram_count(texts, &terms, &bytes, &size));
    status = write_file(command, bytes, size);
    free(bytes);
    if (status != STATUS_OK)
        return status;
    if (!command->is_store)
        printf("%s: order %d, of %zu tokens, %.1f MB\n", command->output, command->order, texts->tokens, (double)size / 1e6);
    else
        printf("%s: %zu tokens, %.1f MB\n", command->output, texts->tokens, (double)size / 1e6);
    return STATUS_OK;
}

int main(int argc, char **argv)
{
    struct tokenizer *tokenizer = NULL;
    static struct command command;
    struct texts texts = {0};
    enum status status;

    log_init("tandem", LOG_INFO);
    status = parse(&command, argc, argv);
    if (status == STATUS_OK && command.help) {
        print_usage(&command);
        return standard_output_end(0);
    }
    if (status == STATUS_OK)
        status = check_output(&command);
    if (status == STATUS_OK)
        status = open_tokenizer(&command, &tokenizer);
    if (status == STATUS_OK)
        status = make(&command, tokenizer, &texts);
    texts_release(&texts);
    if (tokenizer != NULL)
        tokenizer_close(tokenizer);
    return standard_output_end((int)status);
}
