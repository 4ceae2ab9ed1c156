/* Tensors, and files of them.
 *
 * Typed arrays in host memory: what a program hands to Sigma and gets back.
 *
 * Row-major ("C order"), rank 0 to 8, the batch first. A tensor is a reference-counted buffer with a shape,
 * strides (counted in elements, may be 0 or negative) and an offset; a view shares the buffer and keeps it
 * alive.
 */
#ifndef SIGMA_TENSOR_H
#define SIGMA_TENSOR_H

#include <sigma/base.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most dimensions of a tensor. */
#define SGM_MAX_RANK 8

/* All types of elements: the name (SGM_INT64 for INT64), the bytes of an element, the text. */
#define SGM_DTYPE_LIST(X)                                                                                    \
    X(FLOAT32, 4, "float32")                                                                                 \
    X(FLOAT64, 8, "float64")                                                                                 \
    X(INT32, 4, "int32")                                                                                     \
    X(INT64, 8, "int64")                                                                                     \
    X(UINT8, 1, "uint8")                                                                                     \
    X(BOOL, 1, "bool")                                                                                       \
    X(BFLOAT16, 2, "bfloat16")

/* The type of a tensor's elements. */
typedef enum sgm_dtype {
#define SGM_DTYPE_ENUM(name, size, text) SGM_##name,
    SGM_DTYPE_LIST(SGM_DTYPE_ENUM)
#undef SGM_DTYPE_ENUM
        SGM_DTYPE_COUNT /* how many types there are */
} sgm_dtype;

/* Bytes of an element. */
SGM_API size_t sgm_dtype_size(sgm_dtype dtype);
/* "float32" and so on. */
SGM_API const char *sgm_dtype_name(sgm_dtype dtype);
/* Whether it is float32, float64 or bfloat16. */
SGM_API bool sgm_dtype_is_float(sgm_dtype dtype);
/* The type of such a name; others are an error with the nearest. */
SGM_API sgm_status sgm_dtype_parse(const char *name, sgm_dtype *dtype);

/* The dimensions of a tensor. */
typedef struct sgm_shape {
    int32_t rank;               /* how many there are */
    int64_t dims[SGM_MAX_RANK]; /* entries from `rank` on are 0 */
} sgm_shape;

/* How many dimensions are listed, for sgm_shape_of. */
#define SGM_SHAPE_COUNT(...) (sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
/* sgm_shape_of(100, 784); rank 0 is sgm_scalar_shape(). */
#define sgm_shape_of(...)                                                                                    \
    sgm_shape_create((int32_t)SGM_SHAPE_COUNT(__VA_ARGS__), (const int64_t[]){__VA_ARGS__})

/* A shape of `rank` dimensions, which are copied. */
SGM_API sgm_shape sgm_shape_create(int32_t rank, const int64_t *dims);
/* The shape of one number: rank 0. */
SGM_API sgm_shape sgm_scalar_shape(void);
/* Whether ranks and dimensions are equal. */
SGM_API bool sgm_shape_equal(const sgm_shape *a, const sgm_shape *b);
/* Number of elements: 1 for rank 0, 0 when a dimension is 0; -1 when it overflows or a dimension is negative.
 */
SGM_API int64_t sgm_shape_elements(const sgm_shape *shape);
/* NumPy's broadcasting rule; SGM_ERROR_SHAPE names both shapes. */
SGM_API sgm_status sgm_shape_broadcast(const sgm_shape *a, const sgm_shape *b, sgm_shape *result);
/* "(100, 784)"; returns `buffer`. 128 bytes are enough for any shape. */
SGM_API char *sgm_shape_text(const sgm_shape *shape, char *buffer, size_t size);

/* An array of numbers, or a view of one; reference-counted. */
typedef struct sgm_tensor sgm_tensor;

/* A new tensor of zeros; NULL: out of memory, or a shape that is none. */
SGM_API sgm_tensor *sgm_tensor_create(sgm_dtype dtype, const sgm_shape *shape);
/* A new tensor with a copy of `values`, which lie side by side in the type `dtype`. */
SGM_API sgm_tensor *sgm_tensor_create_from(sgm_dtype dtype, const sgm_shape *shape, const void *values);
/* Wraps memory of the caller's without a copy; `release(user)` runs once, when the last view goes (or at once
 * on failure). */
SGM_API sgm_tensor *sgm_tensor_wrap(sgm_dtype dtype, const sgm_shape *shape, void *values,
                                    void (*release)(void *user), void *user);
