/* The interface between the library and a plug-in that drives devices: a table of functions,
 * sgm_device_driver. Internal.
 *
 * A plug-in (libsigma-opencl.so, libsigma-cuda.so; sources in plugins/) speaks one vendor's language: it
 * finds devices, gives memory, compiles source text and queues work. It knows neither plans nor operations;
 * those are in code/ and run/. It uses nothing of libsigma, so that it serves a static library as well as a
 * shared one; hence this header stands alone.
 *
 * All work of a device goes to one queue and is done in order. A function returns SGM_DEVICE_OK, or what went
 * wrong with a sentence in `message`, which has room for SGM_DEVICE_MESSAGE bytes. The functions of one
 * device are called by one thread at a time (the lock in run/device.h), except give_up.
 */
#ifndef SGM_HANDLERS_DEVICE_DRIVER_H
#define SGM_HANDLERS_DEVICE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes whenever a struct or a function of this header does: a plug-in of another version is refused. */
#define SGM_DEVICE_DRIVER_VERSION 4
#define SGM_DEVICE_MESSAGE 1024
#define SGM_DEVICE_IDENTITY 16
#define SGM_DEVICE_INVITATION 128

/* What a function of the driver returns. */
typedef enum sgm_device_result {
    SGM_DEVICE_OK,
    SGM_DEVICE_ABSENT, /* there is no driver or no such device, or it lacks something that is needed */
    SGM_DEVICE_MEMORY, /* the device's memory is used up; the device can still be used */
    SGM_DEVICE_SOURCE, /* the source was refused; `message` is the beginning of the compiler's */
    SGM_DEVICE_FAILED,
    SGM_DEVICE_DECLINED /* nothing was queued: the caller must compute this in another way */
} sgm_device_result;

/* What the library must know of a device: names for users and for the cache, and limits for the kernels that
 * it writes. */
typedef struct sgm_device_info {
    char name[256];   /* "NVIDIA H200" */
    char driver[256]; /* "OpenCL 3.0 PoCL 3.1", "CUDA 13.0" */
    /* Everything else that a compiled source depends on: the compiler's version, our options for it. */
    char compiler[512];
    uint64_t memory;  /* bytes of the device's memory */
    uint64_t largest; /* bytes of one buffer at most */
    uint32_t local;   /* bytes of local memory, which the work-items of a group share */
    uint32_t units;   /* processors that run groups at the same time (CUDA: multiprocessors) */
    uint32_t group;   /* work-items in a group at most */
    /* The device is the computer's processor, where a group is a loop over its work-items. */
    bool is_processor;
    bool has_float64;
} sgm_device_info;

/* A place in a buffer, `offset` bytes from its start. A kernel gets it as a pointer. */
typedef struct sgm_device_place {
    void *buffer;
    uint64_t offset; /* bytes */
} sgm_device_place;

/* A launch of a kernel over groups x group work-items. */
typedef struct sgm_device_launch {
    void *kernel;
    uint32_t groups, group; /* the number of groups, and of work-items in each */
    uint32_t place_count;
    const sgm_device_place *places; /* the kernel's arguments, in order */
} sgm_device_launch;

/* The types of matrices that a library multiplies and of numbers that devices sum. */
typedef enum sgm_device_type { SGM_DEVICE_FLOAT32, SGM_DEVICE_FLOAT64, SGM_DEVICE_BFLOAT16 } sgm_device_type;

/* A matrix of a product, or a batch of them. Strides are in elements; `row` is the distance between rows, and
 * one of `row` and `column` is 1. */
typedef struct sgm_device_matrix {
    sgm_device_place place;
    sgm_device_type type;
    int64_t row, column, batch; /* distances in elements */
} sgm_device_matrix;
/* result = left right + addend + bias, for each matrix of the batch, and max(0, that) if `rectified`, where
 * NaN stays NaN. left is (rows, depth), right (depth, columns), result (rows, columns). Sums are in float32
 * or wider. */
typedef struct sgm_device_product {
    int64_t rows, columns, depth, batch;
    sgm_device_matrix left, right, result;
    bool narrow; /* operands of float32 may be rounded to tf32, 10 bits of fraction */
    bool has_addend, has_bias, rectified;
    sgm_device_matrix addend; /* of the result's type and strides; may be the result's memory */
    sgm_device_place bias;    /* `columns` contiguous numbers of the result's type */
} sgm_device_product;

/* `count` elements that become their sums over all peers. */
typedef struct sgm_device_addend {
    sgm_device_place place;
    uint64_t count;
} sgm_device_addend;

