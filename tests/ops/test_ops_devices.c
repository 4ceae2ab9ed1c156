/* Devices against the reference in double precision: all operations in a few programs, since compilers of
 * devices are slow. Shapes and how operands are seen change from operation to operation. */
#include "../handlers/devices.h"
#include "op_program.h"
#include "test.h"

#define MAXIMUM_TRIALS 4096

typedef struct trial {
    const op_case *c;
    int32_t variant;
    op_view view;
    op_data data[OP_MAX_INPUTS];
    char output[16];
} trial;

/* What all trials are done with. */
typedef struct bundle {
    sgm_dtype dtype;
    uint32_t shift; /* which shapes and views */
    int32_t count;
    trial trials[MAXIMUM_TRIALS];
} bundle;

static const char *const views[] = {"as they are", "permuted", "sliced", "flipped", "repeated"};

static void add_trial(bundle *r, int32_t number, int32_t variant, op_view view)
{
    const op_case *c = &op_cases[number];
    CHECK(r->count < MAXIMUM_TRIALS);
    trial *t = &r->trials[r->count];
    *t = (trial){.c = c, .variant = variant, .view = view};
    sgm__random random = sgm__random_make(11, (uint64_t)r->count);
    for (int32_t i = 0; i < c->input_count; i++) {
        sgm_shape shape = op_input_shape(c, variant, i), fed = op_fed_shape(&shape, view);
        t->data[i] = op_data_create(&c->inputs[i], &fed, r->dtype, &random);
    }
    snprintf(t->output, sizeof t->output, "y%d", r->count++);
}

/* So many shapes of every `every`-th case, where it has so many. */
static bundle *bundle_create(sgm_dtype dtype, uint32_t shift, int32_t shapes, int32_t every)
{
    bundle *r = calloc(1, sizeof *r);
    CHECK(r != NULL);
    r->dtype = dtype;
    r->shift = shift;
    for (int32_t i = (int32_t)shift % every; i < OP_CASES_COUNT; i += every) {
        int32_t variants = op_variants(&op_cases[i], true), count = variants < shapes ? variants : shapes;
        for (int32_t k = 0; k < count && op_is_there(&op_cases[i], dtype); k++)
            add_trial(r, i, op_trial_variant(i, k, shift), op_trial_view(i, k, shift));
    }
    return r;
}

static void bundle_free(bundle *r)
{
    for (int32_t k = 0; k < r->count; k++)
        for (int32_t i = 0; i < r->trials[k].c->input_count; i++)
            free(r->trials[k].data[i].values);
    free(r);
}

static void record(sgm_graph *graph, const bundle *r, int32_t number, sgm_dtype dtype)
{
    const trial *t = &r->trials[number];
    sgm_value inputs[OP_MAX_INPUTS];
    char name[32];
    for (int32_t i = 0; i < t->c->input_count; i++) {
        sgm_shape shape = op_input_shape(t->c, t->variant, i);
        snprintf(name, sizeof name, "x%d-%d", number, i);
        inputs[i] = sgm_input_value(graph, name, op_dtype(t->c->inputs[i].kind, dtype), &t->data[i].shape);
        inputs[i] = op_see(graph, inputs[i], &shape, t->view);
    }
    sgm_graph_add_output(graph, t->output, t->c->record(graph, inputs, dtype));
}

/* The program of all trials, run once. */
static sgm_program *run(sgm_session *session, const bundle *r, sgm_dtype dtype)
{
    sgm_graph *graph = sgm_graph_create();
    char name[32];
    for (int32_t k = 0; k < r->count; k++)
        record(graph, r, k, dtype);
    sgm_program *program = sgm_session_prepare(session, graph);
    if (program == NULL)
        TEST_FAIL("%s", sgm_last_error());
    for (int32_t k = 0; k < r->count; k++)
        for (int32_t i = 0; i < r->trials[k].c->input_count; i++) {
            op_data data = r->trials[k].data[i];
            data.dtype = op_dtype(r->trials[k].c->inputs[i].kind, dtype);
            snprintf(name, sizeof name, "x%d-%d", k, i);
            CHECK_OK(op_feed(session, program, name, &data));
        }
    CHECK_OK(sgm_session_run(session, program));
    sgm_graph_free(graph);
    return program;
}

