/* The table of operators: one row for each operator of ONNX that is read or written (nodes/operators.h).
 *
 * import.c looks up rows by ONNX's name (sgm__onnx_operator_find), export.c by the library's operation
 * (sgm__onnx_operator_for). Lookups are linear: a model's nodes are looked up once per recording, and
 * comparing 160 short names is little beside recording the node. */
#include "onnx/nodes/onnx.h"

#define READ(name, needed, build) {name, needed, sgm__onnx_##build, NULL, NULL},
#define RECORDED(name, op) {name, 1, sgm__onnx_same, &sgm__op_##op, NULL},
#define BOTH(name, needed, build, op, write)                                                                 \
    {name, needed, sgm__onnx_##build, &sgm__op_##op, sgm__onnx_write_##write},
#define WRITTEN(op, write) {"", 0, NULL, &sgm__op_##op, sgm__onnx_write_##write},
static const sgm__onnx_operator table[] = {SGM__ONNX_OPERATORS(READ, RECORDED, BOTH, WRITTEN)};
#define COUNT (sizeof table / sizeof table[0])

const sgm__onnx_operator *sgm__onnx_operator_find(const char *domain, const char *name)
{
    domain = sgm__onnx_domain(domain);
    size_t length = strlen(domain);
    for (size_t i = 0; i < COUNT; i++) {
        bool inside =
            strncmp(table[i].name, domain, length) == 0 && (length == 0 || table[i].name[length] == '.');
        if (inside && strcmp(table[i].name + length + (length > 0), name) == 0)
            return &table[i];
    }
    return NULL;
}

/* Rows without a writer are passed over, so an operation that is only read (hard_silu) has none. */
const sgm__onnx_operator *sgm__onnx_operator_for(const sgm_op *op)
{
    for (size_t i = 0; i < COUNT; i++)
        if (table[i].op == op && table[i].write != NULL)
            return &table[i];
    return NULL;
}
