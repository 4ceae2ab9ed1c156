/* Build functions of RNN, GRU and LSTM: the steps of a sequence are recorded one after the other, in one
 * or both directions. Called by import.c through operators.c.
 *
 * The products of all inputs with their weights do not depend on the state: they are one product before
 * the steps (cell.x). Each step then adds h R^T to its slice of it. Formulas are those of ONNX's
 * specification (LSTM: Hochreiter and Schmidhuber, 1997, with peepholes; GRU: Cho et al., 2014). */
#include "onnx/nodes/onnx.h"

/* Each step records several instructions. */
#define MAXIMUM_STEPS 100000
/* So that gates * hidden does not overflow. */
#define MAXIMUM_HIDDEN ((int64_t)1 << 24)

typedef sgm_value (*activation)(sgm_graph *graph, sgm_value x);

/* One direction of one node: sizes, weights, and the state that steps update while they are recorded. */
typedef struct cell {
    sgm__onnx_node *n;
    sgm_graph *g;
    int64_t steps, batch, hidden;
    int32_t gates;
    sgm_value x;         /* x W^T and the biases that may be added in front: (steps, batch, gates * hidden) */
    sgm_value recurrent; /* R^T: (hidden, gates * hidden) */
    /* (gates * hidden,): for GRU, whose reset gate may act on it; else no value */
    sgm_value bias_recurrent;
    sgm_value peepholes; /* (3 * hidden,) in the order input, output, forget: LSTM; else no value */
    sgm_value h, c;      /* (batch, hidden): after the newest step; c: LSTM, else no value */
    activation f[3];     /* of the gates, of the new content, of the cell's output */
    double clip;         /* sums are kept within -clip to clip before an activation; 0: they are not */
} cell;
/* Records one step for its slice x (batch, gates * hidden): replaces c->h and, for an LSTM, c->c. */
typedef void (*step_function)(cell *c, sgm_value x);

/* --- what the attributes say --- */

/* Names are compared without regard to case, as ONNX demands. NULL: not known here. Activations with
 * parameters of their own (activation_alpha, activation_beta) are not supported. */
static activation find_activation(const ProtobufCBinaryData *name)
{
    static const struct {
        const char *name;
        activation function;
    } known[] = {{"sigmoid", sgm_sigmoid},
                 {"tanh", sgm_tanh},
                 {"relu", sgm_relu},
                 {"softsign", sgm_softsign},
                 {"softplus", sgm_softplus}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i].name) == name->len &&
            strncasecmp(known[i].name, (const char *)name->data, name->len) == 0)
            return known[i].function;
    return NULL;
}

/* Replaces the default activations by those of this direction: `activations` lists `count` for each
 * direction. False on failure. */
static bool read_activations(cell *c, int32_t direction, int32_t count)
{
    const Onnx__AttributeProto *given = sgm__onnx_attribute(c->n, "activations");
    if (given == NULL || given->n_strings == 0)
        return true;
    if (given->n_strings < (size_t)(direction + 1) * (size_t)count) {
        sgm_graph_fail(c->g, SGM_ERROR_FORMAT, "it has %zu activations: too few", given->n_strings);
        return false;
    }
    for (int32_t i = 0; i < count; i++) {
        c->f[i] = find_activation(&given->strings[direction * count + i]);
        if (c->f[i] == NULL) {
            sgm__onnx_unsupported(
                c->n, "one of its activations is none of Sigmoid, Tanh, Relu, Softsign, Softplus");
            return false;
        }
    }
    return true;
}

/* Entry `index` of the first axis, which goes away. */
static sgm_value entry(sgm_graph *g, sgm_value x, int64_t index)
{
    sgm_shape shape = sgm_value_type(g, x).shape, rest = {.rank = shape.rank > 0 ? shape.rank - 1 : 0};
    for (int32_t i = 0; i < rest.rank; i++)
        rest.dims[i] = shape.dims[i + 1];
    return sgm_reshape(g, sgm_slice(g, x, 0, index, index + 1, 1), &rest);
}

/* Gate `index`: a slice of size `hidden` of the last axis. */
static sgm_value part(const cell *c, sgm_value x, int32_t index)
{
    return sgm_slice(c->g, x, -1, index * c->hidden, (index + 1) * c->hidden, 1);
}

static sgm_value clipped(const cell *c, sgm_value x)
{
    return c->clip > 0 ? sgm_clip(c->g, x, -c->clip, c->clip) : x;
}

static sgm_value activate(const cell *c, int32_t which, sgm_value x)
{
    return c->f[which](c->g, clipped(c, x));
}

/* --- steps --- */

/* x + h R^T */
static sgm_value with_recurrence(const cell *c, sgm_value x)
{
    return sgm_add(c->g, x, sgm_matmul(c->g, c->h, c->recurrent));
}

