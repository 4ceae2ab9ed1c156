/* What drives a device: the table that a plug-in gives. Internal.
 *
 * A plug-in (libsigma-opencl.so, libsigma-cuda.so) speaks one vendor's language: it finds devices, gives
 * memory, compiles source text and queues work. It knows neither plans nor operations, and uses nothing of
 * libsigma, so that it serves a static library as well as a shared one; hence this header stands alone.
 *
 * All work goes to one queue, in order. A function returns SGM_DEVICE_OK, or what went wrong, with a sentence
 * in `message` (room for SGM_DEVICE_MESSAGE bytes). Those of one device are called by one thread at a time.
 */
#ifndef SGM_HANDLERS_DEVICE_DRIVER_H
#define SGM_HANDLERS_DEVICE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SGM_DEVICE_DRIVER_VERSION 3
#define SGM_DEVICE_MESSAGE 1024
#define SGM_DEVICE_IDENTITY 16
#define SGM_DEVICE_INVITATION 128

typedef enum sgm_device_result {
    SGM_DEVICE_OK,
    SGM_DEVICE_ABSENT, /* no driver, no such device, or one that lacks what is needed */
    SGM_DEVICE_MEMORY, /* its memory is used up; all else goes on */
    SGM_DEVICE_SOURCE, /* the text was not accepted: the message begins as the compiler's */
    SGM_DEVICE_FAILED,
    SGM_DEVICE_DECLINED /* nothing was queued: what is wanted must go another way */
} sgm_device_result;

typedef struct sgm_device_info {
    char name[256];     /* "NVIDIA H200" */
    char driver[256];   /* "OpenCL 3.0 PoCL 3.1", "CUDA 13.0" */
    char compiler[512]; /* all else that a compiled source depends on: which compiler, our options for it */
    uint64_t memory;    /* bytes in all, and of one buffer at most */
    uint64_t largest;
    uint32_t local;    /* bytes that a group of work-items shares */
    uint32_t units;    /* processors that work side by side */
    uint32_t group;    /* work-items in a group at most */
    uint32_t warp;     /* work-items that go in step; 1: none do */
    bool is_processor; /* it is the computer's own: groups are loops there */
    bool has_float64;
} sgm_device_info;

/* A place in a buffer; to a kernel it is a pointer. */
typedef struct sgm_device_place {
    void *buffer;
    uint64_t offset; /* bytes */
} sgm_device_place;

typedef struct sgm_device_launch {
    void *kernel;
    uint32_t groups, group; /* how many groups, of how many work-items */
    uint32_t place_count;
    const sgm_device_place *places; /* the kernel's parameters, in order */
} sgm_device_launch;

typedef enum sgm_device_type { SGM_DEVICE_FLOAT32, SGM_DEVICE_FLOAT64, SGM_DEVICE_BFLOAT16 } sgm_device_type;

/* result = left right + addend + bias, for each of `batch`, and 0 where that is less if `rectified`; sums in
 * float32 or wider. Strides are in elements; of each matrix one of `row` and `column` is 1. NaN stays NaN. */
typedef struct sgm_device_matrix {
    sgm_device_place place;
    sgm_device_type type;
    int64_t row, column, batch; /* strides */
} sgm_device_matrix;
typedef struct sgm_device_product {
    int64_t rows, columns, depth, batch;
    sgm_device_matrix left, right, result;
    bool narrow; /* float32 may be rounded to tf32 */
    bool has_addend, has_bias, rectified;
    sgm_device_matrix addend; /* of the result's type and strides; it may be the result */
    sgm_device_place bias;    /* a number for each column, side by side, of the result's type */
} sgm_device_product;

/* Elements that become the sums of all peers' elements there. */
typedef struct sgm_device_addend {
    sgm_device_place place;
    uint64_t count;
} sgm_device_addend;

