/* Files of GGUF: what llama.cpp, and whatever else stands on ggml, keeps models in.
 *
 * A file is the four letters, a version, two counts, the metadata (keys and values), what is said of each
 * tensor, and behind that, at the next multiple of the alignment, the tensors' numbers. All of it is little
 * endian. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 *
 * Files come from strangers: every count, size and place is compared with the size of the file before memory
 * is taken. Keys and texts are valid UTF-8 without a 0. */
#ifndef SIGMA_MODELS_GGUF_H
#define SIGMA_MODELS_GGUF_H

#include "tokenizer/text/buffer.h"

#include <sigma/tensor.h>
#include <stdio.h>

#define SGM__GGUF_ALIGNMENT 32
/* In what is kept of a model in the folder of a run: the metadata of its file, with the tokenizer. */
#define SGM__GGUF_KEPT "tokenizer.gguf"

/* Whether a path is that of such a file, by its end. */
bool sgm__is_gguf(const char *path);

/* --- types of tensors (types.c) --- */
/* Types by their numbers in files; of the others there are names alone. */
enum { SGM__GGUF_F32 = 0, SGM__GGUF_F16 = 1, SGM__GGUF_Q4_0 = 2, SGM__GGUF_Q8_0 = 8, SGM__GGUF_BF16 = 30 };
typedef struct sgm__gguf_type {
    const char *name; /* "Q8_0" */
    uint32_t number;
    uint16_t block, bytes; /* numbers that stand together, and their bytes; 0: it is not read */
    /* `count` numbers, whole blocks, from bytes and back; NULL: it is not written. */
    void (*read)(const unsigned char *bytes, float *numbers, size_t count);
    void (*write)(const float *numbers, unsigned char *bytes, size_t count);
} sgm__gguf_type;
/* NULL: no such type. */
const sgm__gguf_type *sgm__gguf_type_of(uint32_t number);
/* By its name, whatever the letters' case. */
const sgm__gguf_type *sgm__gguf_type_named(const char *name);

/* --- what is in a file (file.c) --- */
typedef enum sgm__gguf_kind {
    SGM__GGUF_UINT8,
    SGM__GGUF_INT8,
    SGM__GGUF_UINT16,
    SGM__GGUF_INT16,
    SGM__GGUF_UINT32,
    SGM__GGUF_INT32,
    SGM__GGUF_FLOAT32,
    SGM__GGUF_BOOL,
    SGM__GGUF_TEXT,
    SGM__GGUF_ARRAY,
    SGM__GGUF_UINT64,
    SGM__GGUF_INT64,
    SGM__GGUF_FLOAT64,
    SGM__GGUF_KINDS
} sgm__gguf_kind;

/* A key and its value, or values. */
typedef struct sgm__gguf_value {
    char *key;
    sgm__gguf_kind kind; /* of the value; of an array's elements */
    bool array;
    uint64_t count;  /* of elements; 1 unless it is an array */
    size_t at, size; /* the bytes of all elements, in the header */
    size_t start;    /* where the key begins there: from here to at + size it is copied */
} sgm__gguf_value;

typedef struct sgm__gguf_tensor {
    char *name;
    const sgm__gguf_type *type;
    sgm_shape shape;   /* the last dimension is the one whose numbers lie side by side, as everywhere here */
    uint64_t at, size; /* its bytes in the file */
} sgm__gguf_tensor;

typedef struct sgm__gguf {
    char *path;
    FILE *file;
    sgm__buffer header;      /* the bytes of the file up to the tensors' numbers */
    sgm__gguf_value *values; /* sorted by key */
    size_t value_count, value_room;
    sgm__gguf_tensor *tensors; /* in the order of the file */
    size_t tensor_count, tensor_room;
} sgm__gguf;

/* Reads all but the tensors' numbers, and checks it. NULL and an error that names the file, the place in it
 * and what is wrong. */
