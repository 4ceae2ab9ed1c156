/* The inside of a bundle. Internal. */
#ifndef SGM_PERSISTENCE_BUNDLE_H
#define SGM_PERSISTENCE_BUNDLE_H

#include "base/name_index.h"
#include <sigma/persistence.h>

typedef struct sgm__bundle_tensor {
    char *name;
    sgm_tensor *tensor;
} sgm__bundle_tensor;

typedef struct sgm__bundle_text {
    char *key, *text;
} sgm__bundle_text;

struct sgm_bundle {
    sgm__bundle_tensor *tensors; /* in the order they came */
    size_t count, capacity;
    sgm__name_index index; /* of their names in `tensors` */
    sgm__bundle_text *texts;
    size_t text_count, text_capacity;
    bool verified; /* it comes from a file whose checksums hold */
};

/* Texts under such keys are the file's, of which a bundle in memory has none. */
#define SGM__CHECKSUM_PREFIX "sigma.checksum."
bool sgm__is_checksum_key(const char *key);
bool sgm__bundle_has_text(const sgm_bundle *bundle, const char *key);

/* Adds a tensor whose name is new to the bundle and has been checked; takes the reference, also on failure.
 */
sgm_status sgm__bundle_append(sgm_bundle *bundle, const char *name, sgm_tensor *tensor);

/* npy_save.c: appends the whole of an .npy file; `what` is named in messages. */
sgm_status sgm__npy_append(sgm__text *file, const char *what, const sgm_tensor *tensor);

/* npz.c: arrays in a zip archive; texts of a bundle are arrays of bytes there, "__text__/KEY". */
bool sgm__npz_is_named(const char *path); /* ends in .npz */
bool sgm__npz_begins(const char *path);   /* the file is there and begins like a zip archive */
sgm_status sgm__npz_save(const sgm_bundle *bundle, const char *path);
sgm_bundle *sgm__npz_load(const char *path);

/* safetensors_load.c: only the texts of a file. Its header is read and checked as a whole, its tensors are
 * not read (but for those of an .npz file). */
sgm_bundle *sgm__bundle_load_texts(const char *path);

#endif
