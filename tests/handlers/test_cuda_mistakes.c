/* What a GPU would not say, the stand-in for CUDA does: it ends the process with a sentence. */
#include "cuda_driver_test.h"

static const char kernels[] = "\nKERNEL(64) write_at(PLACE(a))\n"
                              "{\n"
                              "    if (ITEM == 0)\n"
                              "        POINTER(float, a)[10] = 1;\n"
                              "}\n"
                              "\nKERNEL(64) read_far(PLACE(a))\n"
                              "{\n"
                              "    float *x = POINTER(float, a);\n"
                              "    x[0] = x[1000];\n"
                              "}\n"
                              "\nKERNEL(64) half_way(PLACE(a))\n"
                              "{\n"
                              "    if (ITEM < 32)\n"
                              "        BARRIER;\n"
                              "    POINTER(float, a)[ITEM] = 0;\n"
                              "}\n";

/* One group of a kernel works on so many floats; all is given back behind it. */
static void run_kernel(const char *name, uint64_t floats)
{
    void *self = NULL, *binary = NULL, *module = NULL, *kernel = NULL, *buffer = NULL;
    char source[32768];
    size_t bytes = 0;
    const sgm_device_driver *driver = open_cuda(0, &self);
    snprintf(source, sizeof source, "%s%s", driver->prelude, kernels);
    DONE(driver->build(self, source, &binary, &bytes, message));
    DONE(driver->load(self, binary, bytes, &module, message));
    DONE(driver->kernel(self, module, name, &kernel, message));
    DONE(driver->allocate(self, floats * sizeof(float), &buffer, message));
    const sgm_device_place place = {buffer, 0};
    DONE(driver->launch(self, &(sgm_device_launch){kernel, 1, 64, 1, &place}, message));
    DONE(driver->wait(self, message));
    driver->release(self, buffer);
    driver->unload(self, module);
    driver->drop(binary);
    driver->close(self);
}

static void write_behind_the_end(void)
{
    run_kernel("write_at", 10);
}

static void read_far_behind_the_end(void)
{
    run_kernel("read_far", 10);
}

static void leave_items_at_a_barrier(void)
{
    run_kernel("half_way", 64);
}

static void leave_memory(void)
{
    void *self, *buffer;
    const sgm_device_driver *driver = open_cuda(0, &self);
    DONE(driver->allocate(self, 4000, &buffer, message));
    driver->close(self);
}

/* `words`: NULL where the processor finds it. */
static void check_found(void (*mistake)(void), const char *words)
{
    char text[MISTAKE_TEXT];
    use_cuda();
    if (cuda_is_real())
        SKIP("the stand-in for CUDA is wanted");
    make_mistake(mistake, text);
    if (words != NULL && strstr(text, words) == NULL)
        TEST_FAIL("%s", text);
}

TEST(within_a_block_nothing_is_found)
{
    use_cuda();
    run_kernel("write_at", 11);
}

TEST(memory_behind_a_block_is_not_written)
{
    check_found(write_behind_the_end, "a block of 40 bytes was written to beyond its end, at 40");
}

TEST(memory_far_behind_a_block_is_not_read)
{
    check_found(read_far_behind_the_end, NULL);
}

TEST(a_barrier_is_for_all_items)
{
    check_found(leave_items_at_a_barrier, "half_way: a barrier is reached by 32 of 64 items of group 0");
}

TEST(nothing_is_left_on_a_device)
{
    check_found(leave_memory, "device 0 is left with 4000 bytes in use");
}
