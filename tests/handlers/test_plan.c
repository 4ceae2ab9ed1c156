/* Plans: who shares memory with whom and who must not, states that change in a run, and the numbers. */
#include "handlers/graphs.h"
#include "handlers/handler.h"
#include "handlers/runs.h"

/* A graph, and its plan for the reference. */
typedef struct setting {
    sgm_handler *handler;
    sgm_graph *graph;
    sgm__plan *plan;
} setting;

static setting set_up(void)
{
    setting it = {.handler = sgm_handler_create("reference"), .graph = sgm_graph_create()};
    CHECK_OK(it.handler);
    return it;
}

static void make_plan(setting *it)
{
    CHECK_OK(sgm_graph_status(it->graph));
    CHECK_OK(sgm__plan_create(it->graph, it->handler, &it->plan));
}

static void tear_down(setting *it)
{
    sgm__plan_free(it->plan);
    sgm_graph_free(it->graph);
    sgm_handler_free(it->handler);
}

/* The node of the only instruction `op`. */
static const sgm__node *find(const setting *it, const char *op)
{
    const sgm__node *found = NULL;
    for (int32_t i = 0; i < it->plan->node_count; i++)
        if (strcmp(it->plan->nodes[i].op->name, op) == 0) {
            CHECK(found == NULL);
            found = &it->plan->nodes[i];
        }
    CHECK(found != NULL);
    return found;
}

static bool share(const setting *it, const char *a, const char *b)
{
    const sgm__node *x = find(it, a), *y = find(it, b);
    CHECK(x->place.store == SGM__STORE_ARENA && y->place.store == SGM__STORE_ARENA);
    return x->place.offset == y->place.offset;
}

static sgm_value input(setting *it, const sgm_shape *shape)
{
    return sgm_input_value(it->graph, "x", SGM_FLOAT32, shape);
}

/* A value that is in the arena: the result of a kernel. */
static sgm_value product(setting *it)
{
    sgm_value x = input(it, DIMS(8, 8));
    return sgm_matmul(it->graph, x, x);
}

/* --- the same numbers as without a plan --- */

static void check_runs(sgm_graph *graph)
{
    check_runs_on(graph, "reference");
    check_runs_on(graph, "debug:reference");
}

/* --- in place --- */

TEST(a_result_takes_the_place_of_an_operand_that_ends)
{
    setting it = set_up();
    sgm_value sum = sgm_tanh(it.graph, product(&it));
    sgm_graph_add_output(it.graph, "y", sum);
    make_plan(&it);
    CHECK(share(&it, "matmul", "tanh"));
    CHECK_INT(it.plan->arena_bytes, 256);
    CHECK_INT(it.plan->activation_bytes, 512);
    check_runs(it.graph);
    tear_down(&it);
}

/* Of equal size, that is enough. */
TEST(another_type_of_the_same_size_takes_the_place_too)
{
    setting it = set_up();
    sgm_graph_add_output(it.graph, "y", sgm_cast(it.graph, product(&it), SGM_INT32));
    make_plan(&it);
    CHECK(share(&it, "matmul", "cast"));
    check_runs(it.graph);
    tear_down(&it);
    it = set_up();
    sgm_graph_add_output(it.graph, "y", sgm_cast(it.graph, product(&it), SGM_FLOAT64));
    make_plan(&it);
    CHECK(!share(&it, "matmul", "cast"));
    CHECK_INT(it.plan->arena_bytes, 256 + 512);
    check_runs(it.graph);
    tear_down(&it);
}

TEST(not_when_it_is_read_by_other_strides)
{
    setting it = set_up();
    sgm_value a = product(&it);
    sgm_graph_add_output(it.graph, "y", sgm_add(it.graph, a, sgm_transpose(it.graph, a)));
    make_plan(&it);
    CHECK(!share(&it, "matmul", "add"));
    check_runs(it.graph);
    tear_down(&it);
    it = set_up();
    a = product(&it);
    sgm_graph_add_output(it.graph, "y", sgm_negate(it.graph, sgm_flip(it.graph, a, 0)));
    make_plan(&it);
    CHECK(!share(&it, "matmul", "negate"));
    check_runs(it.graph);
    tear_down(&it);
    it = set_up(); /* a row is read again and again */
    a = product(&it);
    sgm_graph_add_output(it.graph, "y", sgm_subtract(it.graph, a, sgm_slice(it.graph, a, 0, 3, 4, 1)));
    make_plan(&it);
    CHECK(!share(&it, "matmul", "subtract"));
    check_runs(it.graph);
    tear_down(&it);
}

