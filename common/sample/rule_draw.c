/* `draw` and `looks_on` of each row, apart from the table, which no device can read. */
#include "common/sample/rule.h"

DEVICE_CODE enum rule_draw rule_draw(const struct sampling *sampling)
{
    if (sampling->temperature == 0.0)
        return RULE_DRAWS_ARGMAX;
    switch ((enum accept_mode)sampling->accept) { /* without a default, so that the compiler asks for each rule */
    case ACCEPT_REJECTION:
    case ACCEPT_BLOCK:
    case ACCEPT_CLASSIC:
    case ACCEPT_LENIENCE:
    case ACCEPT_MULTISTEP:
    case ACCEPT_WITHOUT_REPLACEMENT:
    case ACCEPT_K_SEQUENTIAL:
    case ACCEPT_TRAVERSAL:
        return RULE_DRAWS_Q;
    case ACCEPT_COUPLED:
        return RULE_DRAWS_NOISE;
    case ACCEPT_WALK:
    case ACCEPT_THRESHOLD:
    case ACCEPT_TYPICAL:
        return RULE_DRAWS_ARGMAX;
    case ACCEPT_MODES:
        break;
    }
    return RULE_DRAWS_ARGMAX; /* no rule, which sampling_check refuses: a point mass is a valid q under every one */
}

DEVICE_CODE uint32_t rule_coin(const struct sampling *sampling, int depth)
{
    uint32_t looks_on = sampling->temperature > 0.0 && (sampling->accept == ACCEPT_BLOCK || sampling->accept == ACCEPT_TRAVERSAL);

    return (uint32_t)sampling->drafter * RULE_COINS + (looks_on ? (uint32_t)depth : 0);
}
