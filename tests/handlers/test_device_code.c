/* Plans as kernels, without any device: what is shared, what is divided, what has a kernel. */
#include "handlers/device/code/code.h"
#include "handlers/graphs.h"
#include "ops/ops.h"
#include <sigma/network.h>

static const char *support(void *self, const sgm_op *op, sgm_dtype dtype)
{
    (void)self, (void)dtype;
    return sgm__device_code_has(op) ? "kernel" : "reference loop";
}

static const sgm_device_info gpu = {.local = 49152, .units = 100, .group = 1024, .has_float64 = true};
static const sgm_device_info processor = {
    .local = 1 << 20, .units = 4, .group = 4096, .is_processor = true, .has_float64 = true};

typedef struct rendered {
    sgm__plan *plan;
    sgm__device_code *code;
} rendered;

/* The graph is freed. */
static rendered render(sgm_graph *graph, const sgm_device_info *info)
{
    static const sgm__handler_type type = {
        .name = "rendered", .flags = SGM__HANDLER_PARTS | SGM__HANDLER_DRAWS, .support = support};
    static const sgm_handler handler = {.type = &type, .name = "rendered"};
    rendered r = {0};
    CHECK_OK(sgm__plan_create(graph, &handler, &r.plan));
    CHECK_OK(sgm__device_code_create(r.plan, info, &r.code));
    sgm_graph_free(graph);
    return r;
}

static void discard(rendered *r)
{
    sgm__device_code_free(r->code);
    sgm__plan_free(r->plan);
}

/* The step that computes an operation; there is one. */
static const sgm__device_step *step_of(const rendered *r, const sgm_op *op)
{
    for (int32_t s = 0; s < r->plan->step_count; s++)
        if (r->plan->nodes[r->plan->order[r->plan->steps[s].first]].op == op)
            return &r->code->steps[s];
    TEST_FAIL("no step computes %s", op->name);
    return NULL;
}

static sgm_graph *layers(int count)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(64, 96));
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        sgm_graph_push_label(graph, name);
        x = sgm_relu(graph, sgm_matmul(graph, x, sgm_state(graph, name, SGM_FLOAT32, DIMS(96, 96))));
        sgm_graph_pop_label(graph);
    }
    sgm_graph_add_output(graph, "y", x);
    return graph;
}

TEST(equal_layers_share_their_kernels)
{
    rendered few = render(layers(3), &gpu), many = render(layers(12), &gpu);
    CHECK_INT(many.code->kernel_count, few.code->kernel_count);
    CHECK_INT(many.plan->step_count, 4 * few.plan->step_count);
    CHECK_STR(many.code->source.data, few.code->source.data);
    discard(&few);
    discard(&many);
}

TEST(the_same_plan_gives_the_same_text_and_another_device_another_one)
{
    rendered first = render(layers(2), &gpu), second = render(layers(2), &gpu);
    rendered other = render(layers(2), &processor);
    CHECK_STR(first.code->source.data, second.code->source.data);
    CHECK(strcmp(first.code->source.data, other.code->source.data) != 0);
    CHECK(strstr(first.code->source.data, "BARRIER") != NULL);
    CHECK(strstr(other.code->source.data, "BARRIER") == NULL);
    CHECK(strstr(first.code->source.data, "double") == NULL);
    discard(&first);
    discard(&second);
    discard(&other);
}

static sgm_graph *sums(int64_t rows)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(rows, 4096));
    sgm_graph_add_output(graph, "sums",
                         sgm_reduce_sum(graph, sgm_square(graph, x), (int32_t[]){1}, 1, false));
    sgm_graph_add_output(graph, "transposed", sgm_relu(graph, sgm_transpose(graph, x)));
    return graph;
}

TEST(indices_are_long_where_there_are_many_elements)
{
    rendered few = render(sums(1 << 18), &gpu), many = render(sums(1 << 19), &gpu); /* 2^30 and 2^31 */
    CHECK(strstr(few.code->source.data, "const int item = GROUP;") != NULL);
    CHECK(strstr(few.code->source.data, "int64_t") == NULL);
    CHECK(strstr(many.code->source.data, "const int64_t item = GROUP;") != NULL);
    CHECK(strstr(many.code->source.data, "((int64_t)GROUP * 4 + u) * 256 + ITEM") != NULL);
    CHECK(strstr(many.code->source.data, "(int e = ") == NULL);
    discard(&few);
    discard(&many);
}

