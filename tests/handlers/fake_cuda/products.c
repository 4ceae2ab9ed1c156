/* cuBLASLt: plain loops, in double; epilogues but in float64. With SIGMA_FAKE_CUDA_PRODUCTS=no it cannot be
 * used, with "promised" it takes every product and multiplies none. */
#include "fake.h"

struct cublaslt_operation_ {
    cublas_compute compute;
    cublas_type scale;
    int32_t transposed[2];
    uint32_t epilogue;
    const void *bias;
};

struct cublaslt_layout_ {
    cublas_type type;
    int64_t rows, columns, leading, stride;
    int32_t batch;
};

static bool is_set_to(const char *what)
{
    const char *wanted = getenv("SIGMA_FAKE_CUDA_PRODUCTS");
    return wanted != NULL && strcmp(wanted, what) == 0;
}

cublas_status cublasLtCreate(cublaslt_handle *handle)
{
    static int anything;
    (void)fake_current();
    *handle = (cublaslt_handle)(void *)&anything;
    return is_set_to("no") ? CUBLAS_NOT_INITIALISED : CUBLAS_DONE;
}

cublas_status cublasLtDestroy(cublaslt_handle handle)
{
    return handle != NULL ? CUBLAS_DONE : CUBLAS_INVALID;
}

size_t cublasLtGetVersion(void)
{
    return 120400;
}

cublas_status cublasLtMatmulDescCreate(cublaslt_operation *operation, cublas_compute compute,
                                       cublas_type scale)
{
    *operation = calloc(1, sizeof **operation);
    if (*operation == NULL)
        return CUBLAS_NO_MEMORY;
    (*operation)->compute = compute;
    (*operation)->scale = scale;
    (*operation)->epilogue = CUBLASLT_NO_EPILOGUE;
    return CUBLAS_DONE;
}

cublas_status cublasLtMatmulDescDestroy(cublaslt_operation operation)
{
    free(operation);
    return CUBLAS_DONE;
}

cublas_status cublasLtMatmulDescSetAttribute(cublaslt_operation operation,
                                             cublaslt_operation_attribute attribute, const void *value,
                                             size_t bytes)
{
    if (attribute == CUBLASLT_BIAS && bytes == sizeof operation->bias)
        memcpy(&operation->bias, value, bytes);
    else if (attribute == CUBLASLT_EPILOGUE && bytes == sizeof operation->epilogue)
        memcpy(&operation->epilogue, value, bytes);
    else if ((attribute == CUBLASLT_TRANSPOSE_A || attribute == CUBLASLT_TRANSPOSE_B) &&
             bytes == sizeof *operation->transposed)
        memcpy(&operation->transposed[attribute == CUBLASLT_TRANSPOSE_B], value, bytes);
    else
        return CUBLAS_INVALID;
    return CUBLAS_DONE;
}

cublas_status cublasLtMatrixLayoutCreate(cublaslt_layout *layout, cublas_type type, uint64_t rows,
                                         uint64_t columns, int64_t leading)
{
    if (leading < (int64_t)rows || rows == 0 || columns == 0)
        return CUBLAS_INVALID;
    *layout = calloc(1, sizeof **layout);
    if (*layout == NULL)
        return CUBLAS_NO_MEMORY;
    **layout = (struct cublaslt_layout_){type, (int64_t)rows, (int64_t)columns, leading, 0, 1};
    return CUBLAS_DONE;
}

cublas_status cublasLtMatrixLayoutDestroy(cublaslt_layout layout)
{
    free(layout);
    return CUBLAS_DONE;
}

cublas_status cublasLtMatrixLayoutSetAttribute(cublaslt_layout layout, cublaslt_layout_attribute attribute,
                                               const void *value, size_t bytes)
{
    if (attribute == CUBLASLT_BATCH_COUNT && bytes == sizeof layout->batch)
        memcpy(&layout->batch, value, bytes);
    else if (attribute == CUBLASLT_BATCH_STRIDE && bytes == sizeof layout->stride)
        memcpy(&layout->stride, value, bytes);
    else
        return CUBLAS_INVALID;
    return CUBLAS_DONE;
}

struct cublaslt_preference_ {
    size_t workspace;
};

