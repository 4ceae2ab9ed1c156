/* Runs a case of op_cases.h on a handler. */
#ifndef OP_PROGRAM_H
#define OP_PROGRAM_H

#include "base/base.h"
#include "op_cases.h"
#include <math.h>
#include <sigma/handler.h>
#include <stdlib.h>

/* Shapes that elementwise operations of one to three inputs are tested with. */
static const sgm_shape op_shapes[][OP_MAX_INPUTS] = {
    {OP_SCALAR, OP_SCALAR, OP_SCALAR},
    {OP_SHAPE(1), OP_SHAPE(1), OP_SHAPE(1)},
    {OP_SHAPE(2, 3), OP_SHAPE(2, 3), OP_SHAPE(2, 3)},
    {OP_SHAPE(37), OP_SCALAR, OP_SHAPE(37)},
    {OP_SHAPE(0, 3), OP_SHAPE(3), OP_SHAPE(1, 3)},
    {OP_SHAPE(2, 3), OP_SHAPE(3), OP_SHAPE(2, 1)},
    {OP_SHAPE(2, 1), OP_SHAPE(1, 3), OP_SHAPE(3)},
    {OP_SHAPE(3, 1, 2), OP_SHAPE(2, 1), OP_SCALAR},
    {OP_SHAPE(2, 1, 2, 1, 2, 1, 2, 2), OP_SHAPE(1, 2), OP_SHAPE(2, 1, 2)},
    {OP_SHAPE(2503), OP_SHAPE(2503), OP_SCALAR},
    {OP_SHAPE(41, 70), OP_SHAPE(70), OP_SHAPE(41, 1)},
};
/* The last ones are long enough for tiles and threads, and too long for differences. */
#define OP_SHAPES_LONG 2
#define OP_SHAPES_COUNT ((int32_t)(sizeof op_shapes / sizeof *op_shapes))

/* How an input of a shape comes from what is fed: recorded before the operation. */
typedef enum op_view { OP_PLAIN, OP_PERMUTED, OP_SLICED, OP_FLIPPED, OP_REPEATED, OP_VIEWS } op_view;

typedef struct op_data { /* what is fed for one input */
    sgm_dtype dtype;
    sgm_shape shape;
    double *values;
    size_t count;
} op_data;

static inline sgm_dtype op_dtype(op_kind kind, sgm_dtype floats)
{
    switch (kind) {
    case OP_FLOATS:
    case OP_WHOLE:
        break;
    case OP_INT64:
        return SGM_INT64;
    case OP_INT32:
        return SGM_INT32;
    case OP_UINT8:
        return SGM_UINT8;
    case OP_BOOL:
        return SGM_BOOL;
    }
    return floats;
}

/* Shape of case `c`'s input `i` in variant `variant`. */
static inline sgm_shape op_input_shape(const op_case *c, int32_t variant, int32_t i)
{
    return (c->flags & OP_SHAPES) != 0 ? op_shapes[variant][i] : c->inputs[i].shape;
}

/* Shapes to test a case with; without long ones where each element costs two runs. */
static inline int32_t op_variants(const op_case *c, bool also_long)
{
    int32_t shapes = also_long ? OP_SHAPES_COUNT : OP_SHAPES_COUNT - OP_SHAPES_LONG;
    return (c->flags & OP_SHAPES) != 0 ? shapes : 1;
}

/* How devices are tested: trial k of case `number` has the shapes of this variant, seen so. Another `shift`
 * gives each case others. */
static inline int32_t op_trial_variant(int32_t number, int32_t k, uint32_t shift)
{
    return (int32_t)((uint32_t)(number + 7 * k) + shift) % op_variants(&op_cases[number], true);
}

static inline op_view op_trial_view(int32_t number, int32_t k, uint32_t shift)
{
    return (op_view)((uint32_t)(number / 2 + k) + shift) % OP_VIEWS;
}

/* The one that the handler 'cuda' is tested with in each type where there is no GPU, and that it is tested
 * with every so many-th case, since the compiler is slow. */
static inline uint32_t op_cuda_shift(sgm_dtype dtype)
{
    return dtype == SGM_FLOAT32 ? 4 : dtype == SGM_FLOAT64 ? 1 : 2;
}

