/* Matrix products by cuBLASLt, with an addend, a bias and a rectification in the same kernel (its
 * epilogue).
 *
 * cuBLASLt thinks in columns: of matrices that lie row by row it sees the transposes, and (left right)^T =
 * right^T left^T, so a is our right operand and b our left one. Which of its algorithms is used, its own
 * heuristic says once for each shape, and a table keeps the answer (find). Every function may decline:
 * then src/handlers/device computes the product by kernels of its own text. */
#include "plugin.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS 256 /* of the table; a network has a few dozen shapes */

/* The operands of d = op(a) op(b) + c + bias as cuBLASLt sees them, all in columns; c lies as d does. */
enum { A, B, D, C, BIAS, PLACES };

/* Everything that the choice of an algorithm depends on: the key of the table. There are no gaps between
 * its members, as keys are compared and hashed as bytes. */
typedef struct shape {
    int64_t rows, columns, depth, batch; /* of d */
    int64_t leading[3], stride[3];       /* of a, b, d: elements from column to column, matrix to matrix */
    uint32_t type[3], transposed[3];
    uint32_t aligned[PLACES];         /* bytes */
    uint32_t compute, epilogue, adds; /* adds: there is a c */
} shape;

/* A shape that was asked for, with cuBLASLt's descriptions and the algorithm; not usable: cuBLASLt
 * declines it. */
typedef struct product {
    struct product *next;
    shape key;
    cublaslt_operation operation;
    cublaslt_layout layouts[3];
    cublaslt_algorithm algorithm;
    bool usable;
} product;

/* What cuBLASLt needs on one device; guarded like the device itself. */
struct cuda_products {
    cublaslt_handle handle;
    cu_pointer workspace; /* memory of the device that algorithms may use; one product runs at a time */
    size_t workspace_bytes;
    product *known[BUCKETS]; /* lists, by the shape's hash */
};

/* Opens cuBLASLt at the first product. After a failure no_products keeps it from being tried again.
 * Without memory for the workspace, algorithms that need none remain. The context is current. */
static bool open_products(cuda_device *device)
{
    const cuda_libraries *l = device->library;
    if (device->products != NULL || device->no_products)
        return device->products != NULL;
    device->no_products = true;
    if (!cuda_load_products())
        return false;
    cuda_products *products = calloc(1, sizeof *products);
    if (products == NULL)
        return false;
    products->workspace_bytes = (size_t)32 << 20;
    if (l->cublas.cublasLtCreate(&products->handle) != CUBLAS_DONE) {
        free(products);
        return false;
    }
    if (l->cuda.cuMemAlloc_v2(&products->workspace, products->workspace_bytes) != CU_DONE)
        products->workspace_bytes = 0;
    device->products = products;
    device->no_products = false;
    return true;
}

/* Also of a product that could not be described to the end. */
static void free_product(const cuda_device *device, product *p)
{
    for (int i = 0; i < 3; i++)
        if (p->layouts[i] != NULL)
            device->library->cublas.cublasLtMatrixLayoutDestroy(p->layouts[i]);
    if (p->operation != NULL)
        device->library->cublas.cublasLtMatmulDescDestroy(p->operation);
    free(p);
}

/* Frees all that is known about shapes. The queue is empty, and the context is current. */
void cuda_products_close(cuda_device *device)
{
    cuda_products *products = device->products;
    if (products == NULL)
        return;
    for (int i = 0; i < BUCKETS; i++)
        for (product *p = products->known[i], *next; p != NULL; p = next) {
            next = p->next;
            free_product(device, p);
        }
    if (products->workspace != 0)
        device->library->cuda.cuMemFree_v2(products->workspace);
    device->library->cublas.cublasLtDestroy(products->handle);
    free(products);
    device->products = NULL;
}

/* --- a product as a shape --- */

