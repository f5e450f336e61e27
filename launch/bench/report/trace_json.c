#include "launch/bench/report/trace_json.h"
void trace_json_write(const struct run *run, const struct figures_of_placement *all, FILE *to)
{
    (void)run;
    (void)all;
    fputs("{}", to);
}
