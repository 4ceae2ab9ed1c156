/* Graphs: computations that are recorded first, and compiled and run later.
 *
 *     sgm_graph *graph = sgm_graph_create();
 *     sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, &shape);
 *     sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, &weights);
 *     sgm_value cost = sgm_mean(graph, sgm_square(graph, sgm_matmul(graph, x, w)));
 *     sgm_value gradient;
 *     sgm_gradients(graph, cost, &w, 1, &gradient);
 *     sgm_assign(graph, w, sgm_subtract(graph, w, sgm_multiply(graph, sgm_number(graph, 0.1), gradient)));
 *     sgm_output(graph, "cost", cost);
 *
 * An instruction has one result, and value i is instruction i's. A failed call returns a value that is
 * nothing (index -1); calls given nothing return nothing, and sgm_graph_status() has the first failure. So a
 * recording function is checked once, at its end. A graph is used by one thread at a time.
 */
#ifndef SIGMA_GRAPH_H
#define SIGMA_GRAPH_H

#include <sigma/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgm_graph sgm_graph;
typedef struct sgm_value {
    int32_t index;
} sgm_value;

typedef struct sgm_type {
    sgm_dtype dtype;
    sgm_shape shape;
} sgm_type;

#define SGM_MAX_INTEGERS 24
#define SGM_MAX_NUMBERS 4
/* What an operation needs to know beside its inputs; unused entries are 0. */
typedef struct sgm_attributes {
    int32_t integer_count, number_count;
    int64_t integers[SGM_MAX_INTEGERS];
    double numbers[SGM_MAX_NUMBERS];
} sgm_attributes;

typedef struct sgm_op sgm_op; /* see sigma/op.h */

SGM_API sgm_graph *sgm_graph_create(void);
SGM_API void sgm_graph_free(sgm_graph *graph);
/* Forgets all instructions and the failure, keeps the memory. */
SGM_API void sgm_graph_clear(sgm_graph *graph);
/* The first failure since the graph was created or cleared; it is set again as this thread's newest error. */
SGM_API sgm_status sgm_graph_status(const sgm_graph *graph);
/* Reports a failure from a recording function; returns nothing. */
SGM_API sgm_value sgm_graph_fail(sgm_graph *graph, sgm_status status, const char *format, ...)
    SGM_PRINTF(3, 4);

/* Instructions recorded until the matching pop belong to `label` (a layer); it nests as "outer.inner" and
 * names the place in errors. */
SGM_API void sgm_graph_push_label(sgm_graph *graph, const char *label);
SGM_API void sgm_graph_pop_label(sgm_graph *graph);

/* --- where values come from --- */
/* Fed anew at each run. */
SGM_API sgm_value sgm_input_value(sgm_graph *graph, const char *name, sgm_dtype dtype,
                                  const sgm_shape *shape);
/* Outlives runs, under this name in the session; the same name gives the same value. */
SGM_API sgm_value sgm_state(sgm_graph *graph, const char *name, sgm_dtype dtype, const sgm_shape *shape);
/* Copies the tensor into the graph. */
SGM_API sgm_value sgm_constant(sgm_graph *graph, const sgm_tensor *tensor);
/* A number of rank 0; in an elementwise operation it takes the type of the other operands. */
SGM_API sgm_value sgm_number(sgm_graph *graph, double number);
/* The same for a number that is another one in a later recording, such as a layer's argument that is set
 * while training runs: devices read it where they would have it in the text of their kernels, which so stay.
 */
SGM_API sgm_value sgm_live_number(sgm_graph *graph, double number);
/* `number` in the type and shape of `like`. */
SGM_API sgm_value sgm_filled_like(sgm_graph *graph, sgm_value like, double number);

/* --- what a run does with them --- */
SGM_API void sgm_output(sgm_graph *graph, const char *name, sgm_value value);
/* After the run `state` has this value; all reads in the run see the old one. Types must be equal; one
 * assignment each. */
SGM_API void sgm_assign(sgm_graph *graph, sgm_value state, sgm_value value);

/* --- autodiff --- */
/* Records d`cost`/d`with_respect_to[i]` for `count` values into `gradients`; cost is one number of a float
 * type. What cost does not depend on gets zeros. Gradients are values like any other: they have gradients
 * too. */
SGM_API sgm_status sgm_gradients(sgm_graph *graph, sgm_value cost, const sgm_value *with_respect_to,
                                 int32_t count, sgm_value *gradients);
/* The same value, through which no gradient flows. */
SGM_API sgm_value sgm_stop_gradient(sgm_graph *graph, sgm_value value);

/* --- looking --- */
SGM_API bool sgm_value_is(sgm_value value); /* false: nothing */
SGM_API int32_t sgm_graph_count(const sgm_graph *graph);
/* The type of nothing is float32 of rank 0. */
SGM_API sgm_type sgm_value_type(const sgm_graph *graph, sgm_value value);
SGM_API const sgm_op *sgm_value_op(const sgm_graph *graph, sgm_value value);
SGM_API const sgm_attributes *sgm_value_attributes(const sgm_graph *graph, sgm_value value);
/* How many; `inputs` lie in the graph, and move when more is recorded; NULL if there are none. */
SGM_API int32_t sgm_value_inputs(const sgm_graph *graph, sgm_value value, const sgm_value **inputs);
/* Name of an input or state, label of the layer that recorded it ("" if none). */
SGM_API const char *sgm_value_name(const sgm_graph *graph, sgm_value value);
SGM_API const char *sgm_value_label(const sgm_graph *graph, sgm_value value);
/* One line per instruction: "%4 = add %2 %3 : float32 (100, 10)  # 2-dense"; free with sgm_string_free. */
SGM_API char *sgm_graph_text(const sgm_graph *graph);
/* Equal for graphs of equal structure: the key of compiled programs. Labels do not count, names do. */
SGM_API uint64_t sgm_graph_hash(const sgm_graph *graph);
/* The grammar of instructions, checked: operands come before, types obey the operations' rules, names are
 * unique, ... */
SGM_API sgm_status sgm_graph_verify(const sgm_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
