/* Files of events as TensorBoard reads them: records (a length and what it holds, each with a checksum) of
 * messages in the encoding of protocol buffers. Sources: TensorFlow's record_writer.h, event.proto and
 * summary.proto, and the Protocol Buffers encoding guide. Internal. */
#ifndef SGM_MONITORS_EVENT_FILE_H
#define SGM_MONITORS_EVENT_FILE_H

#include "base/base.h"

/* CRC-32C (Castagnoli): polynomial 0x1EDC6F41, reflected; "123456789" gives 0xE3069283. */
uint32_t sgm__crc32c(const void *bytes, size_t length);

/* Of a Summary; values that belong together have tags with the same beginning, "loss/training". */
void sgm__summary_scalar(sgm__text *summary, const char *tag, double value);
/* 30 buckets of the same width from the minimum to the maximum value; numbers that are not finite are left
 * out, and without any others nothing is added. */
void sgm__summary_histogram(sgm__text *summary, const char *tag, const double *values, size_t count);

/* A record of an Event; `when`: seconds since 1970. */
void sgm__event_version(sgm__text *to, double when); /* a file's first */
void sgm__event_summary(sgm__text *to, double when, int64_t step, const sgm__text *summary);
/* What was told of this step and of later ones counts no more. */
void sgm__event_restart(sgm__text *to, double when, int64_t step);

#endif
