/* Loads NVIDIA's libraries when they are first needed; they stay until the process ends.
 *
 * libcuda.so.1 belongs to the driver and must be there. libnvrtc compiles kernels and must be there, too.
 * libcublasLt and libnccl are for products and for sums over devices, and may be missing. Nothing is
 * linked, so the plug-in is built and loaded on computers without any of them. A library counts only if it
 * has every function of its list in cuda_functions.h: one that is too old is refused with the name of what
 * it lacks. A failed attempt is made again at the next call, so what is installed meanwhile is found. */
#include "plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDERS_VARIABLE "SIGMA_CUDA_LIBRARIES"

/* A function to look up, and where its pointer goes. */
typedef struct symbol {
    const char *name;
    size_t offset; /* of the pointer in cuda_libraries */
} symbol;

/* One list for each library, made of the same X lists as the members of cuda_libraries. */
#define CUDA_SYMBOL(result, name, parameters) {#name, offsetof(cuda_libraries, cuda.name)},
#define NVRTC_SYMBOL(result, name, parameters) {#name, offsetof(cuda_libraries, nvrtc.name)},
#define CUBLASLT_SYMBOL(result, name, parameters) {#name, offsetof(cuda_libraries, cublas.name)},
#define NCCL_SYMBOL(result, name, parameters) {#name, offsetof(cuda_libraries, nccl.name)},
static const symbol cuda_symbols[] = {SGM_CUDA_FUNCTIONS(CUDA_SYMBOL){NULL, 0}};
static const symbol nvrtc_symbols[] = {SGM_NVRTC_FUNCTIONS(NVRTC_SYMBOL){NULL, 0}};
static const symbol cublaslt_symbols[] = {SGM_CUBLASLT_FUNCTIONS(CUBLASLT_SYMBOL){NULL, 0}};
static const symbol nccl_symbols[] = {SGM_NCCL_FUNCTIONS(NCCL_SYMBOL){NULL, 0}};

/* All devices of the process share the libraries; the lock is held while one is loaded. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuda_libraries libraries;

/* Loads a library from the first folder of SIGMA_CUDA_LIBRARIES that has it; an empty name in that list,
 * or no list, stands for where the system looks and /usr/local/cuda/lib64. NULL: it is nowhere. */