/* cuBLASLt's number of a type. */
static uint32_t type_of(sgm_device_type type)
{
    static const uint32_t types[] = {CUBLAS_FLOAT32, CUBLAS_FLOAT64, CUBLAS_BFLOAT16};
    return types[type];
}

/* Whether a matrix lies row by row, and how many elements there are from row to row (*leading); a matrix
 * of one row or one column lies in any way. */
static bool lies_in_rows(const sgm_device_matrix *m, int64_t rows, int64_t columns, int64_t *leading)
{
    if (columns > 1 && m->column != 1)
        return false;
    *leading = rows > 1 ? m->row : columns;
    return *leading >= columns;
}

/* The transpose of a matrix: the same memory with its distances exchanged. */
static sgm_device_matrix flipped(sgm_device_matrix m)
{
    int64_t row = m.row;
    m.row = m.column;
    m.column = row;
    return m;
}

/* The largest power of 2 up to 256 that the address is a multiple of: its lowest bit that is set. */
static uint32_t alignment(sgm_device_place place)
{
    cu_pointer address = cuda_address(place) | 256;
    return (uint32_t)(address & (~address + 1));
}

/* An operand of rows x columns: as the transpose that cuBLASLt sees of it, or, if it lies column by
 * column, transposed by cuBLASLt. False: it lies in neither way. */
static bool set_operand(shape *key, int i, const sgm_device_matrix *m, int64_t rows, int64_t columns)
{
    sgm_device_matrix other = flipped(*m);
    key->transposed[i] = CUBLAS_AS_IT_IS;
    if (lies_in_rows(m, rows, columns, &key->leading[i]))
        return true;
    key->transposed[i] = CUBLAS_TRANSPOSED;
    return lies_in_rows(&other, columns, rows, &key->leading[i]);
}

/* Both operands have one type; the result has it, too, or is float32 of a product of bfloat16. `narrow`
 * lets float32 be rounded to tf32 (10 bits of fraction) for the tensor cores; sums are float32 or wider in
 * any case. */
static bool set_types(shape *key, const sgm_device_product *p)
{
    sgm_device_type left = p->left.type, result = p->result.type;
    if (left != p->right.type ||
        (result != left && (left != SGM_DEVICE_BFLOAT16 || result != SGM_DEVICE_FLOAT32)))
        return false;
    key->compute = left == SGM_DEVICE_FLOAT64                ? CUBLAS_IN_FLOAT64
                   : left == SGM_DEVICE_FLOAT32 && p->narrow ? CUBLAS_IN_TF32
                                                             : CUBLAS_IN_FLOAT32;
    key->type[A] = key->type[B] = type_of(left);
    key->type[D] = type_of(result);
    return true;
}

/* What the kernel does behind the product. */
static void set_epilogue(shape *key, const sgm_device_product *p)
{
    key->adds = p->has_addend;
    key->epilogue = p->has_bias && p->rectified ? CUBLASLT_BIASED_RECTIFIED
                    : p->has_bias               ? CUBLASLT_BIASED
                    : p->rectified              ? CUBLASLT_RECTIFIED
                                                : CUBLASLT_NO_EPILOGUE;
}

/* The key of a product, and where a, b, d, c and the bias are. A result that lies column by column is
 * computed as its transpose, with the operands exchanged. False: cuBLASLt cannot see the product in any
 * such way. Alignments are part of the key, as algorithms depend on them; of a bias they want 16 bytes,
 * more than they say. */
