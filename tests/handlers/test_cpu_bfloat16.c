/* Products of bfloat16 with float32 sums: by our own tiles, by oneDNN and through float32, against double. */
#include "base/allocator.h"
#include "base/base.h"
#include "graphs.h"

#include <math.h>
#include <stdlib.h>

#if defined(__x86_64__) && defined(__linux__)
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

typedef struct shape_case {
    sgm_shape a, b; /* as the product takes them */
    int order; /* bits: a, b are stored with their last two dimensions exchanged; 4: b is one row for all */
} shape_case;

static const shape_case cases[] = {
    {TEST_SHAPE(1, 1), TEST_SHAPE(1, 1), 0},
    {TEST_SHAPE(3, 5), TEST_SHAPE(5, 7), 0},
    {TEST_SHAPE(33, 100), TEST_SHAPE(100, 10), 1},
    {TEST_SHAPE(33, 100), TEST_SHAPE(100, 10), 2},
    {TEST_SHAPE(100, 65), TEST_SHAPE(65, 130), 3},
    {TEST_SHAPE(20, 30), TEST_SHAPE(30, 40), 4},
    {TEST_SHAPE(2, 3, 9, 16), TEST_SHAPE(2, 3, 16, 5), 0},
    {TEST_SHAPE(64, 512), TEST_SHAPE(512, 1100), 0}, /* in parts, by columns */
    {TEST_SHAPE(700, 300), TEST_SHAPE(300, 200), 1}, /* by rows */
    {TEST_SHAPE(40, 1100), TEST_SHAPE(1100, 70), 0}, /* several depth blocks, of an even number of steps... */
    {TEST_SHAPE(33, 1101), TEST_SHAPE(1101, 21), 1}, /* ... and of an odd one, in each layout */
    {TEST_SHAPE(33, 1101), TEST_SHAPE(1101, 21), 2},
    {TEST_SHAPE(300, 1102), TEST_SHAPE(1102, 67), 3}, /* and by rows */
    {TEST_SHAPE(257, 601), TEST_SHAPE(601, 35), 0},
    {TEST_SHAPE(260, 64), TEST_SHAPE(64, 300), 2},
    {TEST_SHAPE(0, 3), TEST_SHAPE(3, 4), 0},
    {TEST_SHAPE(3, 0), TEST_SHAPE(0, 4), 0},
};

static sgm_shape stored(const sgm_shape *shape, bool transposed, bool one_row)
{
    sgm_shape s = *shape;
    int32_t last = s.rank - 1;
    if (transposed) {
        s.dims[last] = shape->dims[last - 1];
        s.dims[last - 1] = shape->dims[last];
    }
    if (one_row)
        s.dims[last - 1] = 1;
    return s;
}

static sgm_tensor *random_tensor(const sgm_shape *shape, uint64_t seed)
{
    sgm_tensor *tensor = sgm_tensor_create(SGM_BFLOAT16, shape);
    CHECK_OK(tensor);
    sgm_array array = {.dtype = SGM_BFLOAT16, .data = sgm_tensor_data(tensor)};
    sgm__random random = sgm__random_make(seed, 0);
    for (int64_t i = 0; i < sgm_shape_elements(shape); i++)
        sgm_array_store(&array, i, sgm__random_normal(&random));
    return tensor;
}

/* `constant` NULL: it is an input. */
static sgm_value operand(sgm_graph *graph, const char *name, const sgm_shape *shape, bool transposed,
                         bool one_row, const sgm_tensor *constant)
{
    sgm_shape as = stored(shape, transposed, one_row);
    sgm_value x =
        constant != NULL ? sgm_constant(graph, constant) : sgm_input_value(graph, name, SGM_BFLOAT16, &as);
    if (transposed)
        x = sgm_transpose(graph, x);
    return one_row ? sgm_broadcast(graph, x, shape) : x;
}

static sgm_tensor *product_of(sgm_handler *handler, const shape_case *c, const sgm_tensor *a,
                              const sgm_tensor *b, bool constant)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = operand(graph, "a", &c->a, c->order & 1, false, NULL);
    sgm_value y = operand(graph, "b", &c->b, c->order & 2, c->order & 4, constant ? b : NULL);
    sgm_graph_add_output(graph, "c", sgm_matmul(graph, x, y));
    CHECK_OK(sgm_graph_status(graph));
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    sgm_type type = sgm_program_output_type(program, "c");
    sgm_tensor *result = sgm_tensor_create(type.dtype, &type.shape);
    for (int run = 0; run < 2; run++) {
        CHECK_OK(sgm_session_feed(session, program, "a", a));
        if (!constant)
            CHECK_OK(sgm_session_feed(session, program, "b", b));
        CHECK_OK(sgm_session_run(session, program));
    }
    CHECK_OK(sgm_session_read(session, program, "c", result));
    sgm_session_free(session);
    sgm_graph_free(graph);
    return result;
}

