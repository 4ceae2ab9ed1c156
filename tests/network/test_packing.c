/* Rows in which several sequences stand: loss and gradients are those of the same sequences in rows of their
 * own, in double, on every handler; and what cannot tell them apart says so. */
#include "network/layer_bench.h"
#include "network/rerecord.h"

#define MOST 640 /* numbers of a field, and of a gradient */
#define CLASSES 11

/* Sequences of these lengths, and the rows that they stand in when they are packed. */
typedef struct sequences {
    int64_t count, lengths[4], rows[4], window;
} sequences;

static const sequences few = {3, {3, 5, 4}, {0, 0, 1}, 8};
static const sequences longer = {3, {90, 110, 150}, {0, 0, 1}, 200}; /* several blocks of scores */

static int64_t row_count(const sequences *s, bool packed)
{
    return packed ? s->rows[s->count - 1] + 1 : s->count;
}

static void feed_sequences(bench *b, const sequences *s, bool packed)
{
    static double inputs[MOST], targets[MOST], starts[MOST];
    int64_t used[4] = {0};
    for (int64_t i = 0; i < row_count(s, packed) * s->window; i++) {
        inputs[i] = 0;
        targets[i] = -1;
        starts[i] = 0;
    }
    for (int64_t e = 0; e < s->count; e++) {
        const int64_t row = packed ? s->rows[e] : e, first = used[row];
        for (int64_t i = 0; i < s->lengths[e]; i++) {
            const int64_t at = row * s->window + first + i;
            inputs[at] = (double)((7 * i + 3 * e) % CLASSES);
            targets[at] = i % 3 == 0 ? -1 : (double)((5 * i + e) % CLASSES);
        }
        used[row] += s->lengths[e];
        for (int64_t i = first; i < s->window; i++)
            starts[row * s->window + i] = (double)(i < used[row] ? first : used[row]);
    }
    feed(b, "inputs", inputs);
    feed(b, "targets", targets);
    if (packed)
        feed(b, "starts", starts);
}

/* Loss and all gradients as outputs, with parameters that are sines. */
static bench open_network(const char *form, const sequences *s, bool packed, const char *handler)
{
    char input[64], text[400], name[32];
    snprintf(input, sizeof input, packed ? "input(%lld, starts=starts)" : "input(%lld)",
             (long long)s->window);
    snprintf(text, sizeof text, form, input);
    bench b = {.network = sgm_network_parse(text),
               .graph = sgm_graph_create(),
               .handler = sgm_handler_create(handler, .threads = 2)};
    CHECK_OK(b.network);
    CHECK_OK(sgm_network_record(b.network, b.graph, options(row_count(s, packed), true), &b.recording));
    sgm_value parameters[32], gradients[32];
    const size_t count = b.recording.parameter_count;
    CHECK(count <= 32);
    for (size_t i = 0; i < count; i++)
        parameters[i] = b.recording.parameters[i].value;
    CHECK_OK(sgm_gradients(b.graph, b.recording.total, parameters, (int32_t)count, gradients));
    sgm_graph_add_output(b.graph, "total", b.recording.total);
    b.session = sgm_session_create(b.handler);
    for (size_t i = 0; i < count; i++) {
        double values[MOST];
        const sgm_parameter *parameter = &b.recording.parameters[i];
        const int64_t elements = sgm_shape_elements(&parameter->type.shape);
        CHECK(elements <= MOST);
        snprintf(name, sizeof name, "gradient %zu", i);
        sgm_graph_add_output(b.graph, name, gradients[i]);
        add_state(&b, parameter->name, parameter->type.dtype, &parameter->type.shape);
        for (int64_t e = 0; e < elements; e++)
            values[e] = 0.4 * sin(1.3 * (double)e + (double)i);
        set(&b, parameter->name, values);
    }
    b.program = sgm_session_prepare(b.session, b.graph);
    CHECK_OK(b.program);
    feed_sequences(&b, s, packed);
    CHECK_OK(sgm_session_run(b.session, b.program));
    return b;
}

