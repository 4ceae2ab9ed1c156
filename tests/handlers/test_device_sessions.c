/* Sessions on devices: with operations that have no kernel, several at once, timed; devices by number. */
#include "each_device.h"

#include "handlers/session.h"
#include <pthread.h>
#include <sigma/graph.h>
#include <unistd.h>

/* --- devices without float64 --- */

/* A classifier's share of right predictions is float64 in every program, and so are sums for it. Their steps
 * are the host's; that no kernel has double is asked of the text, as the device here would take it. */
static void check_share(sgm_handler *handler)
{
    bool had = device_of(handler)->info.has_float64;
    device_of(handler)->info.has_float64 = false;
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(3, 2));
    sgm_value targets = sgm_input_value(graph, "targets", SGM_FLOAT32, DIMS(3));
    sgm_value share = sgm_accuracy(graph, sgm_add(graph, x, x), targets);
    sgm_value all = sgm_cast(graph, sgm_sum(graph, targets), SGM_FLOAT64);
    sgm_graph_add_output(graph, "share", share);
    sgm_graph_add_output(graph, "of all", sgm_divide(graph, share, all));
    sgm_graph_add_output(graph, "loss", sgm_mean(graph, sgm_multiply(graph, x, x)));
    sgm_graph_add_output(graph, "softmax", sgm_softmax(graph, sgm_cast(graph, x, SGM_FLOAT64)));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(3, 2), NUMBERS(1, 2, 4, 3, 5, 6));
    feed(session, program, "targets", SGM_FLOAT32, DIMS(3), NUMBERS(1, 1, 1));
    CHECK_OK(sgm_session_run(session, program));
    check_output(session, program, "share", NUMBERS(2.0 / 3), 0);
    check_output(session, program, "of all", NUMBERS(2.0 / 3 / 3), 0);
    check_output(session, program, "loss", NUMBERS(91.0 / 6), 1e-5);
    const double s = 1 / (1 + exp(-1));
    check_output(session, program, "softmax", NUMBERS(1 - s, s, s, 1 - s, 1 - s, s), 1e-15);
    sgm__device_code *code;
    CHECK_OK(sgm__device_code_create(program->plan, &device_of(handler)->info, &code));
    CHECK(code->source.length > 0 && strstr(code->source.data, "double") == NULL);
    sgm__device_code_free(code);
    sgm_graph_free(graph);
    sgm_session_free(session);
    device_of(handler)->info.has_float64 = had;
}

TEST(devices_without_float64_count_right_predictions)
{
    with_devices(check_share);
}

/* Whoever chooses float64 is told, since all of it would be computed on the host. */
static void check_refusal(sgm_handler *handler)
{
    bool had = device_of(handler)->info.has_float64;
    device_of(handler)->info.has_float64 = false;
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT64, DIMS(3));
    sgm_graph_add_output(graph, "y", sgm_add(graph, x, x));
    CHECK_ERROR(sgm_session_prepare(session, graph), "has no float64, which 'x' is of: use float32");
    sgm_graph_clear(graph);
    x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(3));
    sgm_value wide = sgm_state(graph, "w", SGM_FLOAT64, DIMS(3));
    sgm_graph_add_output(graph, "y", sgm_add(graph, x, sgm_cast(graph, wide, SGM_FLOAT32)));
    set_state(session, "w", SGM_FLOAT64, DIMS(3), NUMBERS(1, 2, 3));
    CHECK_ERROR(sgm_session_prepare(session, graph), "has no float64, which 'w' is of: use float32");
    sgm_graph_free(graph);
    sgm_session_free(session);
    device_of(handler)->info.has_float64 = had;
}

TEST(devices_without_float64_refuse_programs_that_are_given_it)
{
    with_devices(check_refusal);
}

/* --- a user's own operations --- */

static double cube_plus(const double *x, const sgm_attributes *attributes)
{
    (void)attributes;
    return x[0] * x[0] * x[0] + 1;
}

static sgm_status infer_same(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                             sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

static sgm_status reverse(const sgm_kernel_call *call)
{
    int64_t count = sgm_shape_elements(&call->output.shape);
    for (int64_t i = 0; i < count; i++)
        sgm_array_store(&call->output, i, sgm_array_load(&call->inputs[0], count - 1 - i));
    return SGM_OK;
}

static const sgm_op own_element = {.api = SGM_OP_API,
                                   .flags = SGM_OP_ELEMENTWISE,
                                   .name = "test_cube_plus",
                                   .doc = "of a test",
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .infer = infer_same,
                                   .scalar = cube_plus};
static const sgm_op own_whole = {.api = SGM_OP_API,
                                 .name = "test_reverse",
                                 .doc = "of a test",
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .infer = infer_same,
                                 .forward = reverse};

static void check_own(sgm_handler *handler)
{
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(2, 3));
    sgm_value transposed = sgm_permute(graph, sgm_exp(graph, x), (const int32_t[]){1, 0});
    sgm_value own = sgm_record(graph, &own_element, &transposed, 1, NULL);
    sgm_value y = sgm_record(graph, &own_whole, &own, 1, NULL);
    sgm_graph_add_output(graph, "y", sgm_subtract(graph, y, sgm_number(graph, 1)));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    const double k = log(2);
    for (int run = 0; run < 2; run++) {
        feed(session, program, "x", SGM_FLOAT32, DIMS(2, 3), NUMBERS(0, k, 0, 0, 0, k));
        CHECK_OK(sgm_session_run(session, program));
        check_output(session, program, "y", NUMBERS(8, 1, 1, 8, 1, 1), 1e-5);
    }
    CHECK_STR(sgm_handler_support(handler, "test_reverse", SGM_FLOAT32), "reference loop");
    sgm_graph_free(graph);
    sgm_session_free(session);
}

