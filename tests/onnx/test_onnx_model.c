/* Models without other data: graphs are exported and imported, and damaged where an error shall say so. */
#include "base/allocator.h"
#include "base/base.h"
#include "base/folder.h"
#include "messages.h"
#include <sigma/sigma.h>

/* y = relu(x w + b) of (2, 3), or with another number of examples. */
static sgm_graph *make_graph(int64_t examples)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_shape x = sgm_shape_of(examples, 3), w = sgm_shape_of(3, 2), b = sgm_shape_of(2);
    sgm_graph_push_label(graph, "first");
    sgm_value sum = sgm_matmul(graph, sgm_input_value(graph, "x", SGM_FLOAT32, &x),
                               sgm_state(graph, "first.w", SGM_FLOAT32, &w));
    sum = sgm_add(graph, sum, sgm_state(graph, "first.b", SGM_FLOAT32, &b));
    sgm_graph_pop_label(graph);
    sgm_graph_add_output(graph, "y", sgm_relu(graph, sum));
    CHECK_OK(sgm_graph_status(graph));
    return graph;
}

typedef struct place {
    sgm_handler *handler;
    sgm_session *session;
    char *bytes; /* of the model */
    size_t length;
} place;

static void skip_without_onnx(void)
{
    sgm_clear_error();
    sgm_onnx_free(sgm_onnx_parse("", 0, NULL));
    if (sgm_last_status() == SGM_ERROR_UNSUPPORTED)
        SKIP("built without ONNX");
}

static sgm_tensor *matrix(int64_t rows, int64_t columns, const float *values)
{
    sgm_shape shape = sgm_shape_of(rows, columns);
    return sgm_tensor_create_from(SGM_FLOAT32, &shape, values);
}

static place open_place(void)
{
    skip_without_onnx();
    place p = {.handler = sgm_handler_create("cpu", .threads = 1)};
    p.session = sgm_session_create(p.handler);
    sgm_shape two = sgm_shape_of(2);
    sgm_tensor *w = matrix(3, 2, (const float[]){1, -1, 0.5f, 2, -3, 1});
    sgm_tensor *b = sgm_tensor_create_from(SGM_FLOAT32, &two, (const float[]){0.25f, -0.5f});
    CHECK_OK(sgm_session_set(p.session, "first.w", w));
    CHECK_OK(sgm_session_set(p.session, "first.b", b));
    sgm_tensor_free(w);
    sgm_tensor_free(b);
    open_folder();
    sgm_graph *graph = make_graph(2), *other = make_graph(5);
    CHECK_OK(sgm_onnx_export(in_folder("m.onnx"), graph, p.session, .name = "test", .other = other));
    sgm_graph_free(graph);
    sgm_graph_free(other);
    CHECK_OK(sgm__file_read(in_folder("m.onnx"), 1 << 20, &p.bytes, &p.length));
    return p;
}

static void close_place(place *p)
{
    sgm__free(p->bytes);
    sgm_session_free(p->session);
    sgm_handler_free(p->handler);
    close_folder();
}

static sgm_onnx *parse(const place *p)
{
    return sgm_onnx_parse(p->bytes, p->length, NULL);
}

/* Replaces the first occurrence of a word by one of the same length. */
static void replace(place *p, const char *old, const char *new)
{
    char *at = memmem(p->bytes, p->length, old, strlen(old));
    CHECK(at != NULL && strlen(old) == strlen(new));
    memcpy(at, new, strlen(new));
}

static void check_rows(sgm_onnx *model, int64_t rows)
{
    static const float values[] = {1, 2, 3, 1, 0, -1, 0, 0, 0};
    static const double expected[] = {0, 5.5, 4.25, 0, 0.25, 0};
    sgm_tensor *x = matrix(rows, 3, values);
    CHECK_OK(sgm_onnx_set(model, "x", x));
    CHECK_OK(sgm_onnx_run(model));
    sgm_tensor *y = sgm_onnx_get(model, "y");
    double got[6];
    CHECK_OK(y);
    CHECK_OK(sgm_tensor_read(y, got, (size_t)rows * 2));
    for (int64_t i = 0; i < rows * 2; i++)
        CHECK_NEAR(got[i], expected[i], 1e-6);
    sgm_tensor_free(y);
    sgm_tensor_free(x);
}