TEST(not_when_it_is_read_later)
{
    setting it = set_up(); /* in the same step */
    sgm_value a = product(&it), b = sgm_tanh(it.graph, a), c = sgm_subtract(it.graph, b, a);
    sgm_graph_add_output(it.graph, "b", b);
    sgm_graph_add_output(it.graph, "c", c);
    make_plan(&it);
    CHECK_INT(it.plan->step_count, 2);
    CHECK(!share(&it, "matmul", "tanh"));
    CHECK(share(&it, "matmul", "subtract"));
    check_runs(it.graph);
    tear_down(&it);
    it = set_up(); /* in another one */
    a = product(&it);
    sgm_graph_add_output(it.graph, "b", sgm_tanh(it.graph, a));
    sgm_graph_add_output(it.graph, "sum", sgm_sum(it.graph, a));
    make_plan(&it);
    CHECK(!share(&it, "matmul", "tanh"));
    check_runs(it.graph);
    tear_down(&it);
    it = set_up(); /* by whoever asks for the output */
    a = product(&it);
    sgm_graph_add_output(it.graph, "a", a);
    sgm_graph_add_output(it.graph, "b", sgm_tanh(it.graph, a));
    make_plan(&it);
    CHECK(!share(&it, "matmul", "tanh"));
    check_runs(it.graph);
    tear_down(&it);
}

TEST(two_results_do_not_take_one_place)
{
    setting it = set_up();
    sgm_value a = product(&it);
    sgm_graph_add_output(it.graph, "b", sgm_tanh(it.graph, a));
    sgm_graph_add_output(it.graph, "c", sgm_sin(it.graph, a));
    make_plan(&it);
    CHECK(!share(&it, "tanh", "sin"));
    check_runs(it.graph);
    tear_down(&it);
}

/* --- states --- */

static sgm_value state(setting *it, const char *name, const sgm_shape *shape)
{
    return sgm_state(it->graph, name, SGM_FLOAT64, shape);
}

/* The handler cpu draws the random numbers of a step before it computes the rest of it. */
TEST(random_numbers_do_not_overwrite_what_is_read_beside_them)
{
    setting it = set_up();
    sgm_value seed = sgm_state(it.graph, "seed", SGM_INT64, SCALAR);
    sgm_value x = sgm_sort(it.graph, input(&it, DIMS(8, 8)), 0, false);
    sgm_value squared = sgm_multiply(it.graph, x, x);
    sgm_value drawn = sgm_random_uniform(it.graph, seed, seed, 0, SGM_FLOAT32, DIMS(8, 8));
    sgm_graph_add_output(it.graph, "drawn", drawn);
    sgm_graph_add_output(it.graph, "y", sgm_add(it.graph, squared, drawn));
    check_runs_on(it.graph, "cpu");
    tear_down(&it);
}

/* A seed is one number: what is drawn of it would not fit in its place. */
TEST(nothing_takes_the_place_of_a_seed)
{
    setting it = set_up();
    sgm_handler_free(it.handler);
    CHECK_OK(it.handler = sgm_handler_create("cpu"));
    sgm_value state = sgm_state(it.graph, "seed", SGM_INT64, SCALAR);
    sgm_value seed = sgm_reduce_max(it.graph, sgm_broadcast(it.graph, state, DIMS(2)), NULL, 0, false);
    sgm_value x = sgm_input_value(it.graph, "x", SGM_FLOAT64, DIMS(8, 8));
    sgm_value drawn = sgm_random_uniform(it.graph, seed, seed, 0, SGM_FLOAT64, DIMS(8, 8));
    sgm_graph_add_output(it.graph, "y", sgm_multiply(it.graph, drawn, x));
    make_plan(&it);
    CHECK(!share(&it, "reduce_max", "multiply"));
    CHECK(find(&it, "multiply")->place.offset + 64 * 8 <= it.plan->arena_bytes);
    check_runs_on(it.graph, "cpu");
    tear_down(&it);
}