/* The driver. A plug-in exports a function that returns it (sgm_device_plugin). */
typedef struct sgm_device_driver {
    /* SGM_DEVICE_DRIVER_VERSION; the first member in every version, and checked before all others. */
    uint32_t version;
    const char *name; /* "opencl" */
    /* Text that is put before every source: it defines the words of the dialect, see code/code.h. */
    const char *prelude;

    sgm_device_result (*count)(uint32_t *devices, char *message);
    /* Opens a device and describes it in *info. Fails with SGM_DEVICE_ABSENT and the reason for a device that
     * lacks something. */
    sgm_device_result (*open)(uint32_t device, void **self, sgm_device_info *info, char *message);
    void (*close)(void *self);

    /* The contents of a new buffer are arbitrary. */
    sgm_device_result (*allocate)(void *self, uint64_t bytes, void **buffer, char *message);
    /* Queued work may still use the buffer, which must stay until then. */
    void (*release)(void *self, void *buffer);
    sgm_device_result (*clear)(void *self, sgm_device_place place, uint64_t bytes, char *message);
    /* Queues a write from `host`, which may change as soon as this returns. `read` returns when the bytes are
     * there. */
    sgm_device_result (*write)(void *self, sgm_device_place place, const void *host, uint64_t bytes,
                               char *message);
    sgm_device_result (*read)(void *self, sgm_device_place place, void *host, uint64_t bytes, char *message);
    sgm_device_result (*copy)(void *self, sgm_device_place from, sgm_device_place to, uint64_t bytes,
                              char *message);

    /* Compiles a source to a binary that `load` takes, and that can be kept on disk for the same device,
     * driver and compiler. *binary is freed with `drop`. */
    sgm_device_result (*build)(void *self, const char *source, void **binary, size_t *bytes, char *message);
    void (*drop)(void *binary);
    sgm_device_result (*load)(void *self, const void *binary, size_t bytes, void **module, char *message);
    void (*unload)(void *self, void *module);
    /* Finds a kernel by name. It belongs to its module. */
    sgm_device_result (*kernel)(void *self, void *module, const char *name, void **kernel, char *message);

    /* Queues a launch. */
    sgm_device_result (*launch)(void *self, const sgm_device_launch *launch, char *message);
    sgm_device_result (*wait)(void *self, char *message);

    /* Products by a vendor's library. `takes` says whether the library would compute this one; of a place
     * without a buffer only the offset is known, and the buffer begins where all types may. `multiply` queues
     * it, and may still decline. NULL, or `takes` returns false: the library computes it by kernels of its
     * own text. */
    bool (*takes)(void *self, const sgm_device_product *product);
    sgm_device_result (*multiply)(void *self, const sgm_device_product *product, char *message);

    /* What is queued between `record` and `keep` is kept as a recording instead of run; `replay` queues all
     * of it at once. All NULL: the driver cannot record. */
    sgm_device_result (*record)(void *self, char *message);
    sgm_device_result (*keep)(void *self, void **recording, char *message);
    sgm_device_result (*replay)(void *self, void *recording, char *message);
    void (*forget)(void *self, void *recording);

    /* Sums with other devices of this driver, the peers, in this process or others. One of them makes an
     * invitation, which is passed on to all; all join, numbered from 0; then all sum equal counts in the same
     * order. `join`, `sum` and `leave` wait for the peers, each on a thread of its own device: for `seconds`
     * at most, after which this device has left. All NULL: the driver cannot sum. `identify` writes bytes
     * that name the device in every process, or fails with SGM_DEVICE_ABSENT and the reason. */
    sgm_device_result (*identify)(void *self, unsigned char identity[SGM_DEVICE_IDENTITY], char *message);
    sgm_device_result (*invite)(unsigned char invitation[SGM_DEVICE_INVITATION], char *message);
    sgm_device_result (*join)(void *self, const unsigned char *invitation, uint32_t number, uint32_t of,
                              double seconds, char *message);
    /* Sums after all queued work; done on return. */
    sgm_device_result (*sum)(void *self, const sgm_device_addend *addends, uint32_t count,
                             sgm_device_type type, double seconds, char *message);
    /* A peer has failed: `join` and `sum` of this device end soon with a failure. Any thread may call this at
     * any time. */
    void (*give_up)(void *self);
    void (*leave)(void *self);
    const char *sums_by; /* "NCCL" */
} sgm_device_driver;

/* The function that a plug-in exports: sgm_plugin_opencl or sgm_plugin_cuda. */
typedef const sgm_device_driver *sgm_device_plugin(void);

#endif
