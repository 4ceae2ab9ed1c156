/* The CUDA plug-in's driver: memory, kernels, the queue and recordings, on the stand-in for CUDA. */
#include "cuda_driver_test.h"

static const char kernels[] = "\nKERNEL(64) twice(PLACE(a), PLACE(b))\n"
                              "{\n"
                              "    const float *from = POINTER(const float, a);\n"
                              "    int i = GROUP * 64 + ITEM;\n"
                              "    if (i < 1000)\n"
                              "        POINTER(float, b)[i] = 2 * from[i];\n"
                              "}\n"
                              "\nKERNEL(128) total(PLACE(a), PLACE(b))\n"
                              "{\n"
                              "    LOCAL float part[128];\n"
                              "    const float *from = POINTER(const float, a);\n"
                              "    float sum = 0;\n"
                              "    for (int i = ITEM; i < 1000; i += 128)\n"
                              "        sum += from[i];\n"
                              "    part[ITEM] = sum;\n"
                              "    BARRIER;\n"
                              "    for (int half = 64; half > 0; half /= 2) {\n"
                              "        if (ITEM < half)\n"
                              "            part[ITEM] += part[ITEM + half];\n"
                              "        BARRIER;\n"
                              "    }\n"
                              "    if (ITEM == 0)\n"
                              "        POINTER(float, b)[0] = part[0];\n"
                              "}\n"
                              "\nKERNEL(32) words(PLACE(a), PLACE(b))\n"
                              "{\n"
                              "    const float *x = POINTER(const float, a);\n"
                              "    float *y = POINTER(float, b);\n"
                              "    if (ITEM == 0) {\n"
                              "        y[0] = sgm_exp(x[0]);\n"
                              "        y[1] = sgm_fma(x[0], x[1], 1.0f);\n"
                              "        y[2] = sgm_widen(sgm_narrow(x[1]));\n"
                              "        y[3] = sgm_power(x[1], 2.0f);\n"
                              "        y[4] = (float)sgm_erf((double)x[0]);\n"
                              "        y[5] = sgm_widen(sgm_narrow(NAN));\n"
                              "        y[6] = sgm_widen(sgm_narrow(-INFINITY));\n"
                              "    }\n"
                              "}\n";

typedef struct compiled {
    const sgm_device_driver *driver;
    void *self, *module;
} compiled;

static compiled compile(void)
{
    compiled c;
    void *binary = NULL;
    size_t bytes = 0, length;
    c.driver = open_cuda(0, &c.self);
    length = strlen(c.driver->prelude) + sizeof kernels;
    char *source = malloc(length);
    CHECK(source != NULL);
    snprintf(source, length, "%s%s", c.driver->prelude, kernels);
    DONE(c.driver->build(c.self, source, &binary, &bytes, message));
    DONE(c.driver->load(c.self, binary, bytes, &c.module, message));
    REFUSED(c.driver->load(c.self, binary, bytes - 1, &(void *){NULL}, message), SGM_DEVICE_FAILED,
            "damaged");
    c.driver->drop(binary);
    free(source);
    return c;
}

static void finish(const compiled *c)
{
    c->driver->unload(c->self, c->module);
    c->driver->close(c->self);
}

static void run(const compiled *c, const char *name, uint32_t groups, uint32_t group, void *from, void *to)
{
    void *kernel = NULL;
    const sgm_device_place places[] = {{from, 0}, {to, 0}};
    DONE(c->driver->kernel(c->self, c->module, name, &kernel, message));
    const sgm_device_launch launch = {kernel, groups, group, 2, places};
    DONE(c->driver->launch(c->self, &launch, message));
}

/* Before all others: what is loaded once stays. */
TEST(an_absent_library_is_told_in_a_sentence)
{
    uint32_t count;
    if (cuda_is_real())
        SKIP("the libraries of a real device are there");
    setenv("SIGMA_CUDA_LIBRARIES", "/nowhere", 1);
    REFUSED(load()->count(&count, message), SGM_DEVICE_ABSENT, "there is no libcuda.so.1: NVIDIA's driver");
    CHECK_INT(count, 0);
}

