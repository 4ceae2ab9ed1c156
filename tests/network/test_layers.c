#include "base/allocator.h"
#include "network/layer_bench.h"

TEST(dense_is_a_weighted_sum)
{
    bench b = open_text("input(2) + dense(3, name=a) + output + dense(1, relu, no_bias)", 2, false);
    FEED(&b, "inputs", 1, 2, 3, 4);
    SET(&b, "a.weights", 1, 0, -1, 2, 1, 0);
    SET(&b, "a.biases", 0.5, -0.5, 0);
    SET(&b, "3-dense.weights", -1, 1, -4);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "output 2-output", 5.5, 1.5, -1, 11.5, 3.5, -3);
    CHECK_OUTPUT(&b, "output 3-dense", 0, 4);
    CHECK(!sgm_session_has(b.session, "3-dense.biases"));
    stop(&b);
}

TEST(dense_flattens_examples_of_several_dimensions)
{
    bench b = open_text("input(2, 2) + dense(1)", 2, false);
    CHECK_INT(b.recording.parameters[0].type.shape.dims[0], 4);
    SET(&b, "1-dense.weights", 1, 10, 100, 1000);
    FEED(&b, "inputs", 1, 2, 3, 4, 5, 6, 7, 8);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "output 1-dense", 4321, 8765);
    stop(&b);
}

TEST(time_distributed_dense_leaves_the_other_dimensions)
{
    bench b = open_text("input(2, 2) + dense(3, relu, time_distributed)", 2, false);
    CHECK_INT(b.recording.parameters[0].type.shape.dims[0], 2);
    CHECK_INT(sgm_value_type(b.graph, b.recording.outputs[0].value).shape.rank, 3);
    SET(&b, "1-dense.weights", 1, 0, -1, 10, 1, 0);
    SET(&b, "1-dense.biases", 0, 0.5, 4);
    FEED(&b, "inputs", 1, 2, 3, 4, 5, 6, 7, 8);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "output 1-dense", 21, 2.5, 3, 43, 4.5, 1, 65, 6.5, 0, 87, 8.5, 0);
    stop(&b);
}

TEST(an_embedding_looks_vectors_up)
{
    bench b = open_text("input(3) + embedding(4, 2)", 2, false);
    SET(&b, "1-embedding.weights", 0, 1, 10, 11, 20, 21, 30, 31);
    FEED(&b, "inputs", 3, 0, 1, 2, 2, 0);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "output 1-embedding", 30, 31, 0, 1, 10, 11, 20, 21, 20, 21, 0, 1);
    FEED(&b, "inputs", 3, 0, 1, 2, 4, 0);
    CHECK_INT(sgm_session_run(b.session, b.program), SGM_ERROR_ARGUMENT);
    CHECK(strstr(sgm_last_error(), "index 4 is out of range: axis 0 has 4 entries") != NULL);
    CHECK(strstr(sgm_last_error(), "1-embedding") != NULL);
    stop(&b);
}

TEST(elementwise_has_a_weight_for_each_element)
{
    bench b = open_text("input(3) + elementwise(3, tanh)", 2, false);
    SET(&b, "1-elementwise.weights", 1, 2, 0);
    SET(&b, "1-elementwise.bias", 0.25);
    FEED(&b, "inputs", 0.5, 0.25, 9, -1, 0, 0);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "output 1-elementwise", tanh(0.75), tanh(0.75), tanh(0.25), tanh(-0.75), tanh(0.25),
                 tanh(0.25));
    stop(&b);
}

TEST(joins_and_plain_layers)
{
    bench b = open_text(
        "x = input(2, 2) + flatten; y = input(1, name=more); concatenate(x + activation(relu), y, x) + "
        "add(identity, identity, elementwise(no_bias))",
        1, false);
    SET(&b, "8-elementwise.weights", 0, 1, 2, 3, 4, 5, 6, 7, 8);
    FEED(&b, "inputs", 1, -2, 3, -4);
    FEED(&b, "more", 10);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "output 5-add", 2 * 1, 3 * 0, 4 * 3, 5 * 0, 6 * 10, 7 * 1, 8 * -2, 9 * 3, 10 * -4);
    stop(&b);
}

