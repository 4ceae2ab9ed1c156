/* Random networks of all kinds of layers: forward, gradients and an update. float64 on the cpu handler is
 * near the reference, and float32 gives the same bits with any number of threads, as machine code or
 * interpreted, also while programs for other sizes of batches run in between. */
#include "base/base.h"
#include "handlers/cpu/cpu.h"
#include "test.h"

#include <sigma/handler.h>
#include <sigma/network.h>

#define SEEDS 40
#define BATCHES 2
#define RUNS 3
#define MAXIMUM_PARAMETERS 256
#define LEARNING_RATE 0.02

typedef struct maker {
    sgm__random random;
    char text[4096];
    size_t length;
    int64_t vocabulary; /* of the input; 0: it has real numbers */
} maker;

static int64_t below(maker *m, int64_t bound)
{
    return (int64_t)sgm__random_below(&m->random, (uint64_t)bound);
}

static void add(maker *m, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(m->text + m->length, sizeof m->text - m->length, format, arguments);
    va_end(arguments);
    m->length += (size_t)length;
    CHECK(m->length < sizeof m->text);
}

static int some_size(maker *m)
{
    static const int sizes[] = {1, 2, 3, 5, 7, 8, 14, 15, 16, 17, 31, 32, 33, 48, 64, 65, 100, 130};
    return sizes[below(m, sizeof sizes / sizeof *sizes)];
}

/* Smooth ones: a rounding makes no jump. */
static const char *some_activation(maker *m)
{
    static const char *const names[] = {"tanh", "sigmoid", "gelu",     "silu", "softplus",
                                        "mish", "erf",     "softsign", "sin",  "gelu_tanh"};
    return names[below(m, sizeof names / sizeof *names)];
}

/* --- layers, which may not fit each other --- */

static void add_plain(maker *m)
{
    switch (below(m, 8)) {
    case 0:
        add(m, " + dropout(0.4)");
        break;
    case 1:
        add(m, " + layer_norm");
        break;
    case 2:
        add(m, " + rms_norm");
        break;
    case 3:
        add(m, " + concatenate(identity, dense(%d, %s))", some_size(m), some_activation(m));
        break;
    case 4:
        add(m, " + elementwise(activation=%s)", some_activation(m));
        break;
    case 5:
        add(m, " + dense(%d) + %s", 2 * some_size(m), below(m, 2) == 0 ? "swiglu" : "geglu");
        break;
    default:
        add(m, " + dense(%d, %s)", some_size(m), some_activation(m));
    }
}

static void add_image(maker *m)
{
    switch (below(m, 10)) {
    case 0:
        add(m, " + max_pooling(%d%s)", 1 + (int)below(m, 3), below(m, 2) == 0 ? ", same" : "");
        break;
    case 1:
        add(m, " + average_pooling(%d%s)", 1 + (int)below(m, 3), below(m, 2) == 0 ? ", exclude_padding" : "");
        break;
    case 2:
        add(m, " + group_norm(1)");
        break;
    case 3:
        add(m, " + adaptive_average_pooling(%d, %d)", 1 + (int)below(m, 5), 1 + (int)below(m, 5));
        break;
    case 4:
        add(m, " + upsampling(%d%s)", 1 + (int)below(m, 3), below(m, 2) == 0 ? ", bilinear" : "");
        break;
    case 5:
        add(m, " + instance_norm");
        break;
    case 6:
        add(m, " + transposed_convolution(%d, kernel=%d, stride=%d)", 1 + (int)below(m, 12),
            1 + (int)below(m, 4), 1 + (int)below(m, 2));
        break;
    default:
        add(m, " + convolution(%d, kernel=%d, %s, stride=%d%s)", 1 + (int)below(m, 20), 1 + (int)below(m, 5),
            some_activation(m), 1 + (int)below(m, 3), below(m, 2) == 0 ? ", padding=1" : "");
    }
}

static void add_sequence(maker *m)
{
    static const char *const recurrent[] = {"rnn", "gru", "lstm"};
    const char *causal = below(m, 2) == 0 ? ", causal" : "";
    switch (below(m, 6)) {
    case 0:
        add(m, " + layer_norm");
        break;
    case 1:
        add(m, " + dense(%d, time_distributed, activation=%s)", 4 * (1 + (int)below(m, 10)),
            some_activation(m));
        break;
    case 2:
        add(m, " + attention(heads=%d%s)", 1 + (int)below(m, 2), causal);
        break;
    case 3:
        add(m, " + transformer(heads=2%s, hidden=%d, dropout=0.%d)", causal, some_size(m), (int)below(m, 3));
        break;
    default:
        add(m, " + %s(%d%s)", recurrent[below(m, 3)], some_size(m), below(m, 4) == 0 ? ", reverse" : "");
    }
}

