/* Writes the few protocol-buffer messages that TensorBoard needs, by hand, so that no library is required.
 *
 * Messages are built from the inside out: a nested message is a text of its own, which append_message puts
 * into the outer one with its length in front. A failed allocation sets `failed` in the text and travels
 * outwards; callers look at the end only. Field numbers are those of event.proto and summary.proto. */
#include "monitors/event_file.h"

#include <math.h>

/* The polynomial of CRC-32C with its bits reflected. */
#define CASTAGNOLI 0x82F63B78u
/* Buckets of a histogram; TensorBoard draws 30. */
#define BUCKETS 30

/* --- records --- */

/* Bit by bit: events are small and rare, so a table is not worth its memory. */
uint32_t sgm__crc32c(const void *bytes, size_t length)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < length; i++) {
        crc ^= ((const uint8_t *)bytes)[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? CASTAGNOLI : 0);
    }
    return ~crc;
}

/* The lowest `size` bytes of `value`, little-endian on any processor. */
static void append_fixed(sgm__text *to, uint64_t value, size_t size)
{
    char bytes[8];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(value >> 8 * i);
    sgm__text_append_bytes(to, bytes, size);
}

/* The masked CRC of TensorFlow's records: rotated by 15 bits plus a constant. The CRC of data that contain
 * their own CRC would otherwise be degenerate. */
static void append_checksum(sgm__text *to, const void *bytes, size_t length)
{
    uint32_t crc = sgm__crc32c(bytes, length);
    append_fixed(to, (uint32_t)((crc >> 15 | crc << 17) + 0xA282EAD8u), 4);
}

/* Length, its checksum, the bytes, their checksum. */
static void append_record(sgm__text *to, const void *bytes, size_t length)
{
    sgm__text head = {0};
    append_fixed(&head, length, 8);
    if (head.failed) {
        to->failed = true;
        return;
    }
    sgm__text_append_bytes(to, head.data, head.length);
    append_checksum(to, head.data, head.length);
    sgm__text_append_bytes(to, bytes, length);
    append_checksum(to, bytes, length);
    sgm__text_free(&head);
}

/* --- wire format --- */

/* 7 bits per byte, the lowest first; the highest bit says that another byte follows. */
static void append_varint(sgm__text *to, uint64_t value)
{
    char bytes[10];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[count++] = (char)(value | 0x80);
    bytes[count++] = (char)value;
    sgm__text_append_bytes(to, bytes, count);
}

/* The wire types of the encoding guide: how the value behind a key is encoded. */
enum wire { VARINT = 0, FIXED64 = 1, DELIMITED = 2, FIXED32 = 5 };

static void append_key(sgm__text *to, uint32_t field, enum wire wire)
{
    append_varint(to, (uint64_t)field << 3 | wire);
}

static void put_integer(sgm__text *to, uint32_t field, uint64_t value)
{
    append_key(to, field, VARINT);
    append_varint(to, value);
}

static void put_float(sgm__text *to, uint32_t field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    append_key(to, field, FIXED32);
    append_fixed(to, bits, 4);
}

static void append_double(sgm__text *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    append_fixed(to, bits, 8);
}

static void put_double(sgm__text *to, uint32_t field, double value)
{
    append_key(to, field, FIXED64);
    append_double(to, value);
}

static void put_bytes(sgm__text *to, uint32_t field, const void *bytes, size_t length)
{
    append_key(to, field, DELIMITED);
    append_varint(to, length);
    if (length > 0)
        sgm__text_append_bytes(to, bytes, length);
}

/* A repeated double in packed encoding: one key and one length for all values. */
static void put_doubles(sgm__text *to, uint32_t field, const double *values, size_t count)
{
    append_key(to, field, DELIMITED);
    append_varint(to, 8 * count);
    for (size_t i = 0; i < count; i++)
        append_double(to, values[i]);
}

/* Appends `part` as a nested message and frees it. A failure in `part` becomes a failure in `to`. */
static void append_message(sgm__text *to, uint32_t field, sgm__text *part)
{
    put_bytes(to, field, part->data, part->length);
    to->failed = to->failed || part->failed;
    sgm__text_free(part);
}

/* --- Summary { repeated Value value = 1; } --- */

/* Field numbers of Summary.Value and HistogramProto. */
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_HISTOGRAM = 5 };
enum {
    HISTOGRAM_MIN = 1,
    HISTOGRAM_MAX,
    HISTOGRAM_NUM,
    HISTOGRAM_SUM,
    HISTOGRAM_SUM_SQUARES,
    HISTOGRAM_LIMITS,
    HISTOGRAM_COUNTS
};

