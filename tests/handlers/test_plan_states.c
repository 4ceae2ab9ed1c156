/* Operations that write a part of a state: which of them are computed in its memory, and that nothing is lost
 * where they may not be. */
#include "handlers/graphs.h"
#include "handlers/handler.h"
#include "handlers/runs.h"

static sgm_value state(sgm_graph *graph, const char *name)
{
    return sgm_state(graph, name, SGM_FLOAT64, DIMS(4, 3));
}

/* A row for a state. */
static sgm_value row(sgm_graph *graph, sgm_value from)
{
    return sgm_sin(graph, sgm_reduce_sum(graph, from, (const int32_t[]){0}, 1, true));
}

/* The index of a row, one more in each run up to the last row. */
static sgm_value place_of(sgm_graph *graph, int64_t index)
{
    sgm_value count = sgm_state(graph, "count", SGM_INT64, SCALAR);
    return sgm_minimum(graph, sgm_add(graph, count, sgm_number(graph, (double)index)), sgm_number(graph, 3));
}

/* Whether some operation write_at of the plan lies in a state. Frees the graph, after its values are those
 * that it has without a plan. */
static bool is_in_state(sgm_graph *graph)
{
    static const char *const names[] = {"reference", "cpu", "debug:cpu"};
    bool found = false;
    sgm_value count = sgm_state(graph, "count", SGM_INT64, SCALAR);
    sgm_assign(graph, count, sgm_add(graph, count, sgm_number(graph, 1)));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_runs_on(graph, names[i]);
    sgm_handler *handler = sgm_handler_create("cpu");
    sgm__plan *plan = NULL;
    CHECK_OK(sgm__plan_create(graph, handler, &plan));
    int32_t seen = 0;
    for (int32_t i = 0; i < plan->node_count; i++)
        if (strcmp(plan->nodes[i].op->name, "write_at") == 0) {
            seen++;
            found = found || plan->nodes[i].place.store == SGM__STORE_STATE;
        }
    CHECK(seen > 0);
    sgm__plan_free(plan);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
    return found;
}

/* Records s[index] = part, and gives all of it. */
static sgm_value write(sgm_graph *graph, sgm_value s, sgm_value part, int64_t index)
{
    sgm_value all = sgm_write_at(graph, s, part, place_of(graph, index), 0);
    sgm_assign(graph, s, all);
    return all;
}

TEST(a_part_is_written_where_the_state_is)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value s = state(g, "s");
    write(g, s, row(g, state(g, "other")), 2);
    CHECK(is_in_state(g));
    g = sgm_graph_create(); /* with readers of the old value before, and of the new one behind */
    s = state(g, "s");
    sgm_value before = sgm_exp(g, sgm_transpose(g, s)), all = write(g, s, row(g, s), 1);
    sgm_graph_add_output(g, "before", before);
    sgm_graph_add_output(g, "sum", sgm_sum(g, sgm_multiply(g, all, all)));
    sgm_graph_add_output(g, "all", all);
    sgm_assign(g, state(g, "copy"), all);
    sgm_assign(g, state(g, "changed"), sgm_negate(g, all));
    CHECK(is_in_state(g));
}

TEST(not_where_the_old_value_is_read_later)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value s = state(g, "s"), all = write(g, s, row(g, s), 3);
    sgm_graph_add_output(g, "both", sgm_add(g, sgm_flip(g, s, 0), all));
    CHECK(!is_in_state(g));
    g = sgm_graph_create();
    s = state(g, "s");
    write(g, s, row(g, state(g, "other")), 0);
    sgm_graph_add_output(g, "old", s);
    CHECK(!is_in_state(g));
    g = sgm_graph_create();
    s = state(g, "s");
    write(g, s, row(g, state(g, "other")), 0);
    sgm_graph_add_output(g, "old", sgm_flip(g, s, 0));
    CHECK(!is_in_state(g));
    g = sgm_graph_create(); /* another state takes the old value */
    s = state(g, "s");
    write(g, s, row(g, state(g, "other")), 0);
    sgm_assign(g, state(g, "before"), s);
    CHECK(!is_in_state(g));
    g = sgm_graph_create(); /* the part is one of the state's own rows */
    s = state(g, "s");
    write(g, s, sgm_slice(g, s, 0, 0, 1, 1), 2);
    CHECK(!is_in_state(g));
}

TEST(not_where_it_is_another_state_s_value)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value s = state(g, "s");
    sgm_assign(g, state(g, "t"), sgm_write_at(g, s, row(g, s), place_of(g, 1), 0));
    CHECK(!is_in_state(g));
    g = sgm_graph_create(); /* two states change places on the way */
    s = state(g, "s");
    sgm_value t = state(g, "t");
    sgm_value from_s = sgm_write_at(g, s, row(g, t), place_of(g, 1), 0);
    sgm_value from_t = sgm_write_at(g, t, row(g, s), place_of(g, 2), 0);
    sgm_assign(g, s, from_t);
    sgm_assign(g, t, from_s);
    CHECK(!is_in_state(g));
}

/* x with its first row negated, written over x if that is allowed. */
static sgm_status infer_negated(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                                sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

static sgm_status forward_negated(const sgm_kernel_call *call)
{
    const double *x = call->inputs[0].data;
    double *y = call->output.data;
    for (int64_t i = 0; i < sgm_shape_elements(&call->output.shape); i++)
        y[i] = i < 3 ? -x[i] : x[i];
    return SGM_OK;
}

static const sgm_op negated = {.api = SGM_OP_API,
                               .flags = SGM_OP_IN_PLACE,
                               .name = "first_row_negated",
                               .doc = "x with its first row negated",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .infer = infer_negated,
                               .forward = forward_negated};

TEST(operations_of_programs_may_write_states_too)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value s = state(g, "s"), next = sgm_record(g, &negated, &s, 1, NULL);
    sgm_assign(g, s, next);
    sgm_graph_add_output(g, "sum", sgm_add(g, next, next));
    check_runs_on(g, "reference");
    check_runs_on(g, "debug:cpu");
    sgm_handler *handler = sgm_handler_create("reference");
    sgm__plan *plan = NULL;
    CHECK_OK(sgm__plan_create(g, handler, &plan));
    for (int32_t i = 0; i < plan->node_count; i++)
        if (plan->nodes[i].op == &negated)
            CHECK_INT(plan->nodes[i].place.store, SGM__STORE_STATE);
    sgm__plan_free(plan);
    sgm_handler_free(handler);
    sgm_graph_free(g);
}

TEST(the_second_of_two_writes_alone_is_in_the_state)
{
    sgm_graph *g = sgm_graph_create();
    sgm_value s = state(g, "s");
    sgm_value once = sgm_write_at(g, s, row(g, s), place_of(g, 1), 0);
    sgm_assign(g, s, sgm_write_at(g, once, row(g, once), place_of(g, 2), 0));
    CHECK(!is_in_state(g)); /* its first operand is a value of the arena, so the copy stays */
}
