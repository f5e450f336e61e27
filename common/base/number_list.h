/* A text that is a list of numbers ("0,1,2") or a part of a whole ("3/8"). Owns nothing; pure. */
#ifndef TANDEM_COMMON_BASE_NUMBER_LIST_H
#define TANDEM_COMMON_BASE_NUMBER_LIST_H

enum { NUMBER_LIST_MAX = 64 };

/* number: [NUMBER_LIST_MAX]. How many numbers from 0 to `most` the text has, or -1 where it is no such list. */
int number_list_read(const char *text, int most, int *number);
/* Part *part of *parts. 1, or 0 where the text is no I/N with I < N. */
int number_list_part(const char *text, int *part, int *parts);

#endif
