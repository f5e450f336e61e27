#include "verifier/command/chat.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include "common/file/json_text.h"
#include "common/text/utf8_stream.h"
#include "verifier/command/chat_input.h"
#include "verifier/job/audience.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 50 };
#define HELP "/reset begins anew, /exit or the end of input (Ctrl-D) ends, Ctrl-C stops a reply."

struct chat {
    struct job *job;
    struct lead lead;
    struct lead_watch watch; /* what the lead borrows: this and the next five */
    struct audience audience;
    struct show show;
    struct peers none;
    struct output output;
    struct verify verify;
    struct chat_template template;
    struct chat_input input;
    json_t *messages; /* [{"role", "content"}]: the turns so far */
    int turn;         /* since the last reset */
    int64_t wall_ns;  /* of all replies */
    FILE *signs;      /* where the prompt sign for a line of input goes; NULL: stdin or stdout is no terminal */
    enum status status; /* of what happened during a reply */
    int cut;            /* a reply was cut at so many tokens, by no stop; 0: it was not */
    int by_context;     /* where the context ended */
};

static enum status no_memory(void)
{
    log_error("no memory for the chat");
    return STATUS_INTERNAL;
}

static void say(const struct chat *chat, const char *text)
{
    if (chat->signs == NULL)
        return;
    fputs(text, chat->signs);
    fflush(chat->signs);
}

static void explain(const struct chat *chat)
{
    say(chat, HELP "\n");
}

/* Who asks in a pipe is told beside the replies. */
static void help(const struct chat *chat)
{
    if (chat->signs != NULL)
        explain(chat);
    else
        log_info("%s", HELP);
}

static enum status add_message(struct chat *chat, const char *role, const char *text, size_t length)
{
    json_t *message = json_pack("{s:s, s:o}", "role", role, "content", json_stringn(text, length));

    return json_array_append_new(chat->messages, message) == 0 ? STATUS_OK : no_memory();
}

/* Before each round of a reply. */
static void look_for_stop(void *state, const struct figures *figures)
{
    struct chat *chat = state;
    enum status status = chat_input_read(&chat->input, 0);

    (void)figures;
    chat->status = chat->status == STATUS_OK ? status : chat->status;
    if (chat->input.stop || chat->status != STATUS_OK)
        lead_cut(&chat->lead);
}

static enum status keep_reply(void *state, const struct request *request, const struct sequence *sequence)
{
    struct chat *chat = state;
    const struct completion *completion = &sequence->completion;

    if (completion->finish == FINISH_LENGTH && !chat->input.stop && chat->lead.drain.until_ns == 0) {
        chat->cut = completion->count;
        chat->by_context = completion->limit < request->max_tokens;
    }
    return add_message(chat, "assistant", completion->text, completion->length);
}

/* A reply that ends in the middle of a sentence looks like one that the model ended. */
static void say_if_cut(const struct chat *chat)
{
    if (chat->cut > 0 && chat->by_context)
        log_warn("the reply to line %d was cut at %d tokens, where the context of %d ends: /reset begins anew%s", chat->input.number, chat->cut,
                 chat->job->model->longest, chat->job->model->longest < chat->job->model->config.context ? ", --context N makes more" : "");
    else if (chat->cut > 0)
        log_warn("the reply to line %d was cut at %d tokens: --max-tokens N allows more", chat->input.number, chat->cut);
}

/* The turns so far as a request, with the number of this turn. */
static enum status ask(const struct chat *chat, struct request_list *requests)
{
    struct options options = *chat->job->options;
    const struct request_terms terms = {.options = &options,
                                        .tokenizer = chat->job->tokenizer,
                                        .chat = &chat->template,
                                        .context = chat->job->model->longest,
                                        .vocab = chat->job->model->vocab};
    json_t *line = json_pack("{s:O}", "messages", chat->messages);
    char *text = json_text_write(line, JSON_COMPACT);
    enum status status;

    json_decref(line);
    if (text == NULL)
        return no_memory();
    options.input.first_index += chat->turn;
    status = request_add_line(requests, &terms, text, strlen(text), chat->input.number);
    free(text);
    return status;
}

static enum status reply(struct chat *chat, const struct request_list *requests)
{
    struct lead *lead = &chat->lead;
    enum status status;

    lead->queue.requests = requests;
    lead->queue.next = 0;
    chat->input.stop = 0;
    chat->cut = 0;
    status = lead_run(lead);
    chat->wall_ns += lead->figures.wall_ns;
    chat->input.stop = 0;
    say_if_cut(chat);
    return status == STATUS_OK ? chat->status : status;
}

/* A turn without a reply, for it was refused or ended with the job, is forgotten. */
static enum status take_turn(struct chat *chat, const char *line, size_t length)
{
    struct request_list requests = {0};
    size_t before = json_array_size(chat->messages), bad = utf8_valid(line, length);
    enum status status;

