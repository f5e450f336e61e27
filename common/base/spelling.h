/* How far a name that was typed is from one that is known. Owns nothing; pure. */
#ifndef TANDEM_COMMON_BASE_SPELLING_H
#define TANDEM_COMMON_BASE_SPELLING_H

/* A character of a name as names are compared: '-' and '_' are the same. */
char spelling_fold(char c);
/* Levenshtein distance of two names, over their first 31 characters. */
int spelling_distance(const char *a, const char *b);
enum { SPELLING_ADVICE = 64 };
/* "; did you mean 'NAME'?" for a text that is nearly one of `choices`, which are "a|b|c"; else nothing. */
void spelling_advise(const char *choices, const char *text, char advice[SPELLING_ADVICE]);

#endif
