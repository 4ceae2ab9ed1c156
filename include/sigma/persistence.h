/* Tensors and text in one file: the safetensors format, whose metadata carries what belongs to the tensors.
 *
 * A checkpoint is such a file, written beside its place and then renamed: there is a whole one or none.
 * Format: https://huggingface.co/docs/safetensors
 */
#ifndef SIGMA_PERSISTENCE_H
#define SIGMA_PERSISTENCE_H

#include <sigma/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgm_bundle sgm_bundle; /* named tensors and named texts */

SGM_API sgm_bundle *sgm_bundle_create(void);
SGM_API void sgm_bundle_free(sgm_bundle *bundle);
/* Keeps a reference to the tensor; a name twice is an error. */
SGM_API sgm_status sgm_bundle_add(sgm_bundle *bundle, const char *name, sgm_tensor *tensor);
SGM_API sgm_status sgm_bundle_set_text(sgm_bundle *bundle, const char *key, const char *text);
/* Borrowed; NULL and an error with the nearest name if absent. */
SGM_API sgm_tensor *sgm_bundle_get(const sgm_bundle *bundle, const char *name);
SGM_API const char *sgm_bundle_text(const sgm_bundle *bundle, const char *key);
SGM_API bool sgm_bundle_has(const sgm_bundle *bundle, const char *name);
SGM_API size_t sgm_bundle_count(const sgm_bundle *bundle);
SGM_API const char *sgm_bundle_name(const sgm_bundle *bundle, size_t index);

/* Writes PATH.tmp, syncs, renames, syncs the folder. The file has checksums (CRC-32) of its header and of
 * each tensor, as the texts "sigma.checksum.header" and "sigma.checksum.tensors", which no bundle can set. A
 * path that ends in .npz: NumPy's format, uncompressed; texts are arrays of bytes there, "__text__/KEY". */
SGM_API sgm_status sgm_bundle_save(const sgm_bundle *bundle, const char *path);
/* safetensors, or .npz (compressed or not; by content). Checks the whole header against the file's size
 * before it takes memory, and compares checksums where the file has some: a damaged file is
 * SGM_ERROR_FORMAT. F16 is read as float32, exactly; the 8-, 16- and unsigned integer types that Sigma
 * lacks are refused by name. The arrays of an .npz may take 256 MiB, or 64 times the file's size. */
SGM_API sgm_bundle *sgm_bundle_load(const char *path);

/* One tensor as a NumPy file. */
SGM_API sgm_status sgm_npy_save(const char *path, const sgm_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
