/* rnn, gru and lstm: layers that read a sequence (batch, time, features) step by step.
 *
 * All steps are recorded, so that nothing but operations is left of them: autodiff goes back through time by
 * itself. The inputs of all steps go through one product; steps are rows of time, then batch, so that one
 * step lies together in memory. Gates are in PyTorch's order, so its weights fit when they are transposed. */
#include "network/layers/blocks.h"

#include <stdio.h>

#define MAXIMUM_STEPS 4096 /* each is some hundred instructions */

/* One direction of one layer, while its steps are recorded. */
typedef struct sequence {
    sgm_layer_call *call;
    sgm_graph *graph;
    const char *prefix; /* of its parameters' names */
    int64_t batch, time, features, size;
    bool backwards;
    sgm_value projected;                /* (time * batch, gates * size): what the inputs give to the gates */
    sgm_value given;                    /* those of this step: (batch, gates * size) */
    sgm_value recurrent;                /* weights (size, gates * size) */
    sgm_value recurrent_biases;         /* gru: of the last gate */
    sgm_value hidden, cell;             /* after the last step; nothing: zeros, before the first */
    sgm_value hidden_state, cell_state; /* where they stay until the next run; nothing: nowhere */
    sgm_value counts;                   /* which steps count, (time, batch); nothing: all */
} sequence;

/* The differences between the three layers. `gates` is the width of the weights in units of `size`. */
typedef struct cell_type {
    int32_t gates;
    bool recurrent_biases, has_cell;
    void (*step)(sequence *s); /* changes `hidden` and `cell` */
} cell_type;

/* --- one step --- */

/* The columns of one gate, (batch, size) of (batch, gates * size). */
static sgm_value gate_of(const sequence *s, sgm_value gates, int32_t gate)
{
    return sgm_slice(s->graph, gates, 1, gate * s->size, (gate + 1) * s->size, 1);
}

/* h R, what the last step gives to all gates, (batch, gates * size); nothing before the first step of a
 * sequence that begins with zeros. */
static sgm_value remembered_gates(const sequence *s)
{
    return sgm_value_exists(s->hidden) ? sgm_layer_matmul(s->call, s->graph, s->hidden, s->recurrent)
                                       : s->hidden;
}

/* x W + b + h R of one gate. */
static sgm_value gate_sum(const sequence *s, sgm_value remembered, int32_t gate)
{
    sgm_value sum = gate_of(s, s->given, gate);
    return sgm_value_exists(remembered) ? sgm_add(s->graph, sum, gate_of(s, remembered, gate)) : sum;
}

/* h' = activation(x W + b + h R). */
static void step_rnn(sequence *s)
{
    sgm_value sum = gate_sum(s, remembered_gates(s), 0);
    s->hidden = sgm_layer_activate(s->call, s->graph, sgm_layer_text(s->call, "activation"), sum);
}

/* After Cho et al. (2014), with the reset gate behind the product, as in cuDNN and PyTorch: r = sigmoid(..),
 * z = sigmoid(..), n = tanh(x W_n + b_n + r (h R_n + c_n)), h' = (1 - z) n + z h. c_n are the recurrent
 * biases, which the other two gates do not need, as they would be added to b. */
static void step_gru(sequence *s)
{
    sgm_graph *graph = s->graph;
    sgm_value remembered = remembered_gates(s);
    sgm_value reset = sgm_sigmoid(graph, gate_sum(s, remembered, 0));
    sgm_value update = sgm_sigmoid(graph, gate_sum(s, remembered, 1));
    sgm_value old = s->recurrent_biases;
    if (sgm_value_exists(remembered))
        old = sgm_add(graph, gate_of(s, remembered, 2), old);
    sgm_value sum = sgm_add(graph, gate_of(s, s->given, 2), sgm_multiply(graph, reset, old));
    sgm_value fresh = sgm_tanh(graph, sum);
    sgm_value rest = sgm_subtract(graph, sgm_number(graph, 1), update);
    sgm_value taken = sgm_multiply(graph, rest, fresh);
    if (sgm_value_exists(s->hidden))
        taken = sgm_add(graph, taken, sgm_multiply(graph, update, s->hidden));
    s->hidden = taken;
}

