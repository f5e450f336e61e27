#include "verifier/job/show.h"

#include "common/base/clock.h"
#include "common/base/visible.h"
#include "verifier/job/colour.h"
#include "verifier/job/explain.h"
#include "verifier/request/request_work.h"
#include <string.h>

#define UNWRAPPED "\033[?7l"
#define WRAPPED "\033[?7h"

enum { BAR = 20 };

/* Text of a model or a prompt, to one of the two streams. */
static void put_plain(const struct show *show, FILE *to, const char *bytes, size_t count)
{
    if (to == show->text ? show->text_is_terminal : show->notes_is_terminal)
        visible_put(bytes, count, "\n\t", to);
    else
        fwrite(bytes, 1, count, to);
}

static void put(struct show *show, const char *before, const char *bytes, size_t count)
{
    if (count == 0)
        return;
    if (show->colour)
        fputs(before, show->text);
    put_plain(show, show->text, bytes, count);
    if (show->colour)
        fputs(COLOUR_NONE, show->text);
}

static void put_prompt_token(struct show *show, const struct sequence *sequence, int i)
{
    enum { PART = 250 };
    char out[3 * (PART + 3)];
    size_t length;
    const char *piece = tokenizer_piece(sequence->completion.tokenizer, sequence->request->tokens[i], i == 0, 0, &length);

    for (size_t part; length > 0; piece += part, length -= part) {
        part = length < PART ? length : PART;
        put_plain(show, show->notes, out, utf8_stream_push(&show->stream, piece, part, out));
    }
}

static void put_prompt(struct show *show, const struct sequence *sequence)
{
    const struct request *request = sequence->request;
    char out[4];

    if (request->prompt != NULL) { /* it is echoed, as the beginning of the text */
        put_plain(show, show->text, request->prompt, request->prompt_length);
        return;
    }
    if (show->notes == NULL || request->chat)
        return; /* in a chat the user has just typed the prompt, and the template's marks would only confuse */
    fputs("\n", show->notes);
    for (int i = 0; i < request->prompt_count; i++)
        put_prompt_token(show, sequence, i);
    put_plain(show, show->notes, out, utf8_stream_finish(&show->stream, out));
    utf8_stream_init(&show->stream);
    if (show->explains)
        fputc('\n', show->notes);
    fflush(show->notes);
}

/* The prompt is read. */
static void begin_text(struct show *show)
{
    const struct sequence *sequence = show->unread;

    if (sequence == NULL)
        return;
    show->unread = NULL;
    progress_line_clear(&show->reading);
    put_prompt(show, sequence);
    if (show->page != NULL && !sequence->request->chat) /* whose template's marks would only confuse */
        explain_page_prompt(show->page, sequence->completion.tokenizer, sequence->request->tokens, sequence->request->prompt_count);
}

void show_prompt(struct show *show, const struct sequence *sequence)
{
    begin_text(show);
    show->printed = 0;
    utf8_stream_init(&show->stream);
    if (show->text == NULL)
        return;
    show->unread = sequence;
    progress_line_begin(&show->reading, 0);
    show->reading_ns = clock_ns();
    show->reading_from = show->read;
}

/* One token's text in a colour; a character that spans tokens has the colour of its last. */
static void put_token(struct show *show, const struct sequence *sequence, const char *colour, int32_t token)
{
    char out[3 * 256];
    size_t length;
    const char *piece = tokenizer_piece(sequence->completion.tokenizer, token, 0, 0, &length);

    while (length > 0) {
        size_t part = length < 250 ? length : 250;

        put(show, colour, out, utf8_stream_push(&show->stream, piece, part, out));
        piece += part;
        length -= part;
    }
}

/* The rejected token, struck out; it is no part of the text. */
static void put_rejected(struct show *show, const struct sequence *sequence, int32_t token)
{
    char out[3 * 64];
    struct utf8_stream stream;
    size_t length, count;
    const char *piece = tokenizer_piece(sequence->completion.tokenizer, token, 0, 0, &length);

    utf8_stream_init(&stream);
    count = utf8_stream_push(&stream, piece, length < 60 ? length : 60, out);
    for (size_t i = 0; i < count; i++)
        out[i] = out[i] == '\n' ? ' ' : out[i];
    put(show, COLOUR_STRUCK, out, count);
}

static void show_coloured(struct show *show, const struct sequence *sequence, const struct outcome *outcome,
                          const struct proposal *proposal, int kept)
{
    for (int i = 0; i < kept && i < outcome->accepted; i++)
        put_token(show, sequence, COLOUR_GREEN, outcome->token[i]);
    if (kept <= outcome->accepted)
        return;
    if (outcome->refused >= 0)
        put_rejected(show, sequence, proposal->token[outcome->refused]);
    put_token(show, sequence, outcome->drafted > 0 ? COLOUR_BLUE : "", outcome->token[outcome->accepted]);
}

void show_round(struct show *show, const struct sequence *sequence, const struct outcome *outcome, const struct proposal *proposal, int kept)
{
    const struct completion *completion = &sequence->completion;

    if (show->text == NULL)
        return;
    begin_text(show);
    if (show->page != NULL)
        explain_page_round(show->page, outcome->explained, completion->tokenizer, kept);
    if (show->explains) {
        explain_round(outcome->explained, completion->tokenizer, (int)sequence->rounds, kept, show->colour, show->text);
    } else if (show->drafts && show->colour) {
        show_coloured(show, sequence, outcome, proposal, kept);
    } else if (completion->shown > show->printed) {
        put_plain(show, show->text, completion->text + show->printed, completion->shown - show->printed);
        show->printed = completion->shown;
    }
    fflush(show->text);
}

