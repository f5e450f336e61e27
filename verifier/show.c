#include "verifier/show.h"

#include "common/base/clock.h"
#include <string.h>

#define GREEN "\033[32m"
#define RED "\033[9;31m"
#define BLUE "\033[34m"
#define PLAIN "\033[0m"
#define LINE_NS ((int64_t)5 * 1000000000)
#define BAR_NS ((int64_t)100 * 1000000)

enum { BAR = 30 };

static void put(struct show *show, const char *before, const char *bytes, size_t count)
{
    if (count == 0)
        return;
    if (show->colour)
        fputs(before, show->text);
    fwrite(bytes, 1, count, show->text);
    if (show->colour)
        fputs(PLAIN, show->text);
}

void show_prompt(struct show *show, const struct sequence *sequence)
{
    const struct request *request = sequence->request;

    show->printed = 0;
    utf8_stream_init(&show->stream);
    if (show->notes == NULL || show->text == NULL || request->chat)
        return; /* who chats has just written it, and has no use for the template's marks */
    fputs("\n", show->notes);
    for (int i = 0; i < request->prompt_count; i++) {
        size_t length;
        const char *piece = tokenizer_piece(sequence->completion.tokenizer, request->tokens[i], i == 0, 0, &length);

        fwrite(piece, 1, length, show->notes);
    }
    fflush(show->notes);
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
    put(show, RED, out, count);
}

static void show_coloured(struct show *show, const struct sequence *sequence, const struct outcome *outcome,
                          const struct proposal *proposal, int kept)
{
    for (int i = 0; i < kept && i < outcome->accepted; i++)
        put_token(show, sequence, GREEN, outcome->token[i]);
    if (kept <= outcome->accepted)
        return;
    if (outcome->accepted < outcome->drafted)
        put_rejected(show, sequence, proposal->token[outcome->accepted]);
    put_token(show, sequence, outcome->drafted > 0 ? BLUE : "", outcome->token[outcome->accepted]);
}

void show_round(struct show *show, const struct sequence *sequence, const struct outcome *outcome, const struct proposal *proposal, int kept)
{
    const struct completion *completion = &sequence->completion;

    if (show->text == NULL)
        return;
    if (show->colour) {
        show_coloured(show, sequence, outcome, proposal, kept);
    } else if (completion->shown > show->printed) {
        fwrite(completion->text + show->printed, 1, completion->shown - show->printed, show->text);
        show->printed = completion->shown;
    }
    fflush(show->text);
}

void show_end(struct show *show, const struct sequence *sequence)
{
    (void)sequence;
    if (show->text == NULL)
        return;
    fputc('\n', show->text);
    fflush(show->text);
}

static void draw_bar(struct show *show, double seconds)
{
    int full = show->total > 0 ? show->done * BAR / show->total : BAR;

    fprintf(show->notes, "\r[%.*s%*s] %d/%d prompts, %lld tokens, %.0f tokens/s ", full, "##############################", BAR - full, "",
            show->done, show->total, (long long)show->tokens, seconds > 0 ? (double)show->tokens / seconds : 0.0);
    if (show->done == show->total)
        fputc('\n', show->notes);
}

void show_progress(struct show *show, int finished, int tokens)
{
    int64_t now = clock_ns();
    double seconds;

    show->done += finished;
    show->tokens += tokens;
    if (show->started_ns == 0)
        show->started_ns = show->last_ns = now;
    if (show->notes == NULL || show->total <= 1 || show->text != NULL)
        return;
    if (now - show->last_ns < (show->bar ? BAR_NS : LINE_NS) && !(show->bar && show->done == show->total && finished > 0))
        return;
    show->last_ns = now;
    seconds = (double)(now - show->started_ns) / 1e9;
    if (show->bar)
        draw_bar(show, seconds);
    else
        fprintf(show->notes, "%d of %d prompts, %lld tokens, %.0f tokens/s\n", show->done, show->total, (long long)show->tokens,
                (double)show->tokens / seconds);
    fflush(show->notes);
}