TEST(states_swap)
{
    setting it = set_up();
    sgm_value a = state(&it, "a", DIMS(2, 3)), b = state(&it, "b", DIMS(2, 3)),
              c = state(&it, "c", DIMS(2, 3));
    sgm_assign(it.graph, a, b);
    sgm_assign(it.graph, b, c);
    sgm_assign(it.graph, c, a);
    sgm_graph_add_output(it.graph, "sum", sgm_add(it.graph, a, b));
    check_runs(it.graph);
    tear_down(&it);
    it = set_up(); /* with something done to them on the way */
    a = state(&it, "a", DIMS(3, 3));
    b = state(&it, "b", DIMS(3, 3));
    sgm_assign(it.graph, a, sgm_sin(it.graph, sgm_transpose(it.graph, b)));
    sgm_assign(it.graph, b, sgm_cos(it.graph, a));
    check_runs(it.graph);
    tear_down(&it);
}

TEST(a_state_is_read_after_its_assignment)
{
    setting it = set_up();
    sgm_value a = state(&it, "a", DIMS(4)), b = state(&it, "b", DIMS(4));
    sgm_value next = sgm_add(it.graph, a, sgm_number(it.graph, 1));
    sgm_assign(it.graph, a, next); /* done early, were it not for what follows */
    sgm_value total = sgm_sum(it.graph, sgm_exp(it.graph, next));
    sgm_value late = sgm_multiply(it.graph, sgm_flip(it.graph, a, 0), total);
    sgm_assign(it.graph, b, late);
    sgm_graph_add_output(it.graph, "old", a);
    sgm_graph_add_output(it.graph, "late", late);
    sgm_graph_add_output(it.graph, "reversed", sgm_flip(it.graph, a, 0));
    check_runs(it.graph);
    tear_down(&it);
}

TEST(a_state_becomes_a_view_of_itself)
{
    for (int view = 0; view < 5; view++) {
        setting it = set_up();
        sgm_value a = state(&it, "a", DIMS(3, 3)), b = a;
        if (view == 0)
            b = sgm_flip(it.graph, a, 0);
        else if (view == 1)
            b = sgm_transpose(it.graph, a);
        else if (view == 2)
            b = sgm_broadcast(it.graph, sgm_slice(it.graph, a, 0, 2, 3, 1), DIMS(3, 3));
        else if (view == 3) /* reshaped where strides do not allow it */
            b = sgm_reshape(it.graph, sgm_reshape(it.graph, sgm_transpose(it.graph, a), DIMS(9)), DIMS(3, 3));
        sgm_assign(it.graph, a, b);
        sgm_graph_add_output(it.graph, "old", sgm_negate(it.graph, a));
        check_runs(it.graph);
        tear_down(&it);
    }
}

TEST(two_states_get_one_value)
{
    setting it = set_up();
    sgm_value a = state(&it, "a", DIMS(2, 2)), b = state(&it, "b", DIMS(2, 2)),
              c = state(&it, "c", DIMS(2, 2));
    sgm_value next = sgm_add(it.graph, a, sgm_sin(it.graph, b));
    sgm_assign(it.graph, a, next);
    sgm_assign(it.graph, b, next);
    sgm_assign(it.graph, c, b);
    sgm_graph_add_output(it.graph, "next", next);
    check_runs(it.graph);
    tear_down(&it);
}