/* Rows of learned positions that the longest sequence has not are compared, too: their gradients are 0. */
static void check_form(const char *form, const sequences *s, const char *handler)
{
    bench apart = open_network(form, s, false, "reference"), packed = open_network(form, s, true, handler);
    double a[MOST], b[MOST], largest = 0;
    read_output(&apart, "total", a, 1);
    read_output(&packed, "total", b, 1);
    CHECK(a[0] > 0.1);
    CHECK_NEAR(a[0], b[0], 1e-10);
    CHECK_INT(apart.recording.parameter_count, packed.recording.parameter_count);
    for (size_t i = 0; i < apart.recording.parameter_count; i++) {
        char name[32];
        const size_t count = (size_t)sgm_shape_elements(&apart.recording.parameters[i].type.shape);
        snprintf(name, sizeof name, "gradient %zu", i);
        read_output(&apart, name, a, count);
        read_output(&packed, name, b, count);
        for (size_t k = 0; k < count; k++) {
            CHECK_NEAR(a[k], b[k], 1e-10);
            largest = fmax(largest, fabs(a[k]));
        }
    }
    CHECK(largest > 1e-3);
    stop(&apart);
    stop(&packed);
}

TEST(a_row_of_several_is_as_rows_of_one)
{
    static const char *const handlers[] = {"reference", "cpu"};
    static const char *const learned = "%s + embedding(11, 6) + positions + transformer(2, causal, hidden=8) "
                                       "+ attention(3, causal, rotary) + "
                                       "dense(11, time_distributed) + softmax_cross_entropy(ignore_negative)";
    static const sequences wide = {4, {20, 31, 19, 7}, {0, 0, 1, 1}, 60};
    static const char *const turned =
        "%s + embedding(11, 8) + transformer(4, causal, rotary, key_heads=2, query_norm, hidden=8) + "
        "dense(11, time_distributed) + softmax_cross_entropy(ignore_negative)";
    for (size_t i = 0; i < 2; i++) {
        check_form(learned, &few, handlers[i]);
        check_form(learned, &wide, handlers[i]);
        check_form(turned, &few, handlers[i]);
        check_form(turned, &longer, handlers[i]);
    }
}

/* A prediction is of one sequence, and needs no starts. */
TEST(predictions_have_one_sequence)
{
    sgm_network *network =
        sgm_network_parse("input(4, starts=starts) + embedding(5, 4) + positions + transformer(1, causal)");
    sgm_graph *graph = sgm_graph_create();
    sgm_recording recording;
    sgm_recording_options wanted = *options(1, false);
    wanted.costs = false;
    CHECK_OK(sgm_network_record(network, graph, &wanted, &recording));
    CHECK_INT(recording.input_count, 1);
    sgm_graph_free(graph);
    sgm_network_free(network);
}

TEST(what_cannot_tell_them_apart_says_so)
{
    check_record_error("input(4, starts=s) + embedding(5, 4) + attention(2) + squared_difference",
                       "attention: it takes no rows of several sequences (starts of 0-input; packing)");
    check_record_error("input(4, 3, starts=s) + lstm(3) + squared_difference",
                       "lstm: it takes no rows of several");
    check_record_error("input(4, 3, starts=s) + convolution_1d(2, 3, same) + squared_difference",
                       "convolution_1d: it takes no rows of several sequences");
    check_record_error("input(4, 3, starts=s) + global_average_pooling(steps) + squared_difference",
                       "global_average_pooling: it takes no rows of several sequences");
}

/* A start that is no step of the row. */
TEST(wrong_starts_are_told)
{
    bench b = open_text("input(2, starts=starts) + embedding(3, 2) + attention(1, causal) + dense(3, "
                        "time_distributed) + softmax_cross_entropy",
                        1, true);
    CHECK_OK(sgm__network_expect_indices(b.network, b.program));
    sgm_shape shape = sgm_shape_of(1, 2);
    sgm_tensor *starts = sgm_tensor_create(SGM_FLOAT64, &shape);
    sgm_tensor_set(starts, (const int64_t[]){0, 1}, 2);
    CHECK_ERROR(sgm_session_feed(b.session, b.program, "starts", starts), "0 to 1");
    sgm_tensor_free(starts);
    stop(&b);
}
