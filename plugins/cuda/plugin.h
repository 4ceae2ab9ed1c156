/* The CUDA plug-in: what its files share. It uses nothing of libsigma.
 *
 * libcuda.so.1 is part of NVIDIA's driver; libnvrtc.so compiles kernels; libcublasLt.so, if it is there,
 * multiplies matrices, and libnccl.so.2 sums over several devices. All are loaded at run time.
 * SIGMA_CUDA_LIBRARIES names folders in which they are looked for, separated by colons, and nowhere else; an
 * empty one stands for the usual places.
 */
#ifndef SGM_CUDA_PLUGIN_H
#define SGM_CUDA_PLUGIN_H

#include "cuda_functions.h"
#include "cuda_types.h"
#include "handlers/device/driver.h"

#include <stdatomic.h>

#define SGM_CUDA_MEMBER(result, name, parameters) result(*name) parameters;
/* The functions of all four libraries by their own names, `library->cuda.cuInit`. One for the process,
 * filled in by libraries.c; of a library whose has_... is false, the pointers must not be used. */
typedef struct cuda_libraries {
    struct {
        SGM_CUDA_FUNCTIONS(SGM_CUDA_MEMBER)
    } cuda;
    struct {
        SGM_NVRTC_FUNCTIONS(SGM_CUDA_MEMBER)
    } nvrtc;
    struct {
        SGM_CUBLASLT_FUNCTIONS(SGM_CUDA_MEMBER)
    } cublas;
    struct {
        SGM_NCCL_FUNCTIONS(SGM_CUDA_MEMBER)
    } nccl;
    bool has_cuda, has_nvrtc, has_cublas, has_nccl;
    int version; /* of the driver: 13000 is 13.0 */
} cuda_libraries;
#undef SGM_CUDA_MEMBER

/* Four stages of 2 MiB: the host fills one while the device fetches others. */
#define STAGES 4
#define STAGE_BYTES ((size_t)2 << 20)

/* Page-locked memory through which the host's bytes go: the device fetches a stage while the next is filled.
 */
typedef struct cuda_staging {
    unsigned char *memory;    /* STAGES of them, and one more for what is read */
    cu_event fetched[STAGES]; /* by the device */
    bool filled[STAGES];      /* and perhaps not fetched yet */
    size_t used;              /* of the current stage */
    int current;
} cuda_staging;

typedef struct cuda_products cuda_products;

/* An opened device: the `self` of the driver's functions. It has one stream, so all work is done in the
 * order in which it was queued. One thread at a time uses it, but for given_up. */
typedef struct cuda_device {
    const cuda_libraries *library;
    cu_device number;
    cu_context context;
    cu_stream stream;
    cu_pool pool; /* NULL: memory is given and taken at once, not in the order of the queue */
    cuda_staging staging;
    char target[32]; /* "sm_90": machine code for it, "compute_90": a text that the driver compiles */
    bool recording;
    cu_pointer *released; /* while recording */
    size_t released_count, released_room;
    cuda_products *products; /* NULL: none yet */
    bool no_products;        /* cuBLASLt cannot be used */
    nccl_group group;        /* NULL: it has not joined others */
    uint32_t peers;          /* devices in it */
    atomic_bool given_up;
} cuda_device;

/* libraries.c */
/* The driver, loaded and begun once; NULL with a message. */
const cuda_libraries *cuda_load(char *message);
/* The compiler, cuBLASLt and NCCL beside it; that one is not there says `message`. */
bool cuda_load_compiler(char *message);
bool cuda_load_products(void);
bool cuda_load_nccl(char *message);

/* driver.c */
void cuda_say(char *message, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* CU_DONE is SGM_DEVICE_OK; else says that it failed while `doing`. */
sgm_device_result cuda_check(const cuda_device *device, cu_result result, const char *doing, char *message);
/* All calls for a device stand between these: its context belongs to the thread until then. */
sgm_device_result cuda_enter(const cuda_device *device, char *message);
void cuda_leave(const cuda_device *device);
/* Both: checks what a call gave, and leaves. */
sgm_device_result cuda_leave_with(const cuda_device *device, cu_result result, const char *doing,
                                  char *message);
cu_pointer cuda_address(sgm_device_place place);

/* memory.c */
sgm_device_result cuda_memory_open(cuda_device *device, char *message);
void cuda_memory_close(cuda_device *device);
sgm_device_result cuda_allocate(void *self, uint64_t bytes, void **buffer, char *message);
void cuda_release(void *self, void *buffer);
void cuda_release_late(cuda_device *device); /* what was released while recording */
sgm_device_result cuda_clear(void *self, sgm_device_place place, uint64_t bytes, char *message);
sgm_device_result cuda_write(void *self, sgm_device_place place, const void *host, uint64_t bytes,
                             char *message);
sgm_device_result cuda_read(void *self, sgm_device_place place, void *host, uint64_t bytes, char *message);
sgm_device_result cuda_copy(void *self, sgm_device_place from, sgm_device_place to, uint64_t bytes,
                            char *message);

/* compile.c */
sgm_device_result cuda_choose_target(cuda_device *device, int capability, char *message);
/* Those that the compiler is given. */
void cuda_describe_options(const cuda_device *device, char *text, size_t size);
sgm_device_result cuda_build(void *self, const char *source, void **binary, size_t *bytes, char *message);
void cuda_drop(void *binary);
sgm_device_result cuda_load_module(void *self, const void *binary, size_t bytes, void **module,
                                   char *message);
void cuda_unload(void *self, void *module);
sgm_device_result cuda_kernel(void *self, void *module, const char *name, void **kernel, char *message);

/* queue.c */
sgm_device_result cuda_launch(void *self, const sgm_device_launch *launch, char *message);
sgm_device_result cuda_wait(void *self, char *message);
sgm_device_result cuda_record(void *self, char *message);
sgm_device_result cuda_keep(void *self, void **recording, char *message);
sgm_device_result cuda_replay(void *self, void *recording, char *message);
void cuda_forget(void *self, void *recording);

/* products.c */
bool cuda_takes(void *self, const sgm_device_product *product);
sgm_device_result cuda_multiply(void *self, const sgm_device_product *product, char *message);
void cuda_products_close(cuda_device *device);

/* peers.c */
sgm_device_result cuda_identify(void *self, unsigned char identity[SGM_DEVICE_IDENTITY], char *message);
sgm_device_result cuda_invite(unsigned char invitation[SGM_DEVICE_INVITATION], char *message);
sgm_device_result cuda_join(void *self, const unsigned char *invitation, uint32_t number, uint32_t of,
                            double seconds, char *message);
sgm_device_result cuda_sum(void *self, const sgm_device_addend *addends, uint32_t count, sgm_device_type type,
                           double seconds, char *message);
void cuda_give_up(void *self);
void cuda_leave_peers(void *self);

#endif
