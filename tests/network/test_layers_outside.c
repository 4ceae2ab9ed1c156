/* Layers and activations that a program brings itself. */
#include "network/layer_bench.h"

static sgm_value swish(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                       const sgm_attributes *attributes)
{
    (void)count;
    (void)attributes;
    return sgm_multiply(graph, inputs[0], sgm_sigmoid(graph, inputs[0]));
}

static const sgm_op swish_op = {.api = SGM_OP_API,
                                .flags = SGM_OP_ACTIVATION,
                                .name = "test_swish",
                                .doc = "x * sigmoid(x)",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .compose = swish};

TEST(a_program_brings_its_own_activation)
{
    CHECK_OK(sgm_register_op(&swish_op));
    bench b = open_text("input(2) + activation(test_swish)", 1, false);
    FEED(&b, "inputs", 1, -2);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "output 1-activation", 1 / (1 + exp(-1)), -2 / (1 + exp(2)));
    stop(&b);
    CHECK_ERROR(sgm_layer_parse("activation(test_swihs)"), "did you mean 'test_swish'?");
    /* an operation without the flag is none */
    CHECK_ERROR(sgm_layer_parse("activation(matmul)"), "unknown activation 'matmul'");
}

static sgm_value forward_scale(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    sgm_shape scalar = sgm_scalar_shape();
    sgm_value factor = sgm_layer_parameter(call, graph, "factor", &scalar, 0, 0, false, "constant(1)");
    sgm_value x = count > 0 ? inputs[0] : factor;
    if (sgm_layer_flag(call, "negative"))
        x = sgm_negate(graph, x);
    x = sgm_multiply(graph, x, sgm_multiply(graph, factor, sgm_number(graph, sgm_layer_number(call, "by"))));
    for (int64_t i = 0; i < sgm_layer_integer(call, "squares"); i++)
        x = sgm_square(graph, x);
    return sgm_layer_activate(call, graph, sgm_layer_text(call, "activation"), x);
}

static const sgm_option scale_arguments[] = {
    {.name = "by", .kind = SGM_KIND_NUMBER, .required = true},
    {.name = "squares", .kind = SGM_KIND_INTEGER, .minimum = 0, .maximum = 3, .default_value = 1},
    {.name = "activation", .kind = SGM_KIND_TEXT},
    {.name = "negative", .kind = SGM_KIND_BOOLEAN},
};

static const sgm_layer_type scale_type = {.api = SGM_LAYER_API,
                                          .flags = SGM_LAYER_DYNAMIC,
                                          .name = "test_scale",
                                          .arguments = scale_arguments,
                                          .argument_count = 4,
                                          .min_inputs = 1,
                                          .max_inputs = 1,
                                          .forward = forward_scale};

TEST(a_program_brings_its_own_layer)
{
    CHECK_OK(sgm_register_layer(&scale_type));
    CHECK_OK(sgm_register_layer(&scale_type));
    bench b = open_text("input(2) + test_scale(-2.5, negative) + test_scale(2, squares=0, activation=relu)",
                        1, false);
    CHECK(sgm_network_is_dynamic(b.network));
    CHECK(!b.recording.parameters[0].trainable);
    SET(&b, "1-test_scale.factor", 2);
    SET(&b, "2-test_scale.factor", 1);
    FEED(&b, "inputs", 1, 2);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "output 2-test_scale", 50, 200);
    stop(&b);
    CHECK_ERROR(sgm_layer_parse("test_scale(2, 7)"), "argument 'squares' of test_scale is 7");
    CHECK_ERROR(sgm_layer_parse("test_scal(2, 7)"), "did you mean 'test_scale'?");
}

static sgm_value forward_nothing(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                 int32_t count)
{
    (void)graph;
    (void)inputs;
    (void)count;
    return (sgm_value){sgm_layer_number(call, "none") > 0 ? 0 : -1};
}

TEST(layers_from_outside_are_checked)
{
    static const sgm_layer_type dense = {
        .api = SGM_LAYER_API, .name = "dense", .max_inputs = 1, .forward = forward_scale};
    CHECK_ERROR(sgm_register_layer(&dense), "there is a layer 'dense' already");
    static const sgm_layer_type old = {.api = 7, .name = "old", .forward = forward_scale};
    CHECK_ERROR(sgm_register_layer(&old), "made for interface 7");
    static const sgm_layer_type idle = {.api = SGM_LAYER_API, .name = "idle"};
    CHECK_ERROR(sgm_register_layer(&idle), "no forward function");
    static const sgm_layer_type spaced = {.api = SGM_LAYER_API, .name = "a b", .forward = forward_scale};
    CHECK_ERROR(sgm_register_layer(&spaced), "needs a name of letters");
    CHECK_ERROR(sgm_register_layer(NULL), "NULL");
    static const sgm_layer_type nothing = {.api = SGM_LAYER_API,
                                           .name = "test_nothing",
                                           .min_inputs = 1,
                                           .max_inputs = 1,
                                           .forward = forward_nothing};
    CHECK_OK(sgm_register_layer(&nothing));
    check_record_error("input(4) + test_nothing",
                       "layer 1-test_nothing: its type 'test_nothing' has no argument 'none'");
}