sgm__gguf *sgm__gguf_open(const char *path);
void sgm__gguf_close(sgm__gguf *file);
/* The numbers of a tensor, as float32. The caller frees it. NULL on failure. */
sgm_tensor *sgm__gguf_read(const sgm__gguf *file, const sgm__gguf_tensor *tensor);

/* --- metadata (values.c) --- */
/* NULL: there is no such key. */
const sgm__gguf_value *sgm__gguf_find(const sgm__gguf *file, const char *key);
/* An error that names the key: "'FILE': KEY ...". */
sgm_status sgm__gguf_fail(const sgm__gguf *file, const char *key, const char *format, ...) SGM_PRINTF(3, 4);
/* A value of this kind. *out stays as it is where the key is missing; a value of another kind is an error. */
sgm_status sgm__gguf_integer(const sgm__gguf *file, const char *key,
                             int64_t *out);                                       /* of any size of integer */
sgm_status sgm__gguf_number(const sgm__gguf *file, const char *key, double *out); /* float32 in few digits */
sgm_status sgm__gguf_flag(const sgm__gguf *file, const char *key, bool *out);
/* The text is the file's, and has no 0 behind it. */
sgm_status sgm__gguf_text(const sgm__gguf *file, const char *key, const char **out, size_t *size);

/* An array, whose elements are read one after the other. */
typedef struct sgm__gguf_list {
    const unsigned char *at; /* the next one */
    uint64_t count;          /* of all */
} sgm__gguf_list;
/* An array of this kind; `count` is 0 where the key is missing. */
sgm_status sgm__gguf_list_of(const sgm__gguf *file, const char *key, sgm__gguf_kind kind,
                             sgm__gguf_list *out);
/* The next element, of which there is one. */
void sgm__gguf_next_text(sgm__gguf_list *list, const char **text, size_t *size);
int32_t sgm__gguf_next_int32(sgm__gguf_list *list);
float sgm__gguf_next_float32(sgm__gguf_list *list);

/* --- writing (draft.c) --- */
/* Metadata that is put together. The first failure stays in it. */
typedef struct sgm__gguf_draft {
    sgm__buffer bytes;
    uint64_t count;
    sgm_status status;
} sgm__gguf_draft;
void sgm__gguf_draft_free(sgm__gguf_draft *draft);
void sgm__gguf_put_integer(sgm__gguf_draft *draft, const char *key, int64_t number); /* uint32 */
void sgm__gguf_put_number(sgm__gguf_draft *draft, const char *key, double number);   /* float32 */
void sgm__gguf_put_flag(sgm__gguf_draft *draft, const char *key, bool flag);
void sgm__gguf_put_text(sgm__gguf_draft *draft, const char *key, const char *text, size_t size);
/* An array of `count` elements, which are added right after it. */
void sgm__gguf_put_array(sgm__gguf_draft *draft, const char *key, sgm__gguf_kind kind, uint64_t count);
void sgm__gguf_add_text(sgm__gguf_draft *draft, const char *text, size_t size);
void sgm__gguf_add_int32(sgm__gguf_draft *draft, int32_t number);
void sgm__gguf_add_float32(sgm__gguf_draft *draft, float number);
/* A key and its value as a file has them. */
void sgm__gguf_put_copy(sgm__gguf_draft *draft, const sgm__gguf *file, const sgm__gguf_value *value);

/* A tensor that is to be written. */
typedef struct sgm__gguf_entry {
    char *name;
    const sgm__gguf_type *type;
    sgm_shape shape;
} sgm__gguf_entry;
/* Writes a file: `value` gives the numbers of tensor `index`, float32 and contiguous, which are freed here;
 * NULL ends it with the newest error. The file has its name once it is whole. */
sgm_status sgm__gguf_write(const char *path, const sgm__gguf_draft *metadata, const sgm__gguf_entry *entries,
                           size_t count, sgm_tensor *(*value)(void *user, size_t index), void *user);

#endif
