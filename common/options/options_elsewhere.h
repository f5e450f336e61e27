/* Names that options have in other programs (llama.cpp, vLLM, Hugging Face, OpenAI), and this program's option for each. A user who types one of them
 * means it, and a guess by spelling would seldom be right. Constant data; pure. None of these names is taken as an option: the words say what to
 * write instead. */
#ifndef TANDEM_COMMON_OPTIONS_OPTIONS_ELSEWHERE_H
#define TANDEM_COMMON_OPTIONS_OPTIONS_ELSEWHERE_H

#include <stddef.h>

enum { OPTIONS_ELSEWHERE = 200 }; /* bytes that hold any of the words */

/* Writes what is here in place of `name`, '-' and '_' being the same: ", expected --context N" or ": there is no server, ...". Options are
 * written as keys of a line have them ("context") where `is_key` is set. 0 where the name means nothing elsewhere. */
int options_elsewhere(const char *name, int is_key, char *words, size_t size);
/* The same for what stands behind one dash: "n" of -n, "ngl" of -ngl. */
int options_elsewhere_short(const char *name, char *words, size_t size);

#endif