static void *find_library(const char *file)
{
    const char *folders = getenv(FOLDERS_VARIABLE);
    void *library = NULL;
    for (const char *at = folders != NULL ? folders : ""; at != NULL && library == NULL;) {
        size_t length = strcspn(at, ":");
        char path[4096];
        int needed = snprintf(path, sizeof path, "%.*s/%s", (int)length, at, file);
        if (length > 0 && needed < (int)sizeof path)
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (length == 0) {
            library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
            snprintf(path, sizeof path, "/usr/local/cuda/lib64/%s", file);
            if (library == NULL)
                library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
        at = at[length] == ':' ? at + length + 1 : NULL;
    }
    return library;
}

/* Looks up all functions of a list. Returns the name of the first that the library lacks; NULL: it has
 * all. */
static const char *take_symbols(void *library, const symbol *symbols)
{
    for (; symbols->name != NULL; symbols++) {
        void *address = dlsym(library, symbols->name);
        if (address == NULL)
            return symbols->name;
        memcpy((char *)&libraries + symbols->offset, &address, sizeof address);
    }
    return NULL;
}

/* Each way to fail has a message that says what to install or to change. With the lock. */
static bool load_driver(char *message)
{
    void *library = find_library("libcuda.so.1");
    if (library == NULL) {
        cuda_say(message, "there is no libcuda.so.1: NVIDIA's driver is not installed (Debian: nvidia-driver "
                          "and libcuda1); " FOLDERS_VARIABLE " names more folders");
        return false;
    }
    const char *missing = take_symbols(library, cuda_symbols);
    if (missing != NULL) {
        cuda_say(message, "NVIDIA's driver is too old: libcuda.so.1 has no %s; CUDA 11.4 or newer is needed",
                 missing);
        return false;
    }
    cu_result result = libraries.cuda.cuInit(0);
    if (result == CU_DONE)
        result = libraries.cuda.cuDriverGetVersion(&libraries.version);
    if (result == CU_DONE)
        return true;
    const char *text = NULL;
    libraries.cuda.cuGetErrorString(result, &text);
    if (result == CU_NO_DEVICE)
        cuda_say(message, "NVIDIA's driver is installed, but there is no device that it can use");
    else
        cuda_say(message, "NVIDIA's driver cannot be used: %s", text != NULL ? text : "it gives no reason");
    return false;
}

/* NULL with `message` if the driver is missing, too old, or has no device. */
const cuda_libraries *cuda_load(char *message)
{
    pthread_mutex_lock(&lock);
    if (!libraries.has_cuda)
        libraries.has_cuda = load_driver(message);
    const cuda_libraries *loaded = libraries.has_cuda ? &libraries : NULL;
    pthread_mutex_unlock(&lock);
    return loaded;
}

/* Of several versions of a library the newest that is not newer than the driver, since a newer one may
 * make code that the driver cannot load; only if there is none, a newer one. NVRTC 11 has 11.2 in its
 * file's name. With the lock. */
static void *find_version(const char *name)
{
    int own = libraries.version / 1000;
    for (int turn = 0; turn < 2; turn++)
        for (int version = 14; version >= 11; version--) {
            char file[64];
            snprintf(file, sizeof file, "%s.so.%d", name, version);
            void *library = (version <= own) == (turn == 0) ? find_library(file) : NULL;
            if (library == NULL && version == 11 && turn == 0 && strcmp(name, "libnvrtc") == 0)
                library = find_library("libnvrtc.so.11.2");
            if (library != NULL)
                return library;
        }
    return NULL;
}

/* True if it is loaded now or was before; else `message` says what is missing. */
bool cuda_load_compiler(char *message)
{
    pthread_mutex_lock(&lock);
    if (!libraries.has_nvrtc) {
        void *library = find_version("libnvrtc");
        const char *missing = library != NULL ? take_symbols(library, nvrtc_symbols) : NULL;
        if (library == NULL)
            cuda_say(message,
                     "there is no libnvrtc.so.13, 12 or 11, which compiles the kernels: it is part of "
                     "NVIDIA's CUDA toolkit (Debian: nvidia-cuda-toolkit; pip: "
                     "nvidia-cuda-nvrtc); " FOLDERS_VARIABLE " names more folders");
        else if (missing != NULL)
            cuda_say(message, "NVIDIA's compiler is too old: libnvrtc.so has no %s; 11.2 or newer is needed",
                     missing);
        else
            libraries.has_nvrtc = true;
    }
    bool loaded = libraries.has_nvrtc;
    pthread_mutex_unlock(&lock);
    return loaded;
}

/* Without cuBLASLt there is no message: the library's own kernels multiply then. */
bool cuda_load_products(void)
{
    pthread_mutex_lock(&lock);
    if (!libraries.has_cublas) {
        void *library = find_version("libcublasLt");
        libraries.has_cublas = library != NULL && take_symbols(library, cublaslt_symbols) == NULL;
    }
    bool loaded = libraries.has_cublas;
    pthread_mutex_unlock(&lock);
    return loaded;
}

/* Sums over devices are impossible without it, so there is a message that says what to install. */
bool cuda_load_nccl(char *message)
{
    pthread_mutex_lock(&lock);
    if (!libraries.has_nccl) {
        void *library = find_library("libnccl.so.2");
        const char *missing = library != NULL ? take_symbols(library, nccl_symbols) : NULL;
        if (library == NULL)
            cuda_say(message,
                     "there is no libnccl.so.2, NVIDIA's NCCL (Debian, NVIDIA's packages: libnccl2; pip: "
                     "nvidia-nccl-cu13, -cu12); " FOLDERS_VARIABLE " names more folders");
        else if (missing != NULL)
            cuda_say(message, "NVIDIA's NCCL is too old: libnccl.so.2 has no %s; 2.14 or newer is needed",
                     missing);
        else
            libraries.has_nccl = true;
    }
    bool loaded = libraries.has_nccl;
    pthread_mutex_unlock(&lock);
    return loaded;
}
