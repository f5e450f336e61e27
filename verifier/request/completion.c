#include "verifier/request/completion.h"

#include "common/base/log.h"
#include <stdlib.h>
#include <string.h>

enum { BYTES_PER_TOKEN = 64, PIECE_LIMIT = 4096 };

const char *completion_reason(enum finish_reason reason)
{
    static const char *const text[] = {"", "stop", "length", "error"};

    return text[reason];
}

enum status completion_open(struct completion *completion, const struct request *request, const struct tokenizer *tokenizer,
                            const int32_t *eos, int eos_count, int limit)
{
    *completion = (struct completion){
        .request = request, .tokenizer = tokenizer, .eos = eos, .eos_count = eos_count, .limit = limit};
    for (int i = 0; i < request->stops; i++)
        if (strlen(request->stop[i]) > completion->longest_stop)
            completion->longest_stop = strlen(request->stop[i]);
    utf8_stream_init(&completion->stream);
    /* Room for usual tokens at once, so that rounds allocate nothing; a text of long pieces may still grow. */
    completion->room = (size_t)limit * BYTES_PER_TOKEN + PIECE_LIMIT;
    completion->text = malloc(completion->room);
    if (completion->text == NULL) {
        log_error("no memory for a completion of %d tokens", limit);
        return STATUS_INTERNAL;
    }
    return STATUS_OK;
}

void completion_close(struct completion *completion)
{
    free(completion->text);
    *completion = (struct completion){0};
}

static int contains(const int32_t *tokens, int count, int32_t token)
{
    for (int i = 0; i < count; i++)
        if (tokens[i] == token)
            return 1;
    return 0;
}

int completion_is_ended_by(const struct completion *completion, int32_t token)
{
    const struct request *request = completion->request;

    return contains(request->stop_token, request->stop_tokens, token) ||
           (!request->ignore_eos && request->has_turn_end && request->turn_end == token) ||
           (!request->ignore_eos && contains(completion->eos, completion->eos_count, token));
}

static int make_room(struct completion *completion, size_t more)
{
    size_t room = 2 * completion->room + more;
    char *text;

    if (completion->length + more <= completion->room)
        return 1;
    text = realloc(completion->text, room);
    if (text == NULL)
        return 0;
    completion->text = text;
    completion->room = room;
    return 1;
}

static void append(struct completion *completion, int32_t token)
{
    size_t length;
    const char *piece = tokenizer_piece(completion->tokenizer, token, 0, 0, &length);

    if (make_room(completion, 3 * (length + 3)))
        completion->length += utf8_stream_push(&completion->stream, piece, length, completion->text + completion->length);
}

/* Looks for a stop text that ends in the bytes from `from` on, and cuts the text before the first. A stop text that ended earlier lies within the
 * first min_tokens tokens, which end nothing. */
static int find_stop(struct completion *completion, size_t from)
{
    const char *first = NULL;

    for (int i = 0; i < completion->request->stops; i++) {
        const char *stop = completion->request->stop[i];
        size_t length = strlen(stop), start = from >= length ? from - (length - 1) : 0;
        const char *found = memmem(completion->text + start, completion->length - start, stop, length);

        if (found != NULL && (first == NULL || found < first))
            first = found;
    }
    if (first == NULL)
        return 0;
    completion->length = (size_t)(first - completion->text);
    return 1;
}

/* `whole`: the tokens' text ends here; else it was cut before a stop text, and what the stream holds comes after that. */
static void finish(struct completion *completion, enum finish_reason reason, int whole)
{
    completion->finish = reason;
    if (whole && make_room(completion, 3))
        completion->length += utf8_stream_finish(&completion->stream, completion->text + completion->length);
    completion->shown = completion->length;
}

/* All but the bytes that may be the beginning of a stop text, back to the beginning of a character. */
static void show(struct completion *completion)
{
    size_t held = completion->longest_stop > 0 ? completion->longest_stop - 1 : 0;
    size_t upto = completion->length > held ? completion->length - held : 0;

    while (upto < completion->length && upto > 0 && ((unsigned char)completion->text[upto] & 0xc0) == 0x80)
        upto--;
    completion->shown = upto > completion->shown ? upto : completion->shown;
}

int completion_push(struct completion *completion, const int32_t *tokens, int count)
{
    int taken = 0;

    while (taken < count && completion->finish == FINISH_NOT) {
        size_t from = completion->length;
        int32_t token = tokens[taken++];
        int ended = completion_is_ended_by(completion, token);

        completion->count++;
        if (!ended)
            append(completion, token);
        if (completion->count > completion->request->min_tokens && find_stop(completion, from))
            finish(completion, FINISH_STOP, 0);
        else if (ended)
            finish(completion, FINISH_STOP, 1);
        else if (completion->count >= completion->limit)
            finish(completion, FINISH_LENGTH, 1);
        else
            show(completion);
    }
    return taken;
}