TEST(operations_without_a_kernel_run_on_the_host)
{
    CHECK_OK(sgm_register_op(&own_element));
    CHECK_OK(sgm_register_op(&own_whole));
    with_devices(check_own);
}

static sgm_handler *used_within; /* by an operation, in the midst of a run */

static sgm_status multiply_within(const sgm_kernel_call *call)
{
    sgm_session *session = sgm_session_create(used_within);
    check_small_product(session);
    sgm_session_free(session);
    return reverse(call);
}

static const sgm_op own_user = {.api = SGM_OP_API,
                                .name = "test_multiply_within",
                                .doc = "of a test",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .infer = infer_same,
                                .forward = multiply_within};

static void check_used_within(sgm_handler *handler)
{
    used_within = handler;
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_exp(graph, sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(3)));
    sgm_value y = sgm_record(graph, &own_user, &x, 1, NULL);
    sgm_graph_add_output(graph, "y", sgm_multiply(graph, y, sgm_number(graph, 2)));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(3), NUMBERS(0, log(2), log(3)));
    alarm(120); /* whoever waited for itself would wait for ever */
    CHECK_OK(sgm_session_run(session, program));
    alarm(0);
    check_output(session, program, "y", NUMBERS(6, 4, 2), 1e-5);
    sgm_graph_free(graph);
    sgm_session_free(session);
}

TEST(an_operation_may_use_the_handler_that_runs_it)
{
    CHECK_OK(sgm_register_op(&own_user));
    with_devices(check_used_within);
}

/* --- several sessions, times, numbers --- */

static void *run_often(void *user)
{
    sgm_session *session = sgm_session_create(user);
    for (int i = 0; i < 20; i++)
        check_small_product(session);
    sgm_session_free(session);
    return NULL;
}

static void check_threads(sgm_handler *handler)
{
    pthread_t threads[3];
    uint64_t used = device_of(handler)->used;
    for (int i = 0; i < 3; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, run_often, handler), 0);
    for (int i = 0; i < 3; i++)
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    CHECK_INT(device_of(handler)->used, used);
}

TEST(sessions_in_threads_share_a_device)
{
    with_devices(check_threads);
}

static void check_times(sgm_handler *handler)
{
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = product_graph(64, 64);
    sgm_program *program = sgm_session_prepare(session, graph);
    sgm__step_time times[4];
    double values[64] = {1};
    CHECK_OK(program);
    CHECK(program->plan->step_count <= 4);
    feed(session, program, "x", SGM_FLOAT32, DIMS(64, 1), values);
    feed(session, program, "y", SGM_FLOAT32, DIMS(1, 64), values);
    CHECK_OK(sgm__session_run_timed(session, program, times));
    CHECK(times[0].seconds > 0 && times[0].seconds < 60);
    CHECK_INT(times[0].with, -1);
    sgm_graph_free(graph);
    sgm_session_free(session);
}

TEST(times_of_steps)
{
    with_devices(check_times);
}

static void check_number(sgm_handler *handler)
{
    const sgm_handler_options options = {.struct_size = sizeof options, .device = 99};
    CHECK_ERROR(sgm_handler_create_with(device_of(handler)->driver->name, &options),
                "there is no device 99: ");
    CHECK_INT(sgm_last_status(), SGM_ERROR_NOT_FOUND);
}

TEST(devices_by_number)
{
    with_devices(check_number);
}

/* --- sums --- */

/* A driver may lack all functions of sums (driver.h); this one is a device's of here without them. */
static void check_no_sums(sgm_handler *handler)
{
    sgm__device *device = device_of(handler);
    const sgm_device_driver *real = device->driver;
    sgm_device_driver without = *real;
    unsigned char bytes[SGM_DEVICE_INVITATION] = {0};
    const sgm__peer_place place = {.of = 1, .seconds = 1};
    float number = 1;
    void *buffer;
    without.identify = NULL;
    without.invite = NULL;
    without.join = NULL;
    without.sum = NULL;
    without.give_up = NULL;
    without.leave = NULL;
    device->driver = &without;
    CHECK_OK(handler->type->allocate(device, sizeof number, &buffer));
    CHECK_ERROR(sgm__device_identify(device, bytes), "cannot sum with other devices");
    CHECK_ERROR(sgm__device_invite(device, bytes), "cannot sum with other devices");
    CHECK_ERROR(sgm__device_join(device, &place), "cannot sum with other devices");
    CHECK_ERROR(sgm__device_sum(device, &(sgm__addend){buffer, 1}, 1, SGM_FLOAT32, 1),
                "cannot sum with other devices");
    sgm__device_give_up(device);
    sgm__device_leave(device);
    handler->type->release(device, buffer);
    device->driver = real;
}

TEST(a_driver_without_sums_says_so)
{
    with_devices(check_no_sums);
}
