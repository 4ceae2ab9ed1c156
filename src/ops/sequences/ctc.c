/* ctc: -log of the probability that the steps of a sequence say a list of labels, with any number of steps
 * for each and blanks between them (Graves et al., 2006: connectionist temporal classification).
 *
 * An example's states are its labels with a blank before, between and behind them: 2 n + 1 for n labels. All
 * is in log space and double precision. Inputs of the operations: log_probabilities (batch, time, classes),
 * labels (batch, longest) and lengths (batch), both int64; an example's labels end before the first that is
 * negative or the blank. Integers: blank, skip (examples that have no way through cost nothing; else they
 * stop the run). */
#include "ops/rules.h"

#include <math.h>

/* The logarithm of 0: nothing becomes infinite, so handlers that look for that find none. */
#define NEVER (-1e30)
#define POSSIBLE (-1e29) /* a logarithm below it is that of 0 */

/* The gradient of the operations that ctc's gradient consists of: they are not differentiated again. */
static void refuse_gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    (void)call, (void)gradients;
    sgm_graph_fail(
        graph, SGM_ERROR_UNSUPPORTED,
        "ctc has a gradient, but no second one: leave it out of what is differentiated twice, or stop the "
        "gradient of its gradient");
}

/* One example of the minibatch as the loops see it. */
typedef struct example {
    int64_t number, time, classes, blank;
    const sgm_array *log_probabilities, *labels; /* both contiguous */
    int64_t maximum;                             /* labels there is room for */
    int64_t count, states, length;               /* its own labels, states and steps */
} example;

static int64_t label_at(const example *r, int64_t i)
{
    return sgm__array_index(r->labels, r->number * r->maximum + i);
}

/* The class that a state stands for: even states are blanks, odd ones labels. */
static int64_t class_of(const example *r, int64_t state)
{
    return state % 2 == 0 ? r->blank : label_at(r, state / 2);
}

/* The log probability that step t says the class of a state. */
static double emission(const example *r, int64_t t, int64_t state)
{
    return sgm_array_load(r->log_probabilities, (r->number * r->time + t) * r->classes + class_of(r, state));
}

/* log(exp(a) + exp(b)) without overflow; NEVER adds nothing. */
static double log_add(double a, double b)
{
    double high = a > b ? a : b, low = a > b ? b : a;
    return low < POSSIBLE ? high : high + log1p(exp(low - high));
}

/* Whether a label may follow the one before without a blank between them: two equal labels need it. */
static bool may_jump_to(const example *r, int64_t state)
{
    return state >= 2 && state % 2 == 1 && class_of(r, state) != class_of(r, state - 2);
}

/* Whether an example has enough steps for its labels and the blanks between equal ones; else its cost
 * would be infinite. */
static sgm_status check_ways(const example *r)
{
    int64_t needed = r->count;
    for (int64_t i = 1; i < r->count; i++)
        needed += label_at(r, i) == label_at(r, i - 1);
    if (r->length >= needed)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "example %lld of the minibatch has %lld labels, which need %lld steps, but only %lld "
                    "steps: leave such examples out, give them more steps, or set the flag skip",
                    (long long)r->number, (long long)r->count, (long long)needed, (long long)r->length);
}

/* Reads the labels and the length of example `number` and checks them: the first example that is wrong stops
 * the run with its number. */
static sgm_status see(const sgm_kernel_call *call, int64_t number, example *r)
{
    const sgm_array *x = &call->inputs[0], *labels = &call->inputs[1];
    *r = (example){.number = number,
                   .time = x->shape.dims[1],
                   .classes = x->shape.dims[2],
                   .blank = call->attributes->integers[0],
                   .log_probabilities = x,
                   .labels = labels,
                   .maximum = labels->shape.dims[1],
                   .length = sgm__array_index(&call->inputs[2], number)};
    if (r->length < 0 || r->length > r->time)
        return sgm_fail(SGM_ERROR_ARGUMENT, "example %lld has a length of %lld, but there are %lld steps",
                        (long long)number, (long long)r->length, (long long)r->time);
    while (r->count < r->maximum && label_at(r, r->count) >= 0 && label_at(r, r->count) != r->blank) {
        if (label_at(r, r->count) == (int64_t)SGM__NO_WHOLE_NUMBER)
            return sgm_fail(SGM_ERROR_ARGUMENT, "label %lld of example %lld is no whole number",
                            (long long)r->count, (long long)number);
        if (label_at(r, r->count) >= r->classes)
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "label %lld is out of range: there are %lld classes, numbered from 0",
                            (long long)label_at(r, r->count), (long long)r->classes);
        r->count++;
    }
    r->states = 2 * r->count + 1;
    return call->attributes->integers[1] != 0 ? SGM_OK : check_ways(r);
}

