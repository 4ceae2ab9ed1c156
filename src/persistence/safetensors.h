/* What writing and reading safetensors files share. Internal. */
#ifndef SGM_PERSISTENCE_SAFETENSORS_H
#define SGM_PERSISTENCE_SAFETENSORS_H

#include "persistence/bundle.h"
#include <jansson.h>

/* The file: the header's length (8 bytes, little-endian), the header (JSON), the bytes of the tensors. */
#define SGM__SAFETENSORS_LENGTH_BYTES 8
#define SGM__SAFETENSORS_MAXIMUM_HEADER 100000000 /* as in other readers of the format */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the format is little-endian, and so must the machine be");

bool sgm__safetensors_dtype_parse(const char *name, sgm_dtype *dtype);

/* --- safetensors_checksum.c --- */
/* Puts texts of checksums, all zeros yet, into metadata that have no other texts yet. False: no memory. */
bool sgm__checksums_describe(json_t *texts, size_t count);
/* In the text of such a header: that of a tensor, by its place in the header; and the header's own, padding
 * included, when nothing else of it changes any more. */
void sgm__checksums_write(char *header, size_t index, const void *bytes, size_t length);
void sgm__checksums_seal(char *header, size_t length);
/* Against the header's text as it was read. *sealed: it has checksums. */
sgm_status sgm__checksums_check_header(const json_t *header, const char *text, size_t length, bool *sealed);
/* Of a header that is sealed: whether there is one for each tensor, and that of one, by its place in the
 * header. */
sgm_status sgm__checksums_check_count(const json_t *header, size_t count);
sgm_status sgm__checksums_check_tensor(const json_t *header, size_t index, const void *bytes, size_t length);

#endif
