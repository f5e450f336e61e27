/* The tables stand in the order of the field numbers in proto/; a field added there is added here, or its messages are refused. */
#include "common/wire/schema.h"

#include "proto/commit.pb-c.h"
#include "proto/control.pb-c.h"
#include "proto/hello.pb-c.h"
#include "proto/proposal.pb-c.h"
#include "proto/request.pb-c.h"

#define COUNT(array)             ((int)(sizeof(array) / sizeof((array)[0])))
#define TEXT_LIMIT(type, member) ((unsigned)sizeof(((struct type *)0)->member) - 1)

/* clang-format off */
#define WORD               {.kind = PRECHECK_WORD}
#define FIXED64            {.kind = PRECHECK_FIXED64}
#define TEXT(type, member) {.kind = PRECHECK_TEXT, .limit = TEXT_LIMIT(type, member)}
#define PACKED(most)       {.kind = PRECHECK_PACKED, .limit = (most)}
#define INNER(most, rules) {.kind = PRECHECK_INNER, .limit = (most), .inner = &(rules)}
/* clang-format on */

static const struct precheck_field hello_field[] = {
    WORD, TEXT(hello, program), WORD, FIXED64, FIXED64, WORD, WORD, WORD, WORD, TEXT(hello, model), TEXT(hello, host),
    WORD, TEXT(hello, device), WORD, WORD,
};
static const struct precheck_message hello_rules = {COUNT(hello_field), hello_field};

static const struct precheck_field sampling_field[] = {
    FIXED64, FIXED64, FIXED64, FIXED64, FIXED64, FIXED64, WORD, WORD, FIXED64, FIXED64, FIXED64, FIXED64, FIXED64,
};
static const struct precheck_message sampling_rules = {COUNT(sampling_field), sampling_field};

static const struct precheck_field token_bias_field[] = {WORD, FIXED64};
static const struct precheck_message token_bias_rules = {COUNT(token_bias_field), token_bias_field};

static const struct precheck_field bad_word_field[] = {PACKED(BIAS_MAX_WORD)};
static const struct precheck_message bad_word_rules = {COUNT(bad_word_field), bad_word_field};

static const struct precheck_field bias_field[] = {
    INNER(BIAS_MAX_TOKENS, token_bias_rules), INNER(BIAS_MAX_WORDS, bad_word_rules), WORD, PACKED(BIAS_MAX_ENDERS),
};
static const struct precheck_message bias_rules = {COUNT(bias_field), bias_field};

static const struct precheck_field open_field[] = {
    FIXED64, WORD, WORD, PACKED(MESSAGE_MAX_TOKENS), INNER(1, sampling_rules), WORD, WORD, INNER(1, bias_rules), WORD, WORD, WORD,
};
static const struct precheck_message open_rules = {COUNT(open_field), open_field};

static const struct precheck_field close_field[] = {FIXED64, WORD};
static const struct precheck_message close_rules = {COUNT(close_field), close_field};

static const struct precheck_field drafted_field[] = {WORD, PACKED(MESSAGE_MAX_SUPPORT), PACKED(MESSAGE_MAX_SUPPORT)};
static const struct precheck_message drafted_rules = {COUNT(drafted_field), drafted_field};

static const struct precheck_field proposal_field[] = {
    FIXED64, WORD, WORD, FIXED64, FIXED64, INNER(MESSAGE_MAX_DRAFT, drafted_rules), WORD, PACKED(MESSAGE_MAX_DRAFT), WORD,
};
static const struct precheck_message proposal_rules = {COUNT(proposal_field), proposal_field};

static const struct precheck_field commit_field[] = {
    FIXED64, WORD, WORD, WORD, PACKED(MESSAGE_MAX_COMMIT), WORD, FIXED64, WORD, WORD, WORD, WORD, PACKED(MESSAGE_MAX_COMMIT), WORD,
};
static const struct precheck_message commit_rules = {COUNT(commit_field), commit_field};

static const struct precheck_field plain_field[] = {FIXED64};
static const struct precheck_message plain_rules = {COUNT(plain_field), plain_field};

static const struct precheck_field failure_field[] = {WORD, TEXT(failure, text)};
static const struct precheck_message failure_rules = {COUNT(failure_field), failure_field};

_Static_assert(sizeof hello_field / sizeof hello_field[0] <= PRECHECK_MAX_FIELDS, "the longest message");

const struct schema *schema_of(int type)
{
    static const struct schema table[] = {
        [MESSAGE_HELLO] = {&hello_rules, &tandem__hello__descriptor},
        [MESSAGE_OPEN] = {&open_rules, &tandem__open__descriptor},
        [MESSAGE_CLOSE] = {&close_rules, &tandem__close__descriptor},
        [MESSAGE_PROPOSAL] = {&proposal_rules, &tandem__proposal__descriptor},
        [MESSAGE_COMMIT] = {&commit_rules, &tandem__commit__descriptor},
        [MESSAGE_HEARTBEAT] = {&plain_rules, &tandem__plain__descriptor},
        [MESSAGE_FAILURE] = {&failure_rules, &tandem__failure__descriptor},
        [MESSAGE_SHUTDOWN] = {&plain_rules, &tandem__plain__descriptor},
        [MESSAGE_DRAIN] = {&plain_rules, &tandem__plain__descriptor},
    };

    return type >= MESSAGE_HELLO && type <= MESSAGE_TYPES ? &table[type] : NULL;
}