/* --- types --- */

/* The types of the inputs that all operations of this file have. */
static sgm_status infer_inputs(const sgm_type *inputs, const sgm_attributes *attributes)
{
    char x[SGM__TYPE_TEXT], labels[SGM__TYPE_TEXT], lengths[SGM__TYPE_TEXT];
    SGM_TRY(sgm__want_integers(attributes, 2));
    SGM_TRY(sgm__want_float(&inputs[0]));
    const sgm_shape *shape = &inputs[0].shape;
    if (shape->rank != 3 || shape->dims[1] < 1 || inputs[1].shape.rank != 2 || inputs[2].shape.rank != 1 ||
        inputs[1].shape.dims[0] != shape->dims[0] || inputs[2].shape.dims[0] != shape->dims[0] ||
        inputs[1].dtype != SGM_INT64 || inputs[2].dtype != SGM_INT64)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "wants floats (batch, time, classes), int64 labels (batch, longest) and int64 "
                        "lengths (batch), got %s, %s and %s",
                        sgm__type_text(&inputs[0], x), sgm__type_text(&inputs[1], labels),
                        sgm__type_text(&inputs[2], lengths));
    if (attributes->integers[0] < 0 || attributes->integers[0] >= shape->dims[2])
        return sgm_fail(SGM_ERROR_ARGUMENT, "the blank %lld is none of the %lld classes, numbered from 0",
                        (long long)attributes->integers[0], (long long)shape->dims[2]);
    return SGM_OK;
}

/* (batch, time, states), also of the operation with a fourth input of that type. */
static sgm_status infer_states(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                               sgm_type *result)
{
    SGM_TRY(infer_inputs(inputs, attributes));
    const sgm_shape *x = &inputs[0].shape;
    *result = (sgm_type){SGM_FLOAT64, sgm_shape_of(x->dims[0], x->dims[1], 2 * inputs[1].shape.dims[1] + 1)};
    return count > 3 ? sgm__want_equal(&inputs[3], result) : SGM_OK;
}

/* --- forward: the probability of all ways from the start that are in a state after a step --- */

/* The first step: a blank or the first label. Without any step only an example without labels is possible. */
static void begin(const example *r, double *row)
{
    if (r->length == 0) {
        row[0] = r->count == 0 ? 0 : NEVER;
        return;
    }
    row[0] = emission(r, 0, 0);
    if (r->states > 1)
        row[1] = emission(r, 0, 1);
}

/* One step of the forward recursion, alpha[t][s] = log p(class of s) + log(exp(alpha[t-1][s]) +
 * exp(alpha[t-1][s-1]) + exp(alpha[t-1][s-2])). The last term is there only where a label may follow the one
 * before without a blank. */
static void step_forward(const example *r, int64_t t, const double *before, double *row)
{
    for (int64_t s = 0; s < r->states; s++) {
        double sum = before[s];
        if (s >= 1)
            sum = log_add(sum, before[s - 1]);
        if (may_jump_to(r, s))
            sum = log_add(sum, before[s - 2]);
        row[s] = sum < POSSIBLE ? NEVER : sum + emission(r, t, s);
    }
}

/* Rows alpha[t][s]: log of the probability of all ways that are in state s after step t. After an
 * example's last step only the last label and the blank behind it count; the rows behind are copies, so
 * that the last row of each example is the same place for all. */
static sgm_status forward_alphas(const sgm_kernel_call *call)
{
    int64_t batch = call->output.shape.dims[0], time = call->output.shape.dims[1],
            states = call->output.shape.dims[2];
    double *rows = call->output.data;
    for (int64_t i = 0; i < batch * time * states; i++)
        rows[i] = NEVER;
    for (int64_t number = 0; number < batch; number++, rows += time * states) {
        example r;
        if (see(call, number, &r) != SGM_OK)
            return sgm__fail_example(number);
        begin(&r, rows);
        for (int64_t t = 1; t < r.length; t++)
            step_forward(&r, t, rows + (t - 1) * states, rows + t * states);
        double *end = rows + (r.length > 0 ? r.length - 1 : 0) * states;
        for (int64_t s = 0; s + 2 < r.states; s++)
            end[s] = NEVER;
        for (int64_t t = r.length > 0 ? r.length : 1; t < time; t++)
            memcpy(rows + t * states, end, (size_t)states * sizeof *end);
    }
    return SGM_OK;
}

