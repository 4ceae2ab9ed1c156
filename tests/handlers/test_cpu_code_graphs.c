/* Random graphs of many shapes, types and views on the cpu handler: machine code against interpreted steps
 * and against the reference handler, which all give the same bits. */
#include "base/base.h"
#include "handlers/cpu/cpu.h"
#include "handlers/graphs.h"
#include "handlers/program.h"

#include <math.h>
#include <string.h>

#define MAXIMUM_VALUES 160
#define OPERANDS 6
#define STATES 3
#define HANDLERS 3
#define TYPES 5

static const sgm_dtype types[TYPES] = {SGM_FLOAT32, SGM_BFLOAT16, SGM_BOOL, SGM_INT32, SGM_UINT8};

typedef struct maker {
    sgm_graph *graph;
    sgm__random random;
    sgm_shape shape; /* of nearly all values */
    sgm_value values[TYPES][MAXIMUM_VALUES];
    int counts[TYPES];
    sgm_shape shapes[OPERANDS + STATES]; /* of what comes from outside */
    sgm_dtype dtypes[OPERANDS + STATES];
    char names[OPERANDS + STATES][16];
    bool exact; /* only operations that round each result once, as the reference does */
    bool plain; /* only what there is machine code for */
} maker;

static int64_t below(maker *m, int64_t limit)
{
    return (int64_t)sgm__random_below(&m->random, (uint64_t)limit);
}

static void keep(maker *m, sgm_value value)
{
    sgm_dtype dtype = sgm_value_type(m->graph, value).dtype;
    for (int t = 0; t < TYPES; t++)
        if (types[t] == dtype && m->counts[t] < MAXIMUM_VALUES)
            m->values[t][m->counts[t]++] = value;
}

static sgm_value some(maker *m, int type)
{
    if (m->counts[type] == 0) {
        CHECK(type != 0);
        return sgm_cast(m->graph, some(m, 0), types[type]);
    }
    /* Often one of the newest, so that chains grow. */
    int count = m->counts[type];
    if (below(m, 2) == 0 && count > 4)
        return m->values[type][count - 1 - below(m, 4)];
    return m->values[type][below(m, count)];
}

/* --- views --- */

/* An operand or state, seen so that it has the shape of all values. */
static sgm_value from_outside(maker *m, int index, sgm_dtype dtype)
{
    bool state = index >= OPERANDS;
    sgm_shape shape = m->shape;
    int32_t rank = shape.rank, axis = rank > 0 ? (int32_t)below(m, rank) : 0;
    int kind = state || rank == 0 ? 0 : (int)below(m, 7);
    int32_t order[SGM_MAX_RANK], back[SGM_MAX_RANK];
    int64_t start = below(m, 3), step = 1 + below(m, 2);
    if (kind == 1) { /* the same along some axes */
        for (int32_t i = 0; i < rank; i++)
            if (below(m, 2) == 0)
                shape.dims[i] = 1;
    } else if (kind == 2) { /* without the first axes */
        int32_t gone = 1 + (int32_t)below(m, rank);
        shape.rank -= gone;
        memmove(shape.dims, shape.dims + gone, (size_t)shape.rank * sizeof *shape.dims);
    } else if (kind == 3) { /* transposed */
        for (int32_t i = 0; i < rank; i++)
            order[i] = i;
        for (int32_t i = rank; i-- > 1;) {
            int32_t with = (int32_t)below(m, i + 1), old = order[i];
            order[i] = order[with];
            order[with] = old;
        }
        for (int32_t i = 0; i < rank; i++) {
            shape.dims[i] = m->shape.dims[order[i]];
            back[order[i]] = i;
        }
    } else if (kind == 4) { /* a part of something larger */
        shape.dims[axis] = start + shape.dims[axis] * step + below(m, 2);
    }
    m->shapes[index] = shape;
    m->dtypes[index] = dtype;
    snprintf(m->names[index], sizeof m->names[index], "%s%d", state ? "s" : "x", index);
    if (state)
        return sgm_state(m->graph, m->names[index], dtype, &shape);
    sgm_value value = sgm_input_value(m->graph, m->names[index], dtype, &shape);
    if (kind == 3)
        return sgm_permute(m->graph, value, back);
    if (kind == 4)
        return sgm_slice(m->graph, value, axis, start, start + m->shape.dims[axis] * step, step);
    if (kind == 5)
        return sgm_flip(m->graph, value, axis);
    return kind == 1 || kind == 2 ? sgm_broadcast(m->graph, value, &m->shape) : value;
}

