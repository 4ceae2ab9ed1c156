/* Build functions of If, Loop and Scan, which contain subgraphs.
 *
 * The library's graphs are static. So the branch that is taken and the number of rounds must be known
 * while the model is recorded (evaluate.c), and the subgraph is recorded in place: the chosen branch once,
 * a loop's body once for each round with the values of the round before as its inputs. A loop whose
 * condition depends on data that is not known is refused with the message of evaluate.c.
 *
 * import.c records subgraphs (sgm__onnx_record_subgraph) and bounds their depth and the number of all
 * nodes. Failures inside have the thread's error, which fail_inside makes the graph's. */
#include "onnx/nodes/onnx.h"

/* Rounds of a loop, and steps of a scan: each records the whole body. */
#define MAXIMUM_ROUNDS 4096
/* Inputs and outputs of a subgraph, which lie in arrays on the stack. */
#define MAXIMUM_VALUES 64

/* The subgraph in an attribute; NULL and a failure if there is none or it has too many outputs. */
static const Onnx__GraphProto *body_of(sgm__onnx_node *n, const char *name)
{
    const Onnx__AttributeProto *attribute = sgm__onnx_attribute(n, name);
    if (attribute != NULL && attribute->g != NULL && attribute->g->n_output <= MAXIMUM_VALUES)
        return attribute->g;
    sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "its subgraph '%s' is missing, or has more than %d outputs",
                   name, MAXIMUM_VALUES);
    return NULL;
}

/* Makes the thread's newest error one of the graph; returns no value. */
static sgm_value fail_inside(sgm__onnx_node *n)
{
    return sgm_graph_fail(n->graph, sgm__last_failure(), "in its subgraph: %s", sgm_last_error());
}

/* 1 or 0; -1 and a failure of the graph if the condition is not known or is more than one element. */
static int known_condition(sgm__onnx_node *n, sgm_value value)
{
    double number;
    const sgm_tensor *tensor = sgm__onnx_known_value(n->import, value);
    if (tensor == NULL) {
        fail_inside(n);
        return -1;
    }
    if (sgm_shape_elements(sgm_tensor_shape(tensor)) != 1 || sgm_tensor_read(tensor, &number, 1) != SGM_OK) {
        sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "the condition should be one value");
        return -1;
    }
    return number != 0;
}

/* Records the branch that is taken; the other one is not looked at. Branches have no inputs: they see the
 * names around them by n->scope. */
sgm_value sgm__onnx_if_else(sgm__onnx_node *n)
{
    sgm_value outputs[MAXIMUM_VALUES];
    int way = known_condition(n, n->inputs[0]);
    const Onnx__GraphProto *branches[] = {body_of(n, "else_branch"), body_of(n, "then_branch")};
    const Onnx__GraphProto *body = way >= 0 ? branches[way] : NULL;
    if (body == NULL)
        return (sgm_value){-1};
    if (body->n_output != (size_t)n->output_count)
        return sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "its branch has %zu outputs, not %d",
                              body->n_output, n->output_count);
    if (sgm__onnx_record_subgraph(n->import, body, n->scope, NULL, 0, outputs) != SGM_OK)
        return fail_inside(n);
    for (int32_t i = 0; i < n->output_count; i++)
        n->outputs[i] = outputs[i];
    return n->outputs[0];
}

/* --- rounds --- */

/* Values that the rounds of a loop produce and that are stacked at its end ("scan outputs"). `values` has
 * `count` values for each of `rounds` rounds, round by round; it belongs to the collection. */
typedef struct collection {
    sgm_value *values;
    size_t count, rounds, capacity;
} collection;

