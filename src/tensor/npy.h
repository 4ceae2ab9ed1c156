/* The header of NumPy's .npy files, for readers of data and of parameters. Internal. */
#ifndef SGM_TENSOR_NPY_H
#define SGM_TENSOR_NPY_H

#include "base/base.h"

#include <sigma/tensor.h>

/* A file: the magic, two bytes of version, the header's length (2 bytes in version 1, else 4), the header. */
#define SGM__NPY_MAGIC "\x93NUMPY"
#define SGM__NPY_MAGIC_SIZE 6
#define SGM__NPY_LONGEST_HEADER 65536 /* NumPy itself refuses more than 10,000 by default */

typedef struct sgm__npy_header {
    char descr[32]; /* "<f4" */
    bool is_fortran;
    sgm_shape shape;
} sgm__npy_header;
/* `name` is the file's, for messages. */
sgm_status sgm__npy_header_parse(const char *name, const char *text, sgm__npy_header *header);

#endif
