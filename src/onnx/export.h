/* A model while it is written. Internal. */
#ifndef SGM_ONNX_EXPORT_H
#define SGM_ONNX_EXPORT_H

#include "onnx/onnx.h"

#include <stddef.h>

/* Everything that the message points to, freed at once. */
typedef struct sgm__onnx_block {
    struct sgm__onnx_block *next;
    max_align_t bytes[];
} sgm__onnx_block;

struct sgm__onnx_export {
    sgm_graph *graph, *other; /* expanded and simplified; other: NULL, or as many instructions */
    sgm_session *session;
    sgm__onnx_block *blocks;
    sgm_status status;
    const char **names;    /* by value; NULL: not written yet */
    sgm__onnx_scope known; /* names of initialisers that are made here */
    Onnx__NodeProto **nodes;
    size_t node_count, node_capacity;
    Onnx__TensorProto **tensors;
    size_t tensor_count, tensor_capacity;
    int32_t fresh;        /* names given so far */
    const char *examples; /* of a value that is the number of examples; NULL: not made yet */
};

/* --- parts.c: what the message is made of; where memory is short `status` says so --- */

/* Zeroed; freed with the rest. */
void *sgm__onnx_take(sgm__onnx_export *e, size_t size);
char *sgm__onnx_take_text(sgm__onnx_export *e, const char *text);
/* A name of its own: "2-dense/Add.7". */
char *sgm__onnx_fresh_name(sgm__onnx_export *e, const char *label, const char *type);
void sgm__onnx_add_tensor(sgm__onnx_export *e, char *name, const sgm_tensor *tensor);

#endif