static double at(const sgm_tensor *tensor, int64_t index)
{
    sgm_array array = {.dtype = SGM_BFLOAT16, .data = (void *)(uintptr_t)sgm_tensor_const_data(tensor)};
    return sgm_array_load(&array, index);
}

/* What is multiplied in step l of element (i, j) of a product. */
static void factors(const shape_case *c, const sgm_tensor *const operands[2], int64_t batch, int64_t i,
                    int64_t j, int64_t l, double *x, double *y)
{
    int32_t last = c->a.rank - 1;
    int64_t m = c->a.dims[last - 1], k = c->a.dims[last], n = c->b.dims[last];
    *x = at(operands[0], batch * m * k + (c->order & 1 ? l * m + i : i * k + l));
    *y = at(operands[1], c->order & 4 ? j : batch * k * n + (c->order & 2 ? j * k + l : l * n + j));
}

/* Half a unit of bfloat16 for the result (2^-8 of it at most), and float32's roundings of the sum. */
static void check_against_double(const shape_case *c, const sgm_tensor *a, const sgm_tensor *b,
                                 const sgm_tensor *got)
{
    int32_t last = c->a.rank - 1;
    int64_t m = c->a.dims[last - 1], k = c->a.dims[last], n = c->b.dims[last];
    int64_t count = sgm_shape_elements(sgm_tensor_shape(got));
    int64_t step = count > 20000 ? 101 : 1; /* some, of the large ones */
    for (int64_t e = 0; e < count; e += step) {
        int64_t batch = e / (m * n), i = e / n % m, j = e % n;
        double sum = 0, size = 0;
        for (int64_t l = 0; l < k; l++) {
            double x, y;
            factors(c, (const sgm_tensor *[]){a, b}, batch, i, j, l, &x, &y);
            sum += x * y;
            size += fabs(x * y);
        }
        double bound = fabs(sum) * 0x1p-8 * 1.001 + size * 0x1p-24 * (double)(k + 1);
        if (!(fabs(at(got, e) - sum) <= bound))
            TEST_FAIL("element %lld of %lld x %lld x %lld is %.9g, not %.9g", (long long)e, (long long)m,
                      (long long)k, (long long)n, at(got, e), sum);
    }
}

static void try_all(const char *bfloat16, const char *instructions)
{
    enum {
        THREADS = 3,
        RESULTS = THREADS + 1
    }; /* the last one with constant weights, which are packed once */
    sgm_handler *handlers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        handlers[i] =
            sgm_handler_create("cpu", .threads = i + 1, .bfloat16 = bfloat16, .instructions = instructions);
        if (handlers[i] == NULL && bfloat16 != NULL && strcmp(bfloat16, "onednn") == 0)
            SKIP("oneDNN is not installed, or has no products of bfloat16 for this processor");
        CHECK_OK(handlers[i]);
    }
    bool own = strstr(sgm_handler_bfloat16(handlers[0]), "through float32") != NULL;
    CHECK_STR(sgm_handler_support(handlers[0], "matmul", SGM_BFLOAT16), own ? "through float32" : "kernel");
    /* By our tiles, then, whose sums are in another order. */
    const bool apart = strstr(sgm_handler_bfloat16(handlers[0]), "but by constant weights") != NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const shape_case *c = &cases[i];
        sgm_shape a_shape = stored(&c->a, c->order & 1, false),
                  b_shape = stored(&c->b, c->order & 2, c->order & 4);
        sgm_tensor *a = random_tensor(&a_shape, i), *b = random_tensor(&b_shape, 100 + i), *results[RESULTS];
        for (int t = 0; t < RESULTS; t++)
            results[t] = product_of(handlers[t % THREADS], c, a, b, t >= THREADS);
        check_against_double(c, a, b, results[0]);
        size_t bytes = (size_t)sgm_shape_elements(sgm_tensor_shape(results[0])) * sizeof(uint16_t);
        for (int t = 1; t < RESULTS; t++)
            if (t < THREADS || !apart)
                CHECK(memcmp(sgm_tensor_const_data(results[t]), sgm_tensor_const_data(results[0]), bytes) ==
                      0);
            else
                check_against_double(c, a, b, results[t]);
        sgm_tensor_free(a);
        sgm_tensor_free(b);
        for (int t = 0; t < RESULTS; t++)
            sgm_tensor_free(results[t]);
    }
    for (int i = 0; i < THREADS; i++)
        sgm_handler_free(handlers[i]);
}