cublas_status cublasLtMatmulPreferenceCreate(cublaslt_preference *preference)
{
    *preference = calloc(1, sizeof **preference);
    return *preference != NULL ? CUBLAS_DONE : CUBLAS_NO_MEMORY;
}

cublas_status cublasLtMatmulPreferenceDestroy(cublaslt_preference preference)
{
    free(preference);
    return CUBLAS_DONE;
}

cublas_status cublasLtMatmulPreferenceSetAttribute(cublaslt_preference preference,
                                                   cublaslt_preference_attribute attribute, const void *value,
                                                   size_t bytes)
{
    uint32_t aligned;
    if (attribute == CUBLASLT_WORKSPACE && bytes == sizeof preference->workspace) {
        memcpy(&preference->workspace, value, bytes);
        return CUBLAS_DONE;
    }
    if (attribute < CUBLASLT_ALIGNMENT_A || attribute > CUBLASLT_ALIGNMENT_D || bytes != sizeof aligned)
        return CUBLAS_INVALID;
    memcpy(&aligned, value, bytes);
    return aligned > 0 && (aligned & (aligned - 1)) == 0 ? CUBLAS_DONE : CUBLAS_INVALID;
}

static bool fits(const struct cublaslt_layout_ *layout, int32_t transposed, int64_t rows, int64_t columns)
{
    return (transposed != 0 ? layout->columns : layout->rows) == rows &&
           (transposed != 0 ? layout->rows : layout->columns) == columns;
}

static bool has_bias(const struct cublaslt_operation_ *operation)
{
    return (operation->epilogue & CUBLASLT_BIASED) != 0;
}

static bool is_epilogue_known(const struct cublaslt_operation_ *operation)
{
    uint32_t e = operation->epilogue;
    return e == CUBLASLT_NO_EPILOGUE ||
           (operation->scale != CUBLAS_FLOAT64 && (!has_bias(operation) || operation->bias != NULL) &&
            (e == CUBLASLT_BIASED || e == CUBLASLT_RECTIFIED || e == CUBLASLT_BIASED_RECTIFIED));
}

cublas_status cublasLtMatmulAlgoGetHeuristic(cublaslt_handle handle, cublaslt_operation operation,
                                             cublaslt_layout a, cublaslt_layout b, cublaslt_layout c,
                                             cublaslt_layout d, cublaslt_preference preference, int wanted,
                                             cublaslt_choice *choices, int *count)
{
    int64_t depth = operation->transposed[0] != 0 ? a->rows : a->columns;
    bool known = handle != NULL && preference != NULL && wanted >= 1 && c == d && a->type == b->type &&
                 fits(a, operation->transposed[0], d->rows, depth) &&
                 fits(b, operation->transposed[1], depth, d->columns) && a->batch == d->batch &&
                 b->batch == d->batch && is_epilogue_known(operation);
    *count = known ? 1 : 0;
    memset(choices, 0, sizeof *choices);
    return known ? CUBLAS_DONE : CUBLAS_UNSUPPORTED;
}

static size_t size_of(cublas_type type)
{
    return type == CUBLAS_FLOAT64 ? 8 : type == CUBLAS_FLOAT32 ? 4 : 2;
}

static int64_t reach(const struct cublaslt_layout_ *layout)
{
    return (layout->batch - 1) * layout->stride + (layout->columns - 1) * layout->leading + layout->rows;
}

static double load(const void *memory, cublas_type type, int64_t at)
{
    float narrow;
    uint32_t bits;
    if (type == CUBLAS_FLOAT64)
        return ((const double *)memory)[at];
    if (type == CUBLAS_FLOAT32)
        return (double)((const float *)memory)[at];
    bits = (uint32_t)((const uint16_t *)memory)[at] << 16;
    memcpy(&narrow, &bits, sizeof narrow);
    return (double)narrow;
}