/* bfloat16: of what both made of operands that are rounded in the same way. */
static double tolerance(const trial *t, sgm_dtype result)
{
    double loose = t->c->loose > 0 ? t->c->loose : 1;
    if ((t->c->flags & OP_COPIES) != 0 || !sgm_dtype_is_float(result))
        return 0;
    if ((t->c->flags & OP_CODES) != 0 && result == SGM_FLOAT32)
        return 0.02; /* a step of a code is 2 / 127, its weight up to 127 * 0.02 */
    return loose * (result == SGM_FLOAT64 ? 1e-12 : result == SGM_FLOAT32 ? 2e-6 : 0.02);
}

static void check_trial(const trial *t, sgm_session *expects, sgm_program *expected, sgm_session *session,
                        sgm_program *program)
{
    size_t wanted_count, count;
    sgm_dtype result = sgm_program_output_type(program, t->output).dtype;
    double *wanted = op_read(expects, expected, t->output, &wanted_count);
    double *values = op_read(session, program, t->output, &count);
    CHECK_INT(count, wanted_count);
    if (wanted == NULL || values == NULL)
        TEST_FAIL("%s: %s", t->c->name, sgm_last_error());
    for (size_t k = 0; k < count; k++)
        if (!test_near(values[k], wanted[k], tolerance(t, result) * (1 + fabs(wanted[k]))))
            TEST_FAIL("%s %s, operands %s, %s: element %zu is %.9g, the reference gives %.9g", t->c->name,
                      t->c->input_count > 0 ? op_shape_text(&t->data[0].shape) : "", views[t->view],
                      sgm_dtype_name(result), k, values[k], wanted[k]);
    free(values);
    free(wanted);
}

static void check_all(const char *name, sgm_dtype dtype, uint32_t shift, int32_t shapes, int32_t every)
{
    compile_in_haste();
    sgm_handler *handler = sgm_handler_create_with(name, NULL);
    if (handler == NULL)
        SKIP(sgm_last_error());
    sgm_handler *reference = sgm_handler_create("reference");
    sgm_session *expects = sgm_session_create(reference), *session = sgm_session_create(handler);
    bundle *r = bundle_create(dtype, shift, shapes, every);
    sgm_program *expected = run(expects, r, dtype == SGM_BFLOAT16 ? dtype : SGM_FLOAT64);
    sgm_program *program = run(session, r, dtype);
    for (int32_t k = 0; k < r->count; k++)
        check_trial(&r->trials[k], expects, expected, session, program);
    bundle_free(r);
    sgm_session_free(expects);
    sgm_session_free(session);
    sgm_handler_free(reference);
    sgm_handler_free(handler);
}

/* Every case in every type: where nothing is kept yet, a type is 18 s of a core, then 1 s. */
TEST(opencl_in_float32)
{
    check_all("opencl", SGM_FLOAT32, 0, 1, 1);
}

TEST(opencl_in_float64)
{
    check_all("opencl", SGM_FLOAT64, 1, 1, 1);
}

TEST(opencl_in_bfloat16)
{
    check_all("opencl", SGM_BFLOAT16, 2, 1, 1);
}

/* Of shapes and views, all on a GPU, some on the stand-in for one, whose compiler is slow. */
static void check_cuda(sgm_dtype dtype)
{
    if (getenv("SIGMA_TEST_CUDA") == NULL)
        check_all("cuda", dtype, op_cuda_shift(dtype), 1, op_cuda_every(dtype));
    for (uint32_t shift = 0; shift < OP_VIEWS && getenv("SIGMA_TEST_CUDA") != NULL; shift++)
        check_all("cuda", dtype, shift, OP_SHAPES_COUNT, 1);
}

TEST(cuda_in_float32)
{
    check_cuda(SGM_FLOAT32);
}

TEST(cuda_in_float64)
{
    check_cuda(SGM_FLOAT64);
}

TEST(cuda_in_bfloat16)
{
    check_cuda(SGM_BFLOAT16);
}