TEST(through_float32)
{
    try_all("float32", NULL);
}

TEST(own_tiles)
{
    try_all("own", NULL);
}

TEST(own_tiles_of_other_vectors)
{
    try_all("own", "portable");
}

TEST(blocks)
{
    try_all("amx", NULL);
}

TEST(blocks_of_other_vectors)
{
    try_all("amx", "portable");
}

/* An element as tdpbf16ps sums it: of each 32 products the even ones and the odd ones, then both, then what
 * was there before. */
static float sum_of_blocks(const shape_case *c, const sgm_tensor *const operands[2], int64_t e)
{
    int32_t last = c->a.rank - 1;
    int64_t m = c->a.dims[last - 1], k = c->a.dims[last], n = c->b.dims[last];
    float sum = 0;
    for (int64_t first = 0; first < k; first += 32) {
        float parts[2] = {0, 0};
        for (int64_t l = first; l < k && l < first + 32; l++) {
            double x, y;
            factors(c, operands, e / (m * n), e / n % m, e % n, l, &x, &y);
            parts[l % 2] = fmaf((float)x, (float)y, parts[l % 2]);
        }
        sum += parts[0] + parts[1];
    }
    return sum;
}

/* The processor's, or ours where there is no AMX. */
TEST(blocks_sum_in_the_order_of_amx)
{
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 2, .bfloat16 = "amx");
    CHECK_OK(handler);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const shape_case *c = &cases[i];
        sgm_shape a_shape = stored(&c->a, c->order & 1, false),
                  b_shape = stored(&c->b, c->order & 2, c->order & 4);
        sgm_tensor *a = random_tensor(&a_shape, 7 * i), *b = random_tensor(&b_shape, 7 * i + 1);
        sgm_tensor *got = product_of(handler, c, a, b, false);
        int64_t count = sgm_shape_elements(sgm_tensor_shape(got)), step = count > 20000 ? 101 : 1;
        for (int64_t e = 0; e < count; e += step) {
            uint16_t sum;
            sgm_array array = {.dtype = SGM_BFLOAT16, .data = &sum};
            sgm_array_store(&array, 0, sum_of_blocks(c, (const sgm_tensor *[]){a, b}, e));
            if (at(got, e) != sgm_array_load(&array, 0))
                TEST_FAIL("case %zu: element %lld is %.9g, not %.9g", i, (long long)e, at(got, e),
                          sgm_array_load(&array, 0));
        }
        sgm_tensor_free(a);
        sgm_tensor_free(b);
        sgm_tensor_free(got);
    }
    sgm_handler_free(handler);
}

TEST(onednn)
{
    try_all("onednn", NULL);
}

/* What is here by itself. */
TEST(the_default)
{
    try_all(NULL, NULL);
}

/* Without AMX and AVX512_BF16, weights that are constant are not widened for each product; others are. */
TEST(constant_weights_are_read_as_halves)
{
    sgm_handler *handler = sgm_handler_create("cpu", .instructions = "portable");
    sgm_session *session = sgm_session_create(handler);
    const sgm_shape b_shape = sgm_shape_of(300, 200);
    sgm_tensor *b = random_tensor(&b_shape, 1);
    for (int constant = 0; constant < 2; constant++) {
        sgm_graph *graph = sgm_graph_create();
        sgm_value x = operand(graph, "a", &(sgm_shape)TEST_SHAPE(1, 200), false, false, NULL);
        sgm_value y = operand(graph, "b", &(sgm_shape)TEST_SHAPE(200, 300), true, false, constant ? b : NULL);
        sgm_graph_add_output(graph, "c", sgm_matmul(graph, x, y));
        sgm_program *program = sgm_session_prepare(session, graph);
        CHECK_OK(program);
        char *text = sgm_program_text(program);
        if ((strstr(text, "cast") == NULL) != (constant == 1))
            TEST_FAIL("%s", text);
        sgm_string_free(text);
        sgm_graph_free(graph);
    }
    sgm_tensor_free(b);
    sgm_session_free(session);
    sgm_handler_free(handler);
}