/* Appends one round's values, each with a new first axis of size 1, so that they can be concatenated. */
static sgm_status collect(collection *c, sgm_graph *g, const sgm_value *values)
{
    SGM_TRY(sgm__reserve(&c->values, &c->capacity, (c->rounds + 1) * c->count + 1, sizeof *c->values));
    for (size_t i = 0; i < c->count; i++) {
        sgm_shape shape = sgm_value_type(g, values[i]).shape;
        if (shape.rank == SGM_MAX_RANK)
            return sgm_fail(SGM_ERROR_UNSUPPORTED, "what it collects has more than %d dimensions",
                            SGM_MAX_RANK);
        memmove(shape.dims + 1, shape.dims, (size_t)shape.rank * sizeof shape.dims[0]);
        shape.dims[0] = 1;
        shape.rank++;
        c->values[c->rounds * c->count + i] = sgm_reshape(g, values[i], &shape);
    }
    c->rounds++;
    return sgm_graph_status(g);
}

/* Output `index` of all rounds, concatenated along the first axis. Without any round its shape is not
 * known, which is refused. */
static sgm_value collected(const collection *c, sgm_graph *g, size_t index)
{
    if (c->rounds == 0)
        return sgm_graph_fail(g, SGM_ERROR_UNSUPPORTED, "it collects the values of no round");
    sgm_value *column = sgm__alloc(c->rounds * sizeof *column);
    if (column == NULL)
        return sgm__onnx_fail(g);
    for (size_t i = 0; i < c->rounds; i++)
        column[i] = c->values[i * c->count + index];
    sgm_value all = sgm_concatenate(g, column, (int32_t)c->rounds, 0);
    sgm__free(column);
    return all;
}

/* Makes the collected values the node's outputs behind the carried ones, and frees the collection. Returns
 * the first output. */
static sgm_value give_collected(sgm__onnx_node *n, collection *c, size_t carried)
{
    for (size_t i = 0; i < c->count && n->graph->status == SGM_OK; i++)
        n->outputs[carried + i] = collected(c, n->graph, i);
    sgm__free(c->values);
    return n->graph->status == SGM_OK ? n->outputs[0] : (sgm_value){-1};
}

static sgm_value whole_number(sgm_graph *g, int64_t value)
{
    return sgm__onnx_constant(g, sgm_tensor_create_from(SGM_INT64, &(sgm_shape){0}, &value));
}

/* Runs the rounds of a Loop. `values` is what the body gets: the round's number, the condition, then the
 * carried values. The body returns the next condition, the carried values, then those that are collected.
 * On return values + 2 are the carried values after the last round. A missing condition (no value) stands
 * for true, and becomes a constant because the body must have one. */
static sgm_status run_rounds(sgm__onnx_node *n, const Onnx__GraphProto *body, int64_t maximum,
                             sgm_value *values, size_t carried, collection *c)
{
    sgm_value outputs[MAXIMUM_VALUES];
    for (int64_t round = 0; round < maximum; round++) {
        int goes_on = sgm_value_exists(values[1]) ? known_condition(n, values[1]) : 1;
        if (goes_on != 1)
            return sgm_graph_status(n->graph);
        if (round == MAXIMUM_ROUNDS)
            return sgm_fail(SGM_ERROR_UNSUPPORTED, "more than %d rounds", MAXIMUM_ROUNDS);
        values[0] = whole_number(n->graph, round);
        if (!sgm_value_exists(values[1]))
            values[1] = sgm__onnx_constant(n->graph,
                                           sgm_tensor_create_from(SGM_BOOL, &(sgm_shape){0}, &(bool){true}));
        SGM_TRY(sgm__onnx_record_subgraph(n->import, body, n->scope, values, carried + 2, outputs));
        memcpy(values + 1, outputs, (carried + 1) * sizeof *outputs);
        SGM_TRY(collect(c, n->graph, outputs + carried + 1));
    }
    return SGM_OK;
}

