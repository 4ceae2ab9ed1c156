/* Rows in which several sequences stand: the first key that each query of packed_attention sees. Internal. */
#ifndef SGM_HANDLERS_CPU_KERNELS_PACKED_ROWS_H
#define SGM_HANDLERS_CPU_KERNELS_PACKED_ROWS_H

#include "handlers/cpu/cpu.h"
#include "ops/ops.h"

/* starts: (batch..., time) of integers; NULL: rows are one sequence each, and all see from key 0 on. */
typedef struct sgm__packed_rows {
    const sgm_array *starts;
    int64_t time;
} sgm__packed_rows;

static inline sgm__packed_rows sgm__packed_rows_of(const sgm__cpu_call *call)
{
    const sgm_shape *shape = &call->inputs[0].shape;
    const bool packed =
        call->node->op == &sgm__op_packed_attention || call->node->op == &sgm__op_packed_attention_gradient;
    return (sgm__packed_rows){packed ? &call->inputs[1] : NULL, shape->dims[shape->rank - 2]};
}

/* The first key that a query of a row sees: of itself and those before it, whatever the start says. */
static inline int64_t sgm__packed_rows_start(const sgm__packed_rows *packed, int64_t row, int64_t query)
{
    if (packed->starts == NULL)
        return 0;
    const double start = sgm_array_load(packed->starts, row * packed->time + query);
    return start < 0 ? 0 : start < (double)query ? (int64_t)start : query;
}

/* The least of those of `count` queries. */
static inline int64_t sgm__packed_rows_first(const sgm__packed_rows *packed, int64_t row, int64_t query,
                                             int64_t count)
{
    int64_t first = sgm__packed_rows_start(packed, row, query);
    for (int64_t i = 1; i < count && first > 0; i++)
        first = sgm__minimum(first, sgm__packed_rows_start(packed, row, query + i));
    return first;
}

#endif
