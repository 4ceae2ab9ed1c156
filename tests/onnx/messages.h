/* Messages of protobuf written by hand, for models that no exporter would write. */
#ifndef TESTS_ONNX_MESSAGES_H
#define TESTS_ONNX_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct protobuf_message {
    unsigned char bytes[1 << 14];
    size_t length;
    bool full; /* something had no room: the message is of no use */
} protobuf_message;

static inline void put_raw(protobuf_message *m, const void *bytes, size_t length)
{
    m->full = m->full || length > sizeof m->bytes - m->length;
    if (m->full || length == 0)
        return;
    memcpy(m->bytes + m->length, bytes, length);
    m->length += length;
}

static inline void put_number(protobuf_message *m, uint64_t number)
{
    unsigned char digits[10];
    size_t count = 0;
    for (; number > 127; number >>= 7)
        digits[count++] = (unsigned char)(number & 127) | 128;
    digits[count++] = (unsigned char)number;
    put_raw(m, digits, count);
}

static inline void put_integer(protobuf_message *m, int field, int64_t number)
{
    put_number(m, (uint64_t)field << 3);
    put_number(m, (uint64_t)number);
}

static inline void put_bytes(protobuf_message *m, int field, const void *bytes, size_t length)
{
    put_number(m, (uint64_t)field << 3 | 2);
    put_number(m, length);
    put_raw(m, bytes, length);
}

static inline void put_text(protobuf_message *m, int field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

static inline void put_message(protobuf_message *m, int field, const protobuf_message *inner)
{
    put_bytes(m, field, inner->bytes, inner->length);
    m->full = m->full || inner->full;
}

#endif