TEST(models_run_with_any_number_of_examples)
{
    place p = open_place();
    sgm_onnx *model = sgm_onnx_load(in_folder("m.onnx"), .handler = "reference");
    CHECK(model != NULL);
    sgm_type type;
    CHECK_STR(sgm_onnx_input_at(model, 0, &type), "x");
    CHECK_INT(type.shape.rank, 2);
    CHECK_INT(type.shape.dims[0], -1);
    CHECK_INT(type.shape.dims[1], 3);
    CHECK(sgm_onnx_input_at(model, 1, NULL) == NULL);
    CHECK_STR(sgm_onnx_output_at(model, 0), "y");
    CHECK(sgm_onnx_output_at(model, 1) == NULL);
    check_rows(model, 1);
    check_rows(model, 3);
    check_rows(model, 2);
    sgm_onnx_free(model);
    close_place(&p);
}

static long allocations_of(sgm_onnx *model, int64_t rows)
{
    long before = allocator_calls;
    check_rows(model, rows);
    return allocator_calls - before;
}

/* Compiling needs hundreds of allocations; setting an input and reading an output, some. */
TEST(shapes_that_take_turns_are_compiled_once)
{
    allocator_start(0);
    place p = open_place();
    sgm_onnx *model = parse(&p);
    for (int64_t rows = 1; rows <= 3; rows++)
        CHECK(allocations_of(model, rows) > 50);
    for (int i = 0; i < 6; i++)
        CHECK(allocations_of(model, 1 + i % 3) < 20);
    sgm_onnx_free(model);
    close_place(&p);
    CHECK_INT(allocator_live, 0);
    allocator_stop();
}

/* More shapes than are kept, of zeros: each output is what the bias alone gives. */
TEST(shapes_that_were_not_used_for_long_are_compiled_again)
{
    static const float zeros[3 * 40];
    allocator_start(0);
    place p = open_place();
    sgm_onnx *model = parse(&p);
    for (int i = 0; i < 100; i++) {
        int64_t rows = 1 + i * 7 % 40;
        sgm_tensor *x = matrix(rows, 3, zeros);
        CHECK_OK(sgm_onnx_set(model, "x", x));
        CHECK_OK(sgm_onnx_run(model));
        sgm_tensor *y = sgm_onnx_get(model, "y");
        CHECK_OK(y);
        CHECK_INT(sgm_tensor_shape(y)->dims[0], rows);
        CHECK_NEAR(sgm_tensor_get(y, (const int64_t[]){rows - 1, 0}), 0.25, 1e-6);
        sgm_tensor_free(y);
        sgm_tensor_free(x);
    }
    CHECK(allocations_of(model, 2) > 50);
    CHECK(allocations_of(model, 2) < 20);
    sgm_onnx_free(model);
    close_place(&p);
    CHECK_INT(allocator_live, 0);
    allocator_stop();
}

/* 36 MiB of weights: were they counted for each program, there would be room for 14. */
#define WIDTH 3072

/* y = x w, with w a session's. */
static sgm_graph *make_product(int64_t examples)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_shape x = sgm_shape_of(examples, WIDTH), w = sgm_shape_of(WIDTH, WIDTH);
    sgm_graph_add_output(graph, "y",
                         sgm_matmul(graph, sgm_input_value(graph, "x", SGM_FLOAT32, &x),
                                    sgm_state(graph, "w", SGM_FLOAT32, &w)));
    return graph;
}

