/* Functions that the rules and loops of operations share: attributes, checks of types, recording, views of
 * arrays. Internal.
 *
 * Each file of an operation includes this: its `infer` uses the checks, its `forward` the loops, and the
 * function that records it the rest. rules.c has the bodies. */
#ifndef SGM_OPS_RULES_H
#define SGM_OPS_RULES_H

#include "ops/ops.h"

/* The beginning of an operation's table: its name, how many inputs it takes, and what it computes. */
#define SGM__OP(op_name, inputs, op_doc)                                                                     \
    .api = SGM_OP_API, .name = op_name, .doc = op_doc, .min_inputs = inputs, .max_inputs = inputs

/* --- attributes --- */
#define SGM__INTEGERS(...)                                                                                   \
    ((sgm_attributes){.integer_count = (int32_t)SGM_SHAPE_COUNT(__VA_ARGS__), .integers = {__VA_ARGS__}})
/* Appends the dimensions to the integers; those beyond the attributes' capacity are dropped. */
void sgm__add_shape(sgm_attributes *attributes, const sgm_shape *shape);
/* Exactly `count` integers. */
sgm_status sgm__want_integers(const sgm_attributes *attributes, int32_t count);
/* The integers from number `first` on as a shape whose elements can be counted. */
sgm_status sgm__read_shape(const sgm_attributes *attributes, int32_t first, sgm_shape *shape);
sgm_status sgm__read_dtype(int64_t number, sgm_dtype *dtype);

/* --- checks for infer; a failure says what was expected, what came, and what to do --- */
sgm_status sgm__want_float(const sgm_type *type);
sgm_status sgm__want_number(const sgm_type *type); /* all but bool */
sgm_status sgm__want_bool(const sgm_type *type);
sgm_status sgm__want_index(const sgm_type *type);
sgm_status sgm__want_place(const sgm_type *type); /* one index */
sgm_status sgm__want_axis(const sgm_type *type, int64_t axis);
sgm_status sgm__want_equal(const sgm_type *a, const sgm_type *b); /* in type and shape */
#define SGM__TYPE_TEXT 160
char *sgm__type_text(const sgm_type *type, char buffer[SGM__TYPE_TEXT]); /* "float32 (100, 10)" */

/* --- recording --- */
sgm_value sgm__record_one(sgm_graph *graph, const sgm_op *op, sgm_value x, const sgm_attributes *attributes);
/* False if the graph has failed before, or fails now because `value` is none of its values. Callers then
 * return nothing. */
bool sgm__can_record(sgm_graph *graph, const char *name, sgm_value value);
/* False, and the graph's failure, if a caller's shape has more than SGM_MAX_RANK dimensions. */
bool sgm__rank_fits(sgm_graph *graph, const char *name, const sgm_shape *shape);
/* Counts a negative axis from the end; false and a failure if there is no such axis. */
bool sgm__resolve_axis(sgm_graph *graph, const char *name, sgm_value x, int32_t *axis);
/* x where the weight is not 0, else 0. A weighted sum of the result has no NaN from 0 * infinity, and
 * neither has its gradient. */
sgm_value sgm__masked(sgm_graph *graph, sgm_value weights, sgm_value x);
/* Whether `value` is a recorded number, looked at through broadcasts, and which. */
bool sgm__is_number(const sgm_graph *graph, sgm_value value, double *number);

/* --- loops --- */
/* Visits the elements of a shape in row-major order, and then starts again. Strides may be 0 or negative. */
typedef struct sgm__cursor {
    sgm_shape shape;
    int64_t strides[SGM_MAX_RANK], index[SGM_MAX_RANK];
    int64_t offset; /* of the current element, in elements */
} sgm__cursor;
sgm__cursor sgm__cursor_make(const sgm_shape *shape, const int64_t *strides);
/* A cursor over the axes before the last two: each step is one matrix. */
sgm__cursor sgm__cursor_leading(const sgm_array *array);

static inline void sgm__cursor_next(sgm__cursor *cursor)
{
    for (int32_t i = cursor->shape.rank; i-- > 0;) {
        cursor->offset += cursor->strides[i];
        if (++cursor->index[i] < cursor->shape.dims[i])
            return;
        cursor->offset -= cursor->strides[i] * cursor->shape.dims[i];
        cursor->index[i] = 0;
    }
}

void *sgm__array_at(const sgm_array *array, int64_t offset);
/* A view of entries start, start + step, ... of an axis, `count` of them. */
sgm_array sgm__array_part(const sgm_array *array, int32_t axis, int64_t start, int64_t count, int64_t step);
/* A view of one entry of an axis, without that axis. */
sgm_array sgm__array_pick(const sgm_array *array, int32_t axis, int64_t index);
/* The element as an exact integer; the array must be of int32 or int64. */
int64_t sgm__array_index(const sgm_array *array, int64_t offset);
/* Compares two elements like memcmp. NaN is above all numbers and equal to itself; int64 is compared
 * exactly. */
int sgm__array_compare(const sgm_array *array, int64_t a, int64_t b);
/* Whether element `a` is larger (or smaller) than `b`. NaN beats all numbers in both directions, so that
 * reductions give it. */
bool sgm__array_beats(const sgm_array *array, int64_t a, int64_t b, bool largest);
/* Copies all elements between arrays of one type and shape, bit by bit; any strides. */
void sgm__array_move(const sgm_array *source, const sgm_array *target);
/* The same for arrays with equally many elements: in row-major order into a contiguous target. */
void sgm__array_pack(const sgm_array *source, const sgm_array *target);

#endif
