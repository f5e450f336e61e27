/* The median of values and how well it is known, whatever they are spread like: where others use a machine some are far off, and neither feels them.
 * Pure. */
#ifndef TANDEM_COMMON_BASE_MEDIAN_H
#define TANDEM_COMMON_BASE_MEDIAN_H

/* Sorts them, as the functions below ask for.  value: [count] */
void median_sort(double *value, int count);
/* Between the two in the middle of an even number; 0 of nothing. */
double median_of_sorted(const double *value, int count);
/* Its standard error, in the unit of the values: the true median lies among the sorted about sqrt(count) / 2 places from the middle, and this is half
 * the distance between the values there. Rounded so that few values are not believed too much; one alone knows nothing, and its error is as large as
 * itself. */
double median_error_of_sorted(const double *value, int count);

#endif