static sgm_onnx *load_product(void)
{
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 1);
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = make_product(2), *other = make_product(5);
    sgm_shape shape = sgm_shape_of(WIDTH, WIDTH);
    sgm_tensor *w = sgm_tensor_create(SGM_FLOAT32, &shape);
    CHECK_OK(w);
    float *values = sgm_tensor_data(w);
    for (int64_t i = 0; i < WIDTH; i++)
        values[i * WIDTH + i] = 2;
    CHECK_OK(sgm_session_set(session, "w", w));
    CHECK_OK(sgm_onnx_export(in_folder("m.onnx"), graph, session, .other = other));
    sgm_tensor_free(w);
    sgm_graph_free(graph);
    sgm_graph_free(other);
    sgm_session_free(session);
    sgm_handler_free(handler);
    return sgm_onnx_load(in_folder("m.onnx"));
}

/* The allocations of a run with so many rows. */
static long run_product(sgm_onnx *model, int64_t rows)
{
    sgm_shape shape = sgm_shape_of(rows, WIDTH);
    sgm_tensor *x = sgm_tensor_create(SGM_FLOAT32, &shape);
    CHECK_OK(x);
    float *values = sgm_tensor_data(x);
    values[rows * WIDTH - 1] = 3;
    long before = allocator_calls;
    CHECK_OK(sgm_onnx_set(model, "x", x));
    CHECK_OK(sgm_onnx_run(model));
    sgm_tensor *y = sgm_onnx_get(model, "y");
    CHECK_OK(y);
    CHECK(sgm_tensor_get(y, (const int64_t[]){rows - 1, WIDTH - 1}) == 6);
    sgm_tensor_free(y);
    sgm_tensor_free(x);
    return allocator_calls - before;
}

TEST(weights_that_programs_share_are_not_counted_for_each)
{
    skip_without_onnx();
    open_folder();
    allocator_start(0);
    sgm_onnx *model = load_product();
    CHECK_OK(model);
    for (int64_t rows = 1; rows <= 16; rows++)
        CHECK(run_product(model, rows) > 50);
    for (int64_t rows = 1; rows <= 16; rows++)
        CHECK(run_product(model, rows) < 20);
    sgm_onnx_free(model);
    CHECK_INT(allocator_live, 0);
    allocator_stop();
    close_folder();
}

/* y = Reshape(x, s) with inputs x of 6 numbers and s of 2, in the bytes that the Python package onnx writes.
 */
static const char reshape_model[] =
    "\010\007\072\112\012\022\012\001\170\012\001\163\022\001\171\042\007\122\145\163\150\141\160\145"
    "\022\001\147\132\017\012\001\170\022\012\012\010\010\001\022\004\012\002\010\006\132\017\012\001"
    "\163\022\012\012\010\010\007\022\004\012\002\010\002\142\017\012\001\171\022\012\012\010\010\001"
    "\022\004\012\000\012\000\102\004\012\000\020\015";

static void check_reshape(sgm_onnx *model, int64_t rows)
{
    sgm_shape two = sgm_shape_of(2);
    sgm_tensor *s = sgm_tensor_create_from(SGM_INT64, &two, (const int64_t[]){rows, -1});
    CHECK_OK(sgm_onnx_set(model, "s", s));
    CHECK_OK(sgm_onnx_run(model));
    sgm_tensor *y = sgm_onnx_get(model, "y");
    CHECK_OK(y);
    CHECK_INT(sgm_tensor_shape(y)->dims[0], rows);
    CHECK_INT(sgm_tensor_shape(y)->dims[1], 6 / rows);
    sgm_tensor_free(y);
    sgm_tensor_free(s);
}

TEST(values_that_decide_about_shapes_have_programs_of_their_own)
{
    skip_without_onnx();
    sgm_onnx *model = sgm_onnx_parse(reshape_model, sizeof reshape_model - 1, NULL);
    CHECK_OK(model);
    sgm_shape six = sgm_shape_of(6);
    sgm_tensor *x = sgm_tensor_create_from(SGM_FLOAT32, &six, (const float[]){1, 2, 3, 4, 5, 6});
    CHECK_OK(sgm_onnx_set(model, "x", x));
    for (int64_t i = 0; i < 9; i++)
        check_reshape(model, 1 + i % 3);
    sgm_tensor_free(x);
    sgm_onnx_free(model);
}