/* A value in another order, or only a part of it, or two together: of the same shape again. */
static sgm_value moved(maker *m, sgm_value x)
{
    sgm_graph *graph = m->graph;
    int32_t rank = m->shape.rank;
    if (rank == 0 || sgm_shape_elements(&m->shape) == 0)
        return sgm_stop_gradient(graph, x);
    int32_t axis = (int32_t)below(m, rank), last = rank - 1;
    int64_t length = m->shape.dims[axis];
    sgm_dtype dtype = sgm_value_type(graph, x).dtype;
    int type = 0;
    while (types[type] != dtype)
        type++;
    switch (below(m, 7)) {
    case 0:
        return sgm_flip(graph, x, axis);
    case 1: { /* one of it for all */
        int64_t at = length > 0 ? below(m, length) : 0;
        return length == 0 ? x : sgm_broadcast(graph, sgm_slice(graph, x, axis, at, at + 1, 1), &m->shape);
    }
    case 2: { /* both halves of two */
        axis = below(m, 2) == 0 ? last : axis;
        sgm_value before = some(m, type), after = some(m, type);
        sgm_value parts[3] = {before, sgm_stop_gradient(graph, x), after};
        sgm_value all = sgm_concatenate(graph, parts, 3, axis);
        keep(m, sgm_slice(graph, all, axis, m->shape.dims[axis], 2 * m->shape.dims[axis], 1));
        return sgm_slice(graph, all, axis, 1, 1 + m->shape.dims[axis] * 2, 2);
    }
    case 3:
        if (dtype == SGM_FLOAT32 && m->exact)
            return sgm_broadcast(graph, sgm_reduce_max(graph, x, &axis, 1, true), &m->shape);
        return sgm_stop_gradient(graph, x);
    case 4:
        if (rank >= 2 && m->shape.dims[last] == m->shape.dims[last - 1])
            return sgm_transpose(graph, x);
        return sgm_flip(graph, x, last);
    case 5: { /* transposed in memory */
        int32_t order[SGM_MAX_RANK];
        sgm_shape flat = sgm_shape_of(-1);
        for (int32_t i = 0; i < rank; i++)
            order[i] = rank - 1 - i;
        if (sgm_shape_elements(&m->shape) == 0)
            return x;
        return sgm_reshape(graph, sgm_reshape(graph, sgm_permute(graph, x, order), &flat), &m->shape);
    }
    default:
        return sgm_stop_gradient(graph, x);
    }
}

/* --- operations --- */

/* Draws are statements of their own: in which order a call's arguments are computed is up to the compiler. */
static sgm_value make_select(maker *m)
{
    sgm_value condition = some(m, 2), yes = some(m, 2), no = some(m, 2);
    return sgm_select(m->graph, condition, yes, no);
}

static sgm_value make_logic(maker *m)
{
    sgm_value left = some(m, 2), right = some(m, 2);
    return below(m, 2) == 0 ? sgm_logical_and(m->graph, left, right) : sgm_logical_or(m->graph, left, right);
}

static sgm_value make_cast(maker *m, int type)
{
    int from = below(m, 6) == 0 && !m->plain ? (int)below(m, TYPES) : type == 0 ? 1 : 2;
    sgm_value value = some(m, from);
    return sgm_cast(m->graph, value, below(m, 8) == 0 && !m->plain ? SGM_UINT8 : types[below(m, 2)]);
}

static sgm_value make_count(maker *m)
{
    sgm_value integer = some(m, 3);
    return sgm_add(m->graph, integer, sgm_cast(m->graph, some(m, 2), SGM_INT32));
}