const sgm_op sgm__op_ctc_alphas = {
    SGM__OP("ctc_alphas", 3, "log of the probability of all ways to a state: (batch, time, states)"),
    .infer = infer_states, .gradient = refuse_gradient, .forward = forward_alphas};

/* --- backward: how likely each state is at each step, given that the labels are said --- */

/* beta[t][s] = log of the probability of all that can follow after step t in state s, from the row of step t
 * + 1, where each successor also says its class. */
static void step_backward(const example *r, int64_t t, const double *after, double *row)
{
    for (int64_t s = 0; s < r->states; s++) {
        double sum = after[s] < POSSIBLE ? NEVER : after[s] + emission(r, t + 1, s);
        if (s + 1 < r->states && after[s + 1] > POSSIBLE)
            sum = log_add(sum, after[s + 1] + emission(r, t + 1, s + 1));
        if (s + 2 < r->states && after[s + 2] > POSSIBLE && may_jump_to(r, s + 2))
            sum = log_add(sum, after[s + 2] + emission(r, t + 1, s + 2));
        row[s] = sum;
    }
}

/* exp(alpha + beta - whole): the share of all ways that pass through each state at this step. */
static void become_shares(const example *r, const double *alphas, double whole, double *row)
{
    for (int64_t s = 0; s < r->states; s++)
        row[s] = whole < POSSIBLE || alphas[s] < POSSIBLE || row[s] < POSSIBLE
                     ? 0
                     : exp(alphas[s] + row[s] - whole);
}

/* Fills `rows` from the last step to the first. A row holds what follows until the row before has read it,
 * and the shares afterwards, so no second array is needed. */
static void shares_of_example(const example *r, const double *alphas, int64_t states, double *rows)
{
    if (r->length == 0)
        return;
    int64_t last = r->length - 1;
    double whole = alphas[last * states + r->states - 1];
    if (r->states > 1)
        whole = log_add(whole, alphas[last * states + r->states - 2]);
    for (int64_t s = 0; s < r->states; s++)
        rows[last * states + s] = s + 2 < r->states ? NEVER : 0;
    for (int64_t t = last; t >= 0; t--) {
        if (t > 0)
            step_backward(r, t - 1, rows + t * states, rows + (t - 1) * states);
        become_shares(r, alphas + t * states, whole, rows + t * states);
    }
}

/* Rows behind an example's last step are 0. */
static sgm_status forward_states(const sgm_kernel_call *call)
{
    int64_t batch = call->output.shape.dims[0], time = call->output.shape.dims[1],
            states = call->output.shape.dims[2];
    const double *alphas = call->inputs[3].data;
    double *rows = call->output.data;
    memset(rows, 0, (size_t)(batch * time * states) * sizeof *rows);
    for (int64_t number = 0; number < batch; number++) {
        example r;
        if (see(call, number, &r) != SGM_OK)
            return sgm__fail_example(number);
        shares_of_example(&r, alphas + number * time * states, states, rows + number * time * states);
    }
    return SGM_OK;
}

const sgm_op sgm__op_ctc_states = {
    SGM__OP("ctc_states", 4, "how likely each state is at each step, given the labels"),
    .infer = infer_states, .gradient = refuse_gradient, .forward = forward_states};

/* --- from states to the classes that they stand for; inputs: those of the others and the states --- */

static sgm_status infer_classes(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                                sgm_type *result)
{
    sgm_type states;
    SGM_TRY(infer_states(inputs, count, attributes, &states));
    *result = inputs[0];
    return SGM_OK;
}

/* Sums the shares of all states that stand for the same class: the blanks, and labels that come several
 * times. */
