/* A stand-in for libcuda.so.1, libnvrtc.so, libcublasLt.so and libnccl.so.2, for tests on computers without a
 * GPU: devices are memory of this process, kernels are compiled by the system's C++ compiler and run item by
 * item. It says nothing about speed or about NVIDIA's driver, but it is strict: work waits in queues until
 * somebody waits for it, memory has guards, contexts are checked, what is left over at the end is an error.
 * What is wrong ends the process with a sentence.
 *
 * SIGMA_FAKE_CUDA_DEVICES (2) and SIGMA_FAKE_CUDA_MEMORY (bytes of each, 1 GiB) say what there is;
 * CUDA_VISIBLE_DEVICES, one number, which of them alone a process sees. With SIGMA_FAKE_CUDA_FAIL_AT=n memory
 * is given n - 1 times more, and then no more.
 */
#ifndef SIGMA_FAKE_CUDA_H
#define SIGMA_FAKE_CUDA_H

#include "../../../plugins/cuda/cuda_functions.h"
#include "../../../plugins/cuda/cuda_types.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_DEVICES 8
#define FAKE_CAPABILITY 90
#define FAKE_GROUP 1024     /* items at most */
#define FAKE_PARAMETERS 512 /* of a kernel, as many as 4 KiB hold */

#define FAKE_DECLARE(result, name, parameters) __attribute__((visibility("default"))) result name parameters;
SGM_CUDA_FUNCTIONS(FAKE_DECLARE)
SGM_NVRTC_FUNCTIONS(FAKE_DECLARE)
SGM_CUBLASLT_FUNCTIONS(FAKE_DECLARE)
SGM_NCCL_FUNCTIONS(FAKE_DECLARE)

typedef struct fake_module fake_module;

struct cu_function_ {
    struct cu_function_ *next;
    fake_module *module; /* NULL: unloaded */
    char name[128];
    void (*call)(void **parameters);
    int parameters, group; /* as the text says */
};

struct fake_module {
    void *library;
    struct cu_context_ *context;
    unsigned (*indices)[3]; /* threadIdx, blockIdx, blockDim, gridDim */
    void (**barrier)(void);
};

typedef enum fake_kind {
    FAKE_CLEAR,
    FAKE_COPY,
    FAKE_UPLOAD,
    FAKE_DOWNLOAD,
    FAKE_FREE,
    FAKE_LAUNCH,
    FAKE_PRODUCT,
    FAKE_SUM /* `bytes` counts elements, `from` those that are done */
} fake_kind;

typedef struct fake_work {
    struct fake_work *next;
    fake_kind kind;
    cu_pointer to, from;
    void *host;
    size_t bytes;
    unsigned char value;
    struct cu_function_ *function;
    unsigned groups, group;
    int parameter_count;
    void *parameters[]; /* of the function; or what the product is */
} fake_work;

typedef struct fake_list {
    fake_work *first, **last;
    int count;
} fake_list;

struct cu_graph_ {
    fake_list list;
};

struct cu_stream_ {
    struct cu_context_ *context;
    fake_list list;
    struct cu_graph_ *recording;
};

struct cu_context_ {
    int number, references;
    int streams, events, modules, graphs, page_locked; /* that were made and not freed */
    _Atomic int groups;                                /* the same; two may be joined at once */
    size_t used;
    struct cu_function_ *functions;
};

/* memory.c */
/* What is wrong, and the end. */
__attribute__((noreturn, format(printf, 1, 2))) void fake_wrong(const char *format, ...);
struct cu_context_ *fake_current(void);
/* The memory of so many bytes on a context's device; there must be that. */
void *fake_memory(struct cu_context_ *context, cu_pointer at, size_t bytes, const char *who);
void fake_free(struct cu_context_ *context, cu_pointer at);
/* What a kernel did wrong, where the address is near memory of ours. */
const char *fake_explain(const void *address, char *buffer, size_t size);

/* queue.c */
void fake_finish(struct cu_stream_ *stream); /* all work that waits */
fake_work *fake_enqueue(struct cu_stream_ *stream, fake_kind kind, int parameters);

/* fibres.c */
void fake_run(struct cu_context_ *context, const fake_work *launch);

/* products.c */
void fake_multiply(struct cu_context_ *context, const void *what);

/* nccl.c; false: it has to wait for others */
bool fake_sum(fake_work *sum);

#endif
