/* Finds and loads libraries for matrix products, and passes products to them or to product.c.
 *
 * The default is our own loops: on the shapes of dense layers they are as fast as oneDNN's and faster than
 * OpenBLAS's with one thread and with two (docs/performance.md, Matrix products), they give the same bits for
 * any number of threads, and nothing needs to be installed. Nothing of the libraries is needed to build:
 * their functions are looked up by name in what dlopen returns. Products of bfloat16 are not computed here
 * but in matmul_bfloat16.c. */
#include "handlers/cpu/product/dense.h"
#include "handlers/cpu/product/onednn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

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
    void *library; /* as dlopen gave it; never closed */
    blas_f32 blas_f32;
    blas_f64 blas_f64;
    dnnl_f32 dnnl_f32;
    void (*omp_threads)(int threads); /* oneDNN's OpenMP: sets the number of threads for products that the
                                         calling thread starts */
    char text[96];
};

/* --- loading --- */

/* Stores the address of a function in *function; NULL if the library has none of that name. Copied as bytes,
 * since dlsym returns a pointer to an object and C has no conversion from that to a pointer to a function. */
static void find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
}

/* OpenBLAS chooses its kernels when it is loaded, by a list of processors: one that is not on the list gets
 * the slowest kernels, and OPENBLAS_CORETYPE in the environment may force wrong ones. So the variable is set
 * to SkylakeX where this processor has AVX-512 (the third instruction set of sgm__vector_at on x86-64), unset
 * elsewhere, and put back after loading. */
static void *open_openblas(const char *path)
{
    const char *forced = getenv("OPENBLAS_CORETYPE");
    char *before = sgm__strdup(forced);
    bool runs_here;
    const sgm__vector *widest = sgm__vector_at(2, &runs_here);
    if (widest != NULL && runs_here)
        setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
    else
        unsetenv("OPENBLAS_CORETYPE");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (before != NULL)
        setenv("OPENBLAS_CORETYPE", before, 1);
    else
        unsetenv("OPENBLAS_CORETYPE");
    sgm__free(before);
    return library;
}

/* Prefers Debian's build without threads. A build with threads is told to use one. */
static bool load_openblas(sgm__dense *dense)
{
    const char *const paths[] = {"/usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas.so.0",
                                 "libopenblas.so.0", "libopenblas.so"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths && dense->library == NULL; i++)
        dense->library = open_openblas(paths[i]);
    if (dense->library == NULL)
        return false;
    char *(*core)(void) = NULL, *(*config)(void) = NULL;
    void (*set_threads)(int) = NULL;
    find(dense->library, "cblas_sgemm", &dense->blas_f32);
    find(dense->library, "cblas_dgemm", &dense->blas_f64);
    find(dense->library, "openblas_get_corename", &core);
    find(dense->library, "openblas_get_config", &config);
    find(dense->library, "openblas_set_num_threads", &set_threads);
    if (dense->blas_f32 == NULL || dense->blas_f64 == NULL)
        return false;
    if (set_threads != NULL)
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
    return true;
}

static bool load_onednn(sgm__dense *dense)
{
    dense->library = sgm__onednn_open();
    if (dense->library == NULL)
        return false;
    char version[32];
    find(dense->library, "dnnl_sgemm", &dense->dnnl_f32);
    find(dense->library, "omp_set_num_threads", &dense->omp_threads);
    if (dense->dnnl_f32 == NULL)
        return false;
    snprintf(dense->text, sizeof dense->text, "oneDNN %s",
             sgm__onednn_version(dense->library, version, sizeof version));
    return true;
}

sgm__dense *sgm__dense_create(const char *name)
{
    sgm__dense *dense = sgm__calloc(1, sizeof *dense);
    if (dense == NULL)
        return NULL;
    if (name == NULL || strcmp(name, "own") == 0) {
        snprintf(dense->text, sizeof dense->text, "own loops");
        return dense;
    }
    bool openblas = strcmp(name, "openblas") == 0, onednn = strcmp(name, "onednn") == 0;
    if ((openblas && load_openblas(dense)) || (onednn && load_onednn(dense)))
        return dense;
    if (openblas || onednn)
        sgm_fail(SGM_ERROR_NOT_FOUND,
                 "dense is '%s', but this library is not installed here; \"own\" needs none", name);
    else
        sgm_fail(SGM_ERROR_ARGUMENT, "dense is '%s'; give \"openblas\", \"onednn\" or \"own\"", name);
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

/* --- products --- */

/* Libraries take operands one of whose strides is 1, with the other one at least as long as a row (or
 * column), both within an int. */
static bool has_unit_stride(int64_t row, int64_t column, int64_t rows, int64_t columns)
{
    int64_t largest = INT32_MAX;
    if (row > largest || column > largest)
        return false;
    return (column == 1 && row >= columns) || (row == 1 && column >= rows);
}

bool sgm__dense_for_library(const sgm__dense *dense, const sgm__product *p)
{
    if (dense->library == NULL || (p->dtype == SGM_FLOAT64 && dense->blas_f64 == NULL))
        return false;
    if (p->m <= SMALL_SIDE && p->n <= SMALL_SIDE && p->k <= SMALL_SIDE)
        return false;
    return p->m > 0 && p->n > 0 && p->k > 0 && p->m <= INT32_MAX && p->n <= INT32_MAX && p->k <= INT32_MAX &&
           has_unit_stride(p->a_row, p->a_column, p->m, p->k) &&
           has_unit_stride(p->b_row, p->b_column, p->k, p->n) && p->c_row >= p->n && p->c_row <= INT32_MAX;
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
    sgm__product p = d->product;
    int64_t size = p.dtype == SGM_FLOAT64 ? 8 : 4, first, last;
    sgm__pool_part(d->by_rows ? p.m : p.n, 16, d->parts, index, &first, &last);
    if (first >= last)
        return;
    if (d->by_rows) {
        p.a = (const unsigned char *)p.a + first * p.a_row * size;
        p.c = (unsigned char *)p.c + first * p.c_row * size;
        p.m = last - first;
    } else {
        p.b = (const unsigned char *)p.b + first * p.b_column * size;
        p.c = (unsigned char *)p.c + first * size;
        p.n = last - first;
    }
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