static void make_value(maker *m)
{
    static const char *const two[] = {"add", "subtract", "multiply", "divide", "maximum", "minimum"};
    static const char *const exact[] = {"negate", "absolute", "square_root", "copy",
                                        "relu",   "relu6",    "identity"};
    static const char *const one[] = {"exp",     "log",  "log1p", "tanh", "erf",
                                      "sigmoid", "gelu", "silu",  "elu",  "floor"};
    static const char *const tests[] = {"less",       "greater_equal", "equal",
                                        "less_equal", "not_equal",     "greater"};
    sgm_graph *graph = m->graph;
    int type = below(m, 4) == 0 ? 1 : 0, kind = (int)below(m, 17);
    sgm_value in[2] = {some(m, type)};
    in[1] = below(m, 5) == 0 ? sgm_cast(graph, sgm_number(graph, 0.5), types[type]) : some(m, type);
    if (below(m, 8) == 0)
        in[1] = in[0];
    if (kind < 5)
        keep(m, sgm_record(graph, sgm_find_op(two[below(m, 6)]), in, 2, NULL));
    else if (kind == 5 || (kind == 6 && m->exact))
        keep(m, sgm_record(graph, sgm_find_op(exact[below(m, 7)]), in, 1, NULL));
    else if (kind == 6)
        keep(m, sgm_record(graph, sgm_find_op(one[below(m, 10)]), in, 1, NULL));
    else if (kind < 9)
        keep(m, sgm_record(graph, sgm_find_op(tests[below(m, 6)]), in, 2, NULL));
    else if (kind == 9)
        keep(m, sgm_select(graph, some(m, 2), in[0], in[1]));
    else if (kind == 10 && !m->plain)
        keep(m, make_select(m));
    else if (kind == 11)
        keep(m, make_logic(m));
    else if (kind == 12)
        keep(m, below(m, 2) == 0 ? sgm_logical_not(graph, some(m, 2)) : sgm_is_nan(graph, in[0]));
    else if (kind == 13)
        keep(m, make_cast(m, type));
    else if (kind == 14 && below(m, 3) == 0 && !m->plain)
        keep(m, make_count(m));
    else if (kind >= 15 && below(m, 2) == 0)
        keep(m, moved(m, some(m, (int)below(m, 3))));
    else
        keep(m, sgm_multiply(graph, in[0], in[1]));
}

static void make_shape(maker *m, uint64_t seed)
{
    m->shape.rank = (int32_t)below(m, 5);
    int64_t maximum = seed % 7 == 0 ? 40 : 9;
    for (int32_t i = 0; i < m->shape.rank; i++)
        m->shape.dims[i] = 1 + below(m, i + 1 == m->shape.rank ? maximum * 6 : maximum);
    if (m->shape.rank > 2 && seed % 5 == 0)
        m->shape.dims[m->shape.rank - 2] = m->shape.dims[m->shape.rank - 1];
    if (m->shape.rank > 0 && seed % 31 == 0)
        m->shape.dims[below(m, m->shape.rank)] = 0;
    if (m->shape.rank == 1 && seed % 3 == 0)
        m->shape.dims[0] = 30000 + below(m, 100);
    if (m->shape.rank == 2 && seed % 3 == 0)
        m->shape.dims[below(m, 2)] *= 150;
    while (sgm_shape_elements(&m->shape) > 60000)
        for (int32_t i = 0; i < m->shape.rank; i++)
            m->shape.dims[i] = (m->shape.dims[i] + 1) / 2;
}

static void make_graph(maker *m)
{
    static const int outside[] = {0, 0, 0, 0, 1, 1, 2, 2, 3, 4};
    sgm_value states[STATES];
    for (int i = 0; i < OPERANDS + STATES; i++) {
        int type =
            i == 0 || i >= OPERANDS ? (i == OPERANDS + 2 ? 1 : 0) : outside[below(m, m->plain ? 8 : 10)];
        sgm_value value = from_outside(m, i, types[type]);
        keep(m, value);
        if (i >= OPERANDS)
            states[i - OPERANDS] = value;
    }
    int values = 1 + (int)below(m, 60);
    for (int i = 0; i < values; i++)
        make_value(m);
    for (int t = 0; t < TYPES; t++)
        for (int i = 0; i < 3 && m->counts[t] > 0; i++) {
            char name[32];
            snprintf(name, sizeof name, "out%d_%d", t, i);
            sgm_graph_add_output(m->graph, name, i == 0 ? m->values[t][m->counts[t] - 1] : some(m, t));
        }
    for (int i = 0; i < STATES; i++) {
        int type = i == 2 ? 1 : 0;
        sgm_value next = below(m, 4) == 0 ? moved(m, states[i == 2 ? 2 : 1 - i]) : some(m, type);
        if (below(m, 3) != 0)
            next = sgm_minimum(m->graph, next, some(m, type));
        if (below(m, 5) != 0)
            sgm_assign(m->graph, states[i], next);
    }
    CHECK_OK(sgm_graph_status(m->graph));
}