/* After Hochreiter and Schmidhuber (1997) with the forget gate of Gers et al. (2000): i, f, o = sigmoid(..),
 * g = tanh(..), c' = f c + i g, h' = o tanh(c'). The gates' columns are input, forget, cell, output. */
static void step_lstm(sequence *s)
{
    sgm_graph *graph = s->graph;
    sgm_value remembered = remembered_gates(s), forget_sum = gate_sum(s, remembered, 1);
    double forget_bias = sgm_layer_number(s->call, "forget_bias");
    if (forget_bias != 0)
        forget_sum = sgm_add(graph, forget_sum, sgm_number(graph, forget_bias));
    sgm_value input = sgm_sigmoid(graph, gate_sum(s, remembered, 0));
    sgm_value forget = sgm_sigmoid(graph, forget_sum);
    sgm_value fresh = sgm_tanh(graph, gate_sum(s, remembered, 2));
    sgm_value output = sgm_sigmoid(graph, gate_sum(s, remembered, 3));
    sgm_value cell = sgm_multiply(graph, input, fresh);
    if (sgm_value_exists(s->cell))
        cell = sgm_add(graph, sgm_multiply(graph, forget, s->cell), cell);
    s->cell = cell;
    s->hidden = sgm_multiply(graph, output, sgm_tanh(graph, cell));
}

/* --- all steps --- */

/* A trainable parameter "PREFIXNAME"; a fan_in of 0 means that it is no matrix. All matrices are used with
 * sgm_layer_matmul alone. */
static sgm_value parameter(const sequence *s, const char *name, const sgm_shape *shape, int64_t fan_in,
                           const char *initialiser)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", s->prefix, name);
    return fan_in > 0 ? sgm_layer_matrix(s->call, s->graph, full, shape, fan_in, s->size, initialiser)
                      : sgm_layer_parameter(s->call, s->graph, full, shape, 0, 0, true, initialiser);
}

/* Asks for the parameters and multiplies the inputs of all steps by their weights at once, (time * batch,
 * gates * size): one large product in place of `time` small ones. `rows` is (time * batch, features). */
static void project(sequence *s, const cell_type *type, sgm_value rows)
{
    int64_t width = type->gates * s->size;
    sgm_shape weights = sgm_shape_of(s->features, width), recurrent = sgm_shape_of(s->size, width);
    sgm_shape biases = sgm_shape_of(width), last = sgm_shape_of(s->size);
    sgm_value w = parameter(s, "weights", &weights, s->features, "glorot");
    s->recurrent = parameter(s, "recurrent", &recurrent, s->size, "glorot");
    s->projected = sgm_layer_matmul(s->call, s->graph, rows, w);
    s->recurrent_biases = (sgm_value){-1};
    if (type->recurrent_biases)
        s->recurrent_biases = sgm_layer_flag(s->call, "no_bias")
                                  ? sgm_number(s->graph, 0)
                                  : parameter(s, "recurrent_biases", &last, 0, "constant(0)");
    if (!sgm_layer_flag(s->call, "no_bias"))
        s->projected = sgm_add(s->graph, s->projected, parameter(s, "biases", &biases, 0, "constant(0)"));
}

/* The number of sequences that go on from minibatch to minibatch; 0 if none does, as always while
 * predicting. */
static int64_t streams_of(const sequence *s)
{
    bool goes_on = sgm_layer_is_training(s->call) && !sgm_layer_is_step(s->call);
    return goes_on ? sgm_layer_integer(s->call, "streams") : 0;
}

/* The hidden or cell value that the first step starts from; nothing: zeros. It comes from a state that is
 * not trained, where the run before has ended: "PREFIXhidden" if single steps are recorded,
 * "PREFIXhidden_memory" of streams. No gradient goes back into the run before (truncated backpropagation
 * through time). A smaller last minibatch uses the first rows of the streams' state. */
