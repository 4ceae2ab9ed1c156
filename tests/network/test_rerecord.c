/* Networks with dynamic layers, recorded again and again into one graph: it is always what a new graph would
 * be, and only what can differ is asked again. */
#include "graph/graph_internal.h"
#include "network/rerecord.h"
#include "test.h"
#include <sigma/graph.h>
#include <stdio.h>

/* What the dynamic layers do. */
static int mood;
static int asked; /* how often the others were */

static sgm_value add_constant(sgm_graph *graph, sgm_value x, float number)
{
    sgm_shape shape = sgm_shape_of(1);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_FLOAT32, &shape, &number);
    sgm_value sum = sgm_add(graph, x, sgm_constant(graph, tensor));
    sgm_tensor_free(tensor);
    return sum;
}

static sgm_value add_parameter(sgm_layer_call *call, sgm_graph *graph, sgm_value x, const char *name,
                               bool trainable, const char *initialiser)
{
    sgm_shape shape = sgm_shape_of(4);
    return sgm_add(graph, x, sgm_layer_parameter(call, graph, name, &shape, 1, 1, trainable, initialiser));
}

static sgm_value count_up(sgm_layer_call *call, sgm_graph *graph, sgm_value x, double by)
{
    sgm_shape shape = sgm_shape_of(4);
    sgm_value state = sgm_layer_parameter(call, graph, "steps", &shape, 1, 1, false, "constant(0)");
    sgm_assign(graph, state, sgm_add(graph, state, sgm_number(graph, by)));
    return x;
}

static sgm_value measure(const sgm_layer_call *call, sgm_graph *graph, sgm_value x, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "%s of %s", what, sgm_layer_name(call));
    sgm_graph_add_output(graph, name, sgm_sum(graph, x));
    return x;
}

#define MOODS 21
#define MOODS_OF_SEQUENCES 19 /* these take any shape that ends in 4 */
static sgm_value forward_moody(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_value x = inputs[0];
    sgm_shape shape = sgm_shape_of(4);
    switch (mood) {
    case 0:
        return x;
    case 1:
        return sgm_relu(graph, x);
    case 2:
        return sgm_tanh(graph, x);
    case 3:
        return sgm_tanh(graph, sgm_tanh(graph, x));
    case 4:
        sgm_tanh(graph, x); /* for nothing */
        return x;
    case 5:
        return sgm_multiply(graph, x, sgm_number(graph, 2));
    case 6:
        return sgm_multiply(graph, x, sgm_number(graph, 3));
    case 7:
        return add_constant(graph, x, 1);
    case 8:
        return add_constant(graph, x, 2);
    case 9:
        return add_constant(graph, add_constant(graph, x, 1), 2);
    case 10:
        return add_parameter(call, graph, x, "a", true, "constant(1)");
    case 11:
        return add_parameter(call, graph, x, "a", false, "constant(1)");
    case 12:
        return add_parameter(call, graph, x, "a", true, "constant(2)");
    case 13:
        return add_parameter(call, graph, x, "b", true, "constant(1)");
    case 14:
        return add_parameter(call, graph, add_parameter(call, graph, x, "a", true, "constant(1)"), "b", true,
                             "constant(1)");
    case 15:
        return count_up(call, graph, x, 1);
    case 16:
        return count_up(call, graph, x, 2);
    case 17:
        return measure(call, graph, x, "one");
    case 18:
        return measure(call, graph, x, "other");
    case 19:
        return sgm_multiply(graph, x, sgm_layer_random(call, graph, &shape));
    default:
        return sgm_add(graph, x, sgm_layer_field(call, graph, "more", &shape));
    }
}

static sgm_value forward_still(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)call, (void)count;
    asked++;
    return sgm_negate(graph, inputs[0]);
}

static const sgm_layer_type moody = {.api = SGM_LAYER_API,
                                     .flags = SGM_LAYER_DYNAMIC,
                                     .name = "moody",
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .forward = forward_moody},
                            still = {.api = SGM_LAYER_API,
                                     .name = "still",
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .forward = forward_still};