static inline int32_t op_cuda_every(sgm_dtype dtype)
{
    return dtype == SGM_FLOAT32 ? 1 : 3;
}

static inline const char *op_shape_text(const sgm_shape *shape)
{
    static char text[128];
    return sgm_shape_text(shape, text, sizeof text);
}

/* The shape that is fed so that op_see gives `shape`. */
static inline sgm_shape op_fed_shape(const sgm_shape *shape, op_view view)
{
    sgm_shape fed = *shape;
    for (int32_t i = 0; i < shape->rank && view == OP_PERMUTED; i++)
        fed.dims[i] = shape->dims[shape->rank - 1 - i];
    if (view == OP_SLICED && fed.rank > 0)
        fed.dims[fed.rank - 1] = 2 * fed.dims[fed.rank - 1] + 1;
    if (view == OP_REPEATED && fed.rank > 0 && fed.dims[0] > 0)
        fed.dims[0] = 1;
    return fed;
}

static inline sgm_value op_see(sgm_graph *graph, sgm_value fed, const sgm_shape *shape, op_view view)
{
    int32_t backwards[SGM_MAX_RANK];
    for (int32_t i = 0; i < shape->rank; i++)
        backwards[i] = shape->rank - 1 - i;
    if (view == OP_PERMUTED)
        return sgm_permute(graph, fed, backwards);
    if (view == OP_SLICED && shape->rank > 0)
        return sgm_slice(graph, fed, -1, 1, INT64_MAX, 2);
    if (view == OP_FLIPPED && shape->rank > 0)
        return sgm_flip(graph, fed, shape->rank / 2);
    if (view == OP_REPEATED)
        return sgm_broadcast(graph, fed, shape);
    return fed;
}

/* Random numbers as the input wants them, rounded to float32 so that they are the same in all types. */
static inline op_data op_data_create(const op_input *input, const sgm_shape *shape, sgm_dtype floats,
                                     sgm__random *random)
{
    op_data data = {op_dtype(input->kind, floats), *shape, NULL, (size_t)sgm_shape_elements(shape)};
    data.values = malloc((data.count + 1) * sizeof(double));
    for (size_t i = 0; i < data.count; i++) {
        double value = input->low + (input->high - input->low) * sgm__random_uniform(random);
        data.values[i] = input->kind == OP_FLOATS ? (double)(float)value : floor(value);
    }
    return data;
}

static inline sgm_status op_feed(sgm_session *session, sgm_program *program, const char *name,
                                 const op_data *data)
{
    if (!sgm_program_has_input(program, name))
        return SGM_OK; /* nothing depends on it */
    sgm_tensor *tensor = sgm_tensor_create(data->dtype, &data->shape);
    sgm_status status = sgm_tensor_write(tensor, data->values, data->count);
    if (status == SGM_OK)
        status = sgm_session_feed(session, program, name, tensor);
    sgm_tensor_free(tensor);
    return status;
}

/* An output's values as double (free them), NULL on failure. */
static inline double *op_read(sgm_session *session, sgm_program *program, const char *name, size_t *count)
{
    sgm_type type = sgm_program_output_type(program, name);
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    *count = (size_t)sgm_shape_elements(&type.shape);
    double *values = malloc((*count + 1) * sizeof(double));
    if (sgm_session_read(session, program, name, tensor) != SGM_OK ||
        sgm_tensor_read(tensor, values, *count) != SGM_OK) {
        free(values);
        values = NULL;
    }
    sgm_tensor_free(tensor);
    return values;
}

static const char *const op_names[OP_MAX_INPUTS] = {"x0", "x1", "x2", "x3"};

/* Some operations are not there for each type. */
static inline bool op_is_there(const op_case *c, sgm_dtype dtype)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value inputs[OP_MAX_INPUTS];
    for (int32_t i = 0; i < c->input_count; i++) {
        sgm_shape shape = op_input_shape(c, 0, i);
        inputs[i] = sgm_input_value(graph, op_names[i], op_dtype(c->inputs[i].kind, dtype), &shape);
    }
    sgm_graph_add_output(graph, "y", c->record(graph, inputs, dtype));
    bool there = sgm_graph_status(graph) == SGM_OK;
    sgm_graph_free(graph);
    return there;
}

#endif