/* A product of two rows of bfloat16, whose second number of the last pair does not exist: what lies behind
 * in memory, a NaN here, counts nothing. */
TEST(what_lies_behind_the_last_pair_counts_nothing)
{
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 1, .bfloat16 = "own");
    CHECK_OK(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_BFLOAT16, DIMS(40, 10));
    sgm_value y = sgm_input_value(graph, "y", SGM_BFLOAT16, DIMS(9, 20));
    sgm_value part = sgm_slice(graph, x, 1, 0, 9, 1);
    sgm_graph_add_output(graph, "c", sgm_matmul(graph, part, y));
    CHECK_OK(sgm_graph_status(graph));
    sgm_tensor *a = random_tensor(DIMS(40, 10), 1), *b = random_tensor(DIMS(9, 20), 2);
    sgm_array array = {.dtype = SGM_BFLOAT16, .data = sgm_tensor_data(a)};
    for (int64_t row = 0; row < 40; row++)
        sgm_array_store(&array, row * 10 + 9, NAN);
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    sgm_tensor *c = sgm_tensor_create(SGM_BFLOAT16, DIMS(40, 20));
    CHECK_OK(sgm_session_feed(session, program, "x", a));
    CHECK_OK(sgm_session_feed(session, program, "y", b));
    CHECK_OK(sgm_session_run(session, program));
    CHECK_OK(sgm_session_read(session, program, "c", c));
    for (int64_t e = 0; e < 40 * 20; e++) {
        double sum = 0;
        for (int64_t k = 0; k < 9; k++)
            sum += at(a, e / 20 * 10 + k) * at(b, k * 20 + e % 20);
        CHECK_NEAR(at(c, e), sum, fabs(sum) * 0x1p-8 + 1e-5);
    }
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    sgm_tensor_free(c);
    sgm_session_free(session);
    sgm_graph_free(graph);
    sgm_handler_free(handler);
}

/* The way's text has `expected` or `another` in it. */
static void check_way(const char *dense, const char *way_name, const char *expected, const char *another)
{
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 1, .dense = dense, .bfloat16 = way_name);
    if (handler == NULL && sgm_last_status() == SGM_ERROR_NOT_FOUND)
        SKIP("this library is not installed");
    CHECK_OK(handler);
    const char *way = sgm_handler_bfloat16(handler);
    char *text = sgm_handler_describe(handler), line[300];
    snprintf(line, sizeof line, "products of bfloat16: %s\n", way);
    CHECK(strstr(text, line) != NULL);
    CHECK(strstr(way, expected) != NULL || strstr(way, another) != NULL);
    sgm_string_free(text);
    sgm_handler_free(handler);
}

TEST(the_way_is_told)
{
    check_way(NULL, NULL, "AMX", "AVX512_BF16");
    check_way("own", NULL, "AMX", "AVX512_BF16");
    check_way(NULL, "own", "own loops, as asked for", "own loops, as asked for");
    check_way(NULL, "amx", "own blocks, as asked for", "own blocks, as asked for");
    check_way("own", "float32", "through float32, as asked for", "through float32, as asked for");
    check_way("onednn", NULL, "oneDNN ", "oneDNN ");
}

/* Whether Linux lists the flag among the processor's. */
static bool processor_has(const char *flag)
{
    char *text = NULL, word[40];
    size_t length;
    if (sgm__file_read("/proc/cpuinfo", (size_t)1 << 24, &text, &length) != SGM_OK)
        return false;
    snprintf(word, sizeof word, " %s ", flag);
    const char *flags = strstr(text, "\nflags");
    const char *end = flags != NULL ? strchr(flags + 1, '\n') : NULL;
    const char *found = end != NULL ? strstr(flags, word) : NULL;
    bool has = found != NULL && found < end;
    sgm__free(text);
    return has;
}

static void check_text(const char *name, const char *expected)
{
    sgm_handler *handler = sgm_handler_create(name, .threads = 1);
    CHECK_OK(handler);
    CHECK_STR(sgm_handler_bfloat16(handler), expected);
    sgm_handler_free(handler);
}

/* With the same instructions processors give the same bits: one that has AMX does not use it then, and says
 * so instead of that it has none. */