TEST(what_is_asked_wrongly_is_said)
{
    place p = open_place();
    sgm_onnx *model = parse(&p);
    sgm_tensor *x = matrix(1, 2, (const float[]){1, 2});
    CHECK_ERROR(sgm_onnx_run(model), "input 'x' is not set");
    CHECK_ERROR(sgm_onnx_get(model, "y"), "after a run");
    CHECK_ERROR(sgm_onnx_set(model, "z", x), "no input 'z'; it has 'x'");
    CHECK_ERROR(sgm_onnx_set(model, "x", x), "input 'x' wants float32 (-1, 3) (-1: any), got float32 (1, 2)");
    check_rows(model, 2);
    CHECK_ERROR(sgm_onnx_get(model, "first"), "no output 'first'; its first one is 'y'");
    CHECK_ERROR(sgm_onnx_load("/nowhere/m.onnx"), "/nowhere/m.onnx");
    CHECK_ERROR(sgm_onnx_load(in_folder("m.onnx"), .handler = "gpu9"), "gpu9");
    sgm_tensor_free(x);
    sgm_onnx_free(model);
    close_place(&p);
}

TEST(damage_is_an_error)
{
    place p = open_place();
    for (size_t i = 0; i < p.length; i += 7)
        sgm_onnx_free(sgm_onnx_parse(p.bytes, i, NULL));
    CHECK_ERROR(sgm_onnx_parse(p.bytes, p.length - 1, NULL), "no model of ONNX");
    CHECK_ERROR(sgm_onnx_parse(p.bytes, 0, NULL), "it has no graph");
    close_place(&p);
}

/* 100 messages in each other, each the graph of an attribute of a node of the one around it. */
TEST(messages_deep_in_each_other_are_refused)
{
    skip_without_onnx();
    enum { LEVELS = 100000 };
    unsigned char *bytes = malloc(16 * LEVELS), *at = bytes + 16 * LEVELS;
    static const unsigned char keys[] = {7 << 3 | 2, 1 << 3 | 2, 5 << 3 | 2, 6 << 3 | 2};
    size_t length = 0;
    for (int level = LEVELS; level-- > 0 && at - bytes > 16;) {
        unsigned char head[8];
        size_t count = 1, rest = length;
        head[0] = keys[level == 0 ? 0 : 1 + (level - 1) % 3];
        for (; rest > 127; rest >>= 7)
            head[count++] = (unsigned char)(rest & 127) | 128;
        head[count++] = (unsigned char)rest;
        at -= count;
        memcpy(at, head, count);
        length += count;
    }
    CHECK_ERROR(sgm_onnx_parse(at, length, NULL), "lie in each other more than 64 deep");
    free(bytes);
}

static void put_opset(protobuf_message *m, int field, const char *domain, int64_t version)
{
    protobuf_message opset = {.length = 0};
    put_text(&opset, 1, domain);
    put_integer(&opset, 2, version);
    put_message(m, field, &opset);
}

