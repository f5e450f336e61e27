/* To be preloaded: this host's load is what the environment's PRETENDED_LOAD says. */
#include <stdlib.h>

int getloadavg(double *load, int count)
{
    const char *pretended = getenv("PRETENDED_LOAD");

    if (pretended == NULL || count < 1)
        return -1;
    load[0] = strtod(pretended, NULL);
    return 1;
}
