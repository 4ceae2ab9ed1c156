/* What programs that measure share, also those that have nothing to do with the library. */
#ifndef SIGMA_BENCH_MEASURE_H
#define SIGMA_BENCH_MEASURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Seconds since some moment. */
static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Of doubles. */
static inline int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts them. */
static inline double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return count > 0 ? (values[(count - 1) / 2] + values[count / 2]) / 2 : 0;
}

/* The most memory that this process has had. */
static inline double peak_megabytes(void)
{
    char line[256];
    long kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0)
            kilobytes = strtol(line + 6, NULL, 10);
    if (status != NULL)
        fclose(status);
    return (double)kilobytes / 1024;
}

#endif
