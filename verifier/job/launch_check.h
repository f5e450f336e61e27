/* The checks that can be made before a job: all that can be wrong with models, input and files is said here, by one process, in one line. Owns
 * nothing; it opens files to read them and closes them again. For one process before MPI starts; it starts no rank. */
#ifndef TANDEM_VERIFIER_JOB_LAUNCH_CHECK_H
#define TANDEM_VERIFIER_JOB_LAUNCH_CHECK_H

#include "common/options/options.h"

/* Looks at both models and the input: files there, formats right, one tokenizer, widths that divide. Logs what is wrong. */
enum status launch_check(const struct options *options);

#endif
