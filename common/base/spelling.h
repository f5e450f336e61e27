/* How far a name that was typed is from one that is known. Owns nothing; pure. */
#ifndef TANDEM_COMMON_BASE_SPELLING_H
#define TANDEM_COMMON_BASE_SPELLING_H

/* A character of a name as names are compared: '-' and '_' are the same. */
char spelling_fold(char c);
/* Levenshtein distance of two names, over their first 31 characters. */
int spelling_distance(const char *a, const char *b);

#endif