/* Inputs: the greatest number of rounds (or none), the first condition (or none), the carried values. */
sgm_value sgm__onnx_loop(sgm__onnx_node *n)
{
    const Onnx__GraphProto *body = body_of(n, "body");
    size_t carried = n->input_count > 2 ? (size_t)n->input_count - 2 : 0;
    sgm_value values[MAXIMUM_VALUES + 2] = {{-1}, sgm__onnx_in(n, 1)};
    if (body == NULL || carried > MAXIMUM_VALUES || body->n_output < carried + 1 ||
        body->n_output - 1 != (size_t)n->output_count)
        return sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "its subgraph does not fit its inputs and outputs");
    int64_t maximum = INT64_MAX;
    if (sgm_value_exists(sgm__onnx_in(n, 0)) && sgm__onnx_known_integers(n, 0, &maximum, 1) != 1)
        return (sgm_value){-1};
    for (size_t i = 0; i < carried; i++)
        values[i + 2] = n->inputs[i + 2];
    collection c = {.count = body->n_output - 1 - carried};
    if (run_rounds(n, body, maximum, values, carried, &c) != SGM_OK && n->graph->status == SGM_OK)
        fail_inside(n);
    for (size_t i = 0; i < carried; i++)
        n->outputs[i] = values[i + 2];
    return give_collected(n, &c, carried);
}

/* Inputs: carried values, then values that are scanned along their first axis, all equally long. Each
 * round the body gets the carried values and one entry of each scanned value. Only the form since opset 9,
 * forward and along first axes, is supported: before, a batch axis came first. */
sgm_value sgm__onnx_scan(sgm__onnx_node *n)
{
    const Onnx__GraphProto *body = body_of(n, "body");
    int64_t scanned = sgm__onnx_integer(n, "num_scan_inputs", 0), steps = -1;
    if (n->opset < 9 || sgm__onnx_attribute(n, "scan_input_directions") != NULL ||
        sgm__onnx_attribute(n, "scan_output_directions") != NULL ||
        sgm__onnx_attribute(n, "scan_input_axes") != NULL ||
        sgm__onnx_attribute(n, "scan_output_axes") != NULL)
        return sgm__onnx_unsupported(n, "a scan before opset 9, with axes or directions");
    if (body == NULL || scanned < 1 || scanned > n->input_count || n->input_count > MAXIMUM_VALUES ||
        body->n_output != (size_t)n->output_count || body->n_output < (size_t)(n->input_count - scanned))
        return sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "its subgraph does not fit its inputs and outputs");
    size_t carried = (size_t)(n->input_count - scanned);
    sgm_value values[MAXIMUM_VALUES], outputs[MAXIMUM_VALUES];
    memcpy(values, n->inputs, (size_t)n->input_count * sizeof *values);
    for (int64_t i = 0; i < scanned; i++) {
        sgm_shape shape = sgm__onnx_type(n, n->inputs[carried + (size_t)i]).shape;
        if (shape.rank < 1 || (steps >= 0 && shape.dims[0] != steps) || shape.dims[0] > MAXIMUM_ROUNDS)
            return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE,
                                  "what is scanned differs in length, or is too long");
        steps = shape.dims[0];
    }
    collection c = {.count = body->n_output - carried};
    for (int64_t round = 0; round < steps && n->graph->status == SGM_OK; round++) {
        for (size_t i = carried; i < (size_t)n->input_count; i++) {
            sgm_shape shape = sgm__onnx_type(n, n->inputs[i]).shape;
            memmove(shape.dims, shape.dims + 1, (size_t)(--shape.rank) * sizeof shape.dims[0]);
            shape.dims[shape.rank] = 0;
            values[i] =
                sgm_reshape(n->graph, sgm_slice(n->graph, n->inputs[i], 0, round, round + 1, 1), &shape);
        }
        if (sgm__onnx_record_subgraph(n->import, body, n->scope, values, (size_t)n->input_count, outputs) !=
                SGM_OK ||
            collect(&c, n->graph, outputs + carried) != SGM_OK)
            fail_inside(n);
        else
            memcpy(values, outputs, carried * sizeof *values);
    }
    memcpy(n->outputs, values, carried * sizeof *values);
    return give_collected(n, &c, carried);
}