TEST(softmax_cross_entropy_is_averaged_over_the_batch)
{
    bench b = open_text("input(3, name=logits) + softmax_cross_entropy", 2, true);
    FEED(&b, "logits", 1, 2, 3, 0, 0, 0);
    FEED(&b, "targets", 0, 0, 1, 1, 0, 0);
    CHECK_OK(sgm_session_run(b.session, b.program));
    double sum = exp(1) + exp(2) + exp(3);
    CHECK_OUTPUT(&b, "total", (log(sum) - 3 + log(3)) / 2);
    CHECK_OUTPUT(&b, "output logits", exp(1) / sum, exp(2) / sum, exp(3) / sum, 1. / 3, 1. / 3, 1. / 3);
    stop(&b);
}

static double cross_entropy(const double *logits, size_t count, size_t right)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += exp(logits[i]);
    return log(sum) - logits[right];
}

TEST(classes_of_steps_are_numbers)
{
    static const double x[] = {1, 2, 3, 0, 0, 0, -1, 5, 2, 0.5, 0.25, 0.75};
    double mean = (cross_entropy(x, 3, 2) + cross_entropy(x + 3, 3, 0) + cross_entropy(x + 6, 3, 1) +
                   cross_entropy(x + 9, 3, 2)) /
                  4;
    bench b = open_text("input(2, 3) + softmax_cross_entropy", 2, true);
    feed(&b, "inputs", x);
    FEED(&b, "targets", 2, 0, 1, 2);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "total", mean);
    FEED(&b, "targets", 2, 0, 3, 2);
    CHECK_INT(sgm_session_run(b.session, b.program), SGM_ERROR_ARGUMENT);
    CHECK(strstr(sgm_last_error(), "class 3 is out of range: there are 3 classes, numbered from 0") != NULL);
    stop(&b);
    b = open_text("input(2, 3) + softmax_cross_entropy(shares)", 2, true);
    feed(&b, "inputs", x);
    FEED(&b, "targets", 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "total", mean);
    stop(&b);
    b = open_text("input(3) + softmax_cross_entropy(classes)", 4, true);
    feed(&b, "inputs", x);
    FEED(&b, "targets", 2, 0, 1, 2);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "total", mean);
    stop(&b);
    b = open_text("input(2, 3) + activation(softmax) + negative_log_likelihood", 2, true);
    feed(&b, "inputs", x);
    FEED(&b, "targets", 2, 0, 1, 2);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "total", mean);
    stop(&b);
}

TEST(squared_costs)
{
    bench b = open_text("x = input(2); x + squared_difference; x + mean_squared", 2, true);
    FEED(&b, "inputs", 1, 2, 3, 4);
    FEED(&b, "targets", 0, 2, 1, 1);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_INT(b.recording.target_count, 1);
    CHECK_OUTPUT(&b, "cost 1-squared_difference", 14);
    CHECK_OUTPUT(&b, "cost 2-mean_squared", 3.5);
    CHECK_OUTPUT(&b, "total", 17.5);
    stop(&b);
}

TEST(binary_cross_entropy_is_stable)
{
    bench b = open_text("input(2) + binary_cross_entropy", 2, true);
    FEED(&b, "inputs", 0, 2, 1000, -1000);
    FEED(&b, "targets", 1, 0, 0, 1);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "total", (log(2) + log(1 + exp(2)) + 2000) / 2);
    CHECK_OUTPUT(&b, "output 0-input", 0.5, 1 / (1 + exp(-2)), 1, 0);
    stop(&b);
}

TEST(negative_log_likelihood_is_clipped)
{
    bench b = open_text("input(2) + negative_log_likelihood", 2, true);
    FEED(&b, "inputs", 0, 1, 0.25, 0.75);
    FEED(&b, "targets", 1, 0, 0, 1);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "total", (-log(1e-7) - log(0.75)) / 2);
    CHECK_OUTPUT(&b, "output 0-input", 0, 1, 0.25, 0.75);
    stop(&b);
}

