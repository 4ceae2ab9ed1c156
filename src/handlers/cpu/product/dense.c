/* Finds and loads libraries for matrix products, and passes products to them or to product.c.
 *
 * The default is our own loops: on the shapes of dense layers they are as fast as oneDNN's and faster than
 * OpenBLAS's with one thread and with two (docs/performance.md, Matrix products), they give the same bits for
 * any number of threads, and nothing needs to be installed. Nothing of the libraries is needed to build:
 * their functions are looked up by name in what dlopen returns. Products of bfloat16 that
 * oneDNN computes do not come here but to matmul_onednn.c. */
#include "handlers/cpu/product/dense.h"
#include "handlers/cpu/product/onednn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

/* Products with all three sides up to this go to our own loops: a library's call costs more than such a
 * product. */
#define SMALL_SIDE 32

/* Values that the CBLAS interface gives to the orders of matrices. */
typedef enum order { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 } order;
typedef void (*blas_f32)(int order, int a_order, int b_order, int m, int n, int k, float alpha,
                         const float *a, int a_row, const float *b, int b_row, float beta, float *c,
                         int c_row);
typedef void (*blas_f64)(int order, int a_order, int b_order, int m, int n, int k, double alpha,
                         const double *a, int a_row, const double *b, int b_row, double beta, double *c,
                         int c_row);
typedef int (*dnnl_f32)(char a_order, char b_order, int64_t m, int64_t n, int64_t k, float alpha,
                        const float *a, int64_t a_row, const float *b, int64_t b_row, float beta, float *c,
                        int64_t c_row);

/* A chosen library and its functions; all of them NULL for our own loops. `text` describes the choice to
 * users. */
struct sgm__dense {
    void *library; /* as dlopen gave it; never closed once it is used */
    blas_f32 blas_f32;
    blas_f64 blas_f64;
    dnnl_f32 dnnl_f32;
    void (*omp_threads)(int threads); /* oneDNN's OpenMP: sets the number of threads for products that the
                                         calling thread starts */
    char text[96];
};

/* --- loading --- */

/* An environment that was in force for a moment. It is kept, as other threads may still read in it. */
typedef struct environment {
    struct environment *before;
    char *entries[];
} environment;

/* Makes a copy of the present environment in which `variable` ("NAME=") is `entry`, or is not there if that
 * is NULL. The copies form a list. */
static sgm_status copy_environment(const char *variable, const char *entry, environment **newest)
{
    size_t count = 0, kept = 0;
    while (environ[count] != NULL)
        count++;
    environment *copy = sgm__calloc(1, sizeof *copy + (count + 2) * sizeof(char *));
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        if (!sgm__begins_with(environ[i], variable))
            copy->entries[kept++] = environ[i];
    copy->entries[kept] = (char *)(uintptr_t)entry;
    copy->before = *newest;
    *newest = copy;
    return SGM_OK;
}

/* OpenBLAS chooses its kernels when it is loaded, by a list of processors: one that is not on the list gets
 * the slowest kernels, and OPENBLAS_CORETYPE in the environment may force wrong ones. So the variable is
 * SkylakeX while it is loaded where this processor has AVX-512 (the third instruction set of sgm__vector_at
 * on x86-64), and not there elsewhere. setenv could move the environment away from under threads that read
 * it; another environment is put in its place instead. *library NULL: there is none at this path. */