TEST(a_device_says_what_it_is)
{
    void *self = NULL;
    sgm_device_info info;
    uint32_t count = 0;
    use_cuda();
    const sgm_device_driver *driver = load();
    CHECK_STR(driver->name, "cuda");
    DONE(driver->count(&count, message));
    CHECK(count > 0);
    DONE(driver->open(0, &self, &info, message));
    CHECK(info.name[0] != '\0' && info.memory > 0 && info.units > 0 && info.group >= 256);
    CHECK(strstr(info.driver, "NVRTC") != NULL);
    driver->close(self);
    REFUSED(driver->open(count, &self, &info, message), SGM_DEVICE_ABSENT, "there is no device");
}

TEST(what_is_written_is_read)
{
    enum { BYTES = 11 << 20 };
    void *self, *buffer = NULL;
    const sgm_device_driver *driver = open_cuda(0, &self);
    unsigned char *host = malloc(BYTES), *back = calloc(1, BYTES);
    CHECK(host != NULL && back != NULL);
    for (size_t i = 0; i < BYTES; i++)
        host[i] = (unsigned char)(i * 7 + i / 4096);
    DONE(driver->allocate(self, BYTES, &buffer, message));
    const sgm_device_place all = {buffer, 0}, inside = {buffer, 1000}, other = {buffer, 5 << 20};
    DONE(driver->write(self, all, host, BYTES, message)); /* longer than all stages together */
    DONE(driver->read(self, all, back, BYTES, message));
    CHECK(memcmp(host, back, BYTES) == 0);
    DONE(driver->clear(self, inside, 500, message));
    DONE(driver->copy(self, inside, other, 1000, message));
    DONE(driver->read(self, other, back, 1000, message));
    for (int i = 0; i < 1000; i++)
        CHECK_INT(back[i], i < 500 ? 0 : host[1000 + i]);
    /* Many small ones, which may not overtake each other, from memory that changes at once. */
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t value = i;
        DONE(driver->write(self, (sgm_device_place){buffer, (uint64_t)i % 100 * 4}, &value, sizeof value,
                           message));
        value = UINT32_MAX;
    }
    uint32_t values[100];
    DONE(driver->read(self, all, values, sizeof values, message));
    for (uint32_t i = 0; i < 100; i++)
        CHECK_INT(values[i], 19900 + i);
    driver->release(self, buffer);
    driver->close(self);
    free(host);
    free(back);
}

TEST(kernels_run_in_order)
{
    compiled c = compile();
    float numbers[1000], sum = 0;
    void *a = NULL, *b = NULL, *s = NULL;
    for (int i = 0; i < 1000; i++)
        numbers[i] = (float)(i % 17);
    DONE(c.driver->allocate(c.self, sizeof numbers, &a, message));
    DONE(c.driver->allocate(c.self, sizeof numbers, &b, message));
    DONE(c.driver->allocate(c.self, sizeof sum, &s, message));
    DONE(c.driver->write(c.self, (sgm_device_place){a, 0}, numbers, sizeof numbers, message));
    run(&c, "twice", 16, 64, a, b);
    run(&c, "twice", 16, 64, b, a);
    run(&c, "total", 1, 128, a, s);
    c.driver->release(c.self, a); /* the queue still uses it */
    DONE(c.driver->read(c.self, (sgm_device_place){s, 0}, &sum, sizeof sum, message));
    double expected = 0;
    for (int i = 0; i < 1000; i++)
        expected += 4 * (i % 17);
    CHECK_NEAR(sum, expected, 0);
    c.driver->release(c.self, b);
    c.driver->release(c.self, s);
    finish(&c);
}

TEST(words_mean_what_they_say)
{
    compiled c = compile();
    const float x[] = {0.5f, 3.14159274f};
    float y[7];
    void *a = NULL, *b = NULL;
    DONE(c.driver->allocate(c.self, sizeof x, &a, message));
    DONE(c.driver->allocate(c.self, sizeof y, &b, message));
    DONE(c.driver->write(c.self, (sgm_device_place){a, 0}, x, sizeof x, message));
    run(&c, "words", 1, 32, a, b);
    DONE(c.driver->read(c.self, (sgm_device_place){b, 0}, y, sizeof y, message));
    CHECK_NEAR(y[0], exp(0.5), 1e-6);
    CHECK_NEAR(y[1], fmaf(x[0], x[1], 1), 0);
    CHECK_NEAR(y[2], 3.140625, 0);
    CHECK_NEAR(y[3], (double)x[1] * x[1], 1e-6);
    CHECK_NEAR(y[4], erf(0.5), 1e-6);
    CHECK(isnan(y[5]));
    CHECK(isinf(y[6]) && y[6] < 0);
    c.driver->release(c.self, a);
    c.driver->release(c.self, b);
    finish(&c);
}

