/* Sessions: states by name, programs by structure, what is refused and how, and no memory taken in steady
 * runs.
 */
#include "base/allocator.h"
#include "handlers/graphs.h"
#include "handlers/session.h"
#include <sigma/graph.h>

typedef struct setting {
    sgm_handler *handler;
    sgm_session *session;
    sgm_graph *graph;
    sgm_program *program;
} setting;

static setting set_up(void)
{
    setting it = {.handler = sgm_handler_create("reference"), .graph = sgm_graph_create()};
    CHECK_OK(it.session = sgm_session_create(it.handler));
    return it;
}

static void tear_down(setting *it)
{
    sgm_session_free(it->session);
    sgm_handler_free(it->handler);
    sgm_graph_free(it->graph);
}

/* y = x + w, and w becomes y; x and w are float32 (2, 3) */
static void record_sum(sgm_graph *graph)
{
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(2, 3));
    sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(2, 3)), y = sgm_add(graph, x, w);
    sgm_assign(graph, w, y);
    sgm_graph_add_output(graph, "y", y);
}

static setting set_up_sum(void)
{
    setting it = set_up();
    record_sum(it.graph);
    set_state(it.session, "w", SGM_FLOAT32, DIMS(2, 3), NUMBERS(10, 20, 30, 40, 50, 60));
    CHECK_OK(it.program = sgm_session_prepare(it.session, it.graph));
    return it;
}

static void check_state(const setting *it, const char *name, const double *expected)
{
    double values[16];
    sgm_tensor *tensor;
    CHECK_OK(tensor = sgm_session_get(it->session, name));
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(tensor));
    CHECK_OK(sgm_tensor_read(tensor, values, count));
    for (size_t i = 0; i < count; i++)
        CHECK_NEAR(values[i], expected[i], 0);
    sgm_tensor_free(tensor);
}

/* --- inputs that are indices --- */

static void expect_up_to_three(sgm_program *program)
{
    CHECK_OK(sgm__program_expect_index(program, "x", "the test", 0, 3, NULL));
}

TEST(indices_of_every_type_are_checked)
{
    static const sgm_dtype types[] = {SGM_FLOAT32, SGM_FLOAT64, SGM_BFLOAT16,
                                      SGM_INT64,   SGM_INT32,   SGM_UINT8};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        setting it = set_up();
        sgm_value x = sgm_input_value(it.graph, "x", types[i], DIMS(2, 2));
        sgm_graph_add_output(it.graph, "y", sgm_add(it.graph, x, x));
        CHECK_OK(it.program = sgm_session_prepare(it.session, it.graph));
        expect_up_to_three(it.program);
        feed(it.session, it.program, "x", types[i], DIMS(2, 2), NUMBERS(0, 1, 2, 3));
        sgm_tensor *wrong = tensor_of(types[i], DIMS(2, 2), NUMBERS(0, 1, 4, 3));
        CHECK_ERROR(sgm_session_feed(it.session, it.program, "x", wrong),
                    "input 'x' at [1, 0]: 4 is out of range: the test takes whole numbers from 0 to 3");
        sgm_tensor_free(wrong);
        tear_down(&it);
    }
}

TEST(an_index_that_is_fed_as_a_number_is_checked)
{
    setting it = set_up();
    sgm_value x = sgm_input_value(it.graph, "x", SGM_FLOAT32, SCALAR);
    sgm_graph_add_output(it.graph, "y", sgm_add(it.graph, x, x));
    CHECK_OK(it.program = sgm_session_prepare(it.session, it.graph));
    expect_up_to_three(it.program);
    CHECK_OK(sgm_session_feed_number(it.session, it.program, "x", 3));
    CHECK_ERROR(sgm_session_feed_number(it.session, it.program, "x", 4),
                "input 'x': 4 is out of range: the test takes whole numbers from 0 to 3");
    CHECK_ERROR(sgm_session_feed_number(it.session, it.program, "x", 2.5),
                "input 'x': 2.5 is no whole number: the test takes whole numbers from 0 to 3");
    tear_down(&it);
}

/* --- states --- */

