/* The cases of stored_cases.bin, as stored_cases.py writes them. */
#ifndef SIGMA_TEST_STORED_CASES_H
#define SIGMA_TEST_STORED_CASES_H

#include "base/base.h"
#include "test.h"
#include <sigma/sigma.h>

#define STORED_CASES "tests/onnx/stored_cases.bin"

/* What is left of the file. */
typedef struct reader {
    const unsigned char *at, *end;
} reader;

typedef struct block {
    const unsigned char *bytes;
    size_t length;
} block;

static block next_block(reader *r)
{
    CHECK(r->end - r->at >= 4);
    size_t length = r->at[0] | (size_t)r->at[1] << 8 | (size_t)r->at[2] << 16 | (size_t)r->at[3] << 24;
    block b = {r->at + 4, length};
    CHECK((size_t)(r->end - b.bytes) >= length);
    r->at = b.bytes + length;
    return b;
}

/* The whole file; the caller frees `*bytes`. */
static reader open_stored_cases(char **bytes)
{
    size_t length;
    CHECK_OK(sgm__file_read(STORED_CASES, 1 << 24, bytes, &length));
    return (reader){(unsigned char *)*bytes, (unsigned char *)*bytes + length};
}

#endif