TEST(a_recording_runs_again)
{
    compiled c = compile();
    float numbers[1000];
    void *a = NULL, *b = NULL, *late = NULL, *recording = NULL;
    for (int i = 0; i < 1000; i++)
        numbers[i] = 1;
    DONE(c.driver->allocate(c.self, sizeof numbers, &a, message));
    DONE(c.driver->allocate(c.self, sizeof numbers, &b, message));
    DONE(c.driver->allocate(c.self, 100, &late, message));
    DONE(c.driver->write(c.self, (sgm_device_place){a, 0}, numbers, sizeof numbers, message));
    DONE(c.driver->record(c.self, message));
    run(&c, "twice", 16, 64, a, b);
    DONE(c.driver->copy(c.self, (sgm_device_place){b, 0}, (sgm_device_place){a, 0}, sizeof numbers, message));
    REFUSED(c.driver->read(c.self, (sgm_device_place){a, 0}, numbers, 4, message), SGM_DEVICE_FAILED,
            "recorded");
    REFUSED(c.driver->allocate(c.self, 4, &(void *){NULL}, message), SGM_DEVICE_FAILED, "recorded");
    REFUSED(c.driver->record(c.self, message), SGM_DEVICE_FAILED, "already");
    c.driver->release(c.self, late);
    DONE(c.driver->keep(c.self, &recording, message));
    REFUSED(c.driver->keep(c.self, &recording, message), SGM_DEVICE_FAILED, "no recording");
    DONE(c.driver->read(c.self, (sgm_device_place){a, 0}, numbers, sizeof numbers, message));
    CHECK_NEAR(numbers[999], 1, 0); /* it has not run yet */
    for (int i = 0; i < 10; i++)
        DONE(c.driver->replay(c.self, recording, message));
    DONE(c.driver->read(c.self, (sgm_device_place){a, 0}, numbers, sizeof numbers, message));
    CHECK_NEAR(numbers[0], 1024, 0);
    CHECK_NEAR(numbers[999], 1024, 0);
    c.driver->forget(c.self, recording);
    c.driver->release(c.self, a);
    c.driver->release(c.self, b);
    finish(&c);
}

TEST(what_the_compiler_refuses_is_told)
{
    void *self, *binary = NULL;
    size_t bytes;
    const sgm_device_driver *driver = open_cuda(0, &self);
    REFUSED(driver->build(self, "int wrong(\n", &binary, &bytes, message), SGM_DEVICE_SOURCE, "sigma.cu");
    REFUSED(driver->load(self, "nonsense", 8, &(void *){NULL}, message), SGM_DEVICE_FAILED, "damaged");
    driver->close(self);
}

TEST(memory_that_is_used_up_leaves_the_device_usable)
{
    void *self, *buffers[9], *more = NULL;
    const sgm_device_driver *driver = open_cuda(0, &self);
    sgm_device_info info;
    driver->close(self);
    DONE(driver->open(0, &self, &info, message));
    for (int i = 0; i < 3; i++)
        DONE(driver->allocate(self, info.memory / 4, &buffers[i], message));
    REFUSED(driver->allocate(self, info.memory / 2, &more, message), SGM_DEVICE_MEMORY, "MiB left");
    driver->release(self, buffers[0]); /* only the queue's end gives it back */
    driver->release(self, buffers[1]);
    DONE(driver->allocate(self, info.memory / 2, &more, message));
    driver->release(self, more);
    driver->release(self, buffers[2]);
    driver->close(self);
}

TEST(devices_stand_beside_each_other)
{
    void *self[2], *buffers[2];
    uint32_t count;
    sgm_device_info info;
    use_cuda();
    const sgm_device_driver *driver = load();
    DONE(driver->count(&count, message));
    for (uint32_t i = 0; i < 2; i++)
        DONE(driver->open(i % count, &self[i], &info, message));
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 2; i++) {
            int value = 10 * round + i, back = -1;
            DONE(driver->allocate(self[i], sizeof value, &buffers[i], message));
            DONE(driver->write(self[i], (sgm_device_place){buffers[i], 0}, &value, sizeof value, message));
            DONE(driver->read(self[i], (sgm_device_place){buffers[i], 0}, &back, sizeof back, message));
            CHECK_INT(back, value);
            driver->release(self[i], buffers[i]);
        }
    driver->close(self[0]);
    driver->close(self[1]);
}
