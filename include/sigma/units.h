/* Quantities for people to read, the same everywhere; each returns `buffer` (64 bytes are always enough). */
#ifndef SIGMA_UNITS_H
#define SIGMA_UNITS_H

#include <sigma/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "1 h 2 min", "12.4 s", "3.1 ms" */
SGM_API char *sgm_duration_text(double seconds, char *buffer, size_t size);
/* "0:12", "3:07", "1:02:03": for what is drawn again and again */
SGM_API char *sgm_clock_text(double seconds, char *buffer, size_t size);
/* "12.4 examples/s", "3.5 epochs/min": in the shortest unit in which it is 1 or more */
SGM_API char *sgm_rate_text(double per_second, const char *what, char *buffer, size_t size);
/* "12,345" */
SGM_API char *sgm_count_text(int64_t number, char *buffer, size_t size);
/* "812 bytes", "1.2 MB": powers of 1000 */
SGM_API char *sgm_bytes_text(double bytes, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif
#endif