/* h = f(x W^T + h R^T + b) */
static void step_rnn(cell *c, sgm_value x)
{
    c->h = activate(c, 0, with_recurrence(c, x));
}

/* Gates in the order input, output, forget, cell; with s = x W^T + h R^T + b, split into the four, and `*`
 * by element:
 *
 *     i = f(s_i + P_i * c)
 *     f = f(s_f + P_f * c), or 1 - i with input_forget
 *     c' = f * c + i * g(s_c)
 *     o = f(s_o + P_o * c')
 *     h' = o * h(c')
 *
 * The output gate looks at the new cell state through its peephole, the others at the old one. */
static void step_lstm(cell *c, sgm_value x)
{
    sgm_graph *g = c->g;
    sgm_value sums = with_recurrence(c, x), i = part(c, sums, 0), o = part(c, sums, 1), f = part(c, sums, 2);
    bool peeps = sgm_value_exists(c->peepholes);
    if (peeps) {
        i = sgm_add(g, i, sgm_multiply(g, part(c, c->peepholes, 0), c->c));
        f = sgm_add(g, f, sgm_multiply(g, part(c, c->peepholes, 2), c->c));
    }
    i = activate(c, 0, i);
    bool coupled = sgm__onnx_integer(c->n, "input_forget", 0) != 0;
    f = coupled ? sgm_subtract(g, sgm_number(g, 1), i) : activate(c, 0, f);
    sgm_value fresh = sgm_multiply(g, i, activate(c, 1, part(c, sums, 3)));
    c->c = sgm_add(g, sgm_multiply(g, f, c->c), fresh);
    if (peeps)
        o = sgm_add(g, o, sgm_multiply(g, part(c, c->peepholes, 1), c->c));
    c->h = sgm_multiply(g, activate(c, 0, o), c->f[2](g, c->c));
}

/* Gates in the order update z, reset r, hidden n; x_z, x_r, x_n are the parts of x W^T with its biases:
 *
 *     z = f(x_z + h R_z^T + b_z),  r = f(x_r + h R_r^T + b_r)
 *     n = g(x_n + r * (h R_n^T + b_n))        with linear_before_reset, as PyTorch and cuDNN have it
 *     n = g(x_n + (r * h) R_n^T + b_n)        without
 *     h' = (1 - z) * n + z * h, written as n + z * (h - n)
 *
 * z and r take one product together. */
static void step_gru(cell *c, sgm_value x)
{
    sgm_graph *g = c->g;
    sgm_value gates = sgm_slice(g, c->recurrent, -1, 0, 2 * c->hidden, 1), last = part(c, c->recurrent, 2);
    sgm_value sums = sgm_matmul(g, c->h, gates), inner;
    if (sgm_value_exists(c->bias_recurrent))
        sums = sgm_add(g, sums, sgm_slice(g, c->bias_recurrent, -1, 0, 2 * c->hidden, 1));
    sgm_value z = activate(c, 0, sgm_add(g, part(c, x, 0), part(c, sums, 0)));
    sgm_value r = activate(c, 0, sgm_add(g, part(c, x, 1), part(c, sums, 1)));
    sgm_value bias = sgm_value_exists(c->bias_recurrent) ? part(c, c->bias_recurrent, 2) : sgm_number(g, 0);
    if (sgm__onnx_integer(c->n, "linear_before_reset", 0) != 0)
        inner = sgm_multiply(g, r, sgm_add(g, sgm_matmul(g, c->h, last), bias));
    else
        inner = sgm_add(g, sgm_matmul(g, sgm_multiply(g, r, c->h), last), bias);
    sgm_value fresh = activate(c, 1, sgm_add(g, part(c, x, 2), inner));
    c->h = sgm_add(g, fresh, sgm_multiply(g, z, sgm_subtract(g, c->h, fresh)));
}

/* --- sequences --- */

/* A condition (batch, 1) that is true for sequences longer than t; no value if all have the full length. */
static sgm_value still_runs(const cell *c, sgm_value lengths, int64_t t)
{
    if (!sgm_value_exists(lengths))
        return lengths;
    sgm_value runs = sgm_greater(c->g, lengths, sgm_number(c->g, (double)t));
    return sgm_reshape(c->g, runs, SGM__ONNX_SHAPE(c->batch, 1));
}

/* a where `runs` is true, else b; a if there is nothing to choose (all sequences run, or no cell state). */
static sgm_value chosen(const cell *c, sgm_value runs, sgm_value a, sgm_value b)
{
    return sgm_value_exists(runs) && sgm_value_exists(b) ? sgm_select(c->g, runs, a, b) : a;
}