static sgm_value begin_with(sequence *s, const char *name, sgm_value *state)
{
    char full[64];
    int64_t streams = streams_of(s);
    sgm_shape shape = sgm_shape_of(streams > 0 ? streams : s->batch, s->size);
    *state = (sgm_value){-1};
    if (!sgm_layer_is_step(s->call) && streams == 0)
        return *state;
    snprintf(full, sizeof full, "%s%s%s", s->prefix, name, streams > 0 ? "_memory" : "");
    *state = streams > 0 ? sgm__layer_memory(s->call, s->graph, full, &shape)
                         : sgm_layer_parameter(s->call, s->graph, full, &shape, 0, 0, false, "constant(0)");
    sgm_value begin = sgm__mixed_cast(s->graph, *state, sgm_layer_dtype(s->call));
    return streams > s->batch ? sgm_slice(s->graph, begin, 0, 0, s->batch, 1) : begin;
}

/* Assigns what the last step gave to the state. Streams without an example in this minibatch stay as they
 * are. */
static void remember(const sequence *s, sgm_value state, sgm_value value)
{
    if (!sgm_value_exists(state) || sgm_graph_status(s->graph) != SGM_OK)
        return;
    value = sgm__mixed_cast(s->graph, value, sgm__master_dtype(s->call->options));
    int64_t streams = streams_of(s);
    if (streams > s->batch) {
        sgm_value others = sgm_slice(s->graph, state, 0, s->batch, streams, 1);
        value = sgm_concatenate(s->graph, (const sgm_value[]){value, others}, 2, 0);
    }
    sgm_assign(s->graph, state, sgm_stop_gradient(s->graph, value));
}

/* Streams need one direction, forwards, and a place for each example of a minibatch. */
static bool streams_fit(const sequence *s, bool backwards)
{
    int64_t streams = sgm_layer_integer(s->call, "streams");
    const char *name = s->call->entry->layer->type->name;
    if (streams > 0 && backwards) {
        sgm_graph_fail(s->graph, SGM_ERROR_ARGUMENT,
                       "%s: streams go on forwards: it is neither reverse nor bidirectional", name);
        return false;
    }
    if (streams_of(s) > 0 && s->batch > streams) {
        sgm_graph_fail(s->graph, SGM_ERROR_SHAPE,
                       "%s: a minibatch of %lld examples does not fit %lld streams: each example "
                       "goes on in a stream of its own",
                       name, (long long)s->batch, (long long)streams);
        return false;
    }
    return true;
}

/* `now` for examples where the step counts, else `before` (nothing: zeros). `counts` is bool (batch, 1). */
static sgm_value keep(const sequence *s, sgm_value counts, sgm_value now, sgm_value before)
{
    if (!sgm_value_exists(now))
        return now;
    if (!sgm_value_exists(before))
        before = sgm_filled_like(s->graph, now, 0);
    return sgm_select(s->graph, counts, now, before);
}

/* Records one step and returns what comes out of it, (batch, size): zeros for examples where the step does
 * not count, as in PyTorch's packed sequences. Their hidden and cell values stay, so that the last value of
 * each example is that of its last step that counts. */
static sgm_value take_step(sequence *s, const cell_type *type, int64_t step)
{
    sgm_value hidden = s->hidden, cell = s->cell;
    s->given = sgm_slice(s->graph, s->projected, 0, step * s->batch, (step + 1) * s->batch, 1);
    type->step(s);
    if (!sgm_value_exists(s->counts))
        return s->hidden;
    sgm_shape column = sgm_shape_of(s->batch, 1);
    sgm_value counts = sgm_reshape(s->graph, sgm_slice(s->graph, s->counts, 0, step, step + 1, 1), &column);
    sgm_value result = keep(s, counts, s->hidden, (sgm_value){-1});
    s->hidden = keep(s, counts, s->hidden, hidden);
    s->cell = keep(s, counts, s->cell, cell);
    return result;
}

/* Records all steps of one direction: (batch, size) of the last step, or (batch, time, size) of all. The
 * results of the steps are put one after the other along the first axis, time, and permuted once. */