    if (bad < length) {
        log_error("line %d is not valid UTF-8 (byte %zu)", chat->input.number, bad);
        return STATUS_OK;
    }
    TRY(add_message(chat, "user", line, length));
    status = ask(chat, &requests);
    if (status == STATUS_OK && requests.request[0].error == NULL)
        status = reply(chat, &requests);
    else if (status == STATUS_OK)
        log_error("%s; /reset begins anew", requests.request[0].error);
    if (json_array_size(chat->messages) < before + 2)
        json_array_remove(chat->messages, before);
    else
        chat->turn++;
    request_release(&requests);
    return status;
}

static int is(const char *line, size_t length, const char *word)
{
    return length == strlen(word) && memcmp(line, word, length) == 0;
}

/* The next line, or NULL at the end. */
static enum status await_line(struct chat *chat, const char **line, size_t *length)
{
    say(chat, "> ");
    while (!chat_input_next(&chat->input, line, length)) {
        *line = NULL;
        if (chat->input.ended || chat->lead.drain.until_ns != 0)
            return STATUS_OK;
        TRY(lead_rest(&chat->lead));
        TRY(chat_input_read(&chat->input, WAIT_MS));
        if (chat->input.stop) { /* of a reply that has ended already, or of none */
            chat->input.stop = 0;
            say(chat, "\n");
            explain(chat);
            say(chat, "> ");
        }
    }
    return STATUS_OK;
}

/* Without blanks at the end. */
static size_t trimmed(const char *line, size_t length)
{
    while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t'))
        length--;
    return length;
}

static enum status take_turns(struct chat *chat)
{
    const char *line;
    size_t length, command;

    explain(chat);
    for (;;) {
        TRY(await_line(chat, &line, &length));
        if (line == NULL)
            return STATUS_OK;
        command = chat_input_is_command(line, length) ? trimmed(line, length) : 0;
        if (is(line, command, "/quit") || is(line, command, "/exit"))
            return STATUS_OK;
        if (is(line, command, "/reset")) {
            json_array_clear(chat->messages);
            chat->turn = 0;
        } else if (is(line, command, "/help")) {
            help(chat);
        } else if (command > 0) {
            log_error("line %d: unknown command '%.*s', expected /help, /reset, /exit or /quit", chat->input.number,
                      (int)(command < 64 ? command : 64), line);
        } else if (length > 0) {
            TRY(take_turn(chat, line, length));
        }
    }
}

static enum status talk(struct chat *chat, struct peers *drafters, struct figures *figures)
{
    const struct options *options = chat->job->options;
    enum status status;

    chat->watch = (struct lead_watch){.state = chat, .end = keep_reply, .turn = look_for_stop};
    chat->show = (struct show){
        .text = stdout, .text_is_terminal = (options->launch.terminal & TERMINAL_STDOUT) != 0, .drafts = options->report.show_drafts};
    chat->show.colour = options_have_colours(options);
    chat->show.reading = (struct progress_line){.to = chat->signs, .redrawn = 1, .clears_errors = options->launch.terminal & TERMINAL_STDERR};
    audience_init(&chat->audience, &chat->output, &chat->show, &chat->watch);
    chat->lead = (struct lead){.watch = &chat->audience.watch, .resting = options->rounds.solo ? drafters : NULL};
    TRY(job_open_lead(chat->job, options->rounds.solo ? &chat->none : drafters, &chat->verify, &chat->lead));
    status = take_turns(chat);
    *figures = chat->lead.figures;
    figures->wall_ns = chat->wall_ns;
    job_close_lead(chat->job, &chat->lead);
    if (status == STATUS_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        log_error("the replies could not be written to stdout");
        status = STATUS_IO;
    }
    return status == STATUS_DRAINED ? STATUS_OK : status;
}

enum status chat_run(struct job *job, struct peers *drafters, const struct request_list *requests)
{
    struct figures figures = {0};
    const int terminal = TERMINAL_STDOUT | TERMINAL_STDIN;
    struct chat chat = {.job = job, .signs = (job->options->launch.terminal & terminal) == terminal ? stdout : NULL};
    enum status status;

    (void)requests; /* turns come one by one */
    if ((job->options->launch.terminal & TERMINAL_ONE_PLACE) != 0)
        log_to(STDOUT_FILENO); /* what is said of a line comes before the sign for the next one */
    TRY(chat_template_open(job->target, (enum chat_family)job->options->input.chat_family, &chat.template));
    chat_input_init(&chat.input, STDIN_FILENO);
    chat.messages = json_array();
    status = chat.messages != NULL ? talk(&chat, drafters, &figures) : no_memory();
    json_decref(chat.messages);
    chat_input_release(&chat.input);
    chat_template_release(&chat.template);
    return status == STATUS_OK && figures.rounds > 0 ? job_report(job, drafters, NULL, &figures, NULL, NULL) : status;
}
