#include "launch/bench/report/statistics.h"

#include "common/base/log.h"
#include <math.h>
#include <stdlib.h>

enum status statistics_add(struct statistics *statistics, double value)
{
    if (statistics->count == statistics->room) {
        int room = statistics->room > 0 ? 2 * statistics->room : 64;
        double *grown = realloc(statistics->value, (size_t)room * sizeof *grown);

        if (grown == NULL) {
            log_error("no memory for %d values", room);
            return STATUS_INTERNAL;
        }
        statistics->value = grown;
        statistics->room = room;
    }
    statistics->value[statistics->count++] = value;
    return STATUS_OK;
}

void statistics_release(struct statistics *statistics)
{
    free(statistics->value);
    *statistics = (struct statistics){0};
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void statistics_sort(struct statistics *statistics)
{
    if (statistics->count > 0)
        qsort(statistics->value, (size_t)statistics->count, sizeof *statistics->value, compare);
}

double statistics_quantile(const struct statistics *statistics, double p)
{
    double at = p * (statistics->count - 1);
    int low = (int)at;

    if (statistics->count == 0)
        return 0;
    if (low + 1 >= statistics->count)
        return statistics->value[statistics->count - 1];
    return statistics->value[low] + (at - low) * (statistics->value[low + 1] - statistics->value[low]);
}

double statistics_mean(const struct statistics *statistics)
{
    double sum = 0;

    for (int i = 0; i < statistics->count; i++)
        sum += statistics->value[i];
    return statistics->count > 0 ? sum / statistics->count : 0;
}

double statistics_trimmed(const struct statistics *statistics)
{
    int cut = statistics->count / 40;
    double sum = 0;

    for (int i = cut; i < statistics->count - cut; i++)
        sum += statistics->value[i];
    return statistics->count > 0 ? sum / (statistics->count - 2 * cut) : 0;
}

double statistics_deviation(const struct statistics *statistics)
{
    double mean = statistics_mean(statistics), sum = 0;

    for (int i = 0; i < statistics->count; i++)
        sum += (statistics->value[i] - mean) * (statistics->value[i] - mean);
    return statistics->count > 0 ? sqrt(sum / statistics->count) : 0;
}

double statistics_spread(const struct statistics *statistics)
{
    double median = statistics_quantile(statistics, 0.5), spread;
    struct statistics distances = {0};

    for (int i = 0; i < statistics->count; i++)
        if (statistics_add(&distances, fabs(statistics->value[i] - median)) != STATUS_OK)
            break;
    statistics_sort(&distances);
    spread = 1.4826 * statistics_quantile(&distances, 0.5);
    statistics_release(&distances);
    return spread;
}

void line_add(struct line *line, double x, double y, double weight)
{
    line->weight += weight;
    line->x += weight * x;
    line->y += weight * y;
    line->xx += weight * x * x;
    line->xy += weight * x * y;
}

double line_slope(const struct line *line)
{
    double spread = line->weight * line->xx - line->x * line->x;

    return spread > 1e-9 * line->weight * line->xx ? (line->weight * line->xy - line->x * line->y) / spread : 0;
}

double line_at(const struct line *line, double x)
{
    if (line->weight <= 0)
        return 0;
    return line->y / line->weight + line_slope(line) * (x - line->x / line->weight);
}