static sgm_value unroll(sequence *s, const cell_type *type, bool last)
{
    sgm_value *steps = sgm__calloc((size_t)s->time, sizeof *steps);
    if (steps == NULL)
        return sgm_graph_fail(s->graph, SGM_ERROR_MEMORY, "no memory for %lld steps", (long long)s->time);
    s->hidden = begin_with(s, "hidden", &s->hidden_state);
    s->cell = s->cell_state = (sgm_value){-1};
    if (type->has_cell)
        s->cell = begin_with(s, "cell", &s->cell_state);
    for (int64_t i = 0; i < s->time && sgm_graph_status(s->graph) == SGM_OK; i++) {
        int64_t step = s->backwards ? s->time - 1 - i : i;
        steps[step] = take_step(s, type, step);
    }
    remember(s, s->hidden_state, s->hidden);
    remember(s, s->cell_state, s->cell);
    sgm_value result = s->hidden;
    if (!last && sgm_graph_status(s->graph) == SGM_OK) {
        sgm_shape shape = sgm_shape_of(s->time, s->batch, s->size);
        result = sgm_concatenate(s->graph, steps, (int32_t)s->time, 0);
        result = sgm_permute(s->graph, sgm_reshape(s->graph, result, &shape), (const int32_t[]){1, 0, 2});
    }
    sgm__free(steps);
    return result;
}

/* Checks the input and records one or both directions. Both read the same rows, and their results lie side
 * by side in the features. */
static sgm_value read_sequence(sgm_layer_call *call, sgm_graph *graph, const cell_type *type, sgm_value x)
{
    sgm_shape shape = sgm_value_type(graph, x).shape;
    char text[128];
    const char *name = call->entry->layer->type->name;
    if (shape.rank != 3 || shape.dims[1] < 1)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "%s: expected (batch, time, features), got %s; an embedding makes features of "
                              "numbers",
                              name, sgm_shape_text(&shape, text, sizeof text));
    if (shape.dims[1] > MAXIMUM_STEPS)
        return sgm_graph_fail(graph, SGM_ERROR_UNSUPPORTED, "%s: %lld steps; at most %d can be unrolled",
                              name, (long long)shape.dims[1], MAXIMUM_STEPS);
    sequence s = {.call = call,
                  .graph = graph,
                  .prefix = "",
                  .batch = shape.dims[0],
                  .time = shape.dims[1],
                  .features = shape.dims[2],
                  .size = sgm_layer_integer(call, "size"),
                  .counts = {-1}};
    sgm_value lengths = sgm_layer_lengths(call);
    if (sgm_value_exists(lengths))
        s.counts = sgm_transpose(graph, sgm__layer_steps(graph, lengths, s.time));
    sgm_shape flat = sgm_shape_of(s.time * s.batch, s.features);
    sgm_value rows = sgm_reshape(graph, sgm_permute(graph, x, (const int32_t[]){1, 0, 2}), &flat);
    bool both = sgm_layer_flag(call, "bidirectional"), last = sgm_layer_flag(call, "last");
    if (both && sgm_layer_flag(call, "reverse"))
        return sgm_graph_fail(graph, SGM_ERROR_ARGUMENT, "%s: it is reverse or bidirectional, not both",
                              name);
    if ((both || sgm_layer_flag(call, "reverse")) &&
        sgm__layer_refuses_step(call, graph, "it begins with the last one"))
        return (sgm_value){-1};
    if (sgm__layer_refuses_packing(call, graph, "it remembers the sequence before"))
        return (sgm_value){-1};
    if (!streams_fit(&s, both || sgm_layer_flag(call, "reverse")))
        return (sgm_value){-1};
    sgm_value results[2];
    for (int32_t direction = 0; direction < (both ? 2 : 1); direction++) {
        s.backwards = direction == 1 || sgm_layer_flag(call, "reverse");
        s.prefix = direction == 1 ? "reverse_" : "";
        project(&s, type, rows);
        results[direction] = unroll(&s, type, last);
    }
    return both ? sgm_concatenate(graph, results, 2, last ? 1 : 2) : results[0];
}