TEST(states_get_inputs_constants_and_numbers)
{
    setting it = set_up();
    sgm_tensor *tensor = tensor_of(SGM_FLOAT64, DIMS(3), NUMBERS(7, 8, 9));
    sgm_value a = state(&it, "a", DIMS(3)), b = state(&it, "b", DIMS(3)), c = state(&it, "c", DIMS(3));
    sgm_assign(it.graph, a, sgm_input_value(it.graph, "x", SGM_FLOAT64, DIMS(3)));
    sgm_assign(it.graph, b, sgm_flip(it.graph, sgm_constant(it.graph, tensor), 0));
    sgm_assign(it.graph, c, sgm_filled_like(it.graph, c, 4));
    sgm_graph_add_output(it.graph, "a", a);
    check_runs(it.graph);
    sgm_tensor_free(tensor);
    tear_down(&it);
}

/* An update runs in the step that computes it, into the state's memory. */
TEST(updates_are_fused_and_in_place)
{
    setting it = set_up();
    sgm_value w = sgm_state(it.graph, "w", SGM_FLOAT32, DIMS(8, 8)), rate = sgm_number(it.graph, 0.5);
    sgm_assign(it.graph, w, sgm_subtract(it.graph, w, sgm_multiply(it.graph, product(&it), rate)));
    make_plan(&it);
    CHECK_INT(it.plan->step_count, 2);
    CHECK_INT(it.plan->arena_bytes, 256);
    CHECK_INT(find(&it, "copy")->place.store, SGM__STORE_STATE);
    CHECK_INT(find(&it, "subtract")->place.store, SGM__STORE_NONE);
    check_runs(it.graph);
    tear_down(&it);
}

/* --- outputs --- */

TEST(outputs_of_all_kinds)
{
    setting it = set_up();
    sgm_tensor *tensor = tensor_of(SGM_FLOAT32, DIMS(2, 2), NUMBERS(1, 2, 3, 4));
    sgm_value x = input(&it, DIMS(2, 3)), constant = sgm_constant(it.graph, tensor);
    sgm_value w = state(&it, "w", DIMS(2, 3)), sum = sgm_exp(it.graph, x);
    sgm_graph_add_output(it.graph, "input", x);
    sgm_graph_add_output(it.graph, "input again", x);
    sgm_graph_add_output(it.graph, "state", w);
    sgm_graph_add_output(it.graph, "constant", constant);
    sgm_graph_add_output(it.graph, "number", sgm_number(it.graph, 2.5));
    sgm_graph_add_output(it.graph, "filled", sgm_filled_like(it.graph, w, 3));
    sgm_graph_add_output(it.graph, "transposed input", sgm_transpose(it.graph, x));
    sgm_graph_add_output(it.graph, "row of state", sgm_slice(it.graph, w, 0, 1, 2, 1));
    sgm_graph_add_output(it.graph, "flipped constant", sgm_flip(it.graph, constant, 1));
    sgm_graph_add_output(it.graph, "value", sum);
    sgm_graph_add_output(it.graph, "value again", sum);
    sgm_graph_add_output(it.graph, "reshaped value", sgm_reshape(it.graph, sum, DIMS(3, 2)));
    sgm_graph_add_output(it.graph, "last row of value", sgm_slice(it.graph, sum, 0, 1, 2, 1));
    sgm_graph_add_output(it.graph, "transposed value", sgm_transpose(it.graph, sum));
    sgm_assign(it.graph, w, sgm_sin(it.graph, w));
    make_plan(&it);
    for (int32_t i = 0; i < it.plan->output_count; i++)
        CHECK_INT(it.plan->nodes[it.plan->outputs[i].node].place.store, SGM__STORE_ARENA);
    check_runs(it.graph);
    sgm_tensor_free(tensor);
    tear_down(&it);
}