static bool shape_of(const sgm_device_product *p, shape *key, const sgm_device_place **places)
{
    sgm_device_product transposed = *p;
    const sgm_device_matrix *matrices[3] = {&p->right, &p->left, &p->result};
    memset(key, 0, sizeof *key);
    if (p->rows <= 0 || p->columns <= 0 || p->depth <= 0 || p->batch <= 0 || p->batch > INT32_MAX)
        return false;
    if (!lies_in_rows(&p->result, p->rows, p->columns, &key->leading[D])) {
        transposed.rows = p->columns;
        transposed.columns = p->rows;
        transposed.left = flipped(p->right);
        transposed.right = flipped(p->left);
        transposed.result = flipped(p->result);
        matrices[A] = &p->left;
        matrices[B] = &p->right;
        if (p->has_bias || /* it adds one to each of its rows, which are ours now */
            !lies_in_rows(&transposed.result, transposed.rows, transposed.columns, &key->leading[D]))
            return false;
    }
    key->rows = transposed.columns;
    key->columns = transposed.rows;
    key->depth = p->depth;
    key->batch = p->batch;
    for (int i = 0; i < 3; i++) {
        key->stride[i] = p->batch > 1 ? matrices[i]->batch : 0;
        places[i] = &matrices[i]->place;
    }
    places[C] = p->has_addend ? &p->addend.place : &p->result.place;
    places[BIAS] = p->has_bias ? &p->bias : &p->result.place;
    for (int i = 0; i < PLACES; i++)
        key->aligned[i] = alignment(*places[i]);
    set_epilogue(key, p);
    /* Of a bias, algorithms want more than they say. */
    return (!p->has_bias || key->aligned[BIAS] >= 16) && (p->batch == 1 || p->result.batch > 0) &&
           set_types(key, p) && set_operand(key, A, &transposed.right, p->depth, transposed.columns) &&
           set_operand(key, B, &transposed.left, transposed.rows, p->depth);
}

/* --- what is known about a shape --- */

/* The numbers by which the product is scaled have the type that is computed in. */
static bool describe_operation(const cuda_libraries *l, product *p)
{
    const shape *key = &p->key;
    uint32_t scale = key->compute == CUBLAS_IN_FLOAT64 ? CUBLAS_FLOAT64 : CUBLAS_FLOAT32;
    const struct {
        cublaslt_operation_attribute attribute;
        uint32_t value;
    } words[] = {{CUBLASLT_TRANSPOSE_A, key->transposed[A]},
                 {CUBLASLT_TRANSPOSE_B, key->transposed[B]},
                 {CUBLASLT_EPILOGUE, key->epilogue}};
    bool ok = l->cublas.cublasLtMatmulDescCreate(&p->operation, key->compute, scale) == CUBLAS_DONE;
    for (size_t i = 0; i < sizeof words / sizeof *words && ok; i++)
        ok = l->cublas.cublasLtMatmulDescSetAttribute(p->operation, words[i].attribute, &words[i].value,
                                                      sizeof words[i].value) == CUBLAS_DONE;
    return ok;
}

/* Layouts of a, b and d as they lie in memory: an operand that cuBLASLt transposes is described
 * untransposed. */
static bool describe_matrices(const cuda_libraries *l, product *p)
{
    const shape *key = &p->key;
    int32_t batch = (int32_t)key->batch;
    bool ok = true;
    const int64_t sizes[3][2] = {
        {key->rows, key->depth}, {key->depth, key->columns}, {key->rows, key->columns}};
    for (int i = 0; i < 3 && ok; i++) {
        bool flip = key->transposed[i] == CUBLAS_TRANSPOSED;
        ok = l->cublas.cublasLtMatrixLayoutCreate(&p->layouts[i], key->type[i], (uint64_t)sizes[i][flip],
                                                  (uint64_t)sizes[i][!flip], key->leading[i]) == CUBLAS_DONE;
        if (ok && key->batch > 1)
            ok = l->cublas.cublasLtMatrixLayoutSetAttribute(p->layouts[i], CUBLASLT_BATCH_COUNT, &batch,
                                                            sizeof batch) == CUBLAS_DONE &&
                 l->cublas.cublasLtMatrixLayoutSetAttribute(p->layouts[i], CUBLASLT_BATCH_STRIDE,
                                                            &key->stride[i],
                                                            sizeof key->stride[i]) == CUBLAS_DONE;
    }
    return ok;
}