TEST(older_instructions_are_multiplied_without_amx)
{
    const bool amx = processor_has("amx_bf16"), pairs = processor_has("avx512_bf16");
    char expected[200];
    if (!processor_has("avx2"))
        SKIP("this processor has no AVX2");
    snprintf(expected, sizeof expected,
             "through float32, but by constant weights as they are: instructions=avx2 rules out %s (leave "
             "that option out)",
             amx && pairs ? "AMX and AVX512_BF16"
             : amx        ? "AMX"
                          : "AVX512_BF16");
    check_text("cpu(instructions=avx2)",
               amx || pairs ? expected
                            : "through float32, but by constant weights as they are: no AMX and no "
                              "AVX512_BF16 here");
    snprintf(expected, sizeof expected, "own blocks, as asked for: %s; float32 would be faster",
             amx ? "instructions=avx2 rules out AMX (leave that option out)" : "no AMX here");
    check_text("cpu(instructions=avx2, bfloat16=amx)", expected);
    snprintf(expected, sizeof expected, "own loops, as asked for: %s; float32 would be faster",
             pairs ? "instructions=portable rules out AVX512_BF16 (leave that option out)"
                   : "no AVX512_BF16 here");
    check_text("cpu(instructions=portable, bfloat16=own)", expected);
    if (processor_has("avx512f"))
        check_text("cpu(instructions=avx512, bfloat16=own)",
                   pairs ? "own loops, as asked for, with AVX512_BF16"
                         : "own loops, as asked for: no AVX512_BF16 here; float32 would be faster");
}

#if defined(__x86_64__) && defined(__linux__)
/* From now on the system refuses AMX to this process; false: it does not let us say so. */
static bool refuse_amx(void)
{
    const uint32_t ask = 0x1023; /* ARCH_REQ_XCOMP_PERM */
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ask, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* What the way's text says in a process to which the system refuses AMX. */
typedef enum refused_text { OTHER_WAY, WITH_AMX, REFUSED, UNKNOWN } refused_text;

static refused_text text_where_refused(const char *bfloat16)
{
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        sgm_handler *handler =
            refuse_amx() ? sgm_handler_create("cpu", .threads = 1, .bfloat16 = bfloat16) : NULL;
        const char *text = sgm_handler_bfloat16(handler);
        _exit(handler == NULL                                                      ? UNKNOWN
              : strstr(text, "with AMX") != NULL                                   ? WITH_AMX
              : strstr(text, ": the system refuses AMX to this process; ") != NULL ? REFUSED
                                                                                   : OTHER_WAY);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return (refused_text)WEXITSTATUS(status);
}

TEST(amx_that_the_system_refuses_is_not_used)
{
    refused_text by_itself = text_where_refused(NULL);
    if (by_itself == UNKNOWN)
        SKIP("system calls cannot be refused here");
    CHECK_INT(by_itself, OTHER_WAY);
    CHECK_INT(text_where_refused("amx"), processor_has("amx_bf16") ? REFUSED : OTHER_WAY);
}
#endif

/* Each allocation of preparing fails once; afterwards nothing is missing when the program runs. */
TEST(memory_that_is_short_is_told_when_a_program_is_prepared)
{
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 2, .dense = "onednn");
    if (handler == NULL)
        SKIP("this library is not installed");
    sgm_graph *graph = sgm_graph_create();
    sgm_value a = sgm_input_value(graph, "a", SGM_BFLOAT16, DIMS(3, 5));
    sgm_graph_add_output(graph, "c",
                         sgm_matmul(graph, a, sgm_input_value(graph, "b", SGM_BFLOAT16, DIMS(5, 7))));
    sgm_tensor *x = random_tensor(DIMS(3, 5), 1), *y = random_tensor(DIMS(5, 7), 2);
    bool done = false;
    for (long n = 1; n < 10000 && !done; n++) {
        sgm_session *session = sgm_session_create(handler);
        allocator_start_once(n);
        sgm_program *program = sgm_session_prepare(session, graph);
        done = atomic_load(&allocator_calls) < n;
        allocator_stop();
        if (program == NULL) {
            CHECK_INT(sgm_last_status(), SGM_ERROR_MEMORY);
        } else {
            CHECK_OK(sgm_session_feed(session, program, "a", x));
            CHECK_OK(sgm_session_feed(session, program, "b", y));
            CHECK_OK(sgm_session_run(session, program));
        }
        sgm_session_free(session);
    }
    CHECK(done);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_graph_free(graph);
    sgm_handler_free(handler);
}