TEST(empty_and_single_values)
{
    setting it = set_up();
    sgm_value x = input(&it, DIMS(0, 3)), w = state(&it, "w", DIMS(3, 0)), one = state(&it, "one", SCALAR);
    sgm_value wide = sgm_cast(it.graph, x, SGM_FLOAT64);
    sgm_graph_add_output(it.graph, "x", x);
    sgm_graph_add_output(it.graph, "exp", sgm_exp(it.graph, sgm_flip(it.graph, x, 0)));
    sgm_graph_add_output(it.graph, "sum", sgm_sum(it.graph, x));
    sgm_graph_add_output(it.graph, "rows", sgm_reduce_sum(it.graph, x, (const int32_t[]){0}, 1, false));
    sgm_graph_add_output(it.graph, "zeros", sgm_matmul(it.graph, w, wide)); /* (3, 0) x (0, 3) */
    sgm_graph_add_output(it.graph, "none", sgm_matmul(it.graph, wide, w));
    sgm_graph_add_output(it.graph, "padded", sgm_pad(it.graph, x, 0, 1, 1, 0));
    sgm_graph_add_output(it.graph, "part",
                         sgm_slice(it.graph, sgm_reshape(it.graph, one, DIMS(1)), 0, 1, 1, 1));
    sgm_assign(it.graph, w, sgm_transpose(it.graph, sgm_cast(it.graph, x, SGM_FLOAT64)));
    sgm_assign(it.graph, one, sgm_tanh(it.graph, one));
    sgm_graph_add_output(it.graph, "one", one);
    check_runs(it.graph);
    tear_down(&it);
}

/* --- steps --- */

TEST(long_chains_are_split)
{
    setting it = set_up();
    sgm_value y = input(&it, DIMS(5));
    for (int i = 0; i < 200; i++)
        y = sgm_sin(it.graph, y);
    sgm_graph_add_output(it.graph, "y", y);
    make_plan(&it);
    CHECK_INT(it.plan->order_count, 200);
    CHECK_INT(it.plan->step_count, 4);
    CHECK_INT(it.plan->steps[0].count, 64);
    CHECK_INT(it.plan->steps[3].count, 200 - 3 * 64);
    CHECK_INT(it.plan->arena_bytes, 64); /* each step in the place of the one before */
    CHECK_INT(it.plan->activation_bytes, 200 * 64);
    check_runs(it.graph);
    tear_down(&it);
}

TEST(values_in_passing_have_no_memory)
{
    setting it = set_up();
    sgm_value x = input(&it, DIMS(4, 4)), a = sgm_exp(it.graph, x), b = sgm_sin(it.graph, a);
    sgm_graph_add_output(it.graph, "y",
                         sgm_reduce_sum(it.graph, sgm_multiply(it.graph, b, x), NULL, 0, false));
    make_plan(&it);
    CHECK_INT(find(&it, "exp")->place.store, SGM__STORE_NONE);
    CHECK_INT(find(&it, "sin")->place.store, SGM__STORE_NONE);
    CHECK_INT(find(&it, "multiply")->place.store, SGM__STORE_ARENA);
    CHECK_INT(it.plan->step_count, 2);
    check_runs(it.graph);
    tear_down(&it);
}

/* The gradient of tanh is computed where it is needed, from a result that is there anyway. */
TEST(gradients_do_not_run_early)
{
    setting it = set_up();
    sgm_value a = product(&it), y = sgm_tanh(it.graph, a), gradient;
    CHECK_OK(sgm_gradients(it.graph, sgm_sum(it.graph, sgm_matmul(it.graph, y, y)), &a, 1, &gradient));
    sgm_graph_add_output(it.graph, "gradient", gradient);
    make_plan(&it);
    const sgm__step *step = &it.plan->steps[1];
    CHECK_INT(step->count, 1);
    CHECK_STR(it.plan->nodes[it.plan->order[step->first]].op->name, "tanh");
    check_runs(it.graph);
    tear_down(&it);
}

/* --- numbers --- */

/* By hand: x (4, 8) times w (8, 8) is 128 bytes, tanh takes its place, the second product lies behind, and
 * the sum (4 bytes, a line of 64) where the first product was. */
