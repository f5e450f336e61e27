/* `draw` of each row, apart from the table, which no device can read. */
#include "common/sample/rule.h"

DEVICE_CODE enum rule_draw rule_draw(const struct sampling *sampling)
{
    if (sampling->temperature == 0.0)
        return RULE_DRAWS_ARGMAX;
    switch (sampling->accept) {
    case ACCEPT_COUPLED:
        return RULE_DRAWS_NOISE;
    default:
        return RULE_DRAWS_Q;
    }
}