/* Records all steps and fills outputs[t] with (batch, hidden), in the order of the sequence. A sequence
 * that has ended keeps its state and gives zeros. A backward run begins at the last step of the longest
 * sequence; shorter ones keep their first state until t is below their length. */
static void run(cell *c, step_function step, bool backward, sgm_value lengths, sgm_value *outputs)
{
    for (int64_t i = 0; i < c->steps; i++) {
        int64_t t = backward ? c->steps - 1 - i : i;
        sgm_value old_h = c->h, old_c = c->c, runs = still_runs(c, lengths, t);
        step(c, entry(c->g, c->x, t));
        outputs[t] = chosen(c, runs, c->h, sgm_filled_like(c->g, old_h, 0));
        c->h = chosen(c, runs, c->h, old_h);
        c->c = chosen(c, runs, c->c, old_c);
    }
}

/* (batch, hidden): the given state of this direction, or zeros, made from a value that has this shape. */
static sgm_value start_state(const cell *c, sgm_value given, int32_t direction, bool batch_first)
{
    if (!sgm_value_exists(given))
        return sgm_filled_like(c->g, sgm_slice(c->g, entry(c->g, c->x, 0), -1, 0, c->hidden, 1), 0);
    if (batch_first)
        given = sgm_permute(c->g, given, (const int32_t[]){1, 0, 2});
    return entry(c->g, given, direction);
}

/* Weights and biases of one direction. The first half of the biases belongs to the input, the second to
 * the recurrence. Both are added to cell.x at once, except for a GRU, whose reset gate may multiply the
 * second half of the hidden gate. */
static void take_weights(cell *c, sgm_value x, int32_t direction)
{
    sgm_graph *g = c->g;
    sgm_value biases = sgm__onnx_in(c->n, 3);
    int64_t sums = c->gates * c->hidden;
    c->x = sgm_matmul(g, x, sgm_transpose(g, entry(g, c->n->inputs[1], direction)));
    c->recurrent = sgm_transpose(g, entry(g, c->n->inputs[2], direction));
    c->bias_recurrent = (sgm_value){-1};
    if (!sgm_value_exists(biases))
        return;
    biases = entry(g, biases, direction);
    c->x = sgm_add(g, c->x, sgm_slice(g, biases, 0, 0, sums, 1));
    sgm_value second = sgm_slice(g, biases, 0, sums, 2 * sums, 1);
    if (c->gates == 3)
        c->bias_recurrent = second;
    else
        c->x = sgm_add(g, c->x, second);
}

/* Everything that later slices rely on, checked before anything is recorded. */
static bool check_shapes(const cell *c, const sgm_shape *x, int32_t directions)
{
    sgm_shape w = sgm_value_type(c->g, c->n->inputs[1]).shape,
              r = sgm_value_type(c->g, c->n->inputs[2]).shape;
    bool fits = x->rank == 3 && w.rank == 3 && r.rank == 3 && c->hidden > 0 && c->hidden <= MAXIMUM_HIDDEN &&
                w.dims[0] == directions && r.dims[0] == directions && w.dims[1] == c->gates * c->hidden &&
                w.dims[2] == x->dims[2] && r.dims[1] == w.dims[1] && r.dims[2] == c->hidden;
    if (!fits)
        sgm_graph_fail(c->g, SGM_ERROR_SHAPE, "the weights do not fit the input and the hidden size");
    else if (c->steps > MAXIMUM_STEPS || c->steps < 1)
        sgm__onnx_unsupported(c->n, "sequences of 1 to %d steps are supported", MAXIMUM_STEPS);
    return fits && c->g->status == SGM_OK;
}

/* Results of each direction, joined along a new axis at `axis`. With one direction that axis has size 1. */
static sgm_value stacked(sgm_graph *g, const sgm_value *states, int32_t directions, int32_t axis)
{
    sgm_value parts[2];
    for (int32_t i = 0; i < directions; i++) {
        sgm_shape shape = sgm_value_type(g, states[i]).shape, wide = {.rank = shape.rank + 1};
        for (int32_t k = 0; k < wide.rank; k++)
            wide.dims[k] = k == axis ? 1 : shape.dims[k > axis ? k - 1 : k];
        parts[i] = sgm_reshape(g, states[i], &wide);
    }
    return directions == 1 ? parts[0] : sgm_concatenate(g, parts, directions, axis);
}

/* The hidden states of all steps: (steps, batch, hidden). As many operands as there are steps, hence on
 * the heap. */
static sgm_value joined_steps(const cell *c, const sgm_value *outputs)
{
    sgm_value *rows = sgm__alloc((size_t)c->steps * sizeof *rows);
    if (rows == NULL)
        return sgm__onnx_fail(c->g);
    for (int64_t t = 0; t < c->steps; t++)
        rows[t] = sgm_reshape(c->g, outputs[t], SGM__ONNX_SHAPE(1, c->batch, c->hidden));
    sgm_value all = sgm_concatenate(c->g, rows, (int32_t)c->steps, 0);
    sgm__free(rows);
    return all;
}