static void make_text(maker *m)
{
    static void (*const adders[])(maker * m) = {add_plain, add_image, add_sequence, add_sequence};
    static const char *const costs[] = {"softmax_cross_entropy(shares)", "mean_squared", "root_mean_squared",
                                        "huber", "softmax_cross_entropy(shares, label_smoothing=0.1)"};
    int64_t kind = below(m, 4), layers = 1 + below(m, 4);
    if (kind == 0) {
        add(m, "input(%d)", some_size(m));
    } else if (kind == 1) {
        add(m, "input(%d, %d, %d)", 1 + (int)below(m, 5), 3 + (int)below(m, 9), 3 + (int)below(m, 9));
    } else if (kind == 2) {
        add(m, "input(%d, %d)", 1 + (int)below(m, 34), 4 * (1 + (int)below(m, 10)));
    } else {
        m->vocabulary = 2 + below(m, 60);
        add(m, "input(%d) + embedding(%d, %d) + positions", 1 + (int)below(m, 20), (int)m->vocabulary,
            4 * (1 + (int)below(m, 10)));
    }
    for (int64_t i = 0; i < layers; i++)
        adders[kind](m);
    add(m, " + dense(%d) + %s", 1 + (int)below(m, 40), costs[below(m, sizeof costs / sizeof *costs)]);
}

/* --- one network on one handler --- */

typedef struct side {
    sgm_dtype dtype;
    sgm_handler *handler;
    sgm_session *session;
    sgm_network *networks[BATCHES];
    sgm_graph *graphs[BATCHES];
    sgm_recording recordings[BATCHES];
} side;

/* False: the layers do not fit each other. */
static bool record(side *s, const char *text, int which, int64_t batch)
{
    sgm_recording_options options = {
        .struct_size = sizeof options, .batch = batch, .dtype = s->dtype, .training = true};
    sgm_value with[MAXIMUM_PARAMETERS], gradients[MAXIMUM_PARAMETERS];
    CHECK_OK(s->networks[which] = sgm_network_parse(text));
    sgm_graph *graph = s->graphs[which] = sgm_graph_create();
    sgm_recording *r = &s->recordings[which];
    if (sgm_network_record(s->networks[which], graph, &options, r) != SGM_OK)
        return false;
    int32_t count = (int32_t)r->parameter_count;
    CHECK(count <= MAXIMUM_PARAMETERS);
    for (int32_t i = 0; i < count; i++)
        with[i] = r->parameters[i].value;
    CHECK_OK(sgm_gradients(graph, r->total, with, count, gradients));
    for (int32_t i = 0; i < count; i++)
        sgm_assign(graph, with[i],
                   sgm_subtract(graph, with[i],
                                sgm_multiply(graph, gradients[i], sgm_number(graph, LEARNING_RATE))));
    sgm_graph_add_output(graph, "cost", r->total);
    CHECK_OK(sgm_graph_verify(graph));
    return true;
}

static void fill(sgm_tensor *tensor, sgm__random *random, double scale, int64_t whole)
{
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(tensor));
    double *values = malloc((count + 1) * sizeof *values);
    for (size_t i = 0; i < count; i++) /* the same in float32 */
        values[i] = whole > 0 ? (double)sgm__random_below(random, (uint64_t)whole)
                              : (double)(float)(scale * sgm__random_normal(random));
    CHECK_OK(sgm_tensor_write(tensor, values, count));
    free(values);
}

static void set_states(side *s, uint64_t seed)
{
    const sgm_recording *r = &s->recordings[0];
    sgm__random random = sgm__random_make(seed, 1);
    for (size_t i = 0; i < r->parameter_count; i++) {
        const sgm_parameter *p = &r->parameters[i];
        sgm_tensor *tensor = sgm_tensor_create(p->type.dtype, &p->type.shape);
        fill(tensor, &random, p->fan_in > 0 ? 1 / sqrt((double)p->fan_in) : 0.5, 0);
        CHECK_OK(sgm_session_set(s->session, p->name, tensor));
        sgm_tensor_free(tensor);
    }
    static const char *const names[] = {"random.seed", "random.step"};
    for (int i = 0; r->random && i < 2; i++) {
        sgm_shape scalar = {0};
        sgm_tensor *tensor = sgm_tensor_create_from(SGM_INT64, &scalar, (const int64_t[]){40 + i});
        CHECK_OK(sgm_session_set(s->session, names[i], tensor));
        sgm_tensor_free(tensor);
    }
}