TEST(several_inputs_outputs_and_costs)
{
    bench b = open_text("left = input(2, name=left) + dense(1, name=a); right = input(1, name=right);"
                        "both = concatenate(left, right) + output(name=pair);"
                        "both + mean_squared(targets=t, importance=0.25);"
                        "left + squared_difference(targets=u, importance=10); right",
                        2, true);
    CHECK_INT(b.recording.input_count, 2);
    CHECK_INT(b.recording.target_count, 2);
    CHECK_INT(b.recording.output_count, 3);
    CHECK_STR(b.recording.outputs[0].name, "pair");
    CHECK_STR(b.recording.outputs[1].name, "a");
    CHECK_STR(b.recording.outputs[2].name, "right");
    CHECK_NEAR(b.recording.costs[1].importance, 10, 0);
    SET(&b, "a.weights", 1, 2);
    FEED(&b, "left", 1, 1, 2, 0);
    FEED(&b, "right", 5, 6);
    FEED(&b, "t", 3, 5, 0, 0);
    FEED(&b, "u", 2, 2);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "output pair", 3, 5, 2, 6);
    CHECK_OUTPUT(&b, "output a", 3, 2);
    CHECK_OUTPUT(&b, "output right", 5, 6);
    CHECK_OUTPUT(&b, "cost 5-mean_squared", (0 + 0 + 4 + 36) / 4.);
    CHECK_OUTPUT(&b, "cost 6-squared_difference", 1);
    CHECK_OUTPUT(&b, "total", 0.25 * 10 + 10 * 1);
    stop(&b);
}

TEST(an_input_can_be_the_target)
{
    bench b = open_text("input(2, 2) + dense(4) + mean_squared(targets=inputs)", 1, true);
    CHECK_INT(b.recording.target_count, 0);
    SET(&b, "1-dense.biases", 1, 2, 3, 6);
    FEED(&b, "inputs", 1, 2, 3, 4);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "total", 1);
    stop(&b);
}

TEST(dropout_acts_only_while_training)
{
    bench b = open_text("input(4) + dropout(0.25)", 1, false);
    CHECK(!b.recording.random);
    FEED(&b, "inputs", 1, 2, 3, 4);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "output 1-dropout", 1, 2, 3, 4);
    stop(&b);
}

TEST(dropout_keeps_the_expected_value)
{
    enum { COUNT = 4000 };
    static double ones[COUNT], first[COUNT], second[COUNT], later[COUNT];
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    bench b = open_text("x = input(4000); x + dropout(0.25); x + dropout(0.25)", 1, true);
    CHECK(b.recording.random);
    feed(&b, "inputs", ones);
    CHECK_OK(sgm_session_run(b.session, b.program));
    read_output(&b, "output 1-dropout", first, COUNT);
    read_output(&b, "output 2-dropout", second, COUNT);
    int zeros = 0, equal = 0, same_later = 0;
    SET(&b, "random.step", 1);
    CHECK_OK(sgm_session_run(b.session, b.program));
    read_output(&b, "output 1-dropout", later, COUNT);
    for (int i = 0; i < COUNT; i++) {
        CHECK(first[i] == 0 || fabs(first[i] - 4. / 3) < 1e-12);
        zeros += first[i] == 0;
        equal += first[i] == second[i];
        same_later += first[i] == later[i];
    }
    /* expected 1000 and, of two independent masks, 2500; four standard deviations */
    CHECK_NEAR(zeros, 1000, 110);
    CHECK_NEAR(equal, 2500, 123);
    CHECK_NEAR(same_later, 2500, 123);
    stop(&b);
}

