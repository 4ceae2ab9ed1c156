/* The debugging handler: what is not finite is found where it arises. */
#include "handlers/devices.h"
#include "handlers/graphs.h"

#include "handlers/handler.h"

typedef struct setting {
    sgm_handler *handler;
    sgm_session *session;
    sgm_graph *graph;
    sgm_program *program;
} setting;

/* y = log(x / w) in layer 2-dense, then bigger = y > 0 and count, whose types cannot be NaN. */
static setting set_up(const char *name, bool report_only)
{
    setting it = {.handler = sgm_handler_create(name, .report_only = report_only),
                  .graph = sgm_graph_create()};
    it.session = sgm_session_create(it.handler);
    CHECK_OK(it.session);
    sgm_value x = sgm_input_value(it.graph, "x", SGM_FLOAT32, DIMS(2, 3));
    sgm_value w = sgm_state(it.graph, "w", SGM_FLOAT32, DIMS(3));
    sgm_graph_push_label(it.graph, "2-dense");
    sgm_value ratio = sgm_divide(it.graph, x, w);
    sgm_graph_pop_label(it.graph);
    sgm_value y = sgm_log(it.graph, ratio);
    sgm_graph_add_output(it.graph, "y", y);
    sgm_graph_add_output(it.graph, "nan", sgm_is_nan(it.graph, y));
    set_state(it.session, "w", SGM_FLOAT32, DIMS(3), NUMBERS(1, 2, 0));
    it.program = sgm_session_prepare(it.session, it.graph);
    CHECK_OK(it.program);
    return it;
}

static void tear_down(setting *it)
{
    sgm_session_free(it->session);
    sgm_handler_free(it->handler);
    sgm_graph_free(it->graph);
}

static void feed_x(setting *it, double last)
{
    feed(it->session, it->program, "x", SGM_FLOAT32, DIMS(2, 3), NUMBERS(1, 2, 3, 4, 5, last));
}

static void check_says(const char *part)
{
    if (strstr(sgm_last_error(), part) == NULL)
        TEST_FAIL("\"%s\" is not in \"%s\"", part, sgm_last_error());
}

static void check_finding(const char *name)
{
    setting it = set_up(name, false);
    set_state(it.session, "w", SGM_FLOAT32, DIMS(3), NUMBERS(1, 2, 3));
    feed_x(&it, 6);
    CHECK_OK(sgm_session_run(it.session, it.program));
    CHECK_OK(sgm_session_run(it.session, it.program));
    check_output(it.session, it.program, "y", NUMBERS(0, 0, 0, log(4), log(2.5), log(2)), 1e-6);
    /* 0 / 0 and 3 / 0: the first is what the message shows. */
    set_state(it.session, "w", SGM_FLOAT32, DIMS(3), NUMBERS(1, 2, 0));
    feed_x(&it, 0);
    CHECK_INT(sgm_session_run(it.session, it.program), SGM_ERROR_NUMERIC);
    check_says("infinity at (0, 2) of instruction %");
    check_says(" = divide, layer 2-dense, run 3 (2 of 6 values): inputs were finite: %");
    check_says(" from 0 to 5, %");
    check_says(" from 0 to 2");
    /* log(0), which belongs to no layer. */
    set_state(it.session, "w", SGM_FLOAT32, DIMS(3), NUMBERS(1, 2, 3));
    CHECK_ERROR(sgm_session_run(it.session, it.program), "-infinity at (1, 2) of instruction %");
    check_says(" = log, run 4 (1 of 6 values): inputs were finite: %");
    feed_x(&it, -1);
    CHECK_ERROR(sgm_session_run(it.session, it.program), "NaN at (1, 2) of instruction %");
    feed_x(&it, 6);
    CHECK_OK(sgm_session_run(it.session, it.program));
    tear_down(&it);
}

TEST(finds_instruction_layer_and_run_on_every_handler)
{
    const char *name;
    for (size_t i = 0; (name = sgm_handler_name_at(i)) != NULL; i++)
        if (strncmp(name, "debug:", 6) == 0 && strcmp(name, "debug:null") != 0 &&
            (!is_device_name(name) || is_here(name)))
            check_finding(name);
}