TEST(memory_of_a_small_network)
{
    setting it = set_up();
    sgm_value x = input(&it, DIMS(4, 8)), w = sgm_state(it.graph, "w", SGM_FLOAT32, DIMS(8, 8));
    sgm_value hidden = sgm_tanh(it.graph, sgm_matmul(it.graph, x, w));
    sgm_graph_add_output(it.graph, "sum", sgm_sum(it.graph, sgm_matmul(it.graph, hidden, w)));
    sgm_session *session = sgm_session_create(it.handler);
    double zeros[64] = {0};
    set_state(session, "w", SGM_FLOAT32, DIMS(8, 8), zeros);
    sgm_program *program;
    CHECK_OK(program = sgm_session_prepare(session, it.graph));
    sgm_program_memory memory = sgm_program_get_memory(program);
    CHECK_INT(memory.inputs, 128);
    CHECK_INT(memory.state, 256);
    CHECK_INT(memory.constants, 0);
    CHECK_INT(memory.activations, 128 + 128 + 128 + 64);
    CHECK_INT(memory.arena, 256);
    CHECK_INT(memory.instructions, 6);
    CHECK_INT(memory.steps, 4);
    CHECK_INT(memory.fused, 0);
    char *text = sgm_program_text(program);
    CHECK_STR(text, "sources and views\n"
                    "  %0 = input : float32 (4, 8) input 'x'\n"
                    "  %1 = state : float32 (8, 8) state 'w'\n"
                    "step 0\n"
                    "  %2 = matmul %0 %1 : float32 (4, 8) at 0\n"
                    "step 1 elementwise\n"
                    "  %3 = tanh %2 : float32 (4, 8) at 0\n"
                    "step 2\n"
                    "  %4 = matmul %3 %1 : float32 (4, 8) at 128\n"
                    "step 3\n"
                    "  %5 = reduce_sum %4 : float32 () at 0\n"
                    "output 'sum' = %5\n");
    sgm_string_free(text);
    sgm_session_free(session);
    tear_down(&it);
}

/* Sums along rows `first` to `end - 1` of x, 64 bytes a row: a kernel that is not in place. */
static sgm_value sums_of(setting *it, int64_t first, int64_t end)
{
    sgm_value rows = sgm_slice(it->graph, input(it, DIMS(16, 16)), 0, first, end, 1);
    return sgm_cumulative_sum(it->graph, rows, 1, false);
}

/* The last place is free and too small: it grows. 128 bytes of the third sum and 512 of four such. */
TEST(the_last_place_grows)
{
    setting it = set_up();
    sgm_value sums = sums_of(&it, 0, 2);
    for (int i = 0; i < 2; i++)
        sums = sgm_cumulative_sum(it.graph, sums, 1, false);
    sgm_graph_add_output(it.graph, "y",
                         sgm_concatenate(it.graph, (const sgm_value[]){sums, sums, sums, sums}, 4, 0));
    make_plan(&it);
    CHECK_INT(it.plan->arena_bytes, 128 + 512);
    tear_down(&it);
}

/* Places of 64 and of 512 bytes end between others that stay, and what comes then is as large: 64 bytes, then
 * 512.
 */
TEST(a_value_takes_the_smallest_place_that_is_enough)
{
    setting it = set_up();
    sgm_value kept[5], small = sums_of(&it, 0, 1);
    kept[0] = sums_of(&it, 1, 2);
    sgm_value large = sums_of(&it, 2, 10);
    kept[1] = sums_of(&it, 3, 4);
    kept[2] = sgm_matmul(it.graph, large, sgm_transpose(it.graph, small));
    kept[3] = sums_of(&it, 4, 5);
    kept[4] = sums_of(&it, 8, 16);
    for (int i = 0; i < 5; i++)
        sgm_graph_add_output(it.graph, (const char *const[]){"a", "b", "c", "d", "e"}[i], kept[i]);
    make_plan(&it);
    CHECK_INT(it.plan->arena_bytes, 64 + 64 + 512 + 64 + 64);
    tear_down(&it);
}

TEST(a_deep_chain_needs_little_memory)
{
    setting it = set_up();
    sgm_value x = input(&it, DIMS(8, 8)), y = x;
    for (int i = 0; i < 50; i++)
        y = sgm_tanh(it.graph, sgm_matmul(it.graph, y, x));
    sgm_graph_add_output(it.graph, "y", y);
    make_plan(&it);
    CHECK_INT(it.plan->activation_bytes, 100 * 256);
    CHECK_INT(it.plan->arena_bytes, 2 * 256);
    check_runs(it.graph);
    tear_down(&it);
}

