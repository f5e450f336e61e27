#include "verifier/check/check_share.h"

#include <math.h>

void check_share_add(struct check_share *share, int64_t asked, int64_t answered, int64_t drafted)
{
    double part = asked > 0 ? (double)answered / (double)asked : 1;

    if (asked == 0)
        return;
    share->least = share->passes == 0 ? part : fmin(share->least, part);
    share->passes++;
    share->asked += asked;
    share->answered += answered;
    share->drafted += drafted;
}

int check_share_suffices(const struct check_share *share)
{
    return share->least >= CHECK_SHARE_LEAST && share->drafted >= CHECK_DRAFTED_LEAST * (double)share->asked; /* least: 0 where nothing was asked */
}

double check_share_found(double found, int64_t drafted, int64_t samples)
{
    return drafted > 0 ? fmin(1, found * (double)samples / (double)drafted) : 1;
}