typedef struct sgm_device_driver {
    uint32_t version; /* SGM_DEVICE_DRIVER_VERSION; first, to be looked at before all else */
    const char *name; /* "opencl" */
    /* Put before every source: defines the words of the dialect, see code.h. */
    const char *prelude;

    sgm_device_result (*count)(uint32_t *devices, char *message);
    /* Fails with SGM_DEVICE_ABSENT for a device that lacks something, naming it. */
    sgm_device_result (*open)(uint32_t device, void **self, sgm_device_info *info, char *message);
    void (*close)(void *self);

    sgm_device_result (*allocate)(void *self, uint64_t bytes, void **buffer, char *message);
    void (*release)(void *self, void *buffer); /* work in the queue may still use it */
    sgm_device_result (*clear)(void *self, sgm_device_place place, uint64_t bytes, char *message);
    /* `host` is free to change on return. */
    sgm_device_result (*write)(void *self, sgm_device_place place, const void *host, uint64_t bytes,
                               char *message);
    sgm_device_result (*read)(void *self, sgm_device_place place, void *host, uint64_t bytes, char *message);
    sgm_device_result (*copy)(void *self, sgm_device_place from, sgm_device_place to, uint64_t bytes,
                              char *message);

    /* Compiles a source to what `load` takes; it can be kept on disk for the same device and driver.
     * `*binary` is freed with `drop`. */
    sgm_device_result (*build)(void *self, const char *source, void **binary, size_t *bytes, char *message);
    void (*drop)(void *binary);
    sgm_device_result (*load)(void *self, const void *binary, size_t bytes, void **module, char *message);
    void (*unload)(void *self, void *module);
    /* Belongs to its module. */
    sgm_device_result (*kernel)(void *self, void *module, const char *name, void **kernel, char *message);

    sgm_device_result (*launch)(void *self, const sgm_device_launch *launch, char *message);
    sgm_device_result (*wait)(void *self, char *message);

    /* A vendor's library for products; NULL, or `takes` says false: kernels of our own. Of a place without a
     * buffer only the offset is known: buffers begin where all types may. `multiply` may still decline. */
    bool (*takes)(void *self, const sgm_device_product *product);
    sgm_device_result (*multiply)(void *self, const sgm_device_product *product, char *message);

    /* What is queued between `record` and `keep` is kept instead of run, to be run again by `replay`.
     * NULL: it cannot. */
    sgm_device_result (*record)(void *self, char *message);
    sgm_device_result (*keep)(void *self, void **recording, char *message);
    sgm_device_result (*replay)(void *self, void *recording, char *message);
    void (*forget)(void *self, void *recording);

    /* Sums with other devices of this driver, the peers, in this process or others. One of them makes an
     * invitation, all are told it and join, numbered from 0; then all sum the same in the same order. `join`,
     * `sum` and `leave` stand each in a thread of its device, as they wait for the others': for `seconds` at
     * most, after which this one has left. All NULL: the driver cannot. */
    /* Who the device is, in every process; SGM_DEVICE_ABSENT with the reason if it cannot sum. */
    sgm_device_result (*identify)(void *self, unsigned char identity[SGM_DEVICE_IDENTITY], char *message);
    sgm_device_result (*invite)(unsigned char invitation[SGM_DEVICE_INVITATION], char *message);
    sgm_device_result (*join)(void *self, const unsigned char *invitation, uint32_t number, uint32_t of,
                              double seconds, char *message);
    /* After what is in the queue; done on return. */
    sgm_device_result (*sum)(void *self, const sgm_device_addend *addends, uint32_t count,
                             sgm_device_type type, double seconds, char *message);
    /* A peer has failed: `join` and `sum` of this device end soon, and fail. Any thread at any time. */
    void (*give_up)(void *self);
    void (*leave)(void *self);
    const char *sums_by; /* "NCCL" */
} sgm_device_driver;

/* What a plug-in exports: sgm_plugin_opencl, sgm_plugin_cuda. */
typedef const sgm_device_driver *sgm_device_plugin(void);

#endif
