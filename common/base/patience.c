#include "common/base/patience.h"

#include "common/base/clock.h"

struct patience patience_begin(int64_t longest_ns)
{
    return (struct patience){.longest_ns = longest_ns, .looked_ns = clock_ns()};
}

int64_t patience_spent(struct patience *patience)
{
    int64_t now = clock_ns(), passed = now - patience->looked_ns;

    patience->looked_ns = now;
    patience->spent_ns += passed < patience->longest_ns ? passed : patience->longest_ns;
    return patience->spent_ns;
}

void patience_renew(struct patience *patience)
{
    patience->looked_ns = clock_ns();
    patience->spent_ns = 0;
}
