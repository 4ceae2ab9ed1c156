/* The writers in write.c see only onnx.h, so that they depend on names and shapes and not on how the
 * message is put together. */
#ifndef SGM_ONNX_NODES_EXPORT_H
#define SGM_ONNX_NODES_EXPORT_H

#include "onnx/nodes/onnx.h"

#include <stddef.h>

/* A piece of memory that the protobuf message points to. All blocks are one list, freed together at the
 * end of the export, so that no part of the message needs an owner. */
typedef struct sgm__onnx_block {
    struct sgm__onnx_block *next;
    max_align_t bytes[];
} sgm__onnx_block;

struct sgm__onnx_export {
    sgm_graph *graph, *other; /* expanded and simplified; other: NULL, or the same instructions for another
                                 number of examples */
    sgm_session *session;     /* has the states' values; the caller's; NULL: no states */
    sgm__onnx_block *blocks;
    sgm_status status;     /* the first lack of memory; checked after each instruction */
    const char **names;    /* by number of a value; NULL: not written yet */
    sgm__onnx_scope known; /* names of initialisers that parts.c made of integers and numbers */
    Onnx__NodeProto **nodes;
    size_t node_count, node_capacity;
    Onnx__TensorProto **tensors;
    size_t tensor_count, tensor_capacity;
    int32_t fresh;        /* names invented so far: the number that keeps them apart */
    const char *examples; /* name of the value that holds the number of examples, as a list of one; NULL: not
                             made yet */
};

/* --- parts.c: what the message is made of; where memory is short `status` says so --- */

char *sgm__onnx_take_text(sgm__onnx_export *e, const char *text);
/* A new name, LABEL/TYPE.NUMBER: "2-dense/Add.7". */
char *sgm__onnx_fresh_name(sgm__onnx_export *e, const char *label, const char *type);
/* Appends an initialiser with a copy of the tensor's elements. The name must be memory of the message. */
void sgm__onnx_add_tensor(sgm__onnx_export *e, char *name, const sgm_tensor *tensor);

#endif
