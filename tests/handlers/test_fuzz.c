/* Random graphs on every handler against an interpreter, several runs in a row. */
#include "handlers/cpu/cpu.h"
#include "handlers/devices.h"
#include "handlers/fuzz_graphs.h"
#include "handlers/interpreter.h"

#define RUNS 4

typedef struct contest {
    const char *handler;
    sgm_dtype dtype, expected_dtype; /* of the handler's graph and of the interpreter's */
    bool smooth;
    double tolerance; /* 0: the same bits */
} contest;

typedef struct match {
    const contest *rules;
    uint64_t seed;
    fuzz actual, expected;
    interpreter interpreter;
    sgm_handler *handler;
    sgm_session *session;
    sgm_program *program;
} match;

static void set_up(match *m)
{
    const contest *rules = m->rules;
    m->actual = fuzz_create(m->seed, rules->dtype, rules->smooth);
    m->expected = fuzz_create(m->seed, rules->expected_dtype, rules->smooth);
    m->interpreter = interpreter_create(m->expected.graph);
    m->handler = sgm_handler_create(rules->handler, .threads = 2, .report_only = true);
    if (strcmp(rules->handler, "cpu") == 0)
        ((sgm__cpu *)m->handler->self)->shares_all = true; /* small programs, too */
    CHECK_OK(m->session = sgm_session_create(m->handler));
    for (int i = 0; i < FUZZ_STATES; i++) {
        sgm_shape shape = fuzz_shape_of(&m->expected, m->expected.states[i]);
        const char *name = sgm_value_name(m->expected.graph, m->expected.states[i]);
        sgm_tensor *value = fuzz_tensor(&m->expected, rules->dtype, &shape);
        CHECK_OK(sgm_session_set(m->session, name, value));
        CHECK_OK(sgm_tensor_assign(interpreter_source(&m->interpreter, name), value));
        sgm_tensor_free(value);
    }
    CHECK_OK(m->program = sgm_session_prepare(m->session, m->actual.graph));
}

static void tear_down(match *m)
{
    sgm_session_free(m->session);
    sgm_handler_free(m->handler);
    interpreter_free(&m->interpreter);
    sgm_graph_free(m->actual.graph);
    sgm_graph_free(m->expected.graph);
}

static void feed_both(match *m)
{
    static const char *const names[] = {"x0", "x1"};
    for (int i = 0; i < 2; i++) {
        sgm_tensor *source = interpreter_source(&m->interpreter, names[i]);
        sgm_tensor *value = fuzz_tensor(&m->expected, m->rules->dtype, sgm_tensor_shape(source));
        CHECK_OK(sgm_tensor_assign(source, value));
        if (sgm_program_has_input(m->program, names[i]))
            CHECK_OK(sgm_session_feed(m->session, m->program, names[i], value));
        sgm_tensor_free(value);
    }
}

/* Prints the graph and ends the test. */
static void fail(const match *m, int run, const char *what, double expected, double actual)
{
    char *graph = sgm_graph_text(m->actual.graph), *program = sgm_program_text(m->program);
    printf("%s\n%s\n", graph, program);
    sgm_string_free(graph);
    sgm_string_free(program);
    TEST_FAIL("seed %llu on %s, run %d: '%s' has %.17g, expected %.17g", (unsigned long long)m->seed,
              m->rules->handler, run, what, actual, expected);
}

static void compare(const match *m, int run, const char *what, const sgm_tensor *expected,
                    const sgm_tensor *actual)
{
    double a[FUZZ_ELEMENTS], b[FUZZ_ELEMENTS];
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(expected));
    CHECK_OK(sgm_tensor_read(expected, a, count));
    CHECK_OK(sgm_tensor_read(actual, b, count));
    for (size_t i = 0; i < count; i++) {
        double scale = fabs(a[i]) > 1 ? fabs(a[i]) : 1;
        if (!test_near(a[i], b[i], m->rules->tolerance * scale))
            fail(m, run, what, a[i], b[i]);
    }
}

