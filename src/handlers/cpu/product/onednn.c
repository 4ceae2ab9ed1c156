/* Calls oneDNN's matmul primitive for products of bfloat16, in versions 2 and 3 of its C interface.
 *
 * The constants and functions that are needed are declared here, after dnnl_types.h and dnnl.h, so that
 * nothing is needed to build. In version 2 descriptions of arrays and operations are structures of the
 * caller, in version 3 objects of the library; both are passed as addresses, so the caller's structures are
 * blocks of bytes here that are larger than those of any version 2. OpenMP's number of threads is 1 during
 * each call and restored afterwards: it belongs to the calling thread, which may use OpenMP for something
 * else. */
#include "handlers/cpu/product/onednn.h"

#include <dlfcn.h>
#include <stdio.h>

/* Of dnnl_types.h, the same in both versions. MODE_USER: scratch memory comes from the caller, so that one
 * product's objects own it. */
enum {
    KIND_CPU = 1,
    TYPE_BFLOAT16 = 2,
    MODE_USER = 1, /* scratch memory comes from the caller */
    STREAM_IN_ORDER = 1,
    QUERY_SCRATCHPAD = 136,
    ARGUMENT_A = 1,
    ARGUMENT_C = 17,
    ARGUMENT_B = 33,
    ARGUMENT_SCRATCHPAD = 80,
    MAXIMUM_DIMS = 12
};
/* Bytes of dnnl_memory_desc_t (696 in version 2) and of dnnl_matmul_desc_t (2800), with room to spare. */
#define DESCRIPTION_BYTES 2048
#define MATMUL_BYTES 8192
/* Rows, columns and depth of the product that is created to find out whether the library has one for this
 * processor. */
#define PROBE_SIDE 64

/* The beginning of dnnl_version_t. */
typedef struct version {
    int major, minor, patch; /* further members are not read */
} version;

/* dnnl_exec_arg_t: which argument of a primitive, and its memory object. */
typedef struct argument {
    int index;
    void *memory;
} argument;

/* The library with its functions by name; those marked 2 or 3 exist only in that version, the others are NULL
 * there. */
struct sgm__onednn {
    void *library, *engine, *attributes;
    int major;
    char text[48];
    int (*engine_create)(void **engine, int kind, size_t index);
    int (*engine_destroy)(void *engine);
    int (*stream_create)(void **stream, void *engine, unsigned flags);
    int (*stream_wait)(void *stream);
    int (*stream_destroy)(void *stream);
    int (*attr_create)(void **attributes);
    int (*attr_set_scratchpad_mode)(void *attributes, int mode);
    int (*attr_destroy)(void *attributes);
    int (*init_by_strides)(void *description, int rank, const int64_t *dims, int type,
                           const int64_t *strides);                                                  /* 2 */
    int (*matmul_init)(void *matmul, const void *a, const void *b, const void *bias, const void *c); /* 2 */
    int (*desc_create)(void **primitive_desc, const void *operation, const void *attributes, void *engine,
                       const void *hint); /* 2 */
    int (*create_with_strides)(void **description, int rank, const int64_t *dims, int type,
                               const int64_t *strides); /* 3 */
    int (*description_destroy)(void *description);      /* 3 */
    int (*matmul_create)(void **primitive_desc, void *engine, const void *a, const void *b, const void *bias,
                         const void *c, const void *attributes); /* 3 */
    const void *(*query_md)(const void *primitive_desc, int what, int index);
    size_t (*get_size)(const void *description);
    int (*primitive_desc_destroy)(void *primitive_desc);
    int (*primitive_create)(void **primitive, const void *primitive_desc);
    int (*primitive_execute)(const void *primitive, void *stream, int count, const argument *arguments);
    int (*primitive_destroy)(void *primitive);
    int (*memory_create)(void **memory, const void *description, void *engine, void *data);
    int (*memory_set)(void *memory, void *data);
    int (*memory_destroy)(void *memory);
    void (*omp_threads)(int threads); /* sets the number of OpenMP threads of the calling thread */
    int (*omp_most)(void);            /* the number that omp_threads set */
};

struct sgm__onednn_product {
    const sgm__onednn *onednn;
    sgm__product product;
    void *primitive, *stream, *memory[4]; /* a, b, c, scratchpad */
    unsigned char *scratchpad;
    /* Contiguous copies of a and b where the library does not take their strides; else NULL. */
    uint16_t *packed[2];
};

/* --- the library --- */