/* The zeros of 100 elements that a network's dropout makes in its first run. */
static void draw_zeros(const char *text, int64_t training_seed, bool zeros[100])
{
    bench b = open_text(text, 1, true);
    double ones[100], values[100];
    sgm_shape scalar = sgm_scalar_shape();
    sgm_tensor *seed = sgm_tensor_create_from(SGM_INT64, &scalar, &training_seed);
    CHECK_OK(sgm_session_set(b.session, "random.seed", seed));
    sgm_tensor_free(seed);
    CHECK(b.recording.random);
    for (int i = 0; i < 100; i++)
        ones[i] = 1;
    feed(&b, "inputs", ones);
    CHECK_OK(sgm_session_run(b.session, b.program));
    read_output(&b, "output drop", values, 100);
    for (int i = 0; i < 100; i++)
        zeros[i] = values[i] == 0;
    stop(&b);
}

TEST(dropout_may_have_a_seed_of_its_own)
{
    bool first[100], other_training[100], other_place[100], other_seed[100], none[100], none_other[100];
    draw_zeros("input(100) + dropout(0.5, seed=3, name=drop)", 1, first);
    draw_zeros("input(100) + dropout(0.5, seed=3, name=drop)", 2, other_training);
    draw_zeros(
        "input(100) + add(identity, dropout(0.1) + elementwise(no_bias)) + dropout(0.5, seed=3, name=drop)",
        2, other_place);
    draw_zeros("input(100) + dropout(0.5, seed=4, name=drop)", 1, other_seed);
    draw_zeros("input(100) + dropout(0.5, name=drop)", 1, none);
    draw_zeros("input(100) + dropout(0.5, name=drop)", 2, none_other);
    CHECK(memcmp(first, other_training, sizeof first) == 0);
    CHECK(memcmp(first, other_place, sizeof first) == 0);
    CHECK(memcmp(first, other_seed, sizeof first) != 0);
    CHECK(memcmp(none, none_other, sizeof none) != 0);
}

static sgm_tensor *waves(const sgm_shape *shape, int which)
{
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT64, shape);
    CHECK_OK(tensor);
    double *numbers = sgm_tensor_data(tensor);
    for (int64_t i = 0; i < sgm_shape_elements(shape); i++)
        numbers[i] = sin(10.0 * which + (double)i) * 0.7;
    return tensor;
}

TEST(gradients_agree_with_differences)
{
    sgm_network *network =
        sgm_network_parse("input(3) + 2 * (add(identity, dense(3, tanh))) + elementwise(3, sigmoid) + "
                          "dense(2) + softmax_cross_entropy(importance=0.5)");
    sgm_graph *graph = sgm_graph_create();
    sgm_recording recording;
    sgm_operand operands[16];
    sgm_tensor *tensors[16];
    size_t count = 0;
    CHECK_OK(sgm_network_record(network, graph, options(2, true), &recording));
    CHECK_INT(recording.parameter_count, 8);
    for (size_t i = 0; i < recording.parameter_count; i++)
        operands[count++] = (sgm_operand){.value = recording.parameters[i].value};
    operands[count++] = (sgm_operand){.value = recording.inputs[0].value};
    operands[count++] = (sgm_operand){.value = recording.targets[0].value, .fixed = true};
    for (size_t i = 0; i < count; i++) {
        sgm_type type = sgm_value_type(graph, operands[i].value);
        operands[i].at = tensors[i] = waves(&type.shape, (int)i);
    }
    CHECK_OK(sgm_gradient_check(graph, recording.total, operands, count, .tolerance = 1e-8));
    for (size_t i = 0; i < count; i++)
        sgm_tensor_free(tensors[i]);
    sgm_graph_free(graph);
    sgm_network_free(network);
}

TEST(a_recording_lists_parameters)
{
    bench b = open_text("input(3) + dense(5) + elementwise(name=scale)", 2, false);
    const sgm_parameter *p = b.recording.parameters;
    CHECK_INT(b.recording.parameter_count, 4);
    CHECK_STR(p[0].name, "1-dense.weights");
    CHECK_STR(p[0].initialiser, "glorot");
    CHECK_INT(p[0].fan_in, 3);
    CHECK_INT(p[0].fan_out, 5);
    CHECK(p[0].trainable);
    CHECK_STR(p[1].name, "1-dense.biases");
    CHECK_STR(p[1].initialiser, "constant(0)");
    CHECK_STR(p[2].name, "scale.weights");
    CHECK_STR(p[3].name, "scale.bias");
    CHECK_INT(p[3].type.shape.rank, 0);
    CHECK(!sgm_value_exists(b.recording.total));
    stop(&b);
}

