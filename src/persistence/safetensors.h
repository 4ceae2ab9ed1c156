/* What writing and reading safetensors files share. Internal. */
#ifndef SGM_PERSISTENCE_SAFETENSORS_H
#define SGM_PERSISTENCE_SAFETENSORS_H

#include "persistence/bundle.h"

/* The file: the header's length (8 bytes, little-endian), the header (JSON), the bytes of the tensors. */
#define SGM__SAFETENSORS_LENGTH_BYTES 8
#define SGM__SAFETENSORS_MOST_HEADER 100000000 /* as in other readers of the format */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the format is little-endian, and so must the machine be");

bool sgm__safetensors_dtype_parse(const char *name, sgm_dtype *dtype);

#endif
