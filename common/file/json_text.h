/* JSON from outside, read as untrusted text: bounded in depth and in values before a parser that recurses sees it, without duplicate keys, in strict
 * UTF-8. When memory runs out in the middle, all that was taken is given back and the status says so: it is never mistaken for a text that is wrong.
 * The caller owns what is returned.
 *
 * For one thread at a time. It replaces jansson's allocator by one that gives and takes what malloc does. */
#ifndef TANDEM_COMMON_FILE_JSON_TEXT_H
#define TANDEM_COMMON_FILE_JSON_TEXT_H

#include "common/base/status.h"
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_TEXT_FAULT = 200 };

struct json_text_limits {
    int depth;   /* of lists and objects in each other */
    long values; /* in all, keys counted */
    int wide;    /* whole numbers beyond 64 bits are read, in double precision; else they are too large */
};

/* The tree goes to *root; json_decref frees it. flags: jansson's, besides JSON_REJECT_DUPLICATES. STATUS_DATA: `fault` says what the text
 * is ("not valid JSON at byte 7: ..."), in printable ASCII; it is not logged, for the caller knows file and line. STATUS_INTERNAL: no
 * memory, logged. */
enum status json_text_read(const char *text, size_t size, size_t flags, const struct json_text_limits *limits, json_t **root,
                           char fault[JSON_TEXT_FAULT]);

/* The text of a value, to be freed; NULL without memory, also where jansson leaves a key out then and says nothing. flags: jansson's. */
char *json_text_write(const json_t *value, size_t flags);
/* For building: `value`, or NULL with the value given back when some part of it failed to be made (jansson's calls return -1 then). A
 * value that lacks a part must not be taken for whole. */
json_t *json_text_whole(json_t *value, int failed);
/* A number as a value: beyond 2^63 - 1, where JSON's integers end here, a text. NULL without memory. */
json_t *json_text_u64(uint64_t number);
/* A text as a value. One that is not UTF-8 (a path, a text that was cut) has \xNN for each byte beyond ASCII, for JSON cannot hold it.
 * NULL without memory. */
json_t *json_text_string(const char *text);
/* Is it the text `expected`, whole? strcmp would take one for it that goes on behind a NUL. */
int json_text_is(const json_t *value, const char *expected);

#endif
