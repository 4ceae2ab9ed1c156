/* Encodes event files as TensorBoard reads them: a sequence of records, each an Event message in the wire
 * format of protocol buffers.
 *
 * A record is: length (8 bytes), masked CRC of the length (4), message, masked CRC of the message (4), all
 * little-endian. These functions append bytes to a text; tensorboard.c decides what to write and writes
 * it. Sources: TensorFlow's record_writer.h, event.proto and summary.proto, and the Protocol Buffers
 * encoding guide. Internal. */
#ifndef SGM_MONITORS_EVENT_FILE_H
#define SGM_MONITORS_EVENT_FILE_H

#include "base/base.h"

/* CRC-32C (Castagnoli): polynomial 0x1EDC6F41, reflected; "123456789" gives 0xE3069283. */
uint32_t sgm__crc32c(const void *bytes, size_t length);

/* Appends one value to a Summary message. TensorBoard groups charts by the part of a tag before '/':
 * "loss/training". */
void sgm__summary_scalar(sgm__text *summary, const char *tag, double value);
/* 30 buckets of equal width from the minimum to the maximum. Values that are not finite are left out; if
 * none remains, nothing is appended. */
void sgm__summary_histogram(sgm__text *summary, const char *tag, const double *values, size_t count);

/* Each appends one record with one Event. `when`: seconds since 1970. The version event must be the first
 * of a file. */
void sgm__event_version(sgm__text *to, double when);
void sgm__event_summary(sgm__text *to, double when, int64_t step, const sgm__text *summary);
/* Declares the events written so far for `step` and later steps void: TensorBoard removes them. */
void sgm__event_restart(sgm__text *to, double when, int64_t step);

#endif
