/* Writes to an OpenCL device: they come in order, wait for nothing that is queued before them, and what they
 * were given may change at once. */
#include "devices.h"
#include "test.h"

#ifdef SIGMA_OPENCL
#include "staging.h"

#include <unistd.h>

typedef struct bench {
    cl_context context;
    cl_command_queue queue;
    opencl_staging staging;
    cl_mem memory;
} bench;

#define MEMORY ((size_t)16 << 20)

#define DONE(call) CHECK_INT(call, CL_SUCCESS)

static bench open_bench(void)
{
    bench b = {0};
    cl_platform_id platform;
    cl_device_id device = NULL;
    cl_uint count = 0;
    cl_int error;
    if (clGetPlatformIDs(1, &platform, &count) != CL_SUCCESS || count == 0 ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, &count) != CL_SUCCESS || count == 0)
        SKIP("there is no OpenCL device");
    b.context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    DONE(error);
    b.queue = clCreateCommandQueue(b.context, device, 0, &error);
    DONE(error);
    b.memory = clCreateBuffer(b.context, CL_MEM_READ_WRITE, MEMORY, NULL, &error);
    DONE(error);
    DONE(opencl_staging_open(&b.staging, b.context, b.queue));
    return b;
}

static void close_bench(bench *b)
{
    opencl_staging_close(&b->staging, b->queue);
    clReleaseMemObject(b->memory);
    clReleaseCommandQueue(b->queue);
    clReleaseContext(b->context);
}

static void write_to(bench *b, size_t offset, unsigned char value, size_t bytes)
{
    static unsigned char host[MEMORY];
    memset(host, value, bytes);
    DONE(opencl_staging_write(&b->staging, b->queue, b->memory, offset, host, bytes));
    memset(host, 0xEE, bytes);
}

static void check_bytes(bench *b, const unsigned char *expected, size_t bytes)
{
    static unsigned char host[MEMORY];
    DONE(clEnqueueReadBuffer(b->queue, b->memory, CL_TRUE, 0, bytes, host, 0, NULL, NULL));
    CHECK_INT(memcmp(host, expected, bytes), 0);
}

/* The queue is held back by an event of our own: whoever waited for it would wait for ever. */
TEST(a_write_waits_for_nothing_that_is_queued)
{
    cl_int error;
    bench b = open_bench();
    unsigned char expected[3000];
    write_to(&b, 0, 1, sizeof expected);
    cl_event gate = clCreateUserEvent(b.context, &error);
    DONE(error);
    DONE(clEnqueueMarkerWithWaitList(b.queue, 1, &gate, NULL));
    alarm(60);
    write_to(&b, 1000, 2, 2000);
    write_to(&b, 2000, 3, 1000);
    write_to(&b, 3000, 4, 3 * OPENCL_STAGE_BYTES);
    alarm(0);
    DONE(clSetUserEventStatus(gate, CL_COMPLETE));
    memset(expected, 1, 1000);
    memset(expected + 1000, 2, 1000);
    memset(expected + 2000, 3, 1000);
    check_bytes(&b, expected, sizeof expected);
    clReleaseEvent(gate);
    close_bench(&b);
}

/* Of all sizes around a stage's and all stages', one over the other. */
TEST(writes_come_in_order)
{
    bench b = open_bench();
    unsigned char *expected = calloc(1, MEMORY);
    uint32_t random = 1;
    memset(expected, 9, MEMORY);
    write_to(&b, 0, 9, MEMORY);
    for (int i = 0; i < 300; i++) {
        random = random * 1664525u + 1013904223u;
        size_t maximum = i % 50 == 0 ? MEMORY : i % 5 == 0 ? OPENCL_STAGE_BYTES + 1000 : 100000;
        size_t bytes = 1 + (random >> 4) % maximum, offset = (random >> 9) % (MEMORY - bytes + 1);
        write_to(&b, offset, (unsigned char)i, bytes);
        memset(expected + offset, i, bytes);
        if (i % 100 == 99)
            check_bytes(&b, expected, MEMORY);
    }
    free(expected);
    close_bench(&b);
}
#else
TEST(writes_come_in_order)
{
    SKIP("there is no OpenCL (Debian: ocl-icd-opencl-dev)");
}
#endif