/* 15 kB that say a million times what an input is. */
TEST(a_function_of_many_inputs_is_not_called_for_ever)
{
    enum { INPUTS = 1500, CALLS = 680 };
    protobuf_message model = {.length = 0}, graph = {.length = 0}, function = {.length = 0};
    protobuf_message call = {.length = 0}, x = {.length = 0}, y = {.length = 0}, last = {.length = 0};
    skip_without_onnx();
    put_text(&function, 1, "f");
    for (int i = 0; i < INPUTS; i++)
        put_text(&function, 4, (const char[]){(char)('0' + i % 60), (char)('0' + i / 60), '\0'});
    put_text(&function, 5, "00");
    put_opset(&function, 9, "", 13);
    put_text(&function, 10, "d");
    put_text(&call, 1, "x");
    put_text(&call, 2, "");
    put_text(&call, 4, "f");
    put_text(&call, 7, "d");
    for (int i = 0; i < CALLS; i++)
        put_message(&graph, 1, &call);
    put_text(&last, 1, "x");
    put_text(&last, 2, "y");
    put_text(&last, 4, "Neg");
    put_message(&graph, 1, &last);
    put_integer(&x, 1, 1); /* dims */
    put_integer(&x, 2, 1); /* float */
    put_bytes(&x, 9, &(float){1}, sizeof(float));
    put_text(&x, 8, "x");
    put_message(&graph, 5, &x);
    put_text(&y, 1, "y");
    put_message(&graph, 12, &y);
    put_integer(&model, 1, 8); /* IR version */
    put_message(&model, 7, &graph);
    put_opset(&model, 8, "", 13);
    put_opset(&model, 8, "d", 1);
    put_message(&model, 25, &function);
    CHECK(!model.full);
    sgm_onnx *read = sgm_onnx_parse(model.bytes, model.length, NULL);
    CHECK_OK(read);
    CHECK_ERROR(sgm_onnx_run(read), "there are more than 1000000 nodes");
    sgm_onnx_free(read);
}

/* y = SequenceEmpty(), and says so. */
TEST(a_sequence_as_an_output_is_refused_when_the_model_is_loaded)
{
    protobuf_message model = {.length = 0}, graph = {.length = 0}, node = {.length = 0},
                     output = {.length = 0};
    protobuf_message tensor = {.length = 0}, entry = {.length = 0}, sequence = {.length = 0},
                     type = {.length = 0};
    protobuf_message opset = {.length = 0};
    skip_without_onnx();
    put_integer(&tensor, 1, 1);        /* float */
    put_message(&entry, 1, &tensor);   /* tensor_type */
    put_message(&sequence, 1, &entry); /* elem_type */
    put_message(&type, 4, &sequence);  /* sequence_type */
    put_text(&output, 1, "y");
    put_message(&output, 2, &type);
    put_text(&node, 2, "y");
    put_text(&node, 4, "SequenceEmpty");
    put_message(&graph, 1, &node);
    put_message(&graph, 12, &output);
    put_integer(&model, 1, 8); /* IR version */
    put_message(&model, 7, &graph);
    put_integer(&opset, 2, 13);
    put_message(&model, 8, &opset);
    CHECK_ERROR(sgm_onnx_parse(model.bytes, model.length, NULL), "output 'y': it is no tensor (a sequence");
}

TEST(an_unknown_operator_is_named_with_its_node_and_opset)
{
    place p = open_place();
    replace(&p, "MatMul", "MatMol");
    CHECK_ERROR(sgm_onnx_parse(p.bytes, p.length, NULL), "operator 'MatMol' is not supported");
    CHECK(strstr(sgm_last_error(), "node 0, 'first/matmul.") != NULL);
    CHECK(strstr(sgm_last_error(), "opset 17") != NULL);
    close_place(&p);
}

TEST(a_value_that_nobody_makes_is_named)
{
    place p = open_place();
    replace(&p, "first.b", "first.c");
    sgm_onnx *model = parse(&p);
    sgm_graph *graph = sgm_graph_create();
    CHECK_ERROR(sgm_onnx_import(model, graph, 1), "its input 'first.");
    CHECK(strstr(sgm_last_error(), "made by nothing before it") != NULL);
    sgm_graph_free(graph);
    sgm_onnx_free(model);
    close_place(&p);
}

