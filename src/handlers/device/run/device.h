/* The inside of the handlers for devices. Internal. */
#ifndef SGM_HANDLERS_DEVICE_RUN_DEVICE_H
#define SGM_HANDLERS_DEVICE_RUN_DEVICE_H

#include "handlers/device/code/code.h"

/* What a session holds as a buffer. */
typedef struct sgm__device_buffer {
    void *memory;   /* the driver's */
    uint64_t bytes; /* that it has: its class */
    struct sgm__device_buffer *next;
} sgm__device_buffer;

/* An opened device; `lock` is held while the driver is called. */
typedef struct sgm__device {
    const sgm_device_driver *driver;
    void *self;
    sgm_device_info info;
    uint32_t number, of; /* devices are counted from 0 */
    bool narrow;         /* float32 products may be rounded to tf32 */
    pthread_mutex_t lock;
    sgm__device_buffer *kept; /* released ones, newest first */
    uint64_t used, kept_bytes;
    uint32_t runs; /* since the queue was waited for */
    sgm_device_addend *addends;
    size_t addend_capacity;
} sgm__device;

/* A failure of the driver as an error of the library. */
sgm_status sgm__device_fail(const sgm__device *device, sgm_device_result result, const char *message);
#define sgm__device_fail(...) sgm__failed(sgm__device_fail(__VA_ARGS__))
#define SGM__DEVICE_TRY(device, call)                                                                        \
    do {                                                                                                     \
        sgm_device_result sgm_device_result_ = (call);                                                       \
        if (sgm_device_result_ != SGM_DEVICE_OK)                                                             \
            return sgm__device_fail(device, sgm_device_result_, message);                                    \
    } while (0)

/* memory.c; with the lock held */
/* Zeroed. */
sgm_status sgm__device_take(sgm__device *device, uint64_t bytes, sgm__device_buffer **buffer);
/* NULL is fine. It is kept for the next one of its size, up to a limit. */
void sgm__device_give(sgm__device *device, sgm__device_buffer *buffer);
/* The memory that a place is in; NULL: it is never in memory. */
sgm__device_buffer *sgm__device_buffer_of(const sgm__place *place, const sgm__memory *memory);
void sgm__device_empty(sgm__device *device); /* frees what is kept */

/* cache.c: compiled source, from the disk where it was compiled before. With the lock held. */
sgm_status sgm__device_build(sgm__device *device, const char *source, void **module);

/* kernels.c: a program's kernels, compiled when a step first needs them; with the lock held */
typedef struct sgm__device_kernels {
    const sgm__device_code *code;
    void **loaded; /* NULL: not compiled */
    bool *wanted;
    void **modules;
    size_t module_count, module_capacity;
    bool incomplete; /* some are wanted and not loaded */
} sgm__device_kernels;
sgm_status sgm__device_kernels_create(const sgm__device_code *code, sgm__device_kernels *kernels);
void sgm__device_kernels_free(sgm__device *device, sgm__device_kernels *kernels);
/* Those of a step are needed: `load` compiles all that are and were not yet. */
void sgm__device_kernels_want(sgm__device_kernels *kernels, int32_t step);
sgm_status sgm__device_kernels_load(sgm__device *device, sgm__device_kernels *kernels);

/* product.c: products that the driver can be asked for */
typedef struct sgm__device_product {
    sgm_device_product asked;    /* its places are filled in when they are known; `batch` 0: nothing */
    int32_t left, right, result; /* nodes */
    int64_t times, apart[3];     /* asked so often: bytes from one left, right, result to the next */
    int32_t addend, bias;        /* with `asked.has_addend`, `asked.has_bias` */
} sgm__device_product;
/* Whether a step is one. */
bool sgm__device_product_of(const sgm__plan *plan, int32_t step, bool narrow, sgm__device_product *product);
/* Whether the step after it can be the product's epilogue, which makes both one. */
bool sgm__device_product_continue(const sgm__plan *plan, int32_t step, sgm__device_product *product);

/* host.c: steps that the reference handler runs. */
typedef struct sgm__device_host sgm__device_host;
/* `steps` of a plan, so many, in order. */
sgm_status sgm__device_host_create(const sgm__plan *plan, const int32_t *steps, int32_t count,
                                   sgm__device_host **host);
void sgm__device_host_free(sgm__device_host *host);
/* Runs the one with that place among `steps`; what was queued before it is done then. The lock is released
 * while the step itself computes. */
sgm_status sgm__device_host_run(sgm__device *device, sgm__device_host *host, const sgm__memory *memory,
                                int32_t which);

/* run.c */
sgm_status sgm__device_compile(void *self, const sgm__plan *plan, void **executable);
void sgm__device_discard(void *self, void *executable);
sgm_status sgm__device_run(void *self, void *executable, const sgm__memory *memory, int32_t first,
                           int32_t count);
sgm_status sgm__device_check(void *self, void *executable);
sgm_status sgm__device_time(void *self, void *executable, const sgm__memory *memory, sgm__step_time *times);
/* peers.c: sgm__peers of a driver that has them. */
sgm_status sgm__device_identify(void *self, unsigned char *identity);
sgm_status sgm__device_invite(void *self, unsigned char *invitation);
sgm_status sgm__device_join(void *self, const sgm__peer_place *place);
sgm_status sgm__device_sum(void *self, const sgm__addend *addends, size_t count, sgm_dtype dtype,
                           double seconds);
void sgm__device_give_up(void *self);
void sgm__device_leave(void *self);
/* A line that says how they come together. */
void sgm__device_describe_sums(sgm__device *device, sgm__text *text);

#endif
