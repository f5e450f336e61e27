/* few_bits FROM KIND TO: few_bits.h's folders for scripts. */
#include "tests/support/few_bits.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    for (int kind = 0; argc == 4 && kind < FEW_BITS_KINDS; kind++)
        if (strcmp(argv[2], few_bits_name[kind]) == 0) {
            few_bits_write(argv[1], argv[3], NULL, (enum few_bits_kind)kind);
            return 0;
        }
    fprintf(stderr, "usage: few_bits FROM KIND TO\n");
    return 64;
}
