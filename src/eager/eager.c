/* Operations on tensors at once: a graph of one recording, compiled, run and read.
 *
 * All functions of sigma/eager.h come to `compute`, which records operands as inputs and calls a
 * function that records the rest. The lists of operations are those that declare them, so a row there is all
 * that a new operation takes. A session of its own for each call keeps calls apart: any thread may make them,
 * and nothing stays behind. */
#include "base/base.h"
#include "graph/graph_internal.h"
#include <sigma/eager.h>

#include <stdio.h>

#define RESULT "result"

/* What one call computes, and how errors name it. */
typedef struct computation {
    const char *name;
    sgm_eager_function function;
    void *user;
    const sgm_tensor *const *operands;
    int32_t count;
    bool adapts; /* operands of rank 0 take the type of the others */
} computation;

static char *input_name(int32_t operand, char name[24])
{
    snprintf(name, 24, "operand %d", operand);
    return name;
}

/* A number among operands of some shape is a number of the graph, which adapts; other operands are inputs. */
static bool is_number(const computation *c, int32_t operand)
{
    bool others = false;
    for (int32_t i = 0; i < c->count; i++)
        others = others || sgm_tensor_shape(c->operands[i])->rank > 0;
    return c->adapts && others && sgm_tensor_shape(c->operands[operand])->rank == 0 &&
           sgm_tensor_dtype(c->operands[operand]) != SGM_BOOL;
}

static sgm_status record(const computation *c, sgm_graph *graph, sgm_value *values)
{
    char name[24];
    for (int32_t i = 0; i < c->count; i++)
        values[i] = is_number(c, i)
                        ? sgm_number(graph, sgm_tensor_get(c->operands[i], NULL))
                        : sgm_input_value(graph, input_name(i, name), sgm_tensor_dtype(c->operands[i]),
                                          sgm_tensor_shape(c->operands[i]));
    SGM_TRY(sgm_graph_status(graph));
    sgm_value result = c->function(graph, values, c->count, c->user);
    SGM_TRY(sgm_graph_status(graph));
    if (!sgm_value_exists(result))
        return sgm_fail(SGM_ERROR_STATE, "its function recorded no value");
    sgm_graph_add_output(graph, RESULT, result);
    return sgm_graph_status(graph);
}

static sgm_tensor *run(const computation *c, sgm_session *session, const sgm_graph *graph)
{
    char name[24];
    sgm_program *program = sgm_session_prepare(session, graph);
    if (program == NULL)
        return NULL;
    for (int32_t i = 0; i < c->count; i++)
        if (sgm_program_has_input(program, input_name(i, name)) &&
            sgm_session_feed(session, program, name, c->operands[i]) != SGM_OK)
            return NULL;
    if (sgm_session_run(session, program) != SGM_OK)
        return NULL;
    sgm_type type = sgm_program_output_type(program, RESULT);
    sgm_tensor *result = sgm_tensor_create(type.dtype, &type.shape);
    if (result != NULL && sgm_session_read(session, program, RESULT, result) != SGM_OK) {
        sgm_tensor_free(result);
        return NULL;
    }
    return result;
}

static sgm_status check(const computation *c, sgm_handler *handler)
{
    if (handler == NULL || c->function == NULL || c->count < 0 || (c->count > 0 && c->operands == NULL))
        return sgm_fail(SGM_ERROR_ARGUMENT, "it needs a handler, a function and operands");
    for (int32_t i = 0; i < c->count; i++)
        if (c->operands[i] == NULL)
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "operand %d is NULL: was there an error before, of what should have made it?", i);
    return SGM_OK;
}

static sgm_tensor *compute(sgm_handler *handler, const computation *c)
{
    sgm_tensor *result = NULL;
    if (check(c, handler) == SGM_OK) {
        sgm_graph *graph = sgm_graph_create();
        sgm_session *session = graph != NULL ? sgm_session_create(handler) : NULL;
        sgm_value *values = sgm__calloc((size_t)c->count + 1, sizeof *values);
        if (session != NULL && values != NULL && record(c, graph, values) == SGM_OK)
            result = run(c, session, graph);
        sgm__free(values);
        sgm_session_free(session);
        sgm_graph_free(graph);
    }
    if (result == NULL)
        sgm__fail_within("eager %s", c->name);
    return result;
}

sgm_tensor *sgm_eager(sgm_handler *handler, sgm_eager_function function, void *user,
                      const sgm_tensor *const *operands, int32_t count)
{
    return compute(handler, &(computation){"function", function, user, operands, count, false});
}

/* --- an operation of the table --- */

typedef struct operation_call {
    const sgm_op *op;
    const sgm_attributes *attributes;
} operation_call;

static sgm_value record_operation(sgm_graph *graph, const sgm_value *operands, int32_t count, void *user)
{
    const operation_call *call = user;
    return sgm_record(graph, call->op, operands, count, call->attributes);
}

sgm_tensor *sgm_eager_op(sgm_handler *handler, const char *operation, const sgm_tensor *const *operands,
                         int32_t count, const sgm_attributes *attributes)
{
    operation_call call = {sgm_find_op(operation != NULL ? operation : ""), attributes};
    if (call.op == NULL)
        return NULL;
    bool adapts = (call.op->flags & SGM_OP_ELEMENTWISE) != 0;
    return compute(handler, &(computation){call.op->name, record_operation, &call, operands, count, adapts});
}

/* --- functions of values alone --- */