void *sgm__onednn_open(void)
{
    static const char *const names[] = {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static version version_of(void *library)
{
    const version *(*get)(void) = NULL;
    return sgm__find_function(library, "dnnl_version", &get) ? *get() : (version){0, 0, 0};
}

const char *sgm__onednn_version(void *library, char *text, size_t size)
{
    version v = version_of(library);
    text[0] = '\0';
    if (v.major > 0)
        snprintf(text, size, "%d.%d.%d", v.major, v.minor, v.patch);
    return text;
}

/* False: a function is missing, or the version is neither 2 nor 3. */
static bool find_all(sgm__onednn *o)
{
    void *l = o->library;
    bool found =
        sgm__find_function(l, "dnnl_engine_create", &o->engine_create) &&
        sgm__find_function(l, "dnnl_engine_destroy", &o->engine_destroy) &&
        sgm__find_function(l, "dnnl_stream_create", &o->stream_create) &&
        sgm__find_function(l, "dnnl_stream_wait", &o->stream_wait) &&
        sgm__find_function(l, "dnnl_stream_destroy", &o->stream_destroy) &&
        sgm__find_function(l, "dnnl_primitive_attr_create", &o->attr_create) &&
        sgm__find_function(l, "dnnl_primitive_attr_set_scratchpad_mode", &o->attr_set_scratchpad_mode) &&
        sgm__find_function(l, "dnnl_primitive_attr_destroy", &o->attr_destroy) &&
        sgm__find_function(l, "dnnl_primitive_desc_query_md", &o->query_md) &&
        sgm__find_function(l, "dnnl_memory_desc_get_size", &o->get_size) &&
        sgm__find_function(l, "dnnl_primitive_desc_destroy", &o->primitive_desc_destroy) &&
        sgm__find_function(l, "dnnl_primitive_create", &o->primitive_create) &&
        sgm__find_function(l, "dnnl_primitive_execute", &o->primitive_execute) &&
        sgm__find_function(l, "dnnl_primitive_destroy", &o->primitive_destroy) &&
        sgm__find_function(l, "dnnl_memory_create", &o->memory_create) &&
        sgm__find_function(l, "dnnl_memory_set_data_handle", &o->memory_set) &&
        sgm__find_function(l, "dnnl_memory_destroy", &o->memory_destroy);
    sgm__find_function(l, "omp_set_num_threads", &o->omp_threads);
    sgm__find_function(l, "omp_get_max_threads", &o->omp_most);
    o->major = version_of(l).major;
    if (o->major == 2)
        return found && sgm__find_function(l, "dnnl_memory_desc_init_by_strides", &o->init_by_strides) &&
               sgm__find_function(l, "dnnl_matmul_desc_init", &o->matmul_init) &&
               sgm__find_function(l, "dnnl_primitive_desc_create", &o->desc_create);
    return found && o->major == 3 &&
           sgm__find_function(l, "dnnl_memory_desc_create_with_strides", &o->create_with_strides) &&
           sgm__find_function(l, "dnnl_memory_desc_destroy", &o->description_destroy) &&
           sgm__find_function(l, "dnnl_matmul_primitive_desc_create", &o->matmul_create);
}

/* The calling thread's number of OpenMP threads becomes 1. Returns the previous number, for restore_threads;
 * 0: the library has no OpenMP. */
static int one_thread(const sgm__onednn *o)
{
    if (o->omp_threads == NULL || o->omp_most == NULL)
        return 0;
    int before = o->omp_most();
    if (before != 1)
        o->omp_threads(1);
    return before;
}

static void restore_threads(const sgm__onednn *o, int before)
{
    if (before > 1)
        o->omp_threads(before);
}

/* Whether the library has such a product for this processor is tried: some versions need instructions that
 * others do without. */
static sgm_status try_product(const sgm__onednn *o)
{
    sgm__product probe = {.dtype = SGM_BFLOAT16,
                          .m = PROBE_SIDE,
                          .n = PROBE_SIDE,
                          .k = PROBE_SIDE,
                          .a_row = PROBE_SIDE,
                          .a_column = 1,
                          .b_row = PROBE_SIDE,
                          .b_column = 1,
                          .c_row = PROBE_SIDE};
    sgm__onednn_product *product = NULL;
    sgm_status status = sgm__onednn_product_create(o, &probe, &product);
    sgm__onednn_product_free(product);
    return status;
}

sgm__onednn *sgm__onednn_create(void)
{
    sgm__onednn *o = sgm__calloc(1, sizeof *o);
    if (o == NULL)
        return NULL;
    o->library = sgm__onednn_open();
    if (o->library == NULL) {
        sgm_fail(SGM_ERROR_NOT_FOUND, "oneDNN is not installed here (Debian: libdnnl2 or libdnnl3)");
        sgm__onednn_free(o);
        return NULL;
    }
    char number[32];
    snprintf(o->text, sizeof o->text, "oneDNN %s", sgm__onednn_version(o->library, number, sizeof number));
    bool known = find_all(o) && o->engine_create(&o->engine, KIND_CPU, 0) == 0 &&
                 o->attr_create(&o->attributes) == 0 &&
                 o->attr_set_scratchpad_mode(o->attributes, MODE_USER) == 0;
    sgm_status status = known ? try_product(o) : SGM_ERROR_UNSUPPORTED;
    if (status == SGM_OK)
        return o;
    if (status != SGM_ERROR_MEMORY)
        sgm_fail(SGM_ERROR_UNSUPPORTED, "%s has no products of bfloat16 for this processor", o->text);
    sgm__onednn_free(o);
    return NULL;
}

/* The library stays loaded, as it makes registrations that dlclose cannot undo. */
void sgm__onednn_free(sgm__onednn *o)
{
    if (o == NULL)
        return;
    if (o->attributes != NULL)
        o->attr_destroy(o->attributes);
    if (o->engine != NULL)
        o->engine_destroy(o->engine);
    sgm__free(o);
}

const char *sgm__onednn_text(const sgm__onednn *o)
{
    return o->text;
}

/* --- products --- */

/* A description of an array: bytes of the caller in version 2, an object to be destroyed in version 3. */
typedef struct description {
    _Alignas(64) unsigned char own[DESCRIPTION_BYTES]; /* version 2 */
    void *object;                                      /* version 3 */
} description;

/* A matrix of bfloat16 with these strides, as the version wants it; NULL: the library refuses. */
static const void *describe(const sgm__onednn *o, description *d, int64_t rows, int64_t columns, int64_t row,
                            int64_t column)
{
    int64_t dims[MAXIMUM_DIMS] = {rows, columns}, strides[MAXIMUM_DIMS] = {row, column};
    d->object = NULL;
    if (o->major == 2)
        return o->init_by_strides(d->own, 2, dims, TYPE_BFLOAT16, strides) == 0 ? d->own : NULL;
    return o->create_with_strides(&d->object, 2, dims, TYPE_BFLOAT16, strides) == 0 ? d->object : NULL;
}

/* A primitive's description from those of a, b and c, to be destroyed by the caller; NULL: the library has no
 * such product. */
static void *describe_product(const sgm__onednn *o, const void *const of[3])
{
    void *described = NULL;
    if (of[0] == NULL || of[1] == NULL || of[2] == NULL)
        return NULL;
    if (o->major == 3)
        return o->matmul_create(&described, o->engine, of[0], of[1], NULL, of[2], o->attributes) == 0
                   ? described
                   : NULL;
    _Alignas(64) unsigned char matmul[MATMUL_BYTES];
    if (o->matmul_init(matmul, of[0], of[1], NULL, of[2]) != 0)
        return NULL;
    return o->desc_create(&described, matmul, o->attributes, o->engine, NULL) == 0 ? described : NULL;
}

static sgm_status refuse(const sgm__onednn_product *p)
{
    return sgm_fail(
        SGM_ERROR_UNSUPPORTED,
        "%s takes no product of bfloat16 of (%lld, %lld) and (%lld, %lld); give the handler dense = "
        "\"own\"",
        p->onednn->text, (long long)p->product.m, (long long)p->product.k, (long long)p->product.k,
        (long long)p->product.n);
}

/* Everything that a run needs. On failure sgm__onednn_product_free frees what was created. */
static sgm_status create_objects(sgm__onednn_product *p, const void *const of[3])
{
    const sgm__onednn *o = p->onednn;
    void *described = describe_product(o, of);
    if (described == NULL)
        return refuse(p);
    const void *scratchpad = o->query_md(described, QUERY_SCRATCHPAD, 0);
    size_t bytes = scratchpad != NULL ? o->get_size(scratchpad) : 0;
    p->scratchpad = sgm__alloc_aligned(bytes > 0 ? bytes : 64);
    bool good = p->scratchpad != NULL && o->primitive_create(&p->primitive, described) == 0 &&
                o->stream_create(&p->stream, o->engine, STREAM_IN_ORDER) == 0;
    for (int i = 0; i < 3 && good; i++)
        good = o->memory_create(&p->memory[i], of[i], o->engine, NULL) == 0;
    if (good && bytes > 0)
        good = o->memory_create(&p->memory[3], scratchpad, o->engine, p->scratchpad) == 0;
    o->primitive_desc_destroy(described);
    return good ? SGM_OK : p->scratchpad == NULL ? SGM_ERROR_MEMORY : refuse(p);
}

/* Memory for contiguous copies of operands neither of whose strides is 1: the library would refuse those, or
 * read them number by number. */
static sgm_status make_room(sgm__onednn_product *p)
{
    sgm__product *s = &p->product;
    if (!sgm__has_unit_stride(s->a_row, s->a_column, s->m, s->k)) {
        p->packed[0] = sgm__alloc((size_t)(s->m * s->k) * sizeof *p->packed[0]);
        if (p->packed[0] == NULL)
            return SGM_ERROR_MEMORY;
    }
    if (!sgm__has_unit_stride(s->b_row, s->b_column, s->k, s->n)) {
        p->packed[1] = sgm__alloc((size_t)(s->k * s->n) * sizeof *p->packed[1]);
        if (p->packed[1] == NULL)
            return SGM_ERROR_MEMORY;
    }
    return SGM_OK;
}

sgm_status sgm__onednn_product_create(const sgm__onednn *o, const sgm__product *product,
                                      sgm__onednn_product **created)
{
    sgm__onednn_product *p = sgm__calloc(1, sizeof *p);
    if (p == NULL)
        return SGM_ERROR_MEMORY;
    *p = (sgm__onednn_product){.onednn = o, .product = *product};
    description descriptions[3];
    const sgm__product *s = &p->product;
    sgm_status status = make_room(p);
    bool pack_a = p->packed[0] != NULL, pack_b = p->packed[1] != NULL;
    int threads = one_thread(o);
    const void *const of[3] = {
        describe(o, &descriptions[0], s->m, s->k, pack_a ? s->k : s->a_row, pack_a ? 1 : s->a_column),
        describe(o, &descriptions[1], s->k, s->n, pack_b ? s->n : s->b_row, pack_b ? 1 : s->b_column),
        describe(o, &descriptions[2], s->m, s->n, s->c_row, 1)};
    if (status == SGM_OK)
        status = create_objects(p, of);
    restore_threads(o, threads);
    for (int i = 0; i < 3; i++)
        if (descriptions[i].object != NULL)
            o->description_destroy(descriptions[i].object);
    if (status == SGM_OK)
        *created = p;
    else
        sgm__onednn_product_free(p);
    return status;
}

void sgm__onednn_product_free(sgm__onednn_product *p)
{
    if (p == NULL)
        return;
    const sgm__onednn *o = p->onednn;
    for (int i = 0; i < 4; i++)
        if (p->memory[i] != NULL)
            o->memory_destroy(p->memory[i]);
    if (p->primitive != NULL)
        o->primitive_destroy(p->primitive);
    if (p->stream != NULL)
        o->stream_destroy(p->stream);
    sgm__free_aligned(p->scratchpad);
    sgm__free(p->packed[0]);
    sgm__free(p->packed[1]);
    sgm__free(p);
}

/* A strided matrix to a contiguous one, row by row. */
static void pack(uint16_t *to, const void *from, int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    const uint16_t *x = from;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            *to++ = x[i * row + k * column];
}

bool sgm__onednn_product_run(sgm__onednn_product *p, const void *a, const void *b, void *c)
{
    const sgm__onednn *o = p->onednn;
    const sgm__product *s = &p->product;
    if (p->packed[0] != NULL)
        pack(p->packed[0], a, s->m, s->k, s->a_row, s->a_column);
    if (p->packed[1] != NULL)
        pack(p->packed[1], b, s->k, s->n, s->b_row, s->b_column);
    void *data[3] = {p->packed[0] != NULL ? (void *)p->packed[0] : (void *)(uintptr_t)a,
                     p->packed[1] != NULL ? (void *)p->packed[1] : (void *)(uintptr_t)b, c};
    const argument arguments[4] = {{ARGUMENT_A, p->memory[0]},
                                   {ARGUMENT_B, p->memory[1]},
                                   {ARGUMENT_C, p->memory[2]},
                                   {ARGUMENT_SCRATCHPAD, p->memory[3]}};
    int threads = one_thread(o), failed = 0;
    for (int i = 0; i < 3; i++)
        failed |= o->memory_set(p->memory[i], data[i]);
    if (failed == 0)
        failed = o->primitive_execute(p->primitive, p->stream, p->memory[3] != NULL ? 4 : 3, arguments);
    failed |= o->stream_wait(p->stream);
    restore_threads(o, threads);
    return failed == 0;
}