/* The same with gradients: the activations are kept for them, nothing else is. */
TEST(training_keeps_what_gradients_read)
{
    setting it = set_up();
    sgm_value w = sgm_state(it.graph, "w", SGM_FLOAT32, DIMS(8, 8)), y = input(&it, DIMS(8, 8)), gradient;
    for (int i = 0; i < 20; i++)
        y = sgm_tanh(it.graph, sgm_matmul(it.graph, y, w));
    CHECK_OK(sgm_gradients(it.graph, sgm_mean(it.graph, sgm_square(it.graph, y)), &w, 1, &gradient));
    sgm_assign(it.graph, w, sgm_subtract(it.graph, w, gradient));
    make_plan(&it);
    CHECK(it.plan->arena_bytes >= 20 * 256);
    CHECK(it.plan->arena_bytes <= 24 * 256);
    CHECK(it.plan->activation_bytes > 100 * 256);
    check_runs(it.graph);
    tear_down(&it);
}

TEST(constants_are_stored_once_each)
{
    setting it = set_up();
    sgm_value x = input(&it, DIMS(3)), two = sgm_number(it.graph, 2);
    sgm_value y = sgm_multiply(it.graph, sgm_add(it.graph, x, two), sgm_number(it.graph, 2));
    sgm_graph_add_output(it.graph, "y", sgm_subtract(it.graph, y, sgm_number(it.graph, 3)));
    make_plan(&it);
    CHECK_INT(it.plan->constant_bytes, 2 * 64);
    check_runs(it.graph);
    tear_down(&it);
}

/* What a kernel wants without gaps is laid out with the constants, not by a copy in each run. */
TEST(views_of_constants_are_constants)
{
    setting it = set_up();
    const float numbers[] = {1, 2, 3, 4, 5, 6};
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_FLOAT32, DIMS(2, 3), numbers);
    sgm_value x = input(&it, DIMS(3, 2)),
              transposed = sgm_transpose(it.graph, sgm_constant(it.graph, tensor));
    sgm_value ones = sgm_broadcast(it.graph, sgm_number(it.graph, 1), DIMS(3));
    sgm_graph_add_output(it.graph, "y", sgm_accuracy(it.graph, x, transposed));
    sgm_graph_add_output(it.graph, "z", sgm_accuracy(it.graph, x, ones));
    make_plan(&it);
    CHECK_INT(it.plan->order_count, 2);
    CHECK_INT(it.plan->constant_bytes, 4 * 64);
    check_runs(it.graph);
    sgm_tensor_free(tensor);
    tear_down(&it);
}

TEST(sizes_beyond_any_memory)
{
    setting it = set_up();
    const int64_t side = INT64_C(1) << 29;
    sgm_value x = sgm_input_value(it.graph, "x", SGM_FLOAT64, DIMS(1, 1));
    sgm_value y = sgm_broadcast(it.graph, x, DIMS(side, side));
    for (int i = 0; i < 10; i++)
        y = sgm_exp(it.graph, y);
    sgm_graph_add_output(it.graph, "y", sgm_sum(it.graph, y));
    CHECK_OK(sgm_graph_status(it.graph));
    CHECK_ERROR(sgm__plan_create(it.graph, it.handler, &it.plan), "cannot allocate");
    tear_down(&it);
}

static sgm_status same_type(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                            sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

TEST(views_of_unknown_kinds_are_refused)
{
    static const sgm_op odd = {.api = SGM_OP_API,
                               .flags = SGM_OP_VIEW,
                               .name = "odd",
                               .doc = "",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .infer = same_type};
    setting it = set_up();
    sgm_value x = input(&it, DIMS(2));
    sgm_graph_add_output(it.graph, "y", sgm_record(it.graph, &odd, &x, 1, NULL));
    CHECK_ERROR(sgm__plan_create(it.graph, it.handler, &it.plan),
                "operation odd says that it is a view, but of no known kind");
    tear_down(&it);
}
