/* The share of correct predictions (accuracy), as an output of a trainer's programs.
 *
 * src/train/trainer_program.c records it behind the loss, for networks whose loss is one of classes
 * (recording.classifies); src/train/trainer_step.c reads it. A prediction is correct if its largest output is
 * the class of the target, which is a number (shape: the output's without the last dimension) or a vector
 * (the output's shape, its largest element counts); with one output, if output and target are on the same
 * side of 0.5. Metrics with options of their own are in src/metrics. */
#include "network/rerecord.h"
#include "ops/ops.h"
#include "trainer/trainer_struct.h"
#include <sigma/graph.h>

/* The operand of a softmax, which has its largest element at the same place, and which a training step
 * computes anyway. */
static sgm_value before_softmax(const sgm_graph *graph, sgm_value output)
{
    const sgm_value *inputs = &output;
    if (sgm_value_op(graph, output) == &sgm__op_softmax)
        (void)sgm_value_inputs(graph, output, &inputs);
    return *inputs;
}

/* Whether each time step counts, as a boolean of shape (batch, steps, 1, ...) that broadcasts against
 * `places` = (batch, steps, ...): step t of example i counts if t < lengths[i]. */
static sgm_value steps_that_count(sgm_graph *graph, const sgm_shape *places, sgm_value lengths)
{
    sgm_shape line = sgm_shape_of(1, places->dims[1]), column = sgm_shape_of(places->dims[0], 1);
    sgm_shape wide = sgm_shape_of(places->dims[0], places->dims[1]);
    while (wide.rank < places->rank)
        wide.dims[wide.rank++] = 1;
    sgm_value counts =
        sgm_less(graph, sgm_iota(graph, SGM_INT64, &line, 1), sgm_reshape(graph, lengths, &column));
    return sgm_reshape(graph, counts, &wide);
}

/* Whether the place of each target counts: below the lengths (nothing: everywhere), and, where negative ones
 * are ignored, with a target that is not one. */
static sgm_value places_that_count(sgm_graph *graph, const sgm_recording *recording, const sgm_shape *places)
{
    sgm_value target = recording->targets[0].value, counts = {-1};
    if (places->rank > 1 && sgm_value_exists(recording->lengths))
        counts = steps_that_count(graph, places, recording->lengths);
    if (!recording->ignores)
        return counts;
    if (sgm_value_exists(counts))
        target = sgm_select(graph, counts, target, sgm_filled_like(graph, target, -1));
    return sgm_greater_equal(graph, target, sgm_filled_like(graph, target, 0));
}

/* Outputs the share of correct predictions among the time steps that count. `share` is the share among all
 * `steps`, in which those that do not count are wrong; it is multiplied by their number and divided by how
 * many count, `all`, at least 1. For a part of a minibatch the output is also weighted by the part's share of
 * the counting steps of the whole minibatch. */
static void output_of_steps(sgm_graph *graph, sgm_value share, int64_t steps, sgm_value all, bool part)
{
    sgm_value every = sgm_number(graph, (double)steps);
    share =
        sgm_divide(graph, sgm_multiply(graph, share, every), sgm_maximum(graph, all, sgm_number(graph, 1)));
    sgm_graph_add_output(graph, SGM__CORRECT, share);
    if (part)
        sgm_graph_add_output(graph, SGM__CORRECT_PART,
                             sgm_multiply(graph, share, sgm__part_share_of(graph, all, SGM_FLOAT64)));
}

/* The share of correct classes. Steps that do not count get -1 as their target, which no prediction is.
 * `counts` does not exist: all steps count. */
static sgm_value right_classes(sgm_graph *graph, sgm_value output, sgm_value target, sgm_value counts)
{
    sgm_type a = sgm_value_type(graph, output), b = sgm_value_type(graph, target);
    output = before_softmax(graph, output);
    if (!sgm_value_exists(counts))
        return sgm_accuracy(graph, output, target);
    if (a.shape.rank == b.shape.rank)
        target = sgm_cast(graph, sgm_arg_max(graph, target, -1), b.dtype);
    return sgm_accuracy(graph, output, sgm_select(graph, counts, target, sgm_filled_like(graph, target, -1)));
}

/* The share of predictions on the target's side of 0.5, for one output; shapes are (places, 1). Steps that do
 * not count are made wrong. */
static sgm_value right_sides(sgm_graph *graph, sgm_value output, sgm_value target, sgm_value counts)
{
    sgm_value equal = sgm_equal(graph, sgm_greater(graph, output, sgm_number(graph, 0.5)),
                                sgm_greater(graph, target, sgm_number(graph, 0.5)));
    sgm_value right = sgm_cast(graph, equal, SGM_FLOAT64);
    if (!sgm_value_exists(counts))
        return sgm_mean(graph, right);
    sgm_shape places = sgm_value_type(graph, right).shape;
    places.rank--;
    right = sgm_reshape(graph, right, &places);
    return sgm_mean(graph, sgm_select(graph, counts, right, sgm_filled_like(graph, right, 0)));
}

/* Records nothing where outputs and targets do not have shapes of classes; the program then has no such
 * output, and metrics have no accuracy. */
void sgm__trainer_record_correct(sgm_trainer *trainer, bool part)
{
    const sgm_recording *recording = &trainer->learner.recording;
    sgm_graph *graph = trainer->learner.graph;
    if (!recording->classifies || recording->output_count == 0 || recording->target_count == 0)
        return;
    sgm_value output = recording->outputs[0].value, target = recording->targets[0].value;
    sgm_shape a = sgm_value_type(graph, output).shape, b = sgm_value_type(graph, target).shape;
    sgm_shape places = sgm_shape_create(a.rank > 0 ? a.rank - 1 : 0, a.dims);
    bool numbers = sgm_shape_equal(&places, &b); /* of classes */
    if ((!numbers && !sgm_shape_equal(&a, &b)) || a.rank < 2)
        return;
    sgm_value counts = places_that_count(graph, recording, &places);
    sgm_value share = numbers || a.dims[a.rank - 1] > 1 ? right_classes(graph, output, target, counts)
                                                        : right_sides(graph, output, target, counts);
    if (recording->ignores)
        output_of_steps(graph, share, sgm_shape_elements(&places),
                        sgm_sum(graph, sgm_cast(graph, counts, SGM_FLOAT64)), part);
    else if (sgm_value_exists(counts))
        output_of_steps(graph, share, places.dims[0] * places.dims[1],
                        sgm_cast(graph, sgm_sum(graph, recording->lengths), SGM_FLOAT64), part);
    else
        sgm_graph_add_output(graph, SGM__CORRECT, share);
}