#define NETWORK                                                                                              \
    "x = input(3) + dense(4, tanh) + still + moody; add(x, x) + dropout(0.5) + still + moody + dense(4) + "  \
    "still + softmax_cross_entropy"

static const sgm_recording_options training = {
    .struct_size = sizeof training, .batch = 5, .dtype = SGM_FLOAT32, .training = true};

static sgm_network *network_of(const char *text)
{
    CHECK_OK(sgm_register_layer(&moody));
    CHECK_OK(sgm_register_layer(&still));
    sgm_network *network = sgm_network_parse(text);
    CHECK_OK(network);
    return network;
}

/* What a trainer does behind the network. */
static void record_rest(sgm_graph *graph, const sgm_recording *recording)
{
    sgm_value gradient, parameter = recording->parameters[0].value;
    sgm_graph_add_output(graph, "cost", recording->total);
    CHECK_OK(sgm_gradients(graph, recording->total, &parameter, 1, &gradient));
    sgm_assign(graph, parameter, sgm_subtract(graph, parameter, gradient));
    CHECK_OK(sgm_graph_status(graph));
}

static bool same_values(const sgm_named_value *a, size_t count, const sgm_named_value *b, size_t other)
{
    bool same = count == other;
    for (size_t i = 0; i < count && same; i++)
        same = strcmp(a[i].name, b[i].name) == 0 && a[i].value.index == b[i].value.index &&
               a[i].importance == b[i].importance;
    return same;
}

static void check_recordings(const sgm_recording *a, const sgm_recording *b)
{
    CHECK(same_values(a->inputs, a->input_count, b->inputs, b->input_count));
    CHECK(same_values(a->targets, a->target_count, b->targets, b->target_count));
    CHECK(same_values(a->outputs, a->output_count, b->outputs, b->output_count));
    CHECK(same_values(a->costs, a->cost_count, b->costs, b->cost_count));
    CHECK_INT(a->total.index, b->total.index);
    CHECK_INT(a->random, b->random);
    CHECK_INT(a->parameter_count, b->parameter_count);
    for (size_t i = 0; i < a->parameter_count; i++) {
        CHECK_STR(a->parameters[i].name, b->parameters[i].name);
        CHECK_STR(a->parameters[i].initialiser, b->parameters[i].initialiser);
        CHECK_INT(a->parameters[i].trainable, b->parameters[i].trainable);
        CHECK_INT(a->parameters[i].value.index, b->parameters[i].value.index);
    }
}

/* Against a network and a graph that are new. */
static void check_as_new(const char *notation, const sgm_graph *graph, const sgm_recording *recording,
                         bool rest)
{
    sgm_recording expected;
    sgm_network *network = network_of(notation);
    sgm_graph *fresh = sgm_graph_create();
    CHECK_OK(sgm_network_record(network, fresh, &training, &expected));
    check_recordings(recording, &expected);
    if (rest)
        record_rest(fresh, &expected);
    CHECK(sgm__graph_structure_equal(graph, fresh));
    char *text = sgm_graph_text(graph), *wanted = sgm_graph_text(fresh);
    CHECK_STR(text, wanted);
    sgm__free(text);
    sgm__free(wanted);
    sgm_graph_free(fresh);
    sgm_network_free(network);
}

/* --- a graph that a network is recorded into again and again --- */

typedef struct repeated {
    sgm_network *network;
    sgm_graph *graph;
    sgm_recording recording;
} repeated;

static repeated begin(const char *notation)
{
    return (repeated){.network = network_of(notation), .graph = sgm_graph_create()};
}

static void end(const repeated *r)
{
    sgm_graph_free(r->graph);
    sgm_network_free(r->network);
}

static sgm_status try_again(repeated *r, const sgm_recording_options *options, bool *same)
{
    return sgm__network_rerecord(r->network, r->graph, options, &r->recording, same);
}

/* Whether it found what was there. */
static bool again(repeated *r)
{
    bool same;
    CHECK_OK(try_again(r, &training, &same));
    return same;
}