/* The bias is an attribute of the operation, unlike the other operands: it is set before each product. */
static bool point_to_bias(const cuda_libraries *l, const product *p, uint64_t address)
{
    const void *place = (const void *)(uintptr_t)address;
    return (p->key.epilogue & CUBLASLT_BIASED) == 0 ||
           l->cublas.cublasLtMatmulDescSetAttribute(p->operation, CUBLASLT_BIAS, &place, sizeof place) ==
               CUBLAS_DONE;
}

/* Asks cuBLASLt's heuristic for the algorithm that it thinks the fastest within the workspace and for
 * these alignments. False: it has none. */
static bool choose(const cuda_device *device, product *p)
{
    const cuda_libraries *l = device->library;
    const size_t workspace = device->products->workspace_bytes;
    const uint32_t *aligned = p->key.aligned;
    cublaslt_preference preference = NULL;
    cublaslt_choice choice;
    int count = 0;
    const struct {
        cublaslt_preference_attribute attribute;
        const void *value;
        size_t bytes;
    } wishes[] = {{CUBLASLT_WORKSPACE, &workspace, sizeof workspace},
                  {CUBLASLT_ALIGNMENT_A, &aligned[A], sizeof *aligned},
                  {CUBLASLT_ALIGNMENT_B, &aligned[B], sizeof *aligned},
                  {CUBLASLT_ALIGNMENT_C, &aligned[C], sizeof *aligned},
                  {CUBLASLT_ALIGNMENT_D, &aligned[D], sizeof *aligned}};
    bool ok = l->cublas.cublasLtMatmulPreferenceCreate(&preference) == CUBLAS_DONE;
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes && ok; i++)
        ok = l->cublas.cublasLtMatmulPreferenceSetAttribute(preference, wishes[i].attribute, wishes[i].value,
                                                            wishes[i].bytes) == CUBLAS_DONE;
    ok = ok && l->cublas.cublasLtMatmulAlgoGetHeuristic(device->products->handle, p->operation, p->layouts[A],
                                                        p->layouts[B], p->layouts[D], p->layouts[D],
                                                        preference, 1, &choice, &count) == CUBLAS_DONE;
    if (preference != NULL)
        l->cublas.cublasLtMatmulPreferenceDestroy(preference);
    if (!ok || count < 1 || choice.state != CUBLAS_DONE)
        return false;
    p->algorithm = choice.algorithm;
    return true;
}

/* FNV-1a over the bytes of the key. */
static uint32_t bucket_of(const shape *key)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof *key; i++)
        hash = (hash ^ ((const unsigned char *)key)[i]) * 1099511628211u;
    return (uint32_t)((hash ^ (hash >> 32)) % BUCKETS);
}

/* The product of this shape, described and chosen at its first use; NULL: cuBLASLt does not compute it.
 * The description lasts as long as the device, since a network has few shapes. While an algorithm is
 * chosen, the alignment of the bias stands in for its address. The context is current. */
static product *find(const cuda_device *device, const shape *key)
{
    const cuda_libraries *l = device->library;
    product **bucket = &device->products->known[bucket_of(key)];
    product *p = *bucket;
    while (p != NULL && memcmp(&p->key, key, sizeof *key) != 0)
        p = p->next;
    if (p == NULL && (p = calloc(1, sizeof *p)) != NULL) {
        p->key = *key;
        /* An algorithm is chosen for what the bias's address is a multiple of. */
        p->usable = describe_operation(l, p) && describe_matrices(l, p) &&
                    point_to_bias(l, p, key->aligned[BIAS]) && choose(device, p);
        p->next = *bucket;
        *bucket = p;
    }
    return p != NULL && p->usable ? p : NULL;
}