TEST(costs_are_recorded_only_where_they_are_asked_for)
{
    sgm_network *network = sgm_network_parse("input(3) + dense(2) + softmax_cross_entropy");
    sgm_recording_options o = *options(4, false);
    sgm_recording recording;
    sgm_graph *graph = sgm_graph_create();
    o.costs = false;
    CHECK_OK(sgm_network_record(network, graph, &o, &recording));
    CHECK_INT(recording.cost_count, 0);
    CHECK_INT(recording.target_count, 0);
    CHECK_INT(recording.output_count, 1);
    CHECK(!sgm_value_exists(recording.total));
    o.costs = true;
    o.dtype = SGM_FLOAT32;
    sgm_graph_clear(graph);
    CHECK_OK(sgm_network_record(network, graph, &o, &recording));
    CHECK_INT(recording.cost_count, 1);
    CHECK_INT(sgm_value_type(graph, recording.total).dtype, SGM_FLOAT32);
    CHECK_INT(sgm_value_type(graph, recording.total).shape.rank, 0);
    CHECK_STR(sgm_value_label(graph, recording.total), "2-softmax_cross_entropy");
    /* the same again gives the same graph */
    uint64_t hash = sgm_graph_hash(graph);
    sgm_graph_clear(graph);
    CHECK_OK(sgm_network_record(network, graph, &o, &recording));
    CHECK(sgm_graph_hash(graph) == hash);
    o.batch = 0;
    CHECK_ERROR(sgm_network_record(network, graph, &o, &recording), "at least 1 example, not 0");
    o.batch = 1;
    o.dtype = SGM_INT32;
    CHECK_ERROR(sgm_network_record(network, graph, &o, &recording),
                "float32, float64 or bfloat16, not int32");
    sgm_graph_free(graph);
    sgm_network_free(network);
}

TEST(shape_errors_name_layer_operation_and_shapes)
{
    check_record_error("input(4) + add(dense(3), dense(4))",
                       "layer 1-add: add: branch 1 is (2, 3), but branch 2 is (2, 4); they must be equal");
    check_record_error("input(3, 4) + concatenate(identity, flatten)",
                       "layer 1-concatenate: concatenate: branch 1 is (2, 3, 4), but branch 2 is (2, 12)");
    check_record_error("input(4) + elementwise(3, name=s)",
                       "layer s: elementwise: its size is (3), but an example of its input is (4,)");
    check_record_error(
        "input(4) + dense(3) + mean_squared(targets=inputs)",
        "layer 2-mean_squared: field 'inputs' of the data is used here as (2, 3), but as (2, 4)");
    check_record_error("input(4) + dense(3) + softmax_cross_entropy(classes, shares)",
                       "softmax_cross_entropy: targets are numbers of classes or shares, not both");
}

/* --- every allocation may fail --- */

TEST(failed_allocations_leave_nothing_behind)
{
    static const char text[] = "x = input(4) + dense(3, relu); y = x + dropout(0.5); add(x, y) + dense(2) + "
                               "softmax_cross_entropy(importance=2)";
    bool done = false;
    for (long limit = 0; !done; limit++) {
        CHECK(limit < 2000);
        sgm_network *network = sgm_network_parse(text);
        sgm_graph *graph = sgm_graph_create();
        sgm_recording recording;
        allocator_start(limit + 1);
        sgm_clear_error();
        done = sgm_network_record(network, graph, options(2, true), &recording) == SGM_OK;
        bool told = sgm_last_error()[0] != '\0';
        sgm_network_free(network);
        sgm_graph_free(graph);
        allocator_stop();
        CHECK(done || told);
    }
}