static sgm_status load_for_processor(const char *path, void **library)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static environment *newest;
    bool runs_here, wide = sgm__vector_at(2, &runs_here) != NULL && runs_here;
    pthread_mutex_lock(&lock);
    char **before = environ;
    sgm_status status =
        copy_environment("OPENBLAS_CORETYPE=", wide ? "OPENBLAS_CORETYPE=SkylakeX" : NULL, &newest);
    if (status == SGM_OK) {
        __atomic_store_n(&environ, newest->entries, __ATOMIC_RELEASE);
        *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        __atomic_store_n(&environ, before, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* Prefers Debian's build without threads. */
static sgm_status open_openblas(void **library)
{
    static const char *const paths[] = {"/usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas.so.0",
                                        "libopenblas.so.0", "libopenblas.so"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths && *library == NULL; i++) {
        *library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        if (*library == NULL)
            SGM_TRY(load_for_processor(paths[i], library));
    }
    return SGM_OK;
}

static sgm_status fail_absent(const char *name)
{
    return sgm_fail(SGM_ERROR_NOT_FOUND,
                    "dense is '%s', but this library is not installed here; \"own\" needs none", name);
}

/* Nothing of the library has been called yet, so it can be closed. */
static sgm_status fail_without(void *library, const char *name, const char *functions)
{
    dlclose(library);
    return sgm_fail(SGM_ERROR_NOT_FOUND,
                    "dense is '%s', but the library that is installed here has no %s; \"own\" needs none",
                    name, functions);
}

/* A library that was built with threads is set to use one: the pool shares products among its own threads. */
static sgm_status load_openblas(sgm__dense *dense)
{
    void *library = NULL;
    char *(*core)(void) = NULL, *(*config)(void) = NULL;
    void (*set_threads)(int) = NULL;
    SGM_TRY(open_openblas(&library));
    if (library == NULL)
        return fail_absent("openblas");
    if (!sgm__find_function(library, "cblas_sgemm", &dense->blas_f32) ||
        !sgm__find_function(library, "cblas_dgemm", &dense->blas_f64))
        return fail_without(library, "openblas", "cblas_sgemm or no cblas_dgemm");
    dense->library = library;
    sgm__find_function(library, "openblas_get_corename", &core);
    sgm__find_function(library, "openblas_get_config", &config);
    if (sgm__find_function(library, "openblas_set_num_threads", &set_threads))
        set_threads(1);
    char version[64] = "OpenBLAS";
    if (config != NULL) {
        strncpy(version, config(), sizeof version - 1);
        char *end = strchr(version, ' '); /* "OpenBLAS 0.3.21 ..." */
        end = end != NULL ? strchr(end + 1, ' ') : NULL;
        if (end != NULL)
            *end = '\0';
    }
    snprintf(dense->text, sizeof dense->text, "%s (%s)", version, core != NULL ? core() : "unknown kernel");
    return SGM_OK;
}

static sgm_status load_onednn(sgm__dense *dense)
{
    char version[32];
    void *library = sgm__onednn_open();
    if (library == NULL)
        return fail_absent("onednn");
    if (!sgm__find_function(library, "dnnl_sgemm", &dense->dnnl_f32))
        return fail_without(library, "onednn", "dnnl_sgemm");
    dense->library = library;
    sgm__find_function(library, "omp_set_num_threads", &dense->omp_threads);
    snprintf(dense->text, sizeof dense->text, "oneDNN %s",
             sgm__onednn_version(library, version, sizeof version));
    return SGM_OK;
}

static sgm_status load_own(sgm__dense *dense)
{
    snprintf(dense->text, sizeof dense->text, "own loops");
    return SGM_OK;
}

static const struct choice {
    const char *name;
    sgm_status (*load)(sgm__dense *dense);
} choices[] = {{"own", load_own}, {"openblas", load_openblas}, {"onednn", load_onednn}};

static const struct choice *find_choice(const char *name)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (strcmp(choices[i].name, name != NULL ? name : "own") == 0)
            return &choices[i];
    sgm_fail(SGM_ERROR_ARGUMENT, "dense is '%s'; give \"openblas\", \"onednn\" or \"own\"", name);
    return NULL;
}

sgm_status sgm__dense_check(const char *name)
{
    return find_choice(name) != NULL ? SGM_OK : sgm__last_failure();
}

sgm__dense *sgm__dense_create(const char *name)
{
    const struct choice *choice = find_choice(name);
    sgm__dense *dense = choice != NULL ? sgm__calloc(1, sizeof *dense) : NULL;
    if (dense == NULL || choice->load(dense) == SGM_OK)
        return dense;
    sgm__dense_free(dense);
    return NULL;
}

/* Libraries stay loaded, as some start threads or make registrations that dlclose cannot
 * undo. */
void sgm__dense_free(sgm__dense *dense)
{
    sgm__free(dense);
}

const char *sgm__dense_text(const sgm__dense *dense)
{
    return dense->text;
}

bool sgm__dense_is_own(const sgm__dense *dense)
{
    return dense->library == NULL;
}

/* --- products --- */

/* Libraries take operands one of whose strides is 1, both within an int. */
static bool suits_library(int64_t row, int64_t column, int64_t rows, int64_t columns)
{
    return row <= INT32_MAX && column <= INT32_MAX && sgm__has_unit_stride(row, column, rows, columns);
}

bool sgm__dense_for_library(const sgm__dense *dense, const sgm__product *p)
{
    if (dense->library == NULL || p->rounds_b || (p->dtype == SGM_FLOAT64 && dense->blas_f64 == NULL))
        return false;
    if (p->m <= SMALL_SIDE && p->n <= SMALL_SIDE && p->k <= SMALL_SIDE)
        return false;
    return p->m > 0 && p->n > 0 && p->k > 0 && p->m <= INT32_MAX && p->n <= INT32_MAX && p->k <= INT32_MAX &&
           suits_library(p->a_row, p->a_column, p->m, p->k) &&
           suits_library(p->b_row, p->b_column, p->k, p->n) && p->c_row >= p->n && p->c_row <= INT32_MAX;
}

size_t sgm__dense_scratch(const sgm__dense *dense, const sgm__vector *vector, const sgm__product *product,
                          int32_t threads)
{
    return sgm__dense_for_library(dense, product) ? 0 : sgm__product_scratch(vector, product, threads);
}

/* c = a b in the calling thread. An operand whose columns are contiguous is passed as a transposed one. */
static void call_library(const sgm__dense *dense, const sgm__product *p)
{
    bool a_plain = p->a_column == 1 && p->a_row >= p->k, b_plain = p->b_column == 1 && p->b_row >= p->n;
    int64_t a_row = a_plain ? p->a_row : p->a_column, b_row = b_plain ? p->b_row : p->b_column;
    int a_order = a_plain ? PLAIN : TRANSPOSED, b_order = b_plain ? PLAIN : TRANSPOSED;
    if (dense->dnnl_f32 != NULL) {
        if (dense->omp_threads != NULL)
            dense->omp_threads(1);
        dense->dnnl_f32(a_plain ? 'N' : 'T', b_plain ? 'N' : 'T', p->m, p->n, p->k, 1, p->a, a_row, p->b,
                        b_row, 0, p->c, p->c_row);
    } else if (p->dtype == SGM_FLOAT32) {
        dense->blas_f32(ROW_MAJOR, a_order, b_order, (int)p->m, (int)p->n, (int)p->k, 1, p->a, (int)a_row,
                        p->b, (int)b_row, 0, p->c, (int)p->c_row);
    } else {
        dense->blas_f64(ROW_MAJOR, a_order, b_order, (int)p->m, (int)p->n, (int)p->k, 1, p->a, (int)a_row,
                        p->b, (int)b_row, 0, p->c, (int)p->c_row);
    }
}

/* A library's product that is divided among threads: in `parts` parts of the rows of c, or else of its
 * columns. */
typedef struct division {
    const sgm__dense *dense;
    sgm__product product;
    int64_t parts;
    bool by_rows;
} division;

static void run_part(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const division *d = context;
    sgm__product p = sgm__product_part(d->product, d->by_rows, 16, d->parts, index);
    if (p.m > 0 && p.n > 0)
        call_library(d->dense, &p);
}

/* The longer side of c is divided, in multiples of 16 rows or columns. */
void sgm__dense_post(const sgm__dense *dense, const sgm__vector *vector, sgm__pool *pool,
                     const sgm__product *product, unsigned char *scratch)
{
    if (!sgm__dense_for_library(dense, product)) {
        sgm__product_post(vector, pool, product, scratch);
        return;
    }
    double work = (double)product->m * (double)product->n * (double)product->k;
    int64_t threads = pool != NULL && work >= SGM__PRODUCT_SMALL_WORK ? sgm__pool_threads(pool) : 1;
    division d = {dense, *product, threads, product->m > product->n};
    if (threads > 1) {
        sgm__pool_post(pool, threads, run_part, &d, sizeof d);
        return;
    }
    sgm__pool_ready(pool);
    run_part(&d, 0, 0);
}

void sgm__dense_run(const sgm__dense *dense, const sgm__vector *vector, sgm__pool *pool,
                    const sgm__product *product, unsigned char *scratch)
{
    sgm__dense_post(dense, vector, pool, product, scratch);
    sgm__pool_finish(pool);
}