TEST(states)
{
    setting it = set_up();
    CHECK(!sgm_session_has(it.session, "w"));
    CHECK(sgm_session_state_at(it.session, 0) == NULL);
    set_state(it.session, "w", SGM_FLOAT32, DIMS(2), NUMBERS(1, 2));
    set_state(it.session, "b", SGM_INT64, SCALAR, NUMBERS(7));
    set_state(it.session, "w", SGM_FLOAT32, DIMS(2), NUMBERS(3, 4));
    CHECK(sgm_session_has(it.session, "w") && sgm_session_has(it.session, "b"));
    CHECK_STR(sgm_session_state_at(it.session, 0), "w");
    CHECK_STR(sgm_session_state_at(it.session, 1), "b");
    CHECK(sgm_session_state_at(it.session, 2) == NULL);
    sgm_type type;
    CHECK_OK(sgm_session_state_type(it.session, "b", &type));
    CHECK(type.dtype == SGM_INT64 && type.shape.rank == 0);
    check_state(&it, "w", NUMBERS(3, 4));
    check_state(&it, "b", NUMBERS(7));
    tear_down(&it);
}

TEST(a_strided_tensor_becomes_a_state)
{
    setting it = set_up();
    sgm_tensor *tensor = tensor_of(SGM_FLOAT32, DIMS(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    sgm_tensor *transposed = sgm_tensor_permute(tensor, (const int32_t[]){1, 0});
    CHECK_OK(sgm_session_set(it.session, "w", transposed));
    check_state(&it, "w", NUMBERS(1, 4, 2, 5, 3, 6));
    sgm_tensor_set(tensor, (const int64_t[]){0, 0}, 99); /* it was copied */
    check_state(&it, "w", NUMBERS(1, 4, 2, 5, 3, 6));
    sgm_tensor_free(transposed);
    sgm_tensor_free(tensor);
    tear_down(&it);
}

TEST(wrong_states_are_refused)
{
    setting it = set_up();
    sgm_type type;
    set_state(it.session, "0-dense.weights", SGM_FLOAT32, DIMS(2), NUMBERS(1, 2));
    sgm_tensor *longer = tensor_of(SGM_FLOAT32, DIMS(3), NUMBERS(1, 2, 3));
    sgm_tensor *wider = tensor_of(SGM_FLOAT64, DIMS(2), NUMBERS(8, 9));
    CHECK_ERROR(sgm_session_set(it.session, "0-dense.weights", longer),
                "state '0-dense.weights' is float32 (2,); the value is float32 (3,)");
    CHECK_ERROR(sgm_session_set(it.session, "0-dense.weights", wider), "the value is float64 (2,)");
    check_state(&it, "0-dense.weights", NUMBERS(1, 2));
    CHECK_ERROR(sgm_session_set(it.session, NULL, wider), "setting a state wants a session, a name and");
    CHECK_ERROR(sgm_session_set(it.session, "w", NULL), "setting a state wants a session, a name and");
    CHECK_ERROR(sgm_session_set(NULL, "w", wider), "setting a state wants a session, a name and a value");
    CHECK_ERROR(sgm_session_get(it.session, "0-dense.weight"),
                "the session has no state '0-dense.weight'; did you mean '0-dense.weights'?");
    CHECK_ERROR(sgm_session_get(it.session, NULL), "the session has no state ''");
    CHECK_ERROR(sgm_session_get(NULL, "w"), "the session is NULL");
    CHECK_ERROR(sgm_session_state_type(it.session, "quite different", &type),
                "has no state 'quite different'");
    CHECK(!sgm_session_has(it.session, NULL) && !sgm_session_has(NULL, "w"));
    CHECK_ERROR(sgm_session_create(NULL), "a session wants a handler");
    sgm_session_free(NULL);
    sgm_tensor_free(longer);
    sgm_tensor_free(wider);
    tear_down(&it);
}

/* --- programs --- */

TEST(a_graph_wants_its_states)
{
    setting it = set_up();
    record_sum(it.graph);
    CHECK_ERROR(sgm_session_prepare(it.session, it.graph),
                "the graph uses state 'w', which has no value yet: set it before");
    set_state(it.session, "w", SGM_FLOAT32, DIMS(3, 2), NUMBERS(1, 2, 3, 4, 5, 6));
    CHECK_ERROR(sgm_session_prepare(it.session, it.graph),
                "the graph uses state 'w' as float32 (2, 3), the session has it as float32 (3, 2)");
    sgm_reshape(it.graph, (sgm_value){0}, DIMS(7));
    CHECK_ERROR(sgm_session_prepare(it.session, it.graph), "reshape: ");
    CHECK_ERROR(sgm_session_prepare(it.session, NULL), "the graph is NULL");
    sgm_graph_clear(it.graph);
    CHECK_ERROR(sgm_session_prepare(NULL, it.graph), "the session is NULL");
    tear_down(&it);
}

TEST(programs_are_found_by_structure)
{
    setting it = set_up_sum();
    CHECK(sgm_session_prepare(it.session, it.graph) == it.program);
    sgm_graph_clear(it.graph); /* recorded anew, as at each iteration */
    sgm_graph_push_label(it.graph, "elsewhere");
    record_sum(it.graph);
    CHECK(sgm_session_prepare(it.session, it.graph) == it.program);
    sgm_graph *other = sgm_graph_create();
    record_sum(other);
    CHECK(sgm_session_prepare(it.session, other) == it.program);
    sgm_graph_add_output(other, "more", sgm_sum(other, (sgm_value){2}));
    sgm_program *more;
    CHECK_OK(more = sgm_session_prepare(it.session, other));
    CHECK(more != it.program);
    CHECK(sgm_program_has_output(more, "more") && !sgm_program_has_output(it.program, "more"));
    CHECK(sgm_session_prepare(it.session, it.graph) == it.program);
    CHECK(sgm_session_prepare(it.session, other) == more);
    sgm_graph_free(other); /* the session keeps what it needs */
    feed(it.session, more, "x", SGM_FLOAT32, DIMS(2, 3), NUMBERS(1, 1, 1, 1, 1, 1));
    CHECK_OK(sgm_session_run(it.session, more));
    check_output(it.session, more, "more", NUMBERS(216), 0);
    tear_down(&it);
}

/* Constants are no part of the hash. */
TEST(programs_differ_by_their_constants)
{
    setting it = set_up();
    sgm_program *programs[3];
    for (int i = 0; i < 3; i++) {
        const double number = i % 2;
        sgm_tensor *tensor = tensor_of(SGM_FLOAT32, SCALAR, &number);
        sgm_graph_clear(it.graph);
        sgm_graph_add_output(it.graph, "y", sgm_exp(it.graph, sgm_constant(it.graph, tensor)));
        CHECK_OK(programs[i] = sgm_session_prepare(it.session, it.graph));
        sgm_tensor_free(tensor);
    }
    CHECK(programs[0] == programs[2] && programs[0] != programs[1]);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(sgm_session_run(it.session, programs[i]));
        check_output(it.session, programs[i], "y", NUMBERS(i == 0 ? 1 : (double)expf(1)), 0);
    }
    tear_down(&it);
}

TEST(programs_share_states)
{
    setting it = set_up_sum();
    sgm_graph_clear(it.graph);
    sgm_value w = sgm_state(it.graph, "w", SGM_FLOAT32, DIMS(2, 3));
    sgm_graph_add_output(it.graph, "total", sgm_sum(it.graph, w));
    sgm_program *reader;
    CHECK_OK(reader = sgm_session_prepare(it.session, it.graph));
    feed(it.session, it.program, "x", SGM_FLOAT32, DIMS(2, 3), NUMBERS(1, 0, 0, 0, 0, 0));
    for (int run = 1; run <= 3; run++) {
        CHECK_OK(sgm_session_run(it.session, it.program));
        CHECK_OK(sgm_session_run(it.session, reader));
        check_output(it.session, reader, "total", NUMBERS(210 + run), 0);
    }
    set_state(it.session, "w", SGM_FLOAT32, DIMS(2, 3), NUMBERS(0, 0, 0, 0, 0, 5));
    CHECK_OK(sgm_session_run(it.session, it.program));
    check_state(&it, "w", NUMBERS(1, 0, 0, 0, 0, 5));
    tear_down(&it);
}

TEST(sessions_of_one_handler_are_apart)
{
    setting it = set_up_sum();
    sgm_session *other;
    CHECK_OK(other = sgm_session_create(it.handler));
    set_state(other, "w", SGM_FLOAT32, DIMS(2, 3), NUMBERS(0, 0, 0, 0, 0, 0));
    sgm_program *program;
    CHECK_OK(program = sgm_session_prepare(other, it.graph));
    feed(other, program, "x", SGM_FLOAT32, DIMS(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    CHECK_OK(sgm_session_run(other, program));
    check_output(other, program, "y", NUMBERS(1, 2, 3, 4, 5, 6), 0);
    check_state(&it, "w", NUMBERS(10, 20, 30, 40, 50, 60));
    CHECK_ERROR(sgm_session_run(it.session, program), "a program of another session");
    sgm_session_free(other);
    tear_down(&it);
}

/* --- feeding --- */

/* y = x + w becomes w, of a state that is another session's: a program keeps what it reads, the rest is gone,
 * and the owner is not needed any more. */
TEST(sharing_ends)
{
    setting owner = set_up(), it = set_up();
    record_sum(it.graph);
    const double first[] = {10, 20, 30, 40, 50, 60}, then[] = {11, 22, 33, 44, 55, 66};
    set_state(owner.session, "a", SGM_FLOAT32, DIMS(2), NUMBERS(1, 2));
    set_state(owner.session, "w", SGM_FLOAT32, DIMS(2, 3), first);
    CHECK_OK(sgm__session_share(it.session, owner.session, "a"));
    CHECK_OK(sgm__session_share(it.session, owner.session, "w"));
    set_state(it.session, "own", SGM_FLOAT32, DIMS(2), NUMBERS(7, 8));
    CHECK_OK(it.program = sgm_session_prepare(it.session, it.graph));
    CHECK_OK(sgm__session_end_sharing(it.session));
    feed(it.session, it.program, "x", SGM_FLOAT32, DIMS(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    CHECK_OK(sgm_session_run(it.session, it.program));
    check_state(&owner, "w", first);
    tear_down(&owner);
    check_state(&it, "w", then);
    check_state(&it, "own", NUMBERS(7, 8));
    CHECK(!sgm_session_has(it.session, "a"));
    CHECK_STR(sgm_session_state_at(it.session, 0), "w");
    CHECK(sgm_session_state_at(it.session, 2) == NULL);
    tear_down(&it);
}

TEST(inputs_are_converted)
{
    setting it = set_up_sum();
    static const sgm_dtype dtypes[] = {SGM_FLOAT32, SGM_FLOAT64, SGM_INT32,
                                       SGM_INT64,   SGM_UINT8,   SGM_BFLOAT16};
    static const double zeros[6] = {0};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        set_state(it.session, "w", SGM_FLOAT32, DIMS(2, 3), zeros);
        feed(it.session, it.program, "x", dtypes[i], DIMS(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
        CHECK_OK(sgm_session_run(it.session, it.program));
        check_output(it.session, it.program, "y", NUMBERS(1, 2, 3, 4, 5, 6), 0);
    }
    tear_down(&it);
}

TEST(examples_may_come_in_another_shape)
{
    setting it = set_up_sum();
    set_state(it.session, "w", SGM_FLOAT32, DIMS(2, 3), NUMBERS(0, 0, 0, 0, 0, 0));
    feed(it.session, it.program, "x", SGM_FLOAT32, DIMS(2, 1, 3, 1), NUMBERS(1, 2, 3, 4, 5, 6));
    CHECK_OK(sgm_session_run(it.session, it.program));
    check_output(it.session, it.program, "y", NUMBERS(1, 2, 3, 4, 5, 6), 0);
    feed(it.session, it.program, "x", SGM_INT64, DIMS(2, 3, 1), NUMBERS(1, 1, 1, 1, 1, 2));
    CHECK_OK(sgm_session_run(it.session, it.program));
    check_output(it.session, it.program, "y", NUMBERS(2, 3, 4, 5, 6, 8), 0);
    tear_down(&it);
}

TEST(strided_inputs)
{
    setting it = set_up_sum();
    set_state(it.session, "w", SGM_FLOAT32, DIMS(2, 3), NUMBERS(0, 0, 0, 0, 0, 0));
    sgm_tensor *tensor = tensor_of(SGM_FLOAT32, DIMS(3, 2), NUMBERS(1, 2, 3, 4, 5, 6));
    sgm_tensor *transposed = sgm_tensor_permute(tensor, (const int32_t[]){1, 0});
    CHECK_OK(sgm_session_feed(it.session, it.program, "x", transposed));
    CHECK_OK(sgm_session_run(it.session, it.program));
    check_output(it.session, it.program, "y", NUMBERS(1, 3, 5, 2, 4, 6), 0);
    sgm_tensor *deep = sgm_tensor_reshape(tensor, DIMS(2, 3, 1));
    sgm_tensor *back = sgm_tensor_slice(deep, 1, 2, -1, -1); /* of as many elements, but not in order */
    CHECK_ERROR(
        sgm_session_feed(it.session, it.program, "x", back),
        "input 'x' wants shape (2, 3), the tensor has (2, 3, 1) and gaps in its memory: copy it first");
    sgm_tensor_free(back);
    sgm_tensor_free(deep);
    sgm_tensor_free(transposed);
    sgm_tensor_free(tensor);
    tear_down(&it);
}

TEST(wrong_inputs_are_refused)
{
    setting it = set_up_sum();
    sgm_tensor *transposed = tensor_of(SGM_FLOAT32, DIMS(3, 2), NUMBERS(1, 2, 3, 4, 5, 6));
    sgm_tensor *flat = tensor_of(SGM_FLOAT32, DIMS(6), NUMBERS(1, 2, 3, 4, 5, 6));
    CHECK_ERROR(sgm_session_run(it.session, it.program), "input 'x' was never fed");
    CHECK_ERROR(sgm_session_feed(it.session, it.program, "x", transposed),
                "input 'x' wants shape (2, 3), the tensor has (3, 2)");
    CHECK_ERROR(sgm_session_feed(it.session, it.program, "x", flat), "the tensor has (6,)");
    CHECK_ERROR(sgm_session_feed(it.session, it.program, "z", flat),
                "the program has no input 'z'; it has 'x'");
    CHECK_ERROR(sgm_session_feed(it.session, it.program, NULL, flat), "the program has no input ''");
    CHECK_ERROR(sgm_session_feed(it.session, it.program, "x", NULL), "input 'x' was given no tensor");
    CHECK_ERROR(sgm_session_feed(it.session, NULL, "x", flat), "no session, no program");
    CHECK_ERROR(sgm_session_feed(NULL, it.program, "x", flat), "no session, no program");
    CHECK_ERROR(sgm_session_feed_number(it.session, it.program, "x", 1), "input 'x' is no single number");
    CHECK_ERROR(sgm_session_feed_number(it.session, it.program, "z", 1), "the program has no input 'z'");
    CHECK_ERROR(sgm_session_run(it.session, it.program), "input 'x' was never fed"); /* still */
    CHECK(!sgm_program_has_input(it.program, "z") && !sgm_program_has_input(it.program, NULL));
    CHECK(!sgm_program_has_input(NULL, "x") && sgm_program_has_input(it.program, "x"));
    sgm_tensor_free(transposed);
    sgm_tensor_free(flat);
    tear_down(&it);
}

TEST(numbers_are_fed_and_read)
{
    static const sgm_dtype dtypes[] = {SGM_FLOAT32, SGM_FLOAT64, SGM_INT32,
                                       SGM_INT64,   SGM_UINT8,   SGM_BFLOAT16};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        setting it = set_up();
        sgm_value x = sgm_input_value(it.graph, "x", dtypes[i], SCALAR);
        sgm_graph_add_output(it.graph, "y", sgm_add(it.graph, x, x));
        sgm_graph_add_output(it.graph, "one of one", sgm_reshape(it.graph, x, DIMS(1, 1)));
        sgm_graph_add_output(it.graph, "two", sgm_broadcast(it.graph, x, DIMS(2)));
        CHECK_OK(it.program = sgm_session_prepare(it.session, it.graph));
        CHECK_OK(sgm_session_feed_number(it.session, it.program, "x", 21));
        CHECK_OK(sgm_session_run(it.session, it.program));
        double y = 0;
        CHECK_OK(sgm_session_read_number(it.session, it.program, "y", &y));
        CHECK_NEAR(y, 42, 0);
        CHECK_OK(sgm_session_read_number(it.session, it.program, "one of one", &y));
        CHECK_NEAR(y, 21, 0);
        CHECK_ERROR(sgm_session_read_number(it.session, it.program, "two", &y),
                    "output 'two' is no single number; read a tensor");
        tear_down(&it);
    }
}

/* --- reading --- */

TEST(outputs_are_converted)
{
    setting it = set_up_sum();
    feed(it.session, it.program, "x", SGM_FLOAT32, DIMS(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    CHECK_OK(sgm_session_run(it.session, it.program));
    sgm_tensor *whole = sgm_tensor_create(SGM_INT64, DIMS(2, 3)),
               *wide = sgm_tensor_create(SGM_FLOAT32, DIMS(3, 2));
    CHECK_OK(sgm_session_read(it.session, it.program, "y", whole));
    CHECK_INT(((const int64_t *)sgm_tensor_const_data(whole))[5], 66);
    sgm_tensor *transposed =
        sgm_tensor_permute(wide, (const int32_t[]){1, 0}); /* written through its strides */
    CHECK_OK(sgm_session_read(it.session, it.program, "y", transposed));
    CHECK_NEAR(sgm_tensor_get(wide, (const int64_t[]){2, 0}), 33, 0);
    CHECK_NEAR(sgm_tensor_get(wide, (const int64_t[]){0, 1}), 44, 0);
    CHECK_ERROR(sgm_session_read(it.session, it.program, "y", wide),
                "output 'y' has shape (2, 3), the tensor");
    CHECK_ERROR(sgm_session_read(it.session, it.program, "y", NULL),
                "output 'y' has shape (2, 3), the tensor");
    CHECK_ERROR(sgm_session_read(it.session, it.program, "z", whole),
                "the program has no output 'z'; it has 'y'");
    CHECK_ERROR(sgm_session_read(it.session, it.program, NULL, whole), "the program has no output ''");
    sgm_type type = sgm_program_output_type(it.program, "y"), none = sgm_program_output_type(it.program, "z");
    CHECK(type.dtype == SGM_FLOAT32 && sgm_shape_equal(&type.shape, DIMS(2, 3)));
    CHECK_INT(none.shape.rank, 0);
    sgm_tensor_free(transposed);
    sgm_tensor_free(wide);
    sgm_tensor_free(whole);
    tear_down(&it);
}

/* Programs share one arena: what a run left there is gone with the next. */
TEST(outputs_are_those_of_the_newest_run)
{
    setting it = set_up_sum();
    double number;
    sgm_graph_clear(it.graph);
    sgm_value x = sgm_input_value(it.graph, "x", SGM_FLOAT32, DIMS(100));
    sgm_graph_add_output(it.graph, "total", sgm_sum(it.graph, sgm_exp(it.graph, x)));
    sgm_tensor *zeros = sgm_tensor_create(SGM_FLOAT32, DIMS(100)),
               *y = sgm_tensor_create(SGM_FLOAT32, DIMS(2, 3));
    feed(it.session, it.program, "x", SGM_FLOAT32, DIMS(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    CHECK_ERROR(sgm_session_read(it.session, it.program, "y", y),
                "output 'y': the program did not run, failed");
    CHECK_OK(sgm_session_run(it.session, it.program));
    CHECK_OK(sgm_session_read(it.session, it.program, "y", y));
    sgm_program *other;
    CHECK_OK(other = sgm_session_prepare(it.session, it.graph)); /* wants a larger arena */
    CHECK_OK(sgm_session_feed(it.session, other, "x", zeros));
    CHECK_OK(sgm_session_run(it.session, other));
    CHECK_ERROR(sgm_session_read(it.session, it.program, "y", y), "or another ran after it");
    CHECK_OK(sgm_session_read_number(it.session, other, "total", &number));
    CHECK_NEAR(number, 100, 0);
    CHECK_OK(sgm_session_run(it.session, it.program));
    CHECK_ERROR(sgm_session_read_number(it.session, other, "total", &number), "or another ran after it");
    CHECK_OK(sgm_session_read(it.session, it.program, "y", y));
    CHECK_NEAR(sgm_tensor_get(y, (const int64_t[]){1, 2}), 72, 0);
    sgm_tensor_free(zeros);
    sgm_tensor_free(y);
    tear_down(&it);
}

TEST(a_failed_run_has_no_outputs)
{
    setting it = set_up();
    sgm_value x = sgm_input_value(it.graph, "x", SGM_FLOAT32, DIMS(3));
    sgm_value at = sgm_input_value(it.graph, "at", SGM_INT32, SCALAR);
    sgm_graph_add_output(it.graph, "y", sgm_gather(it.graph, x, at, 0));
    CHECK_OK(it.program = sgm_session_prepare(it.session, it.graph));
    feed(it.session, it.program, "x", SGM_FLOAT32, DIMS(3), NUMBERS(1, 2, 3));
    double y;
    CHECK_OK(sgm_session_feed_number(it.session, it.program, "at", 2));
    CHECK_OK(sgm_session_run(it.session, it.program));
    CHECK_OK(sgm_session_read_number(it.session, it.program, "y", &y));
    CHECK_OK(sgm_session_feed_number(it.session, it.program, "at", 3));
    CHECK_ERROR(sgm_session_run(it.session, it.program), "gather");
    CHECK_ERROR(sgm_session_read_number(it.session, it.program, "y", &y), "the program did not run, failed");
    tear_down(&it);
}

TEST(a_program_may_have_nothing_to_do)
{
    setting it = set_up();
    CHECK_OK(it.program = sgm_session_prepare(it.session, it.graph));
    CHECK_OK(sgm_session_run(it.session, it.program));
    CHECK_INT(sgm_program_get_memory(it.program).steps, 0);
    CHECK_INT(sgm_program_get_memory(NULL).steps, 0);
    CHECK(sgm_program_text(NULL) == NULL);
    tear_down(&it);
}

/* --- steady state --- */

/* Recording, finding the program, feeding, running, reading and setting states: all without memory. */
TEST(iterations_allocate_nothing)
{
    setting it = set_up();
    sgm_tensor *bytes = sgm_tensor_create(SGM_UINT8, DIMS(4, 5)),
               *cost = sgm_tensor_create(SGM_FLOAT64, SCALAR);
    sgm_tensor *weights = sgm_tensor_create(SGM_FLOAT32, DIMS(5, 3));
    CHECK_OK(sgm_session_set(it.session, "w", weights));
    for (int i = 0; i < 6; i++) {
        if (i == 2) /* twice to get warm */
            allocator_start(0);
        sgm_graph_clear(it.graph);
        sgm_graph_push_label(it.graph, "0-dense");
        sgm_value x = sgm_input_value(it.graph, "x", SGM_FLOAT32, DIMS(4, 5));
        sgm_value w = sgm_state(it.graph, "w", SGM_FLOAT32, DIMS(5, 3));
        sgm_value y = sgm_softmax(it.graph, sgm_matmul(it.graph, x, w));
        sgm_graph_pop_label(it.graph);
        sgm_graph_add_output(it.graph, "cost", sgm_mean(it.graph, sgm_square(it.graph, y)));
        sgm_assign(it.graph, w, sgm_tanh(it.graph, w));
        sgm_program *program = sgm_session_prepare(it.session, it.graph);
        CHECK_OK(sgm_session_feed(it.session, program, "x", bytes));
        CHECK_OK(sgm_session_set(it.session, "w", weights));
        CHECK_OK(sgm_session_run(it.session, program));
        CHECK_OK(sgm_session_read(it.session, program, "cost", cost));
    }
    long allocations = atomic_load(&allocator_calls);
    allocator_stop();
    CHECK_INT(allocations, 0);
    CHECK_NEAR(sgm_tensor_get(cost, NULL), 1 / 9.0, 1e-7);
    sgm_tensor_free(bytes);
    sgm_tensor_free(cost);
    sgm_tensor_free(weights);
    tear_down(&it);
}

/* Rows of 8,192 numbers: with these, a state takes 288 MB, more than is copied for speed alone. */
#define LARGE_ROWS 9216
#define LARGE_COLUMNS 8192

/* A program that looks up a row of a large state, cast to bfloat16 or as it is. */
static sgm_program *prepare_large(sgm_session *session, sgm_graph *graph, bool casts)
{
    const sgm_shape shape = sgm_shape_of(LARGE_ROWS, LARGE_COLUMNS);
    sgm_value state = sgm_state(graph, "weights", SGM_FLOAT32, &shape);
    sgm_value numbers = casts ? sgm_cast(graph, state, SGM_BFLOAT16) : state;
    const sgm_shape one = sgm_shape_of(1);
    sgm_value rows = sgm_gather(graph, numbers, sgm_input_value(graph, "rows", SGM_INT64, &one), 0);
    sgm_graph_add_output(graph, "row", sgm_cast(graph, rows, SGM_FLOAT32));
    return sgm__session_prepare_inference(session, graph, SGM__INFERENCE_CONSTANTS);
}

/* What is made of a state that each run would cast is made once, however large it is: such a program is out
 * of date when the state changes. One that reads a large state as it is has no copy of it. */
TEST(a_large_state_that_is_cast_is_a_constant)
{
    const sgm_shape shape = sgm_shape_of(LARGE_ROWS, LARGE_COLUMNS);
    sgm_handler *handler = sgm_handler_create("cpu");
    sgm_tensor *weights = sgm_tensor_create(SGM_FLOAT32, &shape);
    CHECK_OK(handler);
    CHECK_OK(weights);
    for (int casts = 0; casts < 2; casts++) {
        sgm_session *session = sgm_session_create(handler);
        sgm_graph *graph = sgm_graph_create();
        CHECK_OK(sgm_session_set(session, "weights", weights));
        CHECK_OK(prepare_large(session, graph, casts != 0));
        CHECK(!sgm__session_is_outdated(session));
        CHECK_OK(sgm_session_set(session, "weights", weights));
        CHECK(sgm__session_is_outdated(session) == (casts != 0));
        sgm_session_free(session);
        sgm_graph_free(graph);
    }
    sgm_tensor_free(weights);
    sgm_handler_free(handler);
}

/* --- tables --- */

/* Row i of w, and w becomes 2 w if it `changes`. */
static setting set_up_table(bool changes)
{
    setting it = set_up();
    set_state(it.session, "w", SGM_FLOAT32, DIMS(3, 2), NUMBERS(1, 2, 3, 4, 5, 6));
    sgm_value w = sgm_state(it.graph, "w", SGM_FLOAT32, DIMS(3, 2));
    if (changes)
        sgm_assign(it.graph, w, sgm_add(it.graph, w, w));
    sgm_value i = sgm_input_value(it.graph, "i", SGM_INT64, DIMS(1));
    sgm_graph_add_output(it.graph, "row", sgm_gather(it.graph, w, i, 0));
    it.program = sgm__session_prepare_inference(it.session, it.graph, SGM__INFERENCE_CONSTANTS);
    CHECK_OK(it.program);
    return it;
}

/* Programs have no copies of it. One that also changes it looks rows up before. */
TEST(a_table_of_rows_stays_a_state)
{
    for (int changes = 0; changes < 2; changes++) {
        setting it = set_up_table(changes != 0);
        CHECK_INT(it.program->plan->state_count, 1);
        CHECK_INT(it.program->plan->constant_bytes, 0);
        feed(it.session, it.program, "i", SGM_INT64, DIMS(1), NUMBERS(1));
        CHECK_OK(sgm_session_run(it.session, it.program));
        sgm_tensor *row = sgm_tensor_create(SGM_FLOAT32, DIMS(1, 2));
        CHECK_OK(sgm_session_read(it.session, it.program, "row", row));
        CHECK_NEAR(sgm_tensor_get(row, (const int64_t[]){0, 1}), 4, 0);
        sgm_tensor_free(row);
        tear_down(&it);
    }
}
