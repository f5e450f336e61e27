/* The forms of the chat families, as data. In a pattern `...` is a mark, $ the role's name, ^ the begin-of-sequence token and ~ the end-of-sequence
 * token, each of which is a mark of its own; everything else is as it stands. Constant; for chat_template*.c alone. */
#ifndef TANDEM_COMMON_TEXT_CHAT_FORM_H
#define TANDEM_COMMON_TEXT_CHAT_FORM_H

#include "common/text/chat_template.h"

enum chat_form_flag {
    CHAT_FORM_ALTERNATES = 1,     /* user and assistant take turns, the user first; a system message is the first or nowhere */
    CHAT_FORM_NO_SYSTEM = 2,      /* unless the template's program takes one */
    CHAT_FORM_SYSTEM_FIRST = 4,   /* a system message becomes the beginning of the first user's turn */
    CHAT_FORM_SYSTEM_LAST = 8,    /* ... of the last user's turn */
    CHAT_FORM_TRIMS = 16,         /* contents lose the white space around them */
    CHAT_FORM_TRIMS_ANSWERS = 32, /* only the assistant's do */
    CHAT_FORM_TRIMS_TURNS = 64,   /* a turn does, with the system message that it begins with */
    CHAT_FORM_DATES = 128,        /* there is always a system turn, which begins with two dates */
};

struct chat_form {
    const char *name;
    const char *start;                               /* of the whole prompt */
    const char *head[CHAT_ROLES], *tail[CHAT_ROLES]; /* around a turn; NULL: the role has no turn of its own */
    const char *system_head, *system_tail;           /* around a system message inside of a turn */
    const char *answer;                              /* where the assistant's answer begins */
    const char *assistant;                           /* that role's name */
    const char *end;                                 /* what ends the answer; NULL: eos */
    const char *bos, *eos;                           /* where the model's files do not say */
    unsigned flags;
};

/* [CHAT_FAMILIES]; that of CHAT_AUTO has a name alone. */
extern const struct chat_form chat_form_table[];

#endif
