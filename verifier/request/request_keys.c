#include "verifier/request/request_keys.h"

#include "common/base/spelling.h"
#include "common/options/options_elsewhere.h"
#include "common/options/options_table.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 32, NEAR = 3 }; /* characters that may be wrong in a key that is taken for another one */

/* Keys that are no options, or have another name there. */
static const char *const own[] = {"prompt", "prompt_tokens", "messages", "id", "stop", "stop_token_ids", "logit_bias", "bad_words"};

enum { OWN = sizeof own / sizeof *own };

/* The key of that number, from 0, or NULL behind the last. `name` has room for it. */
static const char *key_at(int at, char name[NAME])
{
    if (at < OWN)
        return own[at];
    at -= OWN;
    for (int i = 0; i < option_count; i++)
        if (option_table[i].per_request && at-- == 0) {
            snprintf(name, NAME, "%s", option_table[i].name);
            for (char *dash = name; (dash = strchr(dash, '-')) != NULL;)
                *dash = '_';
            return name;
        }
    return NULL;
}

/* A key that is the beginning of a known one counts as one wrong character away. */
static int distance(const char *known, const char *key)
{
    size_t length = strlen(key);

    return length > 2 && strncmp(known, key, length) == 0 ? 1 : spelling_distance(known, key);
}

static void write_all(char *words, size_t size)
{
    char name[NAME];
    size_t used = (size_t)snprintf(words, size, ", expected one of");
    const char *known;

    for (int i = 0; (known = key_at(i, name)) != NULL && used < size; i++)
        used += (size_t)snprintf(words + used, size - used, "%s %s", i > 0 ? "," : "", known);
}

int request_keys_knows(const char *key)
{
    char name[NAME], unread[1];
    const char *known;

    for (int i = 0; (known = key_at(i, name)) != NULL; i++)
        if (strcmp(known, key) == 0)
            return 1;
    return options_elsewhere(key, 1, unread, sizeof unread);
}

int request_keys_explain(const char *key, char words[REQUEST_KEYS_WORDS])
{
    char name[NAME], nearest[NAME] = "";
    const char *known;
    int best = NEAR + 1;

    if (options_elsewhere(key, 1, words, REQUEST_KEYS_WORDS))
        return 1;
    for (int i = 0; (known = key_at(i, name)) != NULL; i++)
        if (distance(known, key) < best && 2 * distance(known, key) <= (int)strlen(known)) {
            best = distance(known, key);
            snprintf(nearest, sizeof nearest, "%s", known);
        }
    if (*nearest != '\0')
        snprintf(words, REQUEST_KEYS_WORDS, "; did you mean \"%s\"?", nearest);
    else
        write_all(words, REQUEST_KEYS_WORDS);
    return 0;
}
