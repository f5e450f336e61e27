#include "launch/bench/report/page_html.h"
void page_html_write(const struct run *run, const struct figures_of_placement *all, FILE *to)
{
    (void)run;
    (void)all;
    fputs("{}", to);
}
