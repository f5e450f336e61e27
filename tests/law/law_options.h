/* What a test program of this folder is told: arguments, and TANDEM_WIDE=1 or TANDEM_LONG=1 in the environment. Without any it runs the
 * default form, with the same seed every time. */
#ifndef TANDEM_TESTS_LAW_LAW_OPTIONS_H
#define TANDEM_TESTS_LAW_LAW_OPTIONS_H

#include <stdint.h>

struct law_options {
    int is_quick;       /* "quick": few configurations with few requests, in seconds; for builds that are expected to fail */
    int is_wide;        /* "wide", or TANDEM_WIDE=1, as CI does: more requests or settings than what each promise needs to be shown once */
    int is_long;        /* "long", or TANDEM_LONG=1 */
    uint64_t seed;      /* "seed=N" of all random draws */
    int part, parts;    /* "part=I/N": the configurations i with i mod N = I, so that programs can share them */
    double requests;    /* "requests=N" of each configuration, instead of what the form says; 0: not given */
};

/* Prints what it found, the seed above all; ends the program with 64 on anything else. */
struct law_options law_options_read(int argc, char **argv);

#endif
