/* The end of what a program writes to stdout. It is buffered: whether it has arrived is known only at the end. Owns nothing; for main alone. */
#ifndef TANDEM_COMMON_BASE_STANDARD_OUTPUT_H
#define TANDEM_COMMON_BASE_STANDARD_OUTPUT_H

/* For `main`, which would end with `code`: that code, or STATUS_IO where not all that was told arrived and nothing worse has been logged yet. */
int standard_output_end(int code);

#endif
