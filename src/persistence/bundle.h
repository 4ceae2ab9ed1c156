/* Declares the inside of a bundle (named tensors and named texts), and the formats that it is written in.
 * Internal.
 *
 * bundle.c is the bundle in memory. safetensors_save.c, safetensors_load.c and safetensors_checksum.c are its
 * usual format, npz.c and npy_save.c NumPy's. Checkpoints (src/runs) and models are bundles. */
#ifndef SGM_PERSISTENCE_BUNDLE_H
#define SGM_PERSISTENCE_BUNDLE_H

#include "base/name_index.h"
#include <sigma/tensor.h>

typedef struct sgm__bundle_tensor {
    char *name;
    sgm_tensor *tensor;
    bool half; /* a float32 tensor that is float16 in a safetensors file */
} sgm__bundle_tensor;

typedef struct sgm__bundle_text {
    char *key, *text;
} sgm__bundle_text;

struct sgm_bundle {
    sgm__bundle_tensor *tensors; /* in the order they came */
    size_t count, capacity;      /* of `tensors` */
    sgm__name_index index;       /* from names to positions in `tensors` */
    sgm__bundle_text *texts;
    size_t text_count, text_capacity;
    bool verified; /* read from a file that has checksums, all of which are right */
};

/* Texts whose keys begin so belong to the file alone: saving adds them, loading checks and drops them, and a
 * program cannot set them. */
#define SGM__CHECKSUM_PREFIX "sigma.checksum."
bool sgm__is_checksum_key(const char *key);
#define SGM__CHECKSUM_DIGITS 8
/* The header's checksum of a safetensors file, which covers those of all tensors: equal files have equal
 * ones. False: the file cannot be read, or has none. */
bool sgm__checksum_of_file(const char *path, char digits[SGM__CHECKSUM_DIGITS + 1]);
/* As sgm_bundle_save, for safetensors alone: `before_rename` is called before the file takes its place. */
sgm_status sgm__bundle_save_with_callback(const sgm_bundle *bundle, const char *path,
                                          sgm__before_rename_function before_rename, void *user);
bool sgm__bundle_has_text(const sgm_bundle *bundle, const char *key);

/* The tensor's place in the bundle's order. False: there is none of that name. */
bool sgm__bundle_find(const sgm_bundle *bundle, const char *name, size_t *place);
/* Adds a tensor whose name has been checked and is new to the bundle. Takes over the caller's reference, also
 * on failure. */
sgm_status sgm__bundle_append(sgm_bundle *bundle, const char *name, sgm_tensor *tensor);

/* npy_save.c: appends a whole .npy file to `file`; `what` names it in messages. */
sgm_status sgm__npy_append(sgm__text *file, const char *what, const sgm_tensor *tensor);

/* npz.c: arrays in a zip archive. Texts of the bundle are arrays of bytes there, "__text__/KEY". */
bool sgm__npz_is_named(const char *path); /* ends in .npz */
bool sgm__npz_begins(const char *path);   /* the file can be read and begins like a zip archive */
sgm_status sgm__npz_save(const sgm_bundle *bundle, const char *path);
sgm_bundle *sgm__npz_load(const char *path);

/* safetensors_load.c: loads only the texts of a file. The header is read and checked completely, tensors are
 * not read (except those of an .npz file, which has no header). */
sgm_bundle *sgm__bundle_load_texts(const char *path);

#endif