void show_end(struct show *show, const struct sequence *sequence)
{
    if (sequence->request->max_tokens > 0) /* a completion that ended early counts as all done */
        show->past += sequence->request->max_tokens - sequence->completion.count;
    if (show->text == NULL)
        return;
    begin_text(show);
    if (show->explains)
        put_plain(show, show->text, sequence->completion.text, sequence->completion.shown);
    fputc('\n', show->text);
    fflush(show->text);
}

/* "3 min 20 s"; of what takes hours no seconds. */
static void write_time(double seconds, char text[32])
{
    int whole = seconds < 1e8 ? (int)(seconds + 0.5) : 100000000;

    if (whole >= 3600)
        snprintf(text, 32, "%d h %d min", whole / 3600, whole / 60 % 60);
    else if (whole >= 60)
        snprintf(text, 32, "%d min %d s", whole / 60, whole % 60);
    else
        snprintf(text, 32, "%d s", whole);
}

/* Prompts are counted apart from what is generated, whose rate is that of the whole time, prompts included, as the line at the end has it. */
static void write_counts(const struct show *show, double seconds, FILE *to)
{
    double rate = seconds > 0 ? (double)show->tokens / seconds : 0.0;
    double left = progress_line_left(seconds, (double)show->past, (double)show->whole);
    char time[32];

    if (left > 0 && show->done < show->total) {
        write_time(left, time);
        fprintf(to, "about %s left, ", time);
    }
    fprintf(to, "%lld tokens, %.*f tokens/s", (long long)show->tokens, rate > 0 && rate < 10 ? 1 : 0, rate);
    if (show->read < show->reads)
        fprintf(to, ", %lld of %lld prompt tokens read", (long long)show->read, (long long)show->reads);
}

/* What has no room at the end of the terminal's line is not shown: a line that wrapped could not be cleared. */
static void write_bar(const struct show *show, double seconds, FILE *to)
{
    int full = show->total > 0 ? show->done * BAR / show->total : BAR;

    fprintf(to, UNWRAPPED "[%.*s%*s] %d/%d, ", full, "####################", BAR - full, "", show->done, show->total);
    write_counts(show, seconds, to);
    fputs(show->done == show->total ? WRAPPED "\n" : " " WRAPPED, to);
}

static void write_progress(const void *state, FILE *to)
{
    const struct show *show = state;
    double seconds = (double)(clock_ns() - show->started_ns) / 1e9;

    if (show->bar) {
        write_bar(show, seconds, to);
        return;
    }
    fprintf(to, "%d of %d prompts, ", show->done, show->total);
    write_counts(show, seconds, to);
}

static void draw(struct show *show)
{
    int is_last = show->bar && show->done == show->total && show->total > 0, is_long = show->total > 1 || show->read < show->reads;

    if (show->notes == NULL || show->text != NULL || !(show->bar || is_long))
        return;
    if (is_last || progress_line_is_due(&show->progress))
        progress_line_tell(&show->progress, write_progress, show);
}

static void count_as_done(struct show *show, const struct request *request)
{
    struct request_work work = request_work(request);

    show->done++;
    show->reads -= work.reads;
    show->whole -= work.reads + work.most;
}

void show_begin(struct show *show, const struct request_list *requests, const struct output *kept)
{
    struct request_work work = request_work_of_all(requests);

    show->total = requests->count;
    show->reads = work.reads;
    show->whole = work.reads + work.most;
    for (int i = 0; kept != NULL && i < requests->count; i++)
        if (output_has(kept, i))
            count_as_done(show, &requests->request[i]);
    show->started_ns = clock_ns();
    show->progress = (struct progress_line){.to = show->notes, .redrawn = show->bar, .clears_errors = show->bar};
    progress_line_begin(&show->progress, 1);
    draw(show);
}

void show_skip(struct show *show, const struct request *request)
{
    count_as_done(show, request);
    draw(show);
}

/* "reading the prompt, 1200 of 8000 tokens, about 20 s left" */
static void write_reading(const void *state, FILE *to)
{
    const struct show *show = state;
    int64_t read = show->read - show->reading_from;
    int all = show->unread->request->prompt_count;
    double left = progress_line_left((double)(clock_ns() - show->reading_ns) / 1e9, (double)read, all);
    char time[32];

    fprintf(to, "reading the prompt, %lld of %d tokens", (long long)read, all);
    if (left > 0) {
        write_time(left, time);
        fprintf(to, ", about %s left", time);
    }
}

void show_read(struct show *show, int tokens)
{
    show->read += tokens;
    show->past += tokens;
    draw(show);
    if (show->unread != NULL && progress_line_is_due(&show->reading))
        progress_line_tell(&show->reading, write_reading, show);
}

void show_progress(struct show *show, int finished, int tokens)
{
    show->done += finished;
    show->tokens += tokens;
    show->past += tokens;
    if (finished > 0 || tokens > 0)
        draw(show);
}