/* Asked while a program is compiled. Places without a buffer count as aligned as their offsets are. */
bool cuda_takes(void *self, const sgm_device_product *wanted)
{
    cuda_device *device = self;
    char message[SGM_DEVICE_MESSAGE];
    const sgm_device_place *places[PLACES];
    shape key;
    if (device->no_products || !shape_of(wanted, &key, places) ||
        cuda_enter(device, message) != SGM_DEVICE_OK)
        return false;
    bool taken = open_products(device) && find(device, &key) != NULL;
    cuda_leave(device);
    return taken;
}

/* cuBLASLt has no texts for its errors. */
static const char *words_for(cublas_status status)
{
    switch (status) {
    case CUBLAS_NOT_INITIALISED:
        return "it is not initialised";
    case CUBLAS_NO_MEMORY:
        return "it found no memory";
    case CUBLAS_INVALID:
        return "it does not know such a product";
    case CUBLAS_ARCHITECTURE:
        return "it was not made for this device";
    case CUBLAS_FAILED:
        return "its kernel failed";
    case CUBLAS_UNSUPPORTED:
        return "it does not do this here";
    default:
        return "it gives no reason";
    }
}

/* Errors after which the product can still be computed in another way: the heuristic now and then names an
 * algorithm that does not run. */
static bool is_declined(cublas_status status)
{
    return status == CUBLAS_NO_MEMORY || status == CUBLAS_INVALID || status == CUBLAS_ARCHITECTURE ||
           status == CUBLAS_UNSUPPORTED;
}

/* Queues d = 1 * a b + (0 or 1) * c, with the epilogue. The scales are read from the host at the call, in
 * the type that is computed in. An algorithm that is refused is not tried again for this shape. */
static sgm_device_result multiply(const cuda_device *device, product *p, const sgm_device_place **places,
                                  char *message)
{
    static const float zero_and_one[] = {0, 1};
    static const double wide_zero_and_one[] = {0, 1};
    const cuda_products *products = device->products;
    bool wide = p->key.compute == CUBLAS_IN_FLOAT64, adds = p->key.adds != 0;
    const void *one = wide ? (const void *)&wide_zero_and_one[1] : &zero_and_one[1];
    const void *c_times = wide ? (const void *)&wide_zero_and_one[adds] : &zero_and_one[adds];
    void *at[BIAS];
    for (int i = 0; i < BIAS; i++)
        at[i] = (void *)(uintptr_t)cuda_address(*places[i]);
    cublas_status status =
        !point_to_bias(device->library, p, cuda_address(*places[BIAS]))
            ? CUBLAS_INVALID
            : device->library->cublas.cublasLtMatmul(
                  products->handle, p->operation, one, at[A], p->layouts[A], at[B], p->layouts[B], c_times,
                  at[C], p->layouts[D], at[D], p->layouts[D], &p->algorithm,
                  (void *)(uintptr_t)products->workspace, products->workspace_bytes, device->stream);
    if (status == CUBLAS_DONE)
        return SGM_DEVICE_OK;
    cuda_say(message, "a matrix product by cuBLASLt failed: %s (status %u)", words_for(status), status);
    p->usable = !is_declined(status);
    return p->usable ? SGM_DEVICE_FAILED : SGM_DEVICE_DECLINED;
}

/* While recording, cuBLASLt is not opened, as that allocates memory. */
sgm_device_result cuda_multiply(void *self, const sgm_device_product *wanted, char *message)
{
    cuda_device *device = self;
    const sgm_device_place *places[PLACES];
    product *p = NULL;
    shape key;
    sgm_device_result status = cuda_enter(device, message);
    if (status != SGM_DEVICE_OK)
        return status;
    if (shape_of(wanted, &key, places) &&
        (device->products != NULL || (!device->recording && open_products(device))))
        p = find(device, &key);
    if (p != NULL) {
        status = multiply(device, p, places, message);
    } else {
        cuda_say(message, "cuBLASLt does not take this product");
        status = SGM_DEVICE_DECLINED;
    }
    cuda_leave(device);
    return status;
}
