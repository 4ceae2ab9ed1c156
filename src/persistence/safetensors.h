/* Declares what writing and reading of safetensors files share: limits, names of types, checksums. Internal.
 *
 * A file is the header's length (8 bytes, little-endian), the header (JSON: for each tensor its type, shape
 * and position, and texts), and the bytes of all tensors. The format is described at
 * https://huggingface.co/docs/safetensors. */
#ifndef SGM_PERSISTENCE_SAFETENSORS_H
#define SGM_PERSISTENCE_SAFETENSORS_H

#include "persistence/bundle.h"
#include <jansson.h>

#define SGM__SAFETENSORS_LENGTH_BYTES 8
#define SGM__SAFETENSORS_MAXIMUM_HEADER 100000000 /* as in other readers of the format */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the format is little-endian, and so must the machine be");

/* "F32" and so on; false: the library has no such type. In safetensors_save.c, beside the names. */
bool sgm__safetensors_dtype_parse(const char *name, sgm_dtype *dtype);

/* --- safetensors_checksum.c --- */
/* Puts texts of checksums, all zeros so far, into metadata that have no other texts yet. False: out of
 * memory. */
bool sgm__checksums_describe(json_t *texts, size_t count);
/* Fills in a checksum in the text of such a header: that of the tensor that is number `index` in the header.
 */
void sgm__checksums_write(char *header, size_t index, const void *bytes, size_t length);
/* Fills in the header's own checksum, over all of its text with the padding; nothing in the header may change
 * afterwards. */
void sgm__checksums_seal(char *header, size_t length);
/* Checks the header's checksum against its text as it was read. *sealed: the header has checksums; without
 * any, the file is accepted. */
sgm_status sgm__checksums_check_header(const json_t *header, const char *text, size_t length, bool *sealed);
/* Of a header that is sealed: whether the list has a checksum for each tensor; and whether that of one
 * tensor, by its number in the header, is right. */
sgm_status sgm__checksums_check_count(const json_t *header, size_t count);
sgm_status sgm__checksums_check_tensor(const json_t *header, size_t index, const void *bytes, size_t length);

#endif