static sgm_status forward_classes(const sgm_kernel_call *call)
{
    const sgm_array *y = &call->output;
    int64_t batch = y->shape.dims[0], time = y->shape.dims[1], classes = y->shape.dims[2];
    int64_t states = call->inputs[3].shape.dims[2];
    const double *shares = call->inputs[3].data;
    memset(y->data, 0, (size_t)(batch * time * classes) * sgm_dtype_size(y->dtype));
    for (int64_t number = 0; number < batch; number++) {
        example r;
        if (see(call, number, &r) != SGM_OK)
            return sgm__fail_example(number);
        for (int64_t t = 0; t < time; t++)
            for (int64_t s = 0; s < r.states; s++) {
                int64_t place = (number * time + t) * classes + class_of(&r, s);
                double share = shares[(number * time + t) * states + s];
                sgm_array_store(y, place, sgm_array_load(y, place) + share);
            }
    }
    return SGM_OK;
}

const sgm_op sgm__op_ctc_classes = {
    SGM__OP("ctc_classes", 4, "states' shares added up for each class: (batch, time, classes)"),
    .infer = infer_classes, .gradient = refuse_gradient, .forward = forward_classes};

/* --- the cost --- */

static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    SGM_TRY(infer_inputs(inputs, attributes));
    *result = (sgm_type){inputs[0].dtype, sgm_shape_of(inputs[0].shape.dims[0])};
    return SGM_OK;
}

/* cost = -log(exp(alpha[T][last]) + exp(alpha[T][last - 1])), of the last row alone, by ordinary operations
 * that a handler fuses. Where no way is possible (only with `skip`) the cost is 0, without an infinity in
 * between. */
static sgm_value compose(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                         const sgm_attributes *attributes)
{
    static const int32_t last[] = {-1};
    sgm_type type = sgm_value_type(graph, inputs[0]);
    sgm_value alphas = sgm_record(graph, &sgm__op_ctc_alphas, inputs, count, attributes);
    if (!sgm_value_exists(alphas))
        return alphas;
    sgm_shape states = sgm_value_type(graph, alphas).shape,
              rows = sgm_shape_of(states.dims[0], states.dims[2]);
    sgm_value end = sgm_slice(graph, alphas, 1, type.shape.dims[1] - 1, type.shape.dims[1], 1);
    end = sgm_reshape(graph, end, &rows);
    sgm_value largest = sgm_reduce_max(graph, end, last, 1, true);
    sgm_value sum = sgm_reduce_sum(graph, sgm_exp(graph, sgm_subtract(graph, end, largest)), last, 1, false);
    largest = sgm_reshape(graph, largest, &(const sgm_shape){.rank = 1, .dims = {states.dims[0]}});
    sgm_value cost = sgm_negate(graph, sgm_add(graph, sgm_log(graph, sum), largest));
    sgm_value possible = sgm_greater(graph, largest, sgm_number(graph, POSSIBLE));
    cost = sgm_select(graph, possible, cost, sgm_filled_like(graph, cost, 0));
    return sgm_cast(graph, cost, type.dtype);
}

/* The gradient by the log probabilities is minus the shares of classes, times the cost's gradient; the
 * softmax in front of it makes probability - share of that. */
static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    const sgm_value *x = call->inputs;
    if (!call->wanted[0])
        return;
    sgm_value alphas = sgm_record(graph, &sgm__op_ctc_alphas, x, 3, call->attributes);
    sgm_value states = sgm_record(graph, &sgm__op_ctc_states, (const sgm_value[]){x[0], x[1], x[2], alphas},
                                  4, call->attributes);
    sgm_value classes = sgm_record(graph, &sgm__op_ctc_classes, (const sgm_value[]){x[0], x[1], x[2], states},
                                   4, call->attributes);
    sgm_shape column = sgm_shape_of(sgm_value_type(graph, x[0]).shape.dims[0], 1, 1);
    sgm_value factor = sgm_negate(graph, sgm_reshape(graph, call->gradient, &column));
    gradients[0] = sgm_multiply(graph, classes, factor);
}

const sgm_op sgm__op_ctc = {
    SGM__OP("ctc", 3, "-log of the probability that the steps say the labels (Graves et al., 2006)"),
    .compose = compose, .infer = infer, .gradient = gradient};

/* x are logits; their log_softmax is what the operations work on. */
sgm_value sgm_ctc(sgm_graph *graph, sgm_value x, sgm_value labels, sgm_value lengths, int64_t blank,
                  bool skip)
{
    return sgm_record(graph, &sgm__op_ctc, (const sgm_value[]){sgm_log_softmax(graph, x), labels, lengths}, 3,
                      &SGM__INTEGERS(blank, skip));
}
