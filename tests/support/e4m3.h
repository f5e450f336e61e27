/* Numbers of E4M3 by their definition (Micikevicius et al. 2022): a sign, 4 bits of exponent and 3 of fraction; no infinities. Pure. */
#ifndef TANDEM_TESTS_SUPPORT_E4M3_H
#define TANDEM_TESTS_SUPPORT_E4M3_H

#include <stdint.h>

/* NaN where all bits but the sign's are set. */
float e4m3_wide(uint8_t byte);
/* The nearest; of two the even one; 448 in place of what is larger; NaN stays NaN. */
uint8_t e4m3_nearest(float value);

#endif
