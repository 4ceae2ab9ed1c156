/* ctc: labels of a sequence without knowing which step says which (connectionist temporal classification,
 * Graves et al., 2006).
 *
 * The prediction is logits (batch, time, classes), the targets (batch, labels), where an example's labels
 * end before the first that is negative or the blank. The algorithm, with its forward and backward
 * recursions, is src/ops/sequences/ctc.c; this layer finds its inputs. What a network predicts is the softmax
 * of each step; text from it is made by src/data/ctc_decode.c. */
#include "network/layers/costs.h"

/* The number of steps of each example, int64 (batch): the input's lengths, or all steps. */
static sgm_value lengths_of(const sgm_layer_call *call, sgm_graph *graph, const sgm_shape *shape)
{
    sgm_value lengths = sgm_layer_lengths(call);
    const sgm_shape line = sgm_shape_of(shape->dims[0]);
    if (sgm_value_exists(lengths))
        return lengths;
    return sgm_cast(graph, sgm_broadcast(graph, sgm_number(graph, (double)shape->dims[1]), &line), SGM_INT64);
}

/* Labels pass through sgm__layer_whole, so a fraction among them is an error of ctc that names the example.
 */
static sgm_value ctc(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_shape shape = sgm_value_type(graph, inputs[0]).shape;
    char text[128];
    if (shape.rank != 3)
        return sgm_graph_fail(
            graph, SGM_ERROR_SHAPE,
            "ctc: expected a prediction (batch, time, classes), got %s: a dense layer before it "
            "needs the flag time_distributed",
            sgm_shape_text(&shape, text, sizeof text));
    sgm_shape example = sgm_shape_of(sgm_layer_integer(call, "labels"));
    sgm_value labels = sgm_layer_field(call, graph, sgm_layer_text(call, "targets"), &example);
    sgm_value cost =
        sgm_ctc(graph, inputs[0], sgm__layer_whole(graph, labels), lengths_of(call, graph, &shape),
                sgm_layer_integer(call, "blank"), sgm_layer_flag(call, "skip"));
    return sgm__cost_weighted(call, graph, cost);
}

static sgm_value predict_softmax(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    (void)call;
    return sgm_softmax(graph, prediction);
}

static const sgm_option arguments[] = {
    {.name = "labels",
     .kind = SGM_KIND_INTEGER,
     .required = true,
     .minimum = 1,
     .maximum = 1e6,
     .doc = "how many labels an example of the targets has room for; its own end before the first that is "
            "negative or the blank"},
    SGM__COST_ARGUMENTS,
    {.name = "blank",
     .kind = SGM_KIND_INTEGER,
     .minimum = 0,
     .maximum = 1e9,
     .doc = "the class between labels, which says nothing"},
    {.name = "skip",
     .kind = SGM_KIND_BOOLEAN,
     .doc = "an example with fewer steps than its labels need costs nothing; otherwise it is an error"},
};

SGM__COST(
    ctc,
    "-log of the probability that the steps say a list of labels, each in one step or more, with blanks "
    "between; logits (time, classes), the output is their softmax (Graves et al., 2006)",
    arguments, 0, predict_softmax,
    .formula = "-log of the sum, over all ways to say the labels, of the product of softmax(x) at each step",
    .example = "ctc(labels=20)");