/* Numbers few bits long, so that many are equal and much is exact; some are special. */
static sgm_tensor *numbers(maker *m, sgm_dtype dtype, const sgm_shape *shape)
{
    sgm_tensor *tensor = sgm_tensor_create(dtype, shape);
    CHECK_OK(tensor);
    size_t count = (size_t)sgm_shape_elements(shape);
    double *values = malloc((count + 1) * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        values[i] = dtype == SGM_BOOL || dtype == SGM_UINT8 ? (double)below(m, 2)
                    : below(m, 3) == 0                      ? (double)(below(m, 17) - 8) / 4
                                                            : sgm__random_normal(&m->random);
        if (dtype == SGM_FLOAT32 && below(m, 100) == 0)
            values[i] = below(m, 2) == 0 ? -0.0 : (double)INFINITY;
    }
    CHECK_OK(sgm_tensor_write(tensor, values, count));
    free(values);
    return tensor;
}

/* --- comparison --- */

typedef struct side {
    sgm_handler *handler;
    sgm_session *session;
    sgm_program *program;
} side;

/* NaNs are equal, and so are 0 and -0. */
static bool is_same(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b;
}

static void compare(const maker *m, uint64_t seed, const char *name, int which, const sgm_tensor *a,
                    const sgm_tensor *b)
{
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(a));
    double *x = malloc((2 * count + 1) * sizeof *x), *y = x + count;
    CHECK_OK(sgm_tensor_read(a, x, count));
    CHECK_OK(sgm_tensor_read(b, y, count));
    for (size_t i = 0; i < count; i++)
        if (!is_same(x[i], y[i]) || (which == 1 && !isnan(x[i]) && signbit(x[i]) != signbit(y[i]))) {
            char *graph = sgm_graph_text(m->graph);
            printf("%s\n", graph);
            sgm_string_free(graph);
            TEST_FAIL("seed %llu: '%s' has %.9g at %zu, side %d has %.9g", (unsigned long long)seed, name,
                      x[i], i, which, y[i]);
        }
    free(x);
}

static void compare_all(const maker *m, uint64_t seed, side *sides, int count)
{
    for (int t = 0; t < TYPES; t++)
        for (int i = 0; i < 3 && m->counts[t] > 0; i++) {
            char name[32];
            snprintf(name, sizeof name, "out%d_%d", t, i);
            sgm_type type = sgm_program_output_type(sides[0].program, name);
            sgm_tensor *values[HANDLERS];
            for (int h = 0; h < count; h++) {
                CHECK_OK(values[h] = sgm_tensor_create(type.dtype, &type.shape));
                CHECK_OK(sgm_session_read(sides[h].session, sides[h].program, name, values[h]));
                if (h > 0)
                    compare(m, seed, name, h, values[0], values[h]);
            }
            for (int h = 0; h < count; h++)
                sgm_tensor_free(values[h]);
        }
    for (int i = OPERANDS; i < OPERANDS + STATES; i++) {
        sgm_tensor *first = sgm_session_get(sides[0].session, m->names[i]);
        for (int h = 1; h < count; h++) {
            sgm_tensor *other = sgm_session_get(sides[h].session, m->names[i]);
            compare(m, seed, m->names[i], h, first, other);
            sgm_tensor_free(other);
        }
        sgm_tensor_free(first);
    }
}

static void feed_all(maker *m, side *sides, int count)
{
    for (int i = 0; i < OPERANDS; i++) {
        sgm_tensor *value = numbers(m, m->dtypes[i], &m->shapes[i]);
        for (int h = 0; h < count; h++)
            if (sgm_program_has_input(sides[h].program, m->names[i]))
                CHECK_OK(sgm_session_feed(sides[h].session, sides[h].program, m->names[i], value));
        sgm_tensor_free(value);
    }
}

/* A program that needs more memory than the others, which lies elsewhere then. */
static void run_another(side *sides, int count)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_shape shape = sgm_shape_of(900000);
    sgm_value x = sgm_iota(graph, SGM_FLOAT32, &shape, 0);
    sgm_graph_add_output(graph, "y", sgm_flip(graph, sgm_square(graph, x), 0));
    for (int h = 0; h < count; h++) {
        sgm_program *program = sgm_session_prepare(sides[h].session, graph);
        CHECK_OK(program);
        CHECK_OK(sgm_session_run(sides[h].session, program));
    }
    sgm_graph_free(graph);
}

