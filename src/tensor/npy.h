/* Reads the header of NumPy's .npy files, for data (src/data/read) and for parameters (src/persistence).
 * Internal. */
#ifndef SGM_TENSOR_NPY_H
#define SGM_TENSOR_NPY_H

#include "base/base.h"

#include <sigma/tensor.h>

/* The beginning of a file: the magic, two bytes of version, the header's length (2 bytes in version 1, else
 * 4, little endian), the header's text, the elements. */
#define SGM__NPY_MAGIC "\x93NUMPY"
#define SGM__NPY_MAGIC_SIZE 6
#define SGM__NPY_LONGEST_HEADER 65536 /* NumPy itself refuses more than 10,000 by default */

typedef struct sgm__npy_header {
    char descr[32];  /* "<f4" */
    bool is_fortran; /* column-major order: the first dimension varies fastest */
    sgm_shape shape;
} sgm__npy_header;
/* Parses the text of a header, which ends in a 0 byte; `name` is the file's, for messages. The element type
 * stays text: the caller knows which types it can read. */
sgm_status sgm__npy_header_parse(const char *name, const char *text, sgm__npy_header *header);

#endif
