/* What an assistant thought before it answered, in <think> tags: Qwen3's templates repeat it only behind the last question. Owns nothing; pure; for
 * chat_render.c alone. */
#ifndef TANDEM_COMMON_TEXT_CHAT_THOUGHT_H
#define TANDEM_COMMON_TEXT_CHAT_THOUGHT_H

#include "common/text/chat_template.h"

/* Takes what was thought off the front of text[0 .. length). Returns its length, 0 where there is none, and where it begins; it has no new lines
 * around it. */
size_t chat_thought_take(const char **text, size_t *length, const char **thought);
/* The last message of the user that is not the answer of a tool; the last message where there is none. count: 1 at least. */
const struct chat_message *chat_thought_question(const struct chat_message *messages, size_t count);

#endif