void sgm__summary_scalar(sgm__text *summary, const char *tag, double value)
{
    sgm__text part = {0};
    put_bytes(&part, VALUE_TAG, tag, strlen(tag));
    put_float(&part, VALUE_SIMPLE, (float)value);
    append_message(summary, 1, &part);
}

/* The members of a HistogramProto. Bucket k holds the values up to limits[k], beyond limits[k - 1]. */
typedef struct histogram {
    double minimum, maximum, number, sum, squares;
    double limits[BUCKETS], counts[BUCKETS];
} histogram;

/* Two passes: range and sums, then the counts. The last limit is the maximum itself rather than minimum +
 * 30 * width, which rounding may put below it. If all values are equal, the width is 0 and all are counted
 * in bucket 0; sgm__summary_histogram then writes a single bucket. */
static histogram measure(const double *values, size_t count)
{
    histogram h = {.minimum = INFINITY, .maximum = -INFINITY};
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            h.minimum = fmin(h.minimum, values[i]);
            h.maximum = fmax(h.maximum, values[i]);
            h.number++;
            h.sum += values[i];
            h.squares += values[i] * values[i];
        }
    double width = (h.maximum - h.minimum) / BUCKETS;
    for (int k = 0; k < BUCKETS; k++)
        h.limits[k] = k == BUCKETS - 1 ? h.maximum : h.minimum + width * (k + 1);
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            double place = width > 0 ? (values[i] - h.minimum) / width : 0;
            h.counts[place < BUCKETS - 1 ? (int)place : BUCKETS - 1]++;
        }
    return h;
}

void sgm__summary_histogram(sgm__text *summary, const char *tag, const double *values, size_t count)
{
    sgm__text inner = {0}, part = {0};
    histogram h = measure(values, count);
    if (!(h.number > 0))
        return;
    /* TensorBoard requires limits that grow strictly: equal values are one bucket. */
    bool one = !(h.maximum > h.minimum);
    put_double(&inner, HISTOGRAM_MIN, h.minimum);
    put_double(&inner, HISTOGRAM_MAX, h.maximum);
    put_double(&inner, HISTOGRAM_NUM, h.number);
    put_double(&inner, HISTOGRAM_SUM, h.sum);
    put_double(&inner, HISTOGRAM_SUM_SQUARES, h.squares);
    put_doubles(&inner, HISTOGRAM_LIMITS, h.limits, one ? 1 : BUCKETS);
    put_doubles(&inner, HISTOGRAM_COUNTS, one ? &h.number : h.counts, one ? 1 : BUCKETS);
    put_bytes(&part, VALUE_TAG, tag, strlen(tag));
    append_message(&part, VALUE_HISTOGRAM, &inner);
    append_message(summary, 1, &part);
}

/* --- Event --- */

/* Field numbers of Event; SessionLog { SessionStatus status = 1; } with the status START. */
enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION = 7 };
#define SESSION_START 1

/* Appends `event` as a record and frees it. */
static void append_event(sgm__text *to, sgm__text *event)
{
    if (!event->failed)
        append_record(to, event->data, event->length);
    to->failed = to->failed || event->failed;
    sgm__text_free(event);
}

/* Protocol buffers leave out numbers that are zero. */
static sgm__text begin_event(double when, int64_t step)
{
    sgm__text event = {0};
    put_double(&event, EVENT_TIME, when);
    if (step != 0)
        put_integer(&event, EVENT_STEP, (uint64_t)step);
    return event;
}

/* "brain.Event:2" is the version of the format that TensorBoard expects. */
void sgm__event_version(sgm__text *to, double when)
{
    static const char version[] = "brain.Event:2";
    sgm__text event = begin_event(when, 0);
    put_bytes(&event, EVENT_VERSION, version, sizeof version - 1);
    append_event(to, &event);
}

void sgm__event_summary(sgm__text *to, double when, int64_t step, const sgm__text *summary)
{
    sgm__text event = begin_event(when, step);
    put_bytes(&event, EVENT_SUMMARY, summary->data, summary->length);
    event.failed = event.failed || summary->failed;
    append_event(to, &event);
}

/* A SessionLog with START tells TensorBoard to purge events from this step on. */
void sgm__event_restart(sgm__text *to, double when, int64_t step)
{
    sgm__text event = begin_event(when, step), session = {0};
    put_integer(&session, 1, SESSION_START);
    append_message(&event, EVENT_SESSION, &session);
    append_event(to, &event);
}