/* log1p has no operator: the parts that are written keep its digits. */
TEST(an_exported_log1p_is_exact_near_0)
{
    static const float values[] = {1e-8f, -3e-7f, 1e-4f, -0.3f, 0.6f, 5, 1e30f, -1, INFINITY, 0};
    enum { COUNT = sizeof values / sizeof *values };
    place p = open_place();
    sgm_graph *graph = sgm_graph_create();
    sgm_shape shape = sgm_shape_of(COUNT);
    sgm_graph_add_output(graph, "y", sgm_log1p(graph, sgm_input_value(graph, "x", SGM_FLOAT32, &shape)));
    CHECK_OK(sgm_onnx_export(in_folder("log1p.onnx"), graph, p.session, .name = "test"));
    sgm_onnx *model = sgm_onnx_load(in_folder("log1p.onnx"));
    CHECK_OK(model);
    sgm_tensor *x = sgm_tensor_create_from(SGM_FLOAT32, &shape, values);
    CHECK_OK(sgm_onnx_set(model, "x", x));
    CHECK_OK(sgm_onnx_run(model));
    sgm_tensor *y = sgm_onnx_get(model, "y");
    CHECK_OK(y);
    for (int64_t i = 0; i < COUNT; i++) {
        double expected = log1p((double)values[i]), got = sgm_tensor_get(y, &i);
        CHECK(got == expected || fabs(got - expected) <= 3e-7 * fabs(expected));
    }
    sgm_tensor_free(y);
    sgm_tensor_free(x);
    sgm_onnx_free(model);
    sgm_graph_free(graph);
    close_place(&p);
}

/* The imported part is a value as any other: d sum(y) / dx = w where relu lets it through. */
TEST(gradients_go_through_an_imported_model)
{
    place p = open_place();
    sgm_onnx *model = parse(&p);
    sgm_graph *graph = sgm_graph_create();
    CHECK_ERROR(sgm_onnx_import(model, graph, 0), "open shape (-1, 3)");
    sgm_graph_clear(graph);
    CHECK_OK(sgm_onnx_import(model, graph, 1));
    sgm_shape shape = sgm_shape_of(1, 3);
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, &shape), gradient;
    sgm_value y = {sgm_graph_count(graph) - 1};
    CHECK_OK(sgm_gradients(graph, sgm_sum(graph, y), &x, 1, &gradient));
    sgm_graph_add_output(graph, "gradient", gradient);
    sgm_program *program = sgm_session_prepare(p.session, graph);
    sgm_tensor *row = matrix(1, 3, (const float[]){1, 0, -1}), *result = matrix(1, 3, (const float[3]){0});
    CHECK_OK(sgm_session_feed(p.session, program, "x", row));
    CHECK_OK(sgm_session_run(p.session, program));
    CHECK_OK(sgm_session_read(p.session, program, "gradient", result));
    static const double expected[] = {1, 0.5, -3};
    double got[3];
    CHECK_OK(sgm_tensor_read(result, got, 3));
    for (int i = 0; i < 3; i++)
        CHECK_NEAR(got[i], expected[i], 1e-6);
    sgm_tensor_free(row);
    sgm_tensor_free(result);
    sgm_graph_free(graph);
    sgm_onnx_free(model);
    close_place(&p);
}

/* Whichever allocation fails, it is an error, and nothing is left. */
TEST(memory_that_is_not_there_is_an_error)
{
    place p = open_place();
    sgm_graph *graph = make_graph(2), *other = make_graph(5);
    sgm_tensor *x = matrix(1, 3, (const float[]){1, 2, 3});
    bool done = false;
    for (long limit = 1; !done && limit < 5000; limit++) {
        allocator_start(limit);
        sgm_onnx *model = sgm_onnx_parse(p.bytes, p.length,
                                         &(sgm_onnx_options){.struct_size = sizeof(sgm_onnx_options),
                                                             .handler = "reference",
                                                             .threads = 1});
        done = model != NULL && sgm_onnx_set(model, "x", x) == SGM_OK && sgm_onnx_run(model) == SGM_OK;
        sgm_tensor *y = done ? sgm_onnx_get(model, "y") : NULL;
        done =
            y != NULL && sgm_onnx_export(in_folder("again.onnx"), graph, p.session, .other = other) == SGM_OK;
        sgm_tensor_free(y);
        sgm_onnx_free(model);
        allocator_stop();
        CHECK_INT(allocator_live, 0);
    }
    CHECK(done);
    sgm_tensor_free(x);
    sgm_graph_free(graph);
    sgm_graph_free(other);
    close_place(&p);
}
