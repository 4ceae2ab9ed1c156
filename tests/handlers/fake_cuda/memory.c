/* Devices, contexts and memory. */
#include "fake.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLACK 0xA5
#define NEW 0xFF /* a NaN in every type: who reads what was never written shall see it */

typedef struct block {
    struct block *next;
    struct cu_context_ *context;
    unsigned char *region, *memory;
    size_t region_bytes, bytes;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cu_context_ contexts[FAKE_DEVICES];
static block *blocks, *locked; /* of devices; page-locked ones of the host */
static _Thread_local struct cu_context_ *stack[8];
static _Thread_local int depth;

void fake_wrong(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("stand-in for CUDA: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

static size_t setting(const char *name, size_t usual)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? (size_t)strtoull(text, NULL, 10) : usual;
}

static size_t memory_of_device(void)
{
    return setting("SIGMA_FAKE_CUDA_MEMORY", (size_t)1 << 30);
}

static const char *visible(void)
{
    const char *number = getenv("CUDA_VISIBLE_DEVICES");
    return number != NULL && *number != '\0' ? number : NULL;
}

static int device_count(void)
{
    if (visible() != NULL)
        return 1;
    size_t count = setting("SIGMA_FAKE_CUDA_DEVICES", 2);
    return count < FAKE_DEVICES ? (int)count : FAKE_DEVICES;
}

cu_result cuInit(unsigned int flags)
{
    if (flags != 0)
        return CU_INVALID;
    /* Without a C++ compiler nothing could run. */
    return device_count() > 0 && system("c++ --version >/dev/null 2>&1") == 0 ? CU_DONE : CU_NO_DEVICE;
}

cu_result cuDriverGetVersion(int *version)
{
    *version = 12040;
    return CU_DONE;
}

static const char *const error_texts[][2] = {{"CUDA_ERROR_UNKNOWN", "unknown error"},
                                             {"CUDA_ERROR_INVALID_VALUE", "invalid argument"},
                                             {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
                                             {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
                                             {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
                                             {"CUDA_ERROR_NOT_FOUND", "named symbol not found"}};

static const char *const *error_text(cu_result error)
{
    static const cu_result errors[] = {
        0, CU_INVALID, CU_OUT_OF_MEMORY, CU_NO_DEVICE, CU_INVALID_IMAGE, CU_NOT_FOUND};
    for (size_t i = 1; i < sizeof errors / sizeof *errors; i++)
        if (errors[i] == error)
            return error_texts[i];
    return error_texts[0];
}

cu_result cuGetErrorName(cu_result error, const char **text)
{
    *text = error_text(error)[0];
    return CU_DONE;
}

cu_result cuGetErrorString(cu_result error, const char **text)
{
    *text = error_text(error)[1];
    return CU_DONE;
}

cu_result cuDeviceGetCount(int *count)
{
    *count = device_count();
    return CU_DONE;
}

cu_result cuDeviceGet(cu_device *device, int number)
{
    *device = number;
    return number >= 0 && number < device_count() ? CU_DONE : CU_INVALID;
}

/* Kernels are kept by the device's name; what they were compiled with is part of it. */
static unsigned print_of_words(void)
{
    FILE *file = fopen(SIGMA_FAKE_CUDA_WORDS, "r");
    unsigned print = 2166136261u; /* FNV-1a */
    if (file == NULL)
        fake_wrong("%s cannot be read", SIGMA_FAKE_CUDA_WORDS);
    for (int byte; (byte = fgetc(file)) != EOF;)
        print = (print ^ (unsigned)byte) * 16777619u;
    fclose(file);
    return print;
}

cu_result cuDeviceGetName(char *name, int size, cu_device device)
{
    snprintf(name, (size_t)size, "stand-in %08x for a GPU, number %d", print_of_words(), device);
    return CU_DONE;
}

/* All processes see the same devices. */
cu_result cuDeviceGetUuid_v2(cu_identity *identity, cu_device device)
{
    memset(identity, 0, sizeof *identity);
    snprintf(identity->bytes, sizeof identity->bytes, "stand-in %d",
             visible() != NULL ? atoi(visible()) : device);
    return CU_DONE;
}

cu_result cuDeviceTotalMem_v2(size_t *bytes, cu_device device)
{
    *bytes = memory_of_device();
    return device >= 0 ? CU_DONE : CU_INVALID;
}

cu_result cuDeviceGetAttribute(int *value, cu_attribute attribute, cu_device device)
{
    static const int known[][2] = {{CU_MAX_THREADS_PER_BLOCK, FAKE_GROUP},
                                   {CU_SHARED_PER_BLOCK, 49152},
                                   {CU_MULTIPROCESSORS, 4},
                                   {CU_CAPABILITY_MAJOR, FAKE_CAPABILITY / 10},
                                   {CU_CAPABILITY_MINOR, FAKE_CAPABILITY % 10},
                                   {CU_HAS_POOLS, 1}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if ((cu_attribute)known[i][0] == attribute && device >= 0) {
            *value = known[i][1];
            return CU_DONE;
        }
    return CU_INVALID;
}

/* --- contexts --- */

cu_result cuDevicePrimaryCtxRetain(cu_context *context, cu_device device)
{
    pthread_mutex_lock(&lock);
    *context = &contexts[device];
    contexts[device].number = device;
    contexts[device].references++;
    pthread_mutex_unlock(&lock);
    return CU_DONE;
}

static void check_empty(const struct cu_context_ *c)
{
    if (c->streams + c->events + c->modules + c->graphs + c->groups != 0)
        fake_wrong("device %d is left with %d streams, %d events, %d modules, %d recordings and in %d groups",
                   c->number, c->streams, c->events, c->modules, c->graphs, c->groups);
    if (c->used > 0 || c->page_locked > 0)
        fake_wrong("device %d is left with %zu bytes in use and %d page-locked blocks", c->number, c->used,
                   c->page_locked);
}

cu_result cuDevicePrimaryCtxRelease_v2(cu_device device)
{
    struct cu_context_ *context = &contexts[device];
    pthread_mutex_lock(&lock);
    if (context->references-- <= 0)
        fake_wrong("device %d is released more often than it was opened", device);
    if (context->references == 0) {
        check_empty(context);
        for (struct cu_function_ *f = context->functions, *next; f != NULL; f = next) {
            next = f->next;
            free(f);
        }
        context->functions = NULL;
    }
    pthread_mutex_unlock(&lock);
    return CU_DONE;
}

cu_result cuCtxPushCurrent_v2(cu_context context)
{
    if (context == NULL || depth == sizeof stack / sizeof *stack)
        return CU_INVALID_CONTEXT;
    if (context->references <= 0)
        fake_wrong("device %d is used after it was released", context->number);
    stack[depth++] = context;
    return CU_DONE;
}

cu_result cuCtxPopCurrent_v2(cu_context *context)
{
    if (depth == 0)
        fake_wrong("a context is left that was not entered");
    *context = stack[--depth];
    return CU_DONE;
}

struct cu_context_ *fake_current(void)
{
    if (depth == 0)
        fake_wrong("a call without a context");
    return stack[depth - 1];
}

/* --- memory --- */

static block *find(block *list, const unsigned char *at)
{
    while (list != NULL && (at < list->memory || at >= list->memory + list->bytes))
        list = list->next;
    return list;
}

static block *make(size_t bytes, unsigned char fill)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), padded = (bytes + 255) & ~(size_t)255;
    block *b = calloc(1, sizeof *b);
    if (b == NULL)
        fake_wrong("the computer's memory is used up");
    b->region_bytes = ((padded + page - 1) & ~(page - 1)) + 2 * page;
    b->region = mmap(NULL, b->region_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->region == MAP_FAILED ||
        mprotect(b->region + page, b->region_bytes - 2 * page, PROT_READ | PROT_WRITE) != 0)
        fake_wrong("the computer's memory is used up");
    b->memory = b->region + b->region_bytes - page - padded;
    b->bytes = bytes;
    memset(b->memory, fill, bytes);
    memset(b->memory + bytes, SLACK, padded - bytes);
    return b;
}

static void take_out(block **list, block *b)
{
    while (*list != b)
        list = &(*list)->next;
    *list = b->next;
}

static void destroy(block *b)
{
    for (size_t i = b->bytes; i < ((b->bytes + 255) & ~(size_t)255); i++)
        if (b->memory[i] != SLACK)
            fake_wrong("a block of %zu bytes was written to beyond its end, at %zu", b->bytes, i);
    munmap(b->region, b->region_bytes);
    free(b);
}

/* Whether the allocation that is asked for now fails by wish; counted from when the wish was made. */
static bool is_to_fail(void)
{
    static size_t wish, count;
    size_t fail_at = setting("SIGMA_FAKE_CUDA_FAIL_AT", 0);
    if (fail_at != wish) {
        wish = fail_at;
        count = 0;
    }
    return wish > 0 && ++count >= wish;
}

cu_result cuMemAlloc_v2(cu_pointer *memory, size_t bytes)
{
    struct cu_context_ *context = fake_current();
    if (bytes == 0)
        return CU_INVALID;
    pthread_mutex_lock(&lock);
    bool fits = !is_to_fail() && bytes <= memory_of_device() && context->used <= memory_of_device() - bytes;
    if (fits) {
        block *b = make(bytes, NEW);
        b->context = context;
        b->next = blocks;
        blocks = b;
        context->used += bytes;
        *memory = (cu_pointer)(uintptr_t)b->memory;
    }
    pthread_mutex_unlock(&lock);
    return fits ? CU_DONE : CU_OUT_OF_MEMORY;
}

cu_result cuMemAllocAsync(cu_pointer *memory, size_t bytes, cu_stream stream)
{
    if (stream->context != fake_current() || stream->recording != NULL)
        fake_wrong("memory is asked for in another context, or while recording");
    return cuMemAlloc_v2(memory, bytes);
}

void fake_free(struct cu_context_ *context, cu_pointer at)
{
    pthread_mutex_lock(&lock);
    block *b = find(blocks, (unsigned char *)(uintptr_t)at);
    if (b == NULL || b->memory != (unsigned char *)(uintptr_t)at)
        fake_wrong("memory is freed that was not given, or twice");
    if (b->context != context)
        fake_wrong("memory of device %d is freed on device %d", b->context->number, context->number);
    context->used -= b->bytes;
    take_out(&blocks, b);
    destroy(b);
    pthread_mutex_unlock(&lock);
}

cu_result cuMemFree_v2(cu_pointer memory)
{
    fake_free(fake_current(), memory);
    return CU_DONE;
}

cu_result cuMemFreeAsync(cu_pointer memory, cu_stream stream)
{
    fake_memory(stream->context, memory, 1, "a release");
    fake_enqueue(stream, FAKE_FREE, 0)->to = memory;
    return CU_DONE;
}

void *fake_memory(struct cu_context_ *context, cu_pointer at, size_t bytes, const char *who)
{
    unsigned char *start = (unsigned char *)(uintptr_t)at;
    pthread_mutex_lock(&lock);
    const block *b = find(blocks, start);
    pthread_mutex_unlock(&lock);
    if (b == NULL)
        fake_wrong("%s uses memory that is not the device's, or not any more", who);
    if (bytes > b->bytes - (size_t)(start - b->memory))
        fake_wrong("%s of %zu bytes at %zu goes beyond its block of %zu", who, bytes,
                   (size_t)(start - b->memory), b->bytes);
    if (b->context != context)
        fake_wrong("%s on device %d uses memory of device %d", who, context->number, b->context->number);
    return start;
}

const char *fake_explain(const void *address, char *buffer, size_t size)
{
    const unsigned char *at = address;
    snprintf(buffer, size, "no memory of the device");
    for (const block *b = blocks; b != NULL; b = b->next)
        if (at >= b->region && at < b->region + b->region_bytes)
            snprintf(buffer, size, "byte %td of a block of %zu", at - b->memory, b->bytes);
    return buffer;
}

cu_result cuMemHostAlloc(void **memory, size_t bytes, unsigned int flags)
{
    struct cu_context_ *context = fake_current();
    pthread_mutex_lock(&lock);
    bool fails = is_to_fail();
    block *b = flags == 0 && !fails ? make(bytes, NEW) : NULL;
    if (b != NULL) {
        b->context = context;
        b->next = locked;
        locked = b;
        context->page_locked++;
        *memory = b->memory;
    }
    pthread_mutex_unlock(&lock);
    return b != NULL ? CU_DONE : fails ? CU_OUT_OF_MEMORY : CU_INVALID;
}

cu_result cuMemFreeHost(void *memory)
{
    pthread_mutex_lock(&lock);
    block *b = find(locked, memory);
    if (b == NULL || b->memory != memory)
        fake_wrong("page-locked memory is freed that was not given, or twice");
    b->context->page_locked--;
    take_out(&locked, b);
    destroy(b);
    pthread_mutex_unlock(&lock);
    return CU_DONE;
}

cu_result cuMemGetInfo_v2(size_t *unused, size_t *all)
{
    *all = memory_of_device();
    *unused = *all - fake_current()->used;
    return CU_DONE;
}

cu_result cuDeviceGetDefaultMemPool(cu_pool *pool, cu_device device)
{
    *pool = (cu_pool)&contexts[device];
    return CU_DONE;
}

cu_result cuMemPoolSetAttribute(cu_pool pool, cu_pool_attribute attribute, void *value)
{
    return pool != NULL && value != NULL && attribute == CU_POOL_RELEASE_THRESHOLD ? CU_DONE : CU_INVALID;
}

cu_result cuMemPoolTrimTo(cu_pool pool, size_t bytes)
{
    return pool != NULL && bytes == 0 ? CU_DONE : CU_INVALID;
}

/* --- ways between host and device --- */

static void check_locked(const unsigned char *host, size_t bytes)
{
    pthread_mutex_lock(&lock);
    const block *b = find(locked, host);
    pthread_mutex_unlock(&lock);
    if (b == NULL || bytes > b->bytes - (size_t)(host - b->memory))
        fake_wrong("a transfer of %zu bytes is not from or to page-locked memory", bytes);
}

/* Work on so many bytes of the device. */
static fake_work *queue_bytes(cu_stream stream, fake_kind kind, cu_pointer to, size_t bytes)
{
    static const char *const names[] = {[FAKE_CLEAR] = "clearing",
                                        [FAKE_COPY] = "a copy",
                                        [FAKE_UPLOAD] = "a transfer",
                                        [FAKE_DOWNLOAD] = "a transfer"};
    fake_memory(fake_current(), to, bytes, names[kind]);
    fake_work *work = fake_enqueue(stream, kind, 0);
    work->to = to;
    work->bytes = bytes;
    return work;
}

static cu_result transfer(cu_stream stream, fake_kind kind, cu_pointer device, void *host, size_t bytes)
{
    if (stream->recording != NULL)
        fake_wrong("a transfer is recorded");
    check_locked(host, bytes);
    fake_work *work = queue_bytes(stream, kind, device, bytes);
    work->from = device;
    work->host = host;
    return CU_DONE;
}

cu_result cuMemcpyHtoDAsync_v2(cu_pointer to, const void *from, size_t bytes, cu_stream stream)
{
    void *host;
    memcpy(&host, &from, sizeof host);
    return transfer(stream, FAKE_UPLOAD, to, host, bytes);
}

cu_result cuMemcpyDtoHAsync_v2(void *to, cu_pointer from, size_t bytes, cu_stream stream)
{
    return transfer(stream, FAKE_DOWNLOAD, from, to, bytes);
}

cu_result cuMemcpyDtoDAsync_v2(cu_pointer to, cu_pointer from, size_t bytes, cu_stream stream)
{
    fake_memory(fake_current(), from, bytes, "a copy");
    queue_bytes(stream, FAKE_COPY, to, bytes)->from = from;
    return CU_DONE;
}

cu_result cuMemsetD8Async(cu_pointer to, unsigned char value, size_t bytes, cu_stream stream)
{
    queue_bytes(stream, FAKE_CLEAR, to, bytes)->value = value;
    return CU_DONE;
}