TEST(inputs_and_states_are_looked_at_before_the_run)
{
    setting it = set_up("debug:reference", false);
    feed_x(&it, (double)NAN);
    CHECK_ERROR(sgm_session_run(it.session, it.program),
                "NaN at (1, 2) of input 'x', run 1 (1 of 6 values): it was fed so");
    feed_x(&it, 6);
    set_state(it.session, "w", SGM_FLOAT32, DIMS(3), NUMBERS(1, -INFINITY, INFINITY));
    CHECK_ERROR(sgm_session_run(it.session, it.program),
                "-infinity at (1,) of state 'w', run 2 (2 of 3 values): it was so before the run");
    CHECK_INT(sgm_last_status(), SGM_ERROR_NUMERIC);
    tear_down(&it);
}

typedef struct reports {
    int count;
    char last[1024];
} reports;

static void note(void *user, sgm_log_level level, const char *component, const char *message)
{
    reports *seen = user;
    if (level == SGM_LOG_WARNING && strcmp(component, "debug") == 0)
        seen->count++;
    snprintf(seen->last, sizeof seen->last, "%s", message);
}

TEST(report_only_goes_on)
{
    reports seen = {0};
    setting it = set_up("debug:reference", true);
    sgm_set_logger(note, &seen, SGM_LOG_WARNING);
    feed_x(&it, 0);
    CHECK_OK(sgm_session_run(it.session, it.program));
    /* 3/0, then its logarithm: one report for each instruction and run; masks of bool count for nothing */
    CHECK_INT(seen.count, 2);
    CHECK(strstr(seen.last, "infinity at (0, 2) of instruction") != NULL);
    CHECK(strstr(seen.last, "= log, run 1 (2 of 6 values): not all inputs were finite: %") != NULL);
    CHECK(strstr(seen.last, " with infinity at (0, 2) from 1 to 4") != NULL);
    check_output(it.session, it.program, "nan", NUMBERS(0, 0, 0, 0, 0, 1), 0);
    CHECK_OK(sgm_session_run(it.session, it.program));
    CHECK_INT(seen.count, 4);
    CHECK(strstr(seen.last, "run 2") != NULL);
    sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
    tear_down(&it);
}

TEST(an_error_of_the_watched_handler_names_the_run)
{
    sgm_handler *handler = sgm_handler_create("debug:reference");
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(4));
    sgm_value at = sgm_input_value(graph, "at", SGM_INT64, SCALAR);
    sgm_graph_add_output(graph, "y", sgm_gather(graph, x, at, 0));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(4), NUMBERS(1, 2, 3, 4));
    CHECK_OK(sgm_session_feed_number(session, program, "at", 2));
    CHECK_OK(sgm_session_run(session, program));
    CHECK_OK(sgm_session_feed_number(session, program, "at", 4));
    CHECK_ERROR(sgm_session_run(session, program), "run 2: instruction %");
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
}

/* Plans that are wrong: no session makes them, so they are damaged here. */
TEST(places_outside_memory_are_refused)
{
    sgm_handler *handler = sgm_handler_create("debug:reference");
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(8, 16));
    sgm_graph_add_output(graph, "y", sgm_exp(graph, sgm_flip(graph, x, 0)));
    sgm__plan *plan = NULL;
    void *executable = NULL;
    CHECK_OK(sgm__plan_create(graph, handler, &plan));
    CHECK_OK(handler->type->compile(handler->self, plan, &executable));
    handler->type->discard(handler->self, executable);
    int64_t arena = plan->arena_bytes;
    plan->arena_bytes = 500;
    CHECK_ERROR(handler->type->compile(handler->self, plan, &executable),
                "= exp, shape (8, 16), lies at bytes ");
    CHECK_INT(sgm_last_status(), SGM_ERROR_SHAPE);
    check_says("0 to 512 of a memory of 500");
    plan->arena_bytes = arena;
    for (int32_t i = 0; i < plan->node_count; i++)
        if ((plan->nodes[i].op->flags & SGM_OP_VIEW) != 0)
            plan->nodes[i].place.offset -= 4;
    CHECK_ERROR(handler->type->compile(handler->self, plan, &executable),
                "= flip, shape (8, 16), lies at bytes -4 to");
    for (int32_t i = 0; i < plan->node_count; i++) {
        if ((plan->nodes[i].op->flags & SGM_OP_VIEW) != 0)
            plan->nodes[i].place.offset += 4;
        else if (plan->nodes[i].place.store == SGM__STORE_ARENA)
            plan->nodes[i].place.strides[0] = 15;
    }
    CHECK_ERROR(handler->type->compile(handler->self, plan, &executable), "is a result with gaps");
    sgm__plan_free(plan);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
}