SGM_API sgm_tensor *sgm_tensor_retain(sgm_tensor *tensor);
/* Gives back one reference; the last one frees it. NULL: nothing happens. */
SGM_API void sgm_tensor_free(sgm_tensor *tensor);

/* The type of its elements. */
SGM_API sgm_dtype sgm_tensor_dtype(const sgm_tensor *tensor);
/* Its dimensions; the tensor's. */
SGM_API const sgm_shape *sgm_tensor_shape(const sgm_tensor *tensor);
/* Elements from one index of each dimension to the next; the tensor's. */
SGM_API const int64_t *sgm_tensor_strides(const sgm_tensor *tensor);
/* Whether its elements lie side by side in row-major order. */
SGM_API bool sgm_tensor_is_contiguous(const sgm_tensor *tensor);
/* The first element of the view; the others are reached by the strides. */
SGM_API void *sgm_tensor_data(sgm_tensor *tensor);
/* As sgm_tensor_data, to read only. */
SGM_API const void *sgm_tensor_const_data(const sgm_tensor *tensor);

/* Views: share the buffer. `stop` is exclusive; `step` may be negative (then start > stop, stop may be -1).
 */
SGM_API sgm_tensor *sgm_tensor_slice(sgm_tensor *tensor, int32_t axis, int64_t start, int64_t stop,
                                     int64_t step);
/* A view whose dimension i is dimension axes[i] of the tensor. */
SGM_API sgm_tensor *sgm_tensor_permute(sgm_tensor *tensor, const int32_t *axes);
/* A view repeated to this shape by the rules of NumPy, without taking memory. */
SGM_API sgm_tensor *sgm_tensor_broadcast(sgm_tensor *tensor, const sgm_shape *shape);
/* A view where strides allow it, else a copy. One dimension may be -1. */
SGM_API sgm_tensor *sgm_tensor_reshape(sgm_tensor *tensor, const sgm_shape *shape);
/* Contiguous copy, converted to `dtype` (round to nearest; float to integer truncates as C does, saturating).
 */
SGM_API sgm_tensor *sgm_tensor_cast(const sgm_tensor *tensor, sgm_dtype dtype);
/* A contiguous copy in the same type. */
SGM_API sgm_tensor *sgm_tensor_copy(const sgm_tensor *tensor);
/* Copies values of equal shape, converting the type. */
SGM_API sgm_status sgm_tensor_assign(sgm_tensor *target, const sgm_tensor *source);
/* One element as double, by `rank` indices. */
SGM_API double sgm_tensor_get(const sgm_tensor *tensor, const int64_t *indices);
/* Writes one element, converted to the tensor's type. */
SGM_API void sgm_tensor_set(sgm_tensor *tensor, const int64_t *indices, double value);
/* All elements in row-major order as double into `out` (one double per element), or from `values`. */
SGM_API sgm_status sgm_tensor_read(const sgm_tensor *tensor, double *out, size_t count);
/* Writes all elements in row-major order, converted to the tensor's type. */
SGM_API sgm_status sgm_tensor_write(sgm_tensor *tensor, const double *values, size_t count);
/* `count` numbers of half precision (IEEE 754), which files have and tensors do not, become floats, exactly.
 * `halves` has 2 bytes for each, at any address; they may be the last half of the bytes of `floats`. */
SGM_API void sgm_floats_from_halves(float *floats, const void *halves, size_t count);
/* Floats become numbers of half precision, rounded to nearest; beyond the largest, 65504, infinite. */
SGM_API void sgm_halves_from_floats(void *halves, const float *floats, size_t count);
/* Text like NumPy's, shortened beyond `max_elements`; free with sgm_string_free. */
SGM_API char *sgm_tensor_text(const sgm_tensor *tensor, int64_t max_elements);
/* A copy of `size` bytes with a 0 behind, from the library's memory, for functions that return texts as the
 * library's do. NULL: out of memory. */
SGM_API char *sgm_string_create(const char *text, size_t size);
SGM_API void sgm_string_free(char *text);

/* ======== files of tensors ========
 *
 * Tensors and text in one file: the safetensors format, whose metadata carries what belongs to the tensors.
 *
 * A checkpoint is such a file, written beside its place and then renamed: there is a whole one or none.
 * Format: https://huggingface.co/docs/safetensors
 */

