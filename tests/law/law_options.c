#include "tests/law/law_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 20240607, EXIT_USAGE = 64 };

static int is_asked(const char *name)
{
    const char *word = getenv(name);

    return word != NULL && strcmp(word, "1") == 0;
}

struct law_options law_options_read(int argc, char **argv)
{
    struct law_options options = {.is_wide = is_asked("TANDEM_WIDE"), .is_long = is_asked("TANDEM_LONG"), .seed = SEED, .parts = 1};

    for (int i = 1; i < argc; i++) {
        unsigned long long seed;

        if (strcmp(argv[i], "quick") == 0)
            options.is_quick = 1;
        else if (strcmp(argv[i], "wide") == 0)
            options.is_wide = 1;
        else if (strcmp(argv[i], "long") == 0)
            options.is_long = 1;
        else if (sscanf(argv[i], "seed=%llu", &seed) == 1)
            options.seed = seed;
        else if (sscanf(argv[i], "requests=%lf", &options.requests) != 1 &&
                 (sscanf(argv[i], "part=%d/%d", &options.part, &options.parts) != 2 || options.part < 0 ||
                  options.part >= options.parts)) {
            fprintf(stderr, "'%s', expected quick, wide, long, seed=N, requests=N or part=I/N\n", argv[i]);
            exit(EXIT_USAGE);
        }
    }
    printf("seed %llu%s%s%s\n", (unsigned long long)options.seed, options.is_quick ? ", quick" : "", options.is_wide ? ", wide" : "",
           options.is_long ? ", long" : "");
    return options;
}