static void compare_outputs(const match *m, int run)
{
    const sgm_graph *graph = m->interpreter.graph;
    for (size_t i = 0; i < graph->output_count; i++) {
        const char *name = sgm__graph_string(graph, graph->outputs[i].name);
        const sgm_tensor *expected = m->interpreter.values[graph->outputs[i].value.index];
        sgm_tensor *actual = sgm_tensor_create(m->rules->dtype, sgm_tensor_shape(expected));
        CHECK_OK(sgm_session_read(m->session, m->program, name, actual));
        compare(m, run, name, expected, actual);
        sgm_tensor_free(actual);
    }
}

static void compare_states(const match *m, int run)
{
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(m->session, i)) != NULL; i++) {
        sgm_tensor *actual = sgm_session_get(m->session, name);
        compare(m, run, name, interpreter_source(&m->interpreter, name), actual);
        sgm_tensor_free(actual);
    }
}

static void play(const contest *rules, uint64_t first, uint64_t count)
{
    for (uint64_t seed = first; seed < first + count; seed++) {
        match m = {.rules = rules, .seed = seed};
        set_up(&m);
        for (int run = 0; run < RUNS; run++) {
            if (run % 2 == 0) /* what was fed stays fed */
                feed_both(&m);
            interpreter_run(&m.interpreter);
            CHECK_OK(sgm_session_run(m.session, m.program));
            compare_outputs(&m, run);
            interpreter_assign(&m.interpreter);
            compare_states(&m, run);
        }
        tear_down(&m);
    }
}

TEST(fused_steps_give_the_same_bits)
{
    play(&(const contest){"reference", SGM_FLOAT64, SGM_FLOAT64, false, 0}, 1, 300);
}

TEST(fused_steps_round_like_single_ones)
{
    play(&(const contest){"reference", SGM_FLOAT32, SGM_FLOAT32, false, 0}, 1000, 100);
}

TEST(single_steps_give_the_same_bits)
{
    play(&(const contest){"debug:reference", SGM_FLOAT64, SGM_FLOAT64, false, 0}, 1, 100);
}

static void need_cpu(void)
{
    sgm_handler *handler = sgm_handler_create("cpu");
    if (handler == NULL && sgm_last_status() == SGM_ERROR_NOT_FOUND)
        SKIP("there is no handler 'cpu' here");
    CHECK_OK(handler);
    sgm_handler_free(handler);
}

TEST(the_cpu_in_float64)
{
    need_cpu();
    play(&(const contest){"cpu", SGM_FLOAT64, SGM_FLOAT64, true, 1e-12}, 2000, 300);
}

TEST(the_cpu_in_float32)
{
    need_cpu();
    play(&(const contest){"cpu", SGM_FLOAT32, SGM_FLOAT64, true, 1e-4}, 2000, 300);
}

TEST(the_cpu_in_single_steps)
{
    need_cpu();
    play(&(const contest){"debug:cpu", SGM_FLOAT64, SGM_FLOAT64, true, 1e-12}, 2000, 50);
}

/* Few: each graph is compiled by the device's driver. */
static void play_on_device(const char *handler, int count)
{
    if (!is_here(handler))
        SKIP(sgm_last_error());
    play(&(const contest){handler, SGM_FLOAT32, SGM_FLOAT64, true, 1e-4}, FUZZ_DEVICE_FLOAT32,
         (uint64_t)count);
    play(&(const contest){handler, SGM_FLOAT64, SGM_FLOAT64, true, 1e-12}, FUZZ_DEVICE_FLOAT64,
         (uint64_t)count);
}

TEST(opencl)
{
    play_on_device("opencl", 2);
}

TEST(cuda)
{
    play_on_device("cuda", getenv("SIGMA_TEST_CUDA") != NULL ? 100 : FUZZ_STAND_IN_GRAPHS);
}