/* Named tensors and named texts. */
typedef struct sgm_bundle sgm_bundle;

/* An empty bundle, which the caller frees. */
SGM_API sgm_bundle *sgm_bundle_create(void);
SGM_API void sgm_bundle_free(sgm_bundle *bundle);
/* Keeps a reference to the tensor; a name twice is an error. */
SGM_API sgm_status sgm_bundle_add(sgm_bundle *bundle, const char *name, sgm_tensor *tensor);
/* Sets a text; one that is there already is replaced. */
SGM_API sgm_status sgm_bundle_set_text(sgm_bundle *bundle, const char *key, const char *text);
/* Borrowed; NULL and an error with the nearest name if absent. */
SGM_API sgm_tensor *sgm_bundle_get(const sgm_bundle *bundle, const char *name);
/* Borrowed; NULL and an error if there is no such text. */
SGM_API const char *sgm_bundle_get_text(const sgm_bundle *bundle, const char *key);
/* Whether there is such a tensor. */
SGM_API bool sgm_bundle_has(const sgm_bundle *bundle, const char *name);
/* How many tensors there are. */
SGM_API size_t sgm_bundle_count(const sgm_bundle *bundle);
/* The name of a tensor, in the order in which they were added; NULL past the last. */
SGM_API const char *sgm_bundle_name_at(const sgm_bundle *bundle, size_t index);

/* Whether a float32 tensor is float16 (F16) in a safetensors file: one that was read from such a file is, so
 * that it is written as it was; others are not. */
SGM_API bool sgm_bundle_is_half(const sgm_bundle *bundle, const char *name);
/* Says so; saving rounds to nearest. An error if there is no such tensor, or if it is not float32. */
SGM_API sgm_status sgm_bundle_set_half(sgm_bundle *bundle, const char *name, bool half);

/* Writes PATH.tmp, syncs, renames, syncs the folder. The file has checksums (CRC-32) of its header and of
 * each tensor, as the texts "sigma.checksum.header" and "sigma.checksum.tensors", which no bundle can set. A
 * path that ends in .npz: NumPy's format, uncompressed; texts are arrays of bytes there, "__text__/KEY", so
 * that no uint8 tensor can have such a name, and names have at most 65,531 bytes. */
SGM_API sgm_status sgm_bundle_save(const sgm_bundle *bundle, const char *path);
/* safetensors, or .npz (compressed or not; by content). Checks the whole header against the file's size
 * before it takes memory, and compares checksums where the file has some: a damaged file is
 * SGM_ERROR_FORMAT. F16 is read as float32, exactly; the 8-, 16- and unsigned integer types that Sigma
 * lacks are refused by name. The arrays of an .npz may take 256 MiB, or 64 times the file's size. */
SGM_API sgm_bundle *sgm_bundle_load(const char *path);

/* --- one tensor at a time --- */
/* A safetensors file whose tensors are read one by one, so that memory holds what is needed of it alone. Used
 * by one thread at a time. */
typedef struct sgm_tensor_file sgm_tensor_file;
/* What the header says of a tensor. */
typedef struct sgm_tensor_entry {
    const char *name; /* the file's, as long as it is open */
    sgm_dtype dtype;  /* of the tensor that is read */
    bool half;        /* float16 in the file, read as float32, exactly */
    sgm_shape shape;  /* of both */
} sgm_tensor_entry;
/* Reads the header, and checks all of it against the file's size; no tensor is read. NULL and an error as of
 * sgm_bundle_load; an .npz is SGM_ERROR_UNSUPPORTED. */
SGM_API sgm_tensor_file *sgm_tensor_file_open(const char *path);
/* Frees the file, and the names of its entries; tensors that were read stay. NULL: nothing happens. */
SGM_API void sgm_tensor_file_close(sgm_tensor_file *file);
/* How many tensors there are. */
SGM_API size_t sgm_tensor_file_count(const sgm_tensor_file *file);
/* What the header says of tensor `index`, in its order. False: past the last. */
SGM_API bool sgm_tensor_file_entry(const sgm_tensor_file *file, size_t index, sgm_tensor_entry *entry);
/* Reads tensor `index`, and compares its checksum where the file has some. The caller frees it. */
SGM_API sgm_tensor *sgm_tensor_file_read(sgm_tensor_file *file, size_t index);

/* Writes one tensor as a NumPy file. */
SGM_API sgm_status sgm_npy_save(const char *path, const sgm_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
