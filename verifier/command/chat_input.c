#include "verifier/command/chat_input.h"

#include "common/base/log.h"
#include "common/base/try.h"
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { ETX = 3, EOT = 4, BLOCK = 1 << 16, LONGEST_LINE = 16 << 20 };

void chat_input_init(struct chat_input *input, int fd)
{
    *input = (struct chat_input){.fd = fd};
}

void chat_input_release(struct chat_input *input)
{
    byte_buffer_release(&input->bytes);
}

static void drop(struct chat_input *input, size_t count)
{
    memmove(input->bytes.data, input->bytes.data + count, input->bytes.count - count);
    input->bytes.count -= count;
}

/* Drops what stands before the last stop, and the stop. */
static void look_for_stop(struct chat_input *input)
{
    for (size_t at = input->bytes.count; at-- > 0;)
        if (input->bytes.data[at] == ETX && (at == 0 || input->bytes.data[at - 1] == '\n')) {
            drop(input, at + 1);
            if (input->bytes.count > 0 && input->bytes.data[0] == '\n')
                drop(input, 1);
            input->stop = 1;
            return;
        }
}

static void give_back(struct chat_input *input)
{
    if (input->taken > 0)
        drop(input, input->taken);
    input->taken = 0;
}

enum status chat_input_read(struct chat_input *input, int wait_ms)
{
    struct pollfd look = {.fd = input->fd, .events = POLLIN};
    char block[BLOCK];
    ssize_t count;

    give_back(input);
    if (poll(&look, input->closed ? 0 : 1, wait_ms) <= 0 || input->closed)
        return STATUS_OK; /* a signal is looked at by the caller */
    count = read(input->fd, block, sizeof block);
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
        return STATUS_OK;
    if (count < 0) {
        log_error("cannot read the next turn: %s", strerror(errno));
        return STATUS_IO;
    }
    input->closed = count == 0;
    TRY(byte_buffer_append(&input->bytes, block, (size_t)count));
    if (memchr(block, ETX, (size_t)count) != NULL)
        look_for_stop(input);
    if (input->bytes.count < LONGEST_LINE || memchr(input->bytes.data, '\n', input->bytes.count) != NULL)
        return STATUS_OK;
    log_error("a line of more than %d bytes, expected an end before that", LONGEST_LINE);
    return STATUS_DATA;
}

int chat_input_next(struct chat_input *input, const char **line, size_t *length)
{
    const char *end;

    give_back(input);
    if (input->ended)
        return 0;
    end = input->bytes.count > 0 ? memchr(input->bytes.data, '\n', input->bytes.count) : NULL;
    if (end == NULL && input->bytes.count == 0) {
        input->ended = input->closed;
        return 0;
    }
    if (end == NULL && !input->closed)
        return 0;
    *line = input->bytes.data;
    *length = end != NULL ? (size_t)(end - input->bytes.data) : input->bytes.count;
    input->taken = *length + (end != NULL);
    if (*length == 1 && **line == EOT) {
        input->ended = 1;
        return 0;
    }
    if (*length > 0 && (*line)[*length - 1] == '\r')
        --*length;
    input->number++;
    return 1;
}

int chat_input_is_command(const char *line, size_t length)
{
    size_t count = 1;

    if (length < 2 || line[0] != '/' || !isalpha((unsigned char)line[1]))
        return 0;
    while (count < length && (isalnum((unsigned char)line[count]) || line[count] == '_' || line[count] == '-'))
        count++;
    return count == length || line[count] == ' ' || line[count] == '\t';
}