TEST(every_primitive_has_a_kernel_but_those_for_the_host)
{
    static const char *const host[] = {"inverse",    "determinant", "ctc_alphas",
                                       "ctc_states", "ctc_classes", NULL};
    for (size_t i = 0; sgm_op_at(i) != NULL; i++) {
        const sgm_op *op = sgm_op_at(i);
        bool primitive = op->compose == NULL && (op->scalar != NULL || op->forward != NULL) &&
                         (op->flags & (SGM_OP_SOURCE | SGM_OP_VIEW)) == 0;
        bool hosted = false;
        for (size_t k = 0; host[k] != NULL; k++)
            hosted = hosted || strcmp(op->name, host[k]) == 0;
        if (primitive && sgm__device_code_has(op) == hosted)
            TEST_FAIL("%s has %s kernel", op->name, hosted ? "a" : "no");
    }
}

static sgm_graph *gradient_of_weights(int64_t batch)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(batch, 24));
    sgm_value gradient = sgm_input_value(graph, "gradient", SGM_FLOAT32, DIMS(batch, 10));
    sgm_graph_add_output(graph, "y", sgm_matmul(graph, sgm_transpose(graph, x), gradient));
    return graph;
}

TEST(a_deep_product_of_few_results_is_divided)
{
    const sgm_device_info *const devices[] = {&gpu, &processor};
    for (int i = 0; i < 2; i++) {
        rendered flat = render(gradient_of_weights(64), devices[i]);
        rendered deep = render(gradient_of_weights(32768), devices[i]);
        const sgm__device_step *step = step_of(&flat, &sgm__op_matmul);
        CHECK_INT(step->kind, SGM__DEVICE_PRODUCT);
        CHECK_INT(step->call_count, 1);
        CHECK_INT(flat.code->scratch_bytes, 0);
        step = step_of(&deep, &sgm__op_matmul);
        CHECK_INT(step->call_count, 2);
        CHECK(deep.code->calls[step->first_call].groups > 1);
        CHECK(deep.code->scratch_bytes >= 2 * 24 * 10 * (int64_t)sizeof(float));
        discard(&flat);
        discard(&deep);
    }
}

TEST(a_sum_of_all_is_made_in_two_passes)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(1000, 1000));
    sgm_graph_add_output(graph, "y", sgm_sum(graph, x));
    rendered r = render(graph, &gpu);
    const sgm__device_step *step = step_of(&r, &sgm__op_reduce_sum);
    CHECK_INT(step->call_count, 2);
    CHECK(r.code->calls[step->first_call].groups >= 100);
    CHECK_INT(r.code->calls[step->first_call + 1].groups, 1);
    discard(&r);
}

TEST(indices_can_be_at_fault_and_constants_are_in_the_text)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(50, 8));
    sgm_value at = sgm_input_value(graph, "at", SGM_INT64, DIMS(20));
    sgm_graph_add_output(graph, "y",
                         sgm_multiply(graph, sgm_gather(graph, x, at, 0), sgm_number(graph, 0.123456)));
    rendered r = render(graph, &gpu);
    const sgm__device_step *step = step_of(&r, &sgm__op_gather);
    const sgm__device_call *call = &r.code->calls[step->first_call];
    bool faults = false;
    for (int32_t a = 0; a < call->argument_count; a++)
        faults = faults || r.code->arguments[call->first_argument + a].kind == SGM__DEVICE_FAULT;
    CHECK(faults);
    CHECK(strstr(r.code->source.data, "0.123456f") != NULL);
    discard(&r);
}

/* The kernels of a step of training, with that argument of a layer. */
static char *kernels_with(const char *notation, size_t layer, const char *argument, double number)
{
    sgm_network *network = sgm_network_parse(notation);
    sgm_graph *graph = sgm_graph_create();
    sgm_recording recording;
    sgm_content content = sgm_number_content(number);
    CHECK_OK(network);
    CHECK_OK(sgm_network_set_argument(network, layer, argument, &content));
    CHECK_OK(sgm_network_record(network, graph,
                                &(sgm_recording_options){.struct_size = sizeof(sgm_recording_options),
                                                         .batch = 12,
                                                         .dtype = SGM_FLOAT32,
                                                         .training = true},
                                &recording));
    sgm_value gradient;
    CHECK_OK(sgm_gradients(graph, recording.total, &recording.parameters[0].value, 1, &gradient));
    sgm_graph_add_output(graph, "gradient", gradient);
    rendered r = render(graph, &gpu);
    char *text = sgm__strdup(r.code->source.data);
    discard(&r);
    sgm_network_free(network);
    return text;
}

