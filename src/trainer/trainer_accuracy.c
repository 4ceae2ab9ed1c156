/* The share of correct predictions, as an output of a trainer's programs: the largest output is where the
 * target is largest (or on the same side of one half), or has the number that the target is. */
#include "network/rerecord.h"
#include "ops/ops.h"
#include "trainer/trainer_struct.h"
#include <sigma/graph.h>

/* The largest probability is where the largest sum is, which a step of training has anyway. */
static sgm_value before_softmax(const sgm_graph *graph, sgm_value output)
{
    const sgm_value *inputs = &output;
    if (sgm_value_op(graph, output) == &sgm__op_softmax)
        (void)sgm_value_inputs(graph, output, &inputs);
    return *inputs;
}

/* Whether a step counts, (batch, steps, 1, ...) for places (batch, steps, ...). */
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

/* Of all places, where only the steps that count can be right: their share of these. Parts of a minibatch
 * count by these steps, too. */
static void output_of_steps(sgm_graph *graph, sgm_value share, const sgm_shape *places, sgm_value lengths,
                            bool part)
{
    sgm_value all = sgm_cast(graph, sgm_sum(graph, lengths), SGM_FLOAT64);
    sgm_value steps = sgm_number(graph, (double)(places->dims[0] * places->dims[1]));
    share =
        sgm_divide(graph, sgm_multiply(graph, share, steps), sgm_maximum(graph, all, sgm_number(graph, 1)));
    sgm_graph_add_output(graph, SGM__CORRECT, share);
    if (part)
        sgm_graph_add_output(graph, SGM__CORRECT_PART,
                             sgm_multiply(graph, share, sgm__part_share_of(graph, all, SGM_FLOAT64)));
}

/* Classes; what does not count has a target that no prediction is. `counts` nothing: all do. */
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

/* One number for each place (places, 1), on a side of one half. */
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
    bool of_steps = a.rank > 2 && sgm_value_exists(recording->lengths);
    sgm_value counts = {-1};
    if (of_steps)
        counts = steps_that_count(graph, &places, recording->lengths);
    sgm_value share = numbers || a.dims[a.rank - 1] > 1 ? right_classes(graph, output, target, counts)
                                                        : right_sides(graph, output, target, counts);
    if (of_steps)
        output_of_steps(graph, share, &places, recording->lengths, part);
    else
        sgm_graph_add_output(graph, SGM__CORRECT, share);
}