static sgm_value rnn(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    return read_sequence(call, graph, &(const cell_type){1, false, false, step_rnn}, inputs[0]);
}

static sgm_value gru(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    return read_sequence(call, graph, &(const cell_type){3, true, false, step_gru}, inputs[0]);
}

static sgm_value lstm(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    return read_sequence(call, graph, &(const cell_type){4, false, true, step_lstm}, inputs[0]);
}

/* --- the table's rows --- */

#define SIZE_ARGUMENT                                                                                        \
    {                                                                                                        \
        .name = "size", .kind = SGM_KIND_INTEGER, .required = true, .minimum = 1, .maximum = 1e6,            \
        .doc = "the number of outputs of a step"                                                             \
    }
#define FLAG_ARGUMENTS                                                                                       \
    {.name = "last",                                                                                         \
     .kind = SGM_KIND_BOOLEAN,                                                                               \
     .doc = "only what comes out after the last step: (batch, size); else all steps"},                       \
        {.name = "reverse", .kind = SGM_KIND_BOOLEAN, .doc = "reads from the last step to the first"},       \
        {.name = "bidirectional",                                                                            \
         .kind = SGM_KIND_BOOLEAN,                                                                           \
         .doc = "two of them, one of which is reverse, side by side: 2 * size outputs of a step"},           \
        {.name = "no_bias", .kind = SGM_KIND_BOOLEAN, .doc = "only the weighted sums, no biases"},           \
    {                                                                                                        \
        .name = "streams", .kind = SGM_KIND_INTEGER, .minimum = 1, .maximum = 1e6,                           \
        .doc =                                                                                               \
            "while training, the example at each place of a minibatch goes on where that place of the one "  \
            "before ended, of so many places; zeros at the beginning of an epoch"                            \
    }

static const sgm_option rnn_arguments[] = {
    SIZE_ARGUMENT,
    {.name = "activation", .kind = SGM_KIND_TEXT, .default_text = "tanh", .doc = "applied to the sums"},
    FLAG_ARGUMENTS};
static const sgm_option gru_arguments[] = {SIZE_ARGUMENT, FLAG_ARGUMENTS};
static const sgm_option lstm_arguments[] = {
    SIZE_ARGUMENT,
    {.name = "forget_bias",
     .kind = SGM_KIND_NUMBER,
     .minimum = -100,
     .maximum = 100,
     .doc = "is added to the forget gate's sum; 1 helps to remember for long (Jozefowicz et al., 2015)"},
    FLAG_ARGUMENTS};

/* The three types differ in name, documentation, arguments and forward function. */
#define RECURRENT(text, words, ...)                                                                          \
    const sgm_layer_type sgm__layer_##text = {.api = SGM_LAYER_API,                                          \
                                              .name = #text,                                                 \
                                              .doc = words,                                                  \
                                              .arguments = text##_arguments,                                 \
                                              .argument_count =                                              \
                                                  sizeof text##_arguments / sizeof text##_arguments[0],      \
                                              .min_inputs = 1,                                               \
                                              .max_inputs = 1,                                               \
                                              .forward = text,                                               \
                                              __VA_ARGS__}

RECURRENT(rnn, "activation(x * weights + h * recurrent + biases) at each step, h what came out of the last",
          .formula = "h = activation(x W + h R + b)", .example = "rnn(64, last)");
RECURRENT(gru, "gated recurrent units: gates reset, update, new side by side in the weights",
          .formula = "h = (1 - z) n + z h; r, z = sigmoid(x W + h R + b), n = tanh(x W + b + r (h R + c))",
          .example = "gru(64, last)");
RECURRENT(
    lstm, "long short-term memory: gates input, forget, cell, output side by side in the weights",
    .formula = "c = f c + i g, h = o tanh(c); i, f, o = sigmoid(x W + h R + b), g = tanh(x W + h R + b)",
    .example = "lstm(64, bidirectional)");