/* What RNN, GRU and LSTM differ in: gates (1, 3, 4), activations of a direction, their defaults, the step. */
typedef struct kind {
    int32_t gates, activations;
    activation defaults[3];
    step_function step;
} kind;

/* Records one direction; returns its hidden states (steps, batch, hidden) and leaves the last states in
 * *c. The activations are read here, since they differ by direction. */
static sgm_value run_direction(cell *c, const kind *k, sgm_value x, sgm_value lengths, int32_t direction,
                               bool backward)
{
    sgm_value *outputs = sgm__alloc((size_t)c->steps * sizeof *outputs), peepholes = sgm__onnx_in(c->n, 7);
    bool batch_first = sgm__onnx_integer(c->n, "layout", 0) != 0;
    memcpy(c->f, k->defaults, sizeof c->f);
    if (outputs == NULL)
        return sgm__onnx_fail(c->g);
    if (!read_activations(c, direction, k->activations)) {
        sgm__free(outputs);
        return (sgm_value){-1};
    }
    take_weights(c, x, direction);
    c->h = start_state(c, sgm__onnx_in(c->n, 5), direction, batch_first);
    c->c = k->gates == 4 ? start_state(c, sgm__onnx_in(c->n, 6), direction, batch_first) : (sgm_value){-1};
    c->peepholes =
        k->gates == 4 && sgm_value_exists(peepholes) ? entry(c->g, peepholes, direction) : (sgm_value){-1};
    run(c, k->step, backward, lengths, outputs);
    sgm_value y = joined_steps(c, outputs);
    sgm__free(outputs);
    return y;
}

/* Records a node. Inputs: x (steps, batch, features), weights W (directions, gates * hidden, features), R
 * (directions, gates * hidden, hidden), biases (directions, 2 * gates * hidden), states (directions,
 * batch, hidden). Outputs: Y (steps, directions, batch, hidden), Y_h and, for an LSTM, Y_c (directions,
 * batch, hidden). With layout = 1 the batch comes first in x, states and outputs, which are permuted on
 * the way in and out. The second direction of a bidirectional node runs backward. */
static sgm_value record(sgm__onnx_node *n, const kind *k)
{
    sgm_graph *g = n->graph;
    bool batch_first = sgm__onnx_integer(n, "layout", 0) != 0;
    bool both = sgm__onnx_text_is(n, "direction", "forward", "bidirectional");
    bool reverse = sgm__onnx_text_is(n, "direction", "forward", "reverse");
    int32_t directions = both ? 2 : 1;
    sgm_value x = n->inputs[0], ys[2], hs[2], cs[2];
    sgm_shape shape = sgm__onnx_type(n, x).shape, r = sgm__onnx_type(n, n->inputs[2]).shape;
    if (batch_first && shape.rank == 3)
        x = sgm_permute(g, x, (const int32_t[]){1, 0, 2});
    shape = sgm__onnx_type(n, x).shape;
    for (int32_t i = 0; i < directions; i++) {
        cell c = {.n = n, .g = g, .steps = shape.dims[0], .batch = shape.dims[1], .gates = k->gates};
        c.hidden = sgm__onnx_integer(n, "hidden_size", r.rank == 3 ? r.dims[2] : 0);
        c.clip = sgm__onnx_number(n, "clip", 0);
        if (!check_shapes(&c, &shape, directions))
            return (sgm_value){-1};
        ys[i] = run_direction(&c, k, x, sgm__onnx_in(n, 4), i, reverse || i == 1);
        hs[i] = c.h;
        cs[i] = c.c;
    }
    if (g->status != SGM_OK)
        return (sgm_value){-1};
    n->outputs[1] = stacked(g, hs, directions, batch_first ? 1 : 0);
    if (k->gates == 4)
        n->outputs[2] = stacked(g, cs, directions, batch_first ? 1 : 0);
    sgm_value y = stacked(g, ys, directions, 1);
    return batch_first ? sgm_permute(g, y, (const int32_t[]){2, 0, 1, 3}) : y;
}

SGM__ONNX_BUILD(rnn, n, record(n, &(const kind){1, 1, {sgm_tanh}, step_rnn}))
SGM__ONNX_BUILD(gru, n, record(n, &(const kind){3, 2, {sgm_sigmoid, sgm_tanh}, step_gru}))
SGM__ONNX_BUILD(lstm, n, record(n, &(const kind){4, 3, {sgm_sigmoid, sgm_tanh, sgm_tanh}, step_lstm}))