/* The instruction sets that have an encoder, in turns, if they run here; else the best one. */
static const char *set_of(uint64_t seed)
{
    bool here;
    const sgm__vector *best = sgm__vector_best(), *other = sgm__vector_at(1, &here);
    return other != NULL && here && other->functions != NULL && seed / 8 % 3 == 0 ? other->name : best->name;
}

static void check_graph(uint64_t seed)
{
    maker m = {.graph = sgm_graph_create(),
               .random = sgm__random_make(seed, 0),
               .exact = seed % 2 == 0,
               .plain = seed % 8 != 0};
    make_shape(&m, seed);
    make_graph(&m);
    int threads = 1 + (int)(seed % 4), count = m.exact ? 3 : 2;
    side sides[HANDLERS] = {
        {.handler = sgm_handler_create("cpu", .threads = threads, .keep_subnormals = m.exact,
                                       .instructions = set_of(seed))},
        {.handler = sgm_handler_create("cpu", .threads = threads, .keep_subnormals = m.exact,
                                       .instructions = set_of(seed), .no_machine_code = true)},
        {.handler = sgm_handler_create("reference")}};
    for (int h = 0; h < 2; h++) /* small programs, too */
        ((sgm__cpu *)sides[h].handler->self)->shares_all = seed % 8 < 4;
    for (int h = 0; h < count; h++)
        CHECK_OK(sides[h].session = sgm_session_create(sides[h].handler));
    for (int i = 0; i < OPERANDS + STATES; i++) {
        sgm_tensor *value = numbers(&m, m.dtypes[i], &m.shapes[i]);
        for (int h = 0; h < count; h++)
            if (i >= OPERANDS)
                CHECK_OK(sgm_session_set(sides[h].session, m.names[i], value));
        sgm_tensor_free(value);
    }
    for (int h = 0; h < count; h++)
        CHECK_OK(sides[h].program = sgm_session_prepare(sides[h].session, m.graph));
    for (int run = 0; run < 3; run++) {
        if (run < 2) /* what was fed stays fed */
            feed_all(&m, sides, count);
        if (run == 1 && seed % 16 == 3)
            run_another(sides, 2);
        for (int h = 0; h < count; h++)
            CHECK_OK(sgm_session_run(sides[h].session, sides[h].program));
        compare_all(&m, seed, sides, count);
    }
    for (int h = 0; h < count; h++)
        sgm_session_free(sides[h].session);
    for (int h = 0; h < HANDLERS; h++)
        sgm_handler_free(sides[h].handler);
    sgm_graph_free(m.graph);
}

TEST(random_graphs)
{
    for (uint64_t seed = 0; seed < 200; seed++)
        check_graph(seed);
}

/* Of a bool, each byte but 0 is true. */
TEST(bytes_of_bools)
{
    static const uint8_t bytes[] = {0, 1, 2, 255};
    static const sgm_dtype to[] = {SGM_FLOAT32, SGM_FLOAT64, SGM_INT64, SGM_INT32, SGM_BFLOAT16};
    sgm_shape shape = sgm_shape_of(4);
    sgm_tensor *value = sgm_tensor_create_from(SGM_BOOL, &shape, bytes);
    for (int k = 0; k < 10; k++) {
        sgm_graph *graph = sgm_graph_create();
        sgm_value x = sgm_input_value(graph, "x", SGM_BOOL, &shape);
        sgm_graph_add_output(graph, "y", sgm_cast(graph, x, to[k / 2]));
        side s = {.handler = sgm_handler_create("cpu", .threads = 1, .no_machine_code = k % 2 == 0)};
        CHECK_OK(s.session = sgm_session_create(s.handler));
        CHECK_OK(s.program = sgm_session_prepare(s.session, graph));
        CHECK_OK(sgm_session_feed(s.session, s.program, "x", value));
        CHECK_OK(sgm_session_run(s.session, s.program));
        check_output(s.session, s.program, "y", NUMBERS(0, 1, 1, 1), 0);
        sgm_session_free(s.session);
        sgm_handler_free(s.handler);
        sgm_graph_free(graph);
    }
    sgm_tensor_free(value);
}
