/* What a person types, line by line, while replies are made. It owns the bytes that were read and not taken yet; the descriptor is borrowed. A line
 * of the one byte ETX (which a terminal sends for Ctrl-C) says stop: what was typed before it and not taken yet is dropped. A line of the one byte
 * EOT, or the end of the file, is the end. One thread; it waits no longer than it is told. */
#ifndef TANDEM_VERIFIER_COMMAND_CHAT_INPUT_H
#define TANDEM_VERIFIER_COMMAND_CHAT_INPUT_H

#include "common/text/byte_buffer.h"

struct chat_input {
    int fd;
    struct byte_buffer bytes; /* what was read, from the first line that is not taken yet */
    size_t taken;             /* bytes of it that belong to the line that was given last */
    int number;               /* of that line, from 1; those that a stop dropped have none */
    int closed;               /* nothing more can be read */
    int ended;                /* all lines before the end were given */
    int stop;                 /* a stop was read; whoever heeds it sets it back */
};

/* fd: borrowed. */
void chat_input_init(struct chat_input *input, int fd);
void chat_input_release(struct chat_input *input);
/* Waits up to so many ms for something to read, and takes it. STATUS_DATA: a line that has no end; STATUS_IO; STATUS_INTERNAL: no memory.
 * Logged. */
enum status chat_input_read(struct chat_input *input, int wait_ms);
/* The next line, without its end and not terminated; it stands until the next call of either function. 0: there is none yet, or none any
 * more. */
int chat_input_next(struct chat_input *input, const char **line, size_t *length);
/* Is the line meant for the program and not for the model, as "/foo" and "/foo bar" are? Its first word is a slash, a letter, and what
 * words have; that of "/usr/bin/x y" is not. */
int chat_input_is_command(const char *line, size_t length);

#endif