#define OF_ONE(name, doc)                                                                                    \
    static sgm_value record_##name(sgm_graph *graph, const sgm_value *v, int32_t count, void *user)          \
    {                                                                                                        \
        (void)count, (void)user;                                                                             \
        return sgm_##name(graph, v[0]);                                                                      \
    }                                                                                                        \
    sgm_tensor *sgm_eager_##name(sgm_handler *handler, const sgm_tensor *x)                                  \
    {                                                                                                        \
        return compute(handler, &(computation){#name, record_##name, NULL, &x, 1, false});                   \
    }
SGM_UNARY_LIST(OF_ONE)
SGM_COMPOSED_UNARY_LIST(OF_ONE)
SGM_EAGER_OF_ONE_LIST(OF_ONE)

#define OF_TWO(name, elementwise)                                                                            \
    static sgm_value record_##name(sgm_graph *graph, const sgm_value *v, int32_t count, void *user)          \
    {                                                                                                        \
        (void)count, (void)user;                                                                             \
        return sgm_##name(graph, v[0], v[1]);                                                                \
    }                                                                                                        \
    sgm_tensor *sgm_eager_##name(sgm_handler *handler, const sgm_tensor *a, const sgm_tensor *b)             \
    {                                                                                                        \
        const sgm_tensor *operands[] = {a, b};                                                               \
        return compute(handler, &(computation){#name, record_##name, NULL, operands, 2, elementwise});       \
    }
#define ELEMENTWISE(name, doc) OF_TWO(name, true)
#define WHOLE(name, doc) OF_TWO(name, false)
SGM_BINARY_LIST(ELEMENTWISE)
SGM_EAGER_OF_TWO_LIST(WHOLE)

/* --- functions with arguments --- */

typedef struct arguments {
    const int32_t *axes;
    int32_t count, axis;
    bool flag; /* keep, descending */
    double minimum, maximum;
} arguments;

#define REDUCTION(name, doc)                                                                                 \
    static sgm_value record_##name(sgm_graph *graph, const sgm_value *v, int32_t count, void *user)          \
    {                                                                                                        \
        const arguments *with = user;                                                                        \
        (void)count;                                                                                         \
        return sgm_##name(graph, v[0], with->axes, with->count, with->flag);                                 \
    }                                                                                                        \
    sgm_tensor *sgm_eager_##name(sgm_handler *handler, const sgm_tensor *x, const int32_t *axes,             \
                                 int32_t count, bool keep)                                                   \
    {                                                                                                        \
        arguments with = {.axes = axes, .count = count, .flag = keep};                                       \
        return compute(handler, &(computation){#name, record_##name, &with, &x, 1, false});                  \
    }
SGM_EAGER_REDUCTION_LIST(REDUCTION)

#define ALONG(name, doc)                                                                                     \
    static sgm_value record_##name(sgm_graph *graph, const sgm_value *v, int32_t count, void *user)          \
    {                                                                                                        \
        const arguments *with = user;                                                                        \
        (void)count;                                                                                         \
        return sgm_##name(graph, v[0], with->axis);                                                          \
    }                                                                                                        \
    sgm_tensor *sgm_eager_##name(sgm_handler *handler, const sgm_tensor *x, int32_t axis)                    \
    {                                                                                                        \
        arguments with = {.axis = axis};                                                                     \
        return compute(handler, &(computation){#name, record_##name, &with, &x, 1, false});                  \
    }
SGM_EAGER_ALONG_LIST(ALONG)

static sgm_value record_sort(sgm_graph *graph, const sgm_value *v, int32_t count, void *user)
{
    const arguments *with = user;
    (void)count;
    return sgm_sort(graph, v[0], with->axis, with->flag);
}

sgm_tensor *sgm_eager_sort(sgm_handler *handler, const sgm_tensor *x, int32_t axis, bool descending)
{
    arguments with = {.axis = axis, .flag = descending};
    return compute(handler, &(computation){"sort", record_sort, &with, &x, 1, false});
}

static sgm_value record_gather(sgm_graph *graph, const sgm_value *v, int32_t count, void *user)
{
    const arguments *with = user;
    (void)count;
    return sgm_gather(graph, v[0], v[1], with->axis);
}

sgm_tensor *sgm_eager_gather(sgm_handler *handler, const sgm_tensor *x, const sgm_tensor *indices,
                             int32_t axis)
{
    arguments with = {.axis = axis};
    const sgm_tensor *operands[] = {x, indices};
    return compute(handler, &(computation){"gather", record_gather, &with, operands, 2, false});
}

static sgm_value record_concatenate(sgm_graph *graph, const sgm_value *v, int32_t count, void *user)
{
    const arguments *with = user;
    return sgm_concatenate(graph, v, count, with->axis);
}

sgm_tensor *sgm_eager_concatenate(sgm_handler *handler, const sgm_tensor *const *tensors, int32_t count,
                                  int32_t axis)
{
    arguments with = {.axis = axis};
    return compute(handler, &(computation){"concatenate", record_concatenate, &with, tensors, count, false});
}

static sgm_value record_select(sgm_graph *graph, const sgm_value *v, int32_t count, void *user)
{
    (void)count, (void)user;
    return sgm_select(graph, v[0], v[1], v[2]);
}

sgm_tensor *sgm_eager_select(sgm_handler *handler, const sgm_tensor *condition, const sgm_tensor *a,
                             const sgm_tensor *b)
{
    const sgm_tensor *operands[] = {condition, a, b};
    return compute(handler, &(computation){"select", record_select, NULL, operands, 3, true});
}

static sgm_value record_clip(sgm_graph *graph, const sgm_value *v, int32_t count, void *user)
{
    const arguments *with = user;
    (void)count;
    return sgm_clip(graph, v[0], with->minimum, with->maximum);
}

sgm_tensor *sgm_eager_clip(sgm_handler *handler, const sgm_tensor *x, double minimum, double maximum)
{
    arguments with = {.minimum = minimum, .maximum = maximum};
    return compute(handler, &(computation){"clip", record_clip, &with, &x, 1, false});
}