/* From each mood below `moods` to each other one. */
static void check_changes(const char *notation, int moods)
{
    repeated r = begin(notation);
    mood = 0;
    CHECK(!again(&r));
    record_rest(r.graph, &r.recording);
    for (int from = 0; from < moods; from++)
        for (int to = 0; to < moods; to++)
            for (int step = 0; step < 2; step++) {
                int before = mood;
                mood = step == 0 ? from : to;
                bool same = again(&r);
                CHECK_INT(same, mood == before);
                check_as_new(notation, r.graph, &r.recording, same);
                if (!same)
                    record_rest(r.graph, &r.recording);
            }
    end(&r);
}

TEST(every_change_is_seen)
{
    check_changes(NETWORK, MOODS);
}

/* Layers before and behind a dynamic one share constants. */
TEST(what_layers_share_is_that_of_this_recording)
{
    check_changes("input(3, 4) + attention(2, causal, rotary) + moody + attention(2, causal, rotary) + "
                  "attention(2, causal, rotary, rotary_base=100) + moody + attention(2, causal, rotary, "
                  "rotary_base=100) + softmax_cross_entropy",
                  MOODS_OF_SEQUENCES);
}

TEST(layers_are_asked_behind_a_change_only)
{
    repeated r = begin(NETWORK);
    mood = 1;
    asked = 0;
    CHECK(!again(&r));
    CHECK_INT(asked, 3);
    CHECK(again(&r));
    CHECK_INT(asked, 3);
    mood = 2;
    CHECK(!again(&r));
    CHECK_INT(asked, 5);
    end(&r);
}

/* The input of a step has other shapes, though no dynamic layer sees that. */
TEST(a_step_is_not_the_whole_sequence)
{
    repeated r = begin("input(3) + moody");
    const sgm_recording_options whole = {.struct_size = sizeof whole, .batch = 5, .dtype = SGM_FLOAT32};
    sgm_recording_options one = whole;
    bool same;
    one.step = true;
    mood = 1;
    CHECK_OK(try_again(&r, &whole, &same));
    CHECK_OK(try_again(&r, &one, &same));
    CHECK(!same);
    CHECK_INT(sgm_value_type(r.graph, r.recording.inputs[0].value).shape.dims[1], 1);
    end(&r);
}

/* Another batch, a graph that was cleared, another graph, an argument, a failure: all begin anew. */
TEST(what_cannot_be_compared_is_recorded_anew)
{
    repeated r = begin(NETWORK), strange = begin("input(3) + moody + moody + dense(2)"), other = r;
    sgm_recording_options larger = training;
    sgm_content half = sgm_number_content(0.25);
    bool same;
    mood = 5;
    larger.batch = 6;
    other.graph = sgm_graph_create();
    CHECK(!again(&r));
    CHECK_OK(try_again(&r, &larger, &same));
    CHECK(!same);
    CHECK(!again(&r));
    sgm_graph_clear(r.graph);
    CHECK(!again(&r));
    CHECK(!again(&other));
    CHECK(!again(&r));
    CHECK_OK(sgm_network_set_argument(r.network, 5, "rate", &half));
    CHECK(!again(&r));
    mood = 10; /* the first has 4 biases for 3 numbers */
    CHECK_ERROR(sgm__network_rerecord(strange.network, r.graph, &training, &r.recording, &same), "1-moody");
    mood = 5;
    CHECK(!again(&r));
    sgm_graph_free(other.graph);
    end(&strange);
    end(&r);
}

/* A failure in the middle of comparing. */
TEST(after_a_failure_it_begins_anew)
{
    repeated r = begin("input(3) + moody + dense(2) + softmax_cross_entropy");
    bool same;
    mood = 7;
    CHECK(!again(&r));
    mood = 10;
    CHECK_ERROR(try_again(&r, &training, &same), "1-moody");
    mood = 7;
    CHECK(!again(&r));
    CHECK(again(&r));
    end(&r);
}

TEST(names_do_not_pile_up)
{
    repeated r = begin(NETWORK);
    for (int i = 0; i < 20000; i++) {
        char name[32];
        snprintf(name, sizeof name, "number%d", i);
        mood = i % 2;
        CHECK(!again(&r));
        sgm_graph_add_output(r.graph, name, r.recording.total);
    }
    CHECK(r.graph->names.length < 200000);
    end(&r);
}
