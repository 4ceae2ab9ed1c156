/* The inside of the handlers `opencl` and `cuda`: their structs and the functions of the files in this
 * folder. Internal.
 *
 * device.c has the tables sgm__opencl_handler and sgm__cuda_handler; run.c compiles and runs plans with the
 * help of the other files. What differs between vendors is behind sgm_device_driver (../driver.h). A device
 * has one lock. Once the device is open it is held during all calls of the driver, except give_up and invite,
 * and the functions below that say so expect it to be held.
 */
#ifndef SGM_HANDLERS_DEVICE_RUN_DEVICE_H
#define SGM_HANDLERS_DEVICE_RUN_DEVICE_H

#include "handlers/device/code/code.h"

/* A buffer as sessions hold it, from `allocate`. */
typedef struct sgm__device_buffer {
    void *memory;   /* the driver's handle */
    uint64_t bytes; /* its real size, at least what was asked for; see class_of in memory.c */
    struct sgm__device_buffer *next; /* in sgm__device.kept */
} sgm__device_buffer;

/* An opened device: the `self` of the handler. */
typedef struct sgm__device {
    const sgm_device_driver *driver;
    void *self; /* of the driver */
    sgm_device_info info;
    uint32_t number, of; /* this device's number, from 0, and how many the driver has */
    /* The option tf32: operands of float32 products may be rounded to 10 bits of fraction. */
    bool narrow;
    pthread_mutex_t lock;
    sgm__device_buffer *kept;   /* released buffers, to be used again; newest first */
    uint64_t used, kept_bytes;  /* bytes of buffers in use, and of `kept` */
    uint32_t runs;              /* queued since the queue was last known to be empty */
    sgm_device_addend *addends; /* scratch of peers.c */
    size_t addend_capacity;
} sgm__device;

/* Makes an error of the library from a failure of the driver. */
sgm_status sgm__device_fail(const sgm__device *device, sgm_device_result result, const char *message);
#define sgm__device_fail(...) sgm__failed(sgm__device_fail(__VA_ARGS__))
/* Returns an error if a call of the driver fails; expects a local buffer `message`. */
#define SGM__DEVICE_TRY(device, call)                                                                        \
    do {                                                                                                     \
        sgm_device_result sgm_device_result_ = (call);                                                       \
        if (sgm_device_result_ != SGM_DEVICE_OK)                                                             \
            return sgm__device_fail(device, sgm_device_result_, message);                                    \
    } while (0)

/* memory.c; with the lock held */
/* Takes a zeroed buffer of at least `bytes`. */
sgm_status sgm__device_take(sgm__device *device, uint64_t bytes, sgm__device_buffer **buffer);
/* Returns a buffer; NULL is allowed. The memory is kept for the next buffer of its size, up to a limit. */
void sgm__device_give(sgm__device *device, sgm__device_buffer *buffer);
void sgm__device_empty(sgm__device *device); /* frees all kept buffers */

/* cache.c: compiles a source and loads it, or loads what was compiled before from the disk. With the lock
 * held. */
sgm_status sgm__device_build(sgm__device *device, const char *source, void **module);

/* kernels.c: the kernels of a program, which are compiled in as many modules as needed. With the lock
 * held. */
typedef struct sgm__device_kernels {
    const sgm__device_code *code;
    void **loaded;  /* of kernels: the driver's handle; NULL: not compiled yet */
    bool *wanted;   /* of kernels: some step needs it */
    void **modules; /* the driver's, which own the kernels */
    size_t module_count, module_capacity;
    bool incomplete; /* some kernels are wanted and not loaded */
} sgm__device_kernels;
sgm_status sgm__device_kernels_create(const sgm__device_code *code, sgm__device_kernels *kernels);
void sgm__device_kernels_free(sgm__device *device, sgm__device_kernels *kernels);
/* Marks the kernels of a step as wanted; sgm__device_kernels_load compiles all wanted ones that are not
 * loaded. */
void sgm__device_kernels_want(sgm__device_kernels *kernels, int32_t step);
sgm_status sgm__device_kernels_load(sgm__device *device, sgm__device_kernels *kernels);

/* product.c: a matrix product as the driver can be asked for it. */
typedef struct sgm__device_product {
    /* Without places, which run.c fills in; `batch` 0: kernels of our own compute it. */
    sgm_device_product asked;
    int32_t left, right, result; /* nodes of the plan */
    /* The driver is asked `times` times, apart[0], [1] and [2] bytes further on in left, right and result
     * each time. */
    int64_t times, apart[3];
    int32_t addend, bias; /* nodes, if asked.has_addend and asked.has_bias are true */
} sgm__device_product;
/* Whether a step is a matrix product that a library can compute. `narrow`: it may use tf32. */
bool sgm__device_product_of(const sgm__plan *plan, int32_t step, bool narrow, sgm__device_product *product);
/* Whether the elementwise step after a product can be done by the library together with it (an epilogue:
 * addend, bias, relu). If so, *product describes both steps. */
bool sgm__device_product_continue(const sgm__plan *plan, int32_t step, sgm__device_product *product);

/* host.c: steps that the reference handler runs on the host. */
typedef struct sgm__device_host sgm__device_host;
/* Prepares `count` steps of a plan, whose numbers are in `steps`, in ascending order. */
sgm_status sgm__device_host_create(const sgm__plan *plan, const int32_t *steps, int32_t count,
                                   sgm__device_host **host);
void sgm__device_host_free(sgm__device_host *host);
/* Runs the step steps[which]; all work queued before it is done then. The lock is held by the caller, and
 * released while the step itself computes. */
sgm_status sgm__device_host_run(sgm__device *device, sgm__device_host *host, const sgm__memory *memory,
                                int32_t which);

/* run.c: these take the lock themselves; see sgm__handler_type for what they do. */
sgm_status sgm__device_compile(void *self, const sgm__plan *plan, void **executable);
void sgm__device_discard(void *self, void *executable);
sgm_status sgm__device_run(void *self, void *executable, const sgm__memory *memory, int32_t first,
                           int32_t count);
sgm_status sgm__device_check(void *self, void *executable);
sgm_status sgm__device_time(void *self, void *executable, const sgm__memory *memory, sgm__step_time *times);
/* peers.c: the functions of sgm__peers, for drivers that can sum. */
sgm_status sgm__device_identify(void *self, unsigned char *identity);
sgm_status sgm__device_invite(void *self, unsigned char *invitation);
sgm_status sgm__device_join(void *self, const sgm__peer_place *place);
sgm_status sgm__device_sum(void *self, const sgm__addend *addends, size_t count, sgm_dtype dtype,
                           double seconds);
void sgm__device_give_up(void *self);
void sgm__device_leave(void *self);
/* Appends a line for users: how gradients of several devices are added up. */
void sgm__device_describe_sums(sgm__device *device, sgm__text *text);

#endif