/* So that setting one while training runs needs no compiler. */
TEST(arguments_that_may_be_set_are_not_in_the_text)
{
    static const struct {
        const char *network;
        size_t layer;
        const char *argument;
        double from, to;
    } rows[] = {
        {"input(8) + dense(6) + dropout(0.2) + dense(4) + softmax_cross_entropy", 2, "rate", 0.2, 0.5},
        {"input(3, 8) + transformer(2, dropout=0.2) + dense(4) + mean_squared", 1, "dropout", 0.2, 0.1},
        {"input(8) + dense(4) + softmax_cross_entropy", 2, "importance", 0.5, 3},
        {"input(8) + dense(4) + softmax_cross_entropy", 2, "label_smoothing", 0.1, 0.2},
        {"input(8) + dense(4) + focal", 2, "gamma", 1, 2},
        {"input(8) + dense(4) + focal", 2, "alpha", 0.5, 0.25},
        {"input(8) + dense(4) + huber", 2, "delta", 1, 0.5},
        {"input(8) + dense(4) + hinge", 2, "margin", 1, 2},
        {"input(8) + dense(4) + batch_norm + mean_squared", 2, "epsilon", 0.001, 1},
        {"input(8) + dense(4) + batch_norm + mean_squared", 2, "momentum", 0.1, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *from = kernels_with(rows[i].network, rows[i].layer, rows[i].argument, rows[i].from);
        char *to = kernels_with(rows[i].network, rows[i].layer, rows[i].argument, rows[i].to);
        if (strcmp(from, to) != 0)
            TEST_FAIL("the kernels of %s depend on %s", rows[i].network, rows[i].argument);
        sgm__free(from);
        sgm__free(to);
    }
}

TEST(constants_are_no_integers)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(4));
    sgm_graph_add_output(graph, "floor", sgm_multiply(graph, x, sgm_floor(graph, sgm_number(graph, 1.5))));
    sgm_value finite = sgm_is_finite(graph, sgm_number(graph, -INFINITY));
    sgm_graph_add_output(graph, "finite", sgm_add(graph, x, sgm_cast(graph, finite, SGM_FLOAT32)));
    rendered r = render(graph, &gpu);
    CHECK(strstr(r.code->source.data, "sgm_floor(1.5f)") != NULL);
    CHECK(strstr(r.code->source.data, "(-1.0f / 0.0f) - (-1.0f / 0.0f) == 0") != NULL);
    discard(&r);
}

TEST(nothing_is_launched_for_what_is_empty)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value none = sgm_input_value(graph, "none", SGM_FLOAT32, DIMS(0, 3));
    sgm_graph_add_output(graph, "y", sgm_exp(graph, none));
    rendered r = render(graph, &gpu);
    CHECK_INT(r.code->kernel_count, 0);
    CHECK_INT(r.code->steps[0].kind, SGM__DEVICE_NOTHING);
    discard(&r);
}

TEST(what_has_no_kernel_is_left_to_the_host)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(4, 4));
    sgm_graph_add_output(graph, "y", sgm_exp(graph, sgm_inverse(graph, x)));
    rendered r = render(graph, &gpu);
    CHECK_INT(step_of(&r, &sgm__op_inverse)->kind, SGM__DEVICE_HOST);
    CHECK_INT(step_of(&r, &sgm__op_exp)->kind, SGM__DEVICE_CALLS);
    discard(&r);
}

/* As OpenCL's smallest: groups that hold no tile of 256 work-items. */
TEST(small_groups_have_small_tiles)
{
    sgm_device_info small = gpu;
    small.local = 16384;
    small.group = 64;
    rendered r = render(layers(1), &small);
    const sgm__device_step *step = step_of(&r, &sgm__op_matmul);
    CHECK_INT(step->kind, SGM__DEVICE_PRODUCT);
    CHECK_INT(r.code->calls[step->first_call].group, 64);
    CHECK(strstr(r.code->source.data, "LOCAL float left") != NULL);
    discard(&r);
}

TEST(what_no_line_reads_is_not_declared)
{
    sgm_graph *one = sgm_graph_create(), *two = sgm_graph_create();
    sgm_graph_add_output(one, "y", sgm_negate(one, sgm_input_value(one, "x", SGM_FLOAT32, DIMS(1))));
    sgm_graph_add_output(two, "y", sgm_negate(two, sgm_input_value(two, "x", SGM_FLOAT32, DIMS(2))));
    rendered of_one = render(one, &gpu), of_two = render(two, &gpu);
    CHECK(strstr(of_one.code->source.data, "x1[0] = v0;") != NULL);
    CHECK(strstr(of_one.code->source.data, "ITEM") == NULL);
    CHECK(strstr(of_two.code->source.data, "const int n = ITEM;") != NULL);
    discard(&of_one);
    discard(&of_two);
}
