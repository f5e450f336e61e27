/* What makes a terminal write in colour: for text that is shown to people, where it goes to a terminal. */
#ifndef TANDEM_VERIFIER_JOB_COLOUR_H
#define TANDEM_VERIFIER_JOB_COLOUR_H

#define COLOUR_GREEN  "\033[32m"
#define COLOUR_RED    "\033[31m"
#define COLOUR_STRUCK "\033[9;31m" /* red, and struck out */
#define COLOUR_YELLOW "\033[33m"
#define COLOUR_BLUE   "\033[34m"
#define COLOUR_SOFT   "\033[2m"
#define COLOUR_NONE   "\033[0m"

#endif