static void store(void *memory, cublas_type type, int64_t at, double value)
{
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (type == CUBLAS_FLOAT64)
        ((double *)memory)[at] = value;
    else if (type == CUBLAS_FLOAT32)
        ((float *)memory)[at] = narrow;
    else
        ((uint16_t *)memory)[at] = (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* What waits in the queue: its own copies, as descriptions may be freed meanwhile. */
typedef struct queued {
    struct cublaslt_operation_ operation;
    struct cublaslt_layout_ a, b, d;
    cu_pointer places[4]; /* of a, b, d and c; c 0: it is not added */
} queued;

static double finish(const queued *q, const void *bias, int64_t row, double sum)
{
    if (bias != NULL)
        sum += load(bias, q->d.type, row);
    return (q->operation.epilogue & CUBLASLT_RECTIFIED) != 0 && sum < 0 ? 0 : sum;
}

void fake_multiply(struct cu_context_ *context, const void *what)
{
    queued q;
    memcpy(&q, what, sizeof q);
    const void *a = fake_memory(context, q.places[0], (size_t)reach(&q.a) * size_of(q.a.type), "a product");
    const void *b = fake_memory(context, q.places[1], (size_t)reach(&q.b) * size_of(q.b.type), "a product");
    void *d = fake_memory(context, q.places[2], (size_t)reach(&q.d) * size_of(q.d.type), "a product");
    const void *c = q.places[3] == 0 ? NULL
                                     : fake_memory(context, q.places[3],
                                                   (size_t)reach(&q.d) * size_of(q.d.type), "a product");
    const void *bias = !has_bias(&q.operation)
                           ? NULL
                           : fake_memory(context, (cu_pointer)(uintptr_t)q.operation.bias,
                                         (size_t)q.d.rows * size_of(q.d.type), "a product's bias");
    bool turn_a = q.operation.transposed[0] != 0, turn_b = q.operation.transposed[1] != 0;
    int64_t depth = turn_a ? q.a.rows : q.a.columns;
    for (int32_t batch = 0; batch < q.d.batch; batch++)
        for (int64_t column = 0; column < q.d.columns; column++)
            for (int64_t row = 0; row < q.d.rows; row++) {
                int64_t at = batch * q.d.stride + row + column * q.d.leading;
                double sum = c != NULL ? load(c, q.d.type, at) : 0;
                for (int64_t k = 0; k < depth; k++)
                    sum +=
                        load(a, q.a.type,
                             batch * q.a.stride + (turn_a ? k + row * q.a.leading : row + k * q.a.leading)) *
                        load(b, q.b.type,
                             batch * q.b.stride +
                                 (turn_b ? column + k * q.b.leading : k + column * q.b.leading));
                store(d, q.d.type, at, finish(&q, bias, row, sum));
            }
}

cublas_status cublasLtMatmul(cublaslt_handle handle, cublaslt_operation operation, const void *alpha,
                             const void *a, cublaslt_layout layout_a, const void *b, cublaslt_layout layout_b,
                             const void *beta, const void *c, cublaslt_layout layout_c, void *d,
                             cublaslt_layout layout_d, const cublaslt_algorithm *algorithm, void *workspace,
                             size_t workspace_bytes, cu_stream stream)
{
    bool wide = operation->scale == CUBLAS_FLOAT64;
    double factor = wide ? *(const double *)alpha : (double)*(const float *)alpha;
    double keep = wide ? *(const double *)beta : (double)*(const float *)beta;
    if (handle == NULL || factor != 1 || (keep != 0 && keep != 1) || (keep == 0 && c != d) ||
        layout_c != layout_d || algorithm == NULL)
        fake_wrong("a product that is not d = a b or d = a b + c");
    if (is_set_to("promised"))
        return CUBLAS_UNSUPPORTED;
    if (workspace_bytes > 0)
        fake_memory(stream->context, (cu_pointer)(uintptr_t)workspace, workspace_bytes,
                    "a product's workspace");
    queued q = {*operation, *layout_a, *layout_b, *layout_d, {0}};
    q.places[0] = (cu_pointer)(uintptr_t)a;
    q.places[1] = (cu_pointer)(uintptr_t)b;
    q.places[2] = (cu_pointer)(uintptr_t)d;
    q.places[3] = keep != 0 ? (cu_pointer)(uintptr_t)c : 0;
    fake_work *work =
        fake_enqueue(stream, FAKE_PRODUCT, (int)((sizeof q + sizeof(void *) - 1) / sizeof(void *)));
    memcpy(work->parameters, &q, sizeof q);
    return CUBLAS_DONE;
}
