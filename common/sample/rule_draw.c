/* `draw` of each row, apart from the table, which no device can read. */
#include "common/sample/rule.h"

DEVICE_CODE enum rule_draw rule_draw(const struct sampling *sampling)
{
    if (sampling->temperature == 0.0)
        return RULE_DRAWS_ARGMAX;
    switch ((enum accept_mode)sampling->accept) { /* without a default, so that the compiler asks for each rule */
    case ACCEPT_REJECTION:
        return RULE_DRAWS_Q;
    case ACCEPT_COUPLED:
        return RULE_DRAWS_NOISE;
    case ACCEPT_MODES:
        break;
    }
    return RULE_DRAWS_ARGMAX; /* no rule, which sampling_check refuses: a point mass is a valid q under every one */
}
