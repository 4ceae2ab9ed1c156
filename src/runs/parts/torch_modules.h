/* What the two files of PyTorch's names share: the table, and the modules of one file. torch_names.c finds
 * which tensor is which parameter, torch_values.c converts the numbers. Internal to them. */
#ifndef SGM_RUNS_TORCH_MODULES_H
#define SGM_RUNS_TORCH_MODULES_H

#include "runs/parts/torch_names.h"

/* How a value of PyTorch becomes one of this library; exporting does the reverse. */
typedef enum sgm__torch_conversion {
    SGM__TORCH_AS_IS,
    SGM__TORCH_TRANSPOSED, /* a matrix, transposed */
    SGM__TORCH_BIASES,     /* the sum of two vectors of PyTorch, for the input and for the recurrent part */
    SGM__TORCH_NEW_GATE,   /* GRU: the last third of PyTorch's vector for the recurrent part */
} sgm__torch_conversion;

/* One row for each parameter of a layer type. */
typedef struct sgm__torch_row {
    const char *layer, *own, *theirs; /* layer type, own name, PyTorch's name */
    sgm__torch_conversion how;
    const char *second; /* of BIASES: PyTorch's second vector, for the recurrent part */
} sgm__torch_row;
/* NULL past the last one. */
const sgm__torch_row *sgm__torch_row_at(size_t index);

/* Which module each layer of a network is, for one file. */
typedef struct sgm__torch_modules {
    const sgm_network *network;
    char *text;          /* the caller's pairs: "LAYER\0MODULE\0..." */
    size_t count;        /* of pairs in `text` */
    char **names;        /* by layer: the module that the order says; NULL: the layer's own name */
    const char **sorted; /* names in the file, numbers in them by value */
    bool *used;          /* by index in the file: a layer has taken the tensor */
    const sgm_bundle *file;
} sgm__torch_modules;
/* Call sgm__torch_modules_close also after a failure. */
sgm_status sgm__torch_modules_open(sgm__torch_modules *m, const sgm_network *network, const char *names,
                                   const sgm_bundle *file);
void sgm__torch_modules_close(sgm__torch_modules *m);
/* Pairs layers with modules by their order in the file, as of an nn.Sequential, whose modules are numbered
 * ("0.weight", "2.weight"). Only if the caller gave no pairs and no module is called as a layer is. A layer
 * takes the next module if that has a parameter of its type; all tensors of the module are passed then. */
sgm_status sgm__torch_modules_pair_in_order(sgm__torch_modules *m);
/* The module of a layer: what the caller says, else what the order says, else the layer's own name. */
const char *sgm__torch_module_of(const sgm__torch_modules *m, size_t layer);
const char *sgm__torch_type_of(const sgm__torch_modules *m, size_t layer);

#endif