static void feed_one(side *s, sgm_program *program, int which, const sgm_named_value *input,
                     sgm__random *random, int64_t whole)
{
    sgm_type type = sgm_value_type(s->graphs[which], input->value);
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    fill(tensor, random, 0.5, whole);
    CHECK_OK(sgm_session_feed(s->session, program, input->name, tensor));
    sgm_tensor_free(tensor);
}

static void run(side *s, int which, int64_t vocabulary, uint64_t seed, double *cost)
{
    const sgm_recording *r = &s->recordings[which];
    sgm__random random = sgm__random_make(seed, 2);
    sgm_program *program = sgm_session_prepare(s->session, s->graphs[which]);
    CHECK_OK(program);
    feed_one(s, program, which, &r->inputs[0], &random, vocabulary);
    feed_one(s, program, which, &r->targets[0], &random, 0);
    CHECK_OK(sgm_session_run(s->session, program));
    CHECK_OK(sgm_session_read_number(s->session, program, "cost", cost));
}

static void stop(side *s)
{
    sgm_session_free(s->session);
    sgm_handler_free(s->handler);
    for (int i = 0; i < BATCHES; i++) {
        sgm_graph_free(s->graphs[i]);
        sgm_network_free(s->networks[i]);
    }
}

/* --- comparison --- */

/* Tolerance 0: the same bits. */
static void compare_states(const char *text, side *a, side *b, double tolerance)
{
    for (size_t k = 0; k < a->recordings[0].parameter_count; k++) {
        const char *name = a->recordings[0].parameters[k].name;
        sgm_tensor *tensors[2] = {sgm_session_get(a->session, name), sgm_session_get(b->session, name)};
        size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(tensors[0]));
        double *values = malloc((2 * count + 1) * sizeof *values), largest = 1;
        for (size_t t = 0; t < 2; t++) {
            CHECK_OK(sgm_tensor_read(tensors[t], values + t * count, count));
            sgm_tensor_free(tensors[t]);
        }
        for (size_t i = 0; i < count; i++)
            largest = fmax(largest, fabs(values[i]));
        for (size_t i = 0; i < count; i++)
            if (!(fabs(values[i] - values[count + i]) <= tolerance * largest))
                TEST_FAIL("%s: element %zu of '%s' is %.17g and %.17g", text, i, name, values[i],
                          values[count + i]);
        free(values);
    }
}

static bool check_network(uint64_t seed)
{
    enum { REFERENCE, DOUBLES, FLOATS, SHARED, SIDES };
    maker m = {.random = sgm__random_make(seed, 0)};
    make_text(&m);
    int64_t batches[BATCHES] = {1 + below(&m, 17), 1 + below(&m, 6)};
    side sides[SIDES] = {
        {.dtype = SGM_FLOAT64, .handler = sgm_handler_create("reference")},
        {.dtype = SGM_FLOAT64, .handler = sgm_handler_create("cpu", .threads = 2)},
        {.dtype = SGM_FLOAT32, .handler = sgm_handler_create("cpu", .threads = 1)},
        {.dtype = SGM_FLOAT32, .handler = sgm_handler_create("cpu", .threads = 3, .no_machine_code = true)}};
    ((sgm__cpu *)sides[SHARED].handler->self)->shares_all = true; /* small programs, too */
    bool fits = true;
    for (int k = 0; k < SIDES && fits; k++) {
        CHECK_OK(sides[k].session = sgm_session_create(sides[k].handler));
        for (int b = 0; b < BATCHES && fits; b++)
            fits = record(&sides[k], m.text, b, batches[b]);
        if (fits)
            set_states(&sides[k], seed);
    }
    for (int i = 0; i < RUNS && fits; i++) {
        double costs[SIDES];
        for (int k = 0; k < SIDES; k++)
            run(&sides[k], i % BATCHES, m.vocabulary, seed + (uint64_t)i, &costs[k]);
        CHECK_NEAR(costs[DOUBLES], costs[REFERENCE], 1e-7 * fmax(1, fabs(costs[REFERENCE])));
        if (i == 0)
            CHECK_NEAR(costs[FLOATS], costs[REFERENCE], 1e-3 * fmax(1, fabs(costs[REFERENCE])));
        compare_states(m.text, &sides[REFERENCE], &sides[DOUBLES], 1e-7);
        compare_states(m.text, &sides[FLOATS], &sides[SHARED], 0);
    }
    for (int k = 0; k < SIDES; k++)
        stop(&sides[k]);
    return fits;
}

TEST(handlers_agree_on_random_networks)
{
    int fitting = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        fitting += check_network(seed);
    CHECK(fitting > SEEDS / 2);
}
