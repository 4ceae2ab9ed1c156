/* Handlers for devices: memory, what is kept on disk, faults, operations without kernels, threads. */
#include "devices.h"
#include "graphs.h"

#include "../base/folder.h"
#include "handlers/device/device.h"
#include "handlers/session.h"
#include <pthread.h>
#include <sigma/op.h>
#include <sigma/task.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[] = {"opencl", "cuda"};
#define NAMES 2

/* Calls `check` with each device's handler that is here. */
static void with_devices(void (*check)(sgm_handler *handler))
{
    char reasons[1024] = "";
    int found = 0;
    for (int i = 0; i < NAMES; i++) {
        sgm_handler *handler = sgm_handler_create_options(names[i], NULL);
        size_t length = strlen(reasons);
        if (handler != NULL)
            check(handler);
        else
            snprintf(reasons + length, sizeof reasons - length, "%s%s", length > 0 ? "; " : "",
                     sgm_last_error());
        found += handler != NULL;
        sgm_handler_free(handler);
    }
    if (found == 0)
        SKIP(reasons);
}

static sgm__device *device_of(sgm_handler *handler)
{
    return handler->self;
}

/* --- memory --- */

static sgm_graph *product_graph(int64_t rows, int64_t columns)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(rows, 1));
    sgm_value y = sgm_input_value(graph, "y", SGM_FLOAT32, DIMS(1, columns));
    sgm_output(graph, "sum", sgm_matmul(graph, x, y));
    return graph;
}

static void check_small_product(sgm_session *session)
{
    sgm_graph *graph = product_graph(2, 3);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(2, 1), NUMBERS(2, -3));
    feed(session, program, "y", SGM_FLOAT32, DIMS(1, 3), NUMBERS(1, 10, 100));
    CHECK_OK(sgm_session_run(session, program));
    check_output(session, program, "sum", NUMBERS(2, 20, 200, -3, -30, -300), 0);
    sgm_graph_free(graph);
}

static void check_out_of_memory(sgm_handler *handler)
{
    sgm_session *session = sgm_session_create(handler);
    uint64_t used = device_of(handler)->used;
    sgm_graph *graph = product_graph(2000000, 1000000);
    CHECK_ERROR(sgm_session_prepare(session, graph), device_of(handler)->info.name);
    CHECK_INT(sgm_last_status(), SGM_ERROR_MEMORY);
    CHECK(strstr(sgm_last_error(), "a program with 0 bytes of state, 12.0 MB of inputs, 0 bytes of constants "
                                   "and 8.0 TB of arena (for 8.0 TB of activations)") != NULL);
    CHECK_INT(device_of(handler)->used, used);
    check_small_product(session);
    sgm_graph_free(graph);
    sgm_session_free(session);
    CHECK_INT(device_of(handler)->used, used);
}

TEST(out_of_memory_says_sizes_and_leaves_all_usable)
{
    with_devices(check_out_of_memory);
}

static void check_used_up(sgm_handler *handler)
{
    sgm__device *device = device_of(handler);
    sgm_session *session = sgm_session_create(handler);
    uint64_t memory = device->info.memory;
    device->info.memory = device->used + 3000000;
    double *zeros = calloc(500000, sizeof *zeros);
    set_state(session, "a", SGM_FLOAT32, DIMS(500000), zeros);
    sgm_tensor *tensor = tensor_of(SGM_FLOAT32, DIMS(500000), zeros);
    CHECK_ERROR(sgm_session_set(session, "b", tensor),
                "is used up: 2.1 MB are in use by this handler, and 2.1 MB more are wanted");
    CHECK_INT(sgm_last_status(), SGM_ERROR_MEMORY);
    CHECK(!sgm_session_has(session, "b"));
    CHECK_OK(sgm_session_set(session, "a", tensor));
    sgm_session_free(session);
    session = sgm_session_create(handler); /* what was given back can be had again */
    CHECK_OK(sgm_session_set(session, "b", tensor));
    sgm_session_free(session);
    device->info.memory = memory;
    sgm_tensor_free(tensor);
    free(zeros);
}

TEST(what_is_in_use_counts)
{
    with_devices(check_used_up);
}

static long resident_pages(void)
{
    long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &all, &resident) != 2)
        resident = 0;
    if (file != NULL)
        fclose(file);
    return resident;
}

#define MANY_RUNS 10000

static void check_flat(sgm_handler *handler)
{
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    set_state(session, "w", SGM_FLOAT32, DIMS(100), (double[100]){0});
    sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(100));
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, SCALAR);
    sgm_assign(graph, w, sgm_add(graph, w, x));
    sgm_output(graph, "sum", sgm_reduce_sum(graph, w, NULL, 0, false));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    double sum = 0;
    uint64_t used = 0, kept = 0;
    long pages = 0;
    for (int i = 0; i < MANY_RUNS; i++) {
        CHECK_OK(sgm_session_feed_number(session, program, "x", 1));
        CHECK_OK(sgm_session_run(session, program));
        if (i == MANY_RUNS / 2) {
            used = device_of(handler)->used;
            kept = device_of(handler)->kept_bytes;
            pages = resident_pages();
        }
    }
    CHECK_OK(sgm_session_read_number(session, program, "sum", &sum));
    CHECK_NEAR(sum, 100.0 * (MANY_RUNS - 1), 0);
    CHECK_INT(device_of(handler)->used, used);
    CHECK_INT(device_of(handler)->kept_bytes, kept);
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__ /* which keep more than is in use */
    CHECK(resident_pages() - pages < 256);                        /* a MB */
#else
    CHECK(pages > 0);
#endif
    sgm_graph_free(graph);
    sgm_session_free(session);
}

TEST(memory_is_flat)
{
    with_devices(check_flat);
}

/* Each run sees what was fed before it, although nobody waits; the tensor changes at once. */
static void check_feeding(sgm_handler *handler)
{
    enum { COUNT = 300000, RUNS = 60 };
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    double *values = calloc(COUNT, sizeof *values), expected = 0;
    set_state(session, "w", SGM_FLOAT32, DIMS(COUNT), values);
    sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(COUNT));
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(COUNT));
    sgm_assign(graph, w, sgm_subtract(graph, x, w));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    sgm_tensor *fed = tensor_of(SGM_FLOAT32, DIMS(COUNT), values);
    float *numbers = sgm_tensor_data(fed);
    for (int run = 0; run < RUNS; run++) {
        for (int i = 0; i < COUNT; i++)
            numbers[i] = (float)(run * run % 1000 + i % 3);
        CHECK_OK(sgm_session_feed(session, program, "x", fed));
        CHECK_OK(sgm_session_run(session, program));
        expected = run * run % 1000 - expected;
    }
    sgm_tensor_free(fed);
    fed = sgm_session_get(session, "w");
    numbers = sgm_tensor_data(fed);
    for (int i = 0; i < COUNT; i++) /* what grows with i goes, as RUNS is even */
        if (numbers[i] != (float)expected)
            TEST_FAIL("element %d is %g, expected %g", i, (double)numbers[i], expected);
    sgm_tensor_free(fed);
    sgm_graph_free(graph);
    sgm_session_free(session);
    free(values);
}

TEST(each_run_has_what_was_fed_before_it)
{
    with_devices(check_feeding);
}

/* --- what is kept on disk --- */

/* What no library does: with kernels of our own. */
static void check_chain(sgm_session *session)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(3));
    sgm_output(graph, "y", sgm_add(graph, sgm_multiply(graph, x, x), x));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(3), NUMBERS(2, -3, 0.5));
    CHECK_OK(sgm_session_run(session, program));
    check_output(session, program, "y", NUMBERS(6, 6, 0.75), 0);
    sgm_graph_free(graph);
}

/* The path of the only file there. */
static void find_kept(char *path, size_t size)
{
    char command[160];
    snprintf(command, sizeof command, "ls -d '%s'/kernels/*", folder);
    FILE *list = popen(command, "r");
    CHECK(list != NULL);
    path[0] = '\0';
    CHECK(fgets(path, (int)size, list) != NULL);
    path[strcspn(path, "\n")] = '\0';
    char more[160];
    CHECK(fgets(more, sizeof more, list) == NULL);
    pclose(list);
}

static size_t size_of(const char *path)
{
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    fclose(file);
    return (size_t)size;
}

/* Whatever is wrong with the file, the result is right, and the file whole again. */
static void check_again(sgm_handler *handler, const char *path, size_t size)
{
    sgm_session *session = sgm_session_create(handler);
    check_chain(session);
    sgm_session_free(session);
    CHECK(size_of(path) + 64 > size && size_of(path) < size + 64);
}

static void change_byte(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    CHECK(file != NULL);
    fseek(file, at, SEEK_SET);
    int old = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(old ^ 0x55, file);
    fclose(file);
}

/* Another process is writing the same, and goes on when we are through. */
static void check_beside_another(sgm_handler *handler, const char *path, size_t size)
{
    char other[192];
    struct stat before, after;
    snprintf(other, sizeof other, "%s.tmp", path);
    CHECK_INT(unlink(path), 0);
    FILE *file = fopen(other, "wb");
    CHECK(file != NULL);
    check_again(handler, path, size);
    fputs("in the midst of another's file", file);
    fclose(file);
    CHECK_INT(stat(path, &before), 0);
    check_again(handler, path, size);
    CHECK_INT(stat(path, &after), 0);
    CHECK_INT(after.st_ino, before.st_ino); /* it was whole, so it was not made again */
    unlink(other);
}

static void check_kept(sgm_handler *handler)
{
    char path[160];
    open_folder();
    setenv("SIGMA_CACHE_DIR", folder, 1);
    sgm_session *session = sgm_session_create(handler);
    check_chain(session);
    sgm_session_free(session);
    find_kept(path, sizeof path);
    size_t size = size_of(path);
    check_again(handler, path, size);
    change_byte(path, (long)size / 2);
    check_again(handler, path, size);
    CHECK_INT(truncate(path, 10), 0);
    check_again(handler, path, size);
    change_byte(path, 3);
    check_again(handler, path, size);
    check_beside_another(handler, path, size);
    setenv("SIGMA_CACHE_DIR", "/proc/nowhere", 1); /* nothing can be kept there */
    session = sgm_session_create(handler);
    check_chain(session);
    sgm_session_free(session);
    unsetenv("SIGMA_CACHE_DIR");
    close_folder();
}

TEST(compiled_kernels_are_kept_and_damaged_ones_made_again)
{
    with_devices(check_kept);
}

/* What was told while a program ran for the first time; it has 2 steps or more. */
typedef struct told {
    int begun;
    sgm_task_info newest;
} told;

static void note_task(void *user, const sgm_task_info *info)
{
    told *t = user;
    t->begun += info->kind == SGM_TASK_COMPILE && info->status != SGM_TASK_RUNNING;
    t->newest = *info;
}

static void check_told(sgm_handler *handler)
{
    told t = {0};
    if (!device_of(handler)->info.is_processor)
        return;
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(2, 3));
    sgm_output(graph, "y",
               sgm_reduce_sum(graph, sgm_matmul(graph, x, sgm_transpose(graph, x)), NULL, 0, false));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    CHECK_OK(sgm_task_watch(note_task, &t));
    CHECK_OK(sgm_session_run(session, program));
    CHECK_INT(t.begun, 1);
    CHECK_INT(t.newest.kind, SGM_TASK_COMPILE);
    CHECK(strstr(t.newest.description, "as each is first started") != NULL);
    CHECK_INT(t.newest.done, program->plan->step_count);
    CHECK_INT(t.newest.total, program->plan->step_count);
    CHECK_OK(sgm_session_run(session, program));
    CHECK_INT(t.begun, 1);
    check_output(session, program, "y", NUMBERS(14 + 32 + 32 + 77), 1e-4);
    sgm_task_unwatch(note_task, &t);
    sgm_graph_free(graph);
    sgm_session_free(session);
}

TEST(kernels_that_are_compiled_when_they_start_are_told_of)
{
    with_devices(check_told);
}

/* --- products of a library --- */

static int kernels_compiled; /* as the log tells */

static void count_kernels(void *user, sgm_log_level level, const char *component, const char *message)
{
    int count, of;
    (void)user, (void)level;
    if (strcmp(component, "cuda") == 0 && sscanf(message, "%d of %d kernels", &count, &of) == 2)
        kernels_compiled += count;
}

#define SIDE 8

/* (x y + 1) z; z is twice the identity. */
static void check_products(sgm_handler *handler, const char *products, int expected)
{
    double values[SIDE * SIDE], z[SIDE * SIDE] = {0}, results[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) {
        values[i] = i % 7 - 3;
        z[i] = i / SIDE == i % SIDE ? 2 : 0;
    }
    for (int i = 0; i < SIDE * SIDE; i++) {
        results[i] = 2;
        for (int k = 0; k < SIDE; k++)
            results[i] += 2 * values[i / SIDE * SIDE + k] * values[k * SIDE + i % SIDE];
    }
    setenv("SIGMA_FAKE_CUDA_PRODUCTS", products, 1);
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(SIDE, SIDE));
    sgm_value y = sgm_input_value(graph, "y", SGM_FLOAT32, DIMS(SIDE, SIDE));
    sgm_value sum = sgm_add(graph, sgm_matmul(graph, x, y), sgm_number(graph, 1));
    sgm_output(graph, "r",
               sgm_matmul(graph, sum, sgm_input_value(graph, "z", SGM_FLOAT32, DIMS(SIDE, SIDE))));
    kernels_compiled = 0;
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    CHECK_INT(kernels_compiled, 1); /* the addition's alone */
    feed(session, program, "x", SGM_FLOAT32, DIMS(SIDE, SIDE), values);
    feed(session, program, "y", SGM_FLOAT32, DIMS(SIDE, SIDE), values);
    feed(session, program, "z", SGM_FLOAT32, DIMS(SIDE, SIDE), z);
    for (int run = 0; run < 4; run++) { /* the later ones are recorded */
        CHECK_OK(sgm_session_run(session, program));
        check_output(session, program, "r", results, 0);
    }
    CHECK_INT(kernels_compiled, expected);
    sgm_graph_free(graph);
    sgm_session_free(session);
    unsetenv("SIGMA_FAKE_CUDA_PRODUCTS");
}

TEST(a_library_that_declines_a_product_is_replaced)
{
    if (!is_here("cuda") || getenv("SIGMA_TEST_CUDA") != NULL)
        SKIP("the stand-in for CUDA is wanted");
    sgm_set_logger(count_kernels, NULL, SGM_LOG_DEBUG);
    sgm_handler *handler = sgm_handler_create("cuda");
    check_products(handler, "yes", 1);
    check_products(handler, "promised", 2); /* both products have the same kernel */
    sgm_handler_free(handler);
    sgm_set_logger(NULL, NULL, SGM_LOG_WARNING);
}

static const sgm_device_driver *true_driver;
static bool loads_fail;

static sgm_device_result load_or_fail(void *self, const void *binary, size_t bytes, void **module,
                                      char *message)
{
    if (!loads_fail)
        return true_driver->load(self, binary, bytes, module, message);
    snprintf(message, SGM_DEVICE_MESSAGE, "it does not load today");
    return SGM_DEVICE_FAILED;
}

/* The kernel that is to stand in for a product cannot be had, and can a run later. */
static void check_late_kernel(sgm_handler *handler)
{
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = product_graph(2, 3);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(2, 1), NUMBERS(2, -3));
    feed(session, program, "y", SGM_FLOAT32, DIMS(1, 3), NUMBERS(1, 10, 100));
    loads_fail = true;
    for (int run = 0; run < 2; run++)
        CHECK_ERROR(sgm_session_run(session, program), "it does not load today");
    loads_fail = false;
    CHECK_OK(sgm_session_run(session, program));
    check_output(session, program, "sum", NUMBERS(2, 20, 200, -3, -30, -300), 0);
    sgm_graph_free(graph);
    sgm_session_free(session);
}

TEST(a_kernel_that_did_not_load_is_loaded_by_a_later_run)
{
    if (!is_here("cuda") || getenv("SIGMA_TEST_CUDA") != NULL)
        SKIP("the stand-in for CUDA is wanted");
    setenv("SIGMA_FAKE_CUDA_PRODUCTS", "promised", 1);
    sgm_handler *handler = sgm_handler_create("cuda");
    true_driver = device_of(handler)->driver;
    sgm_device_driver driver = *true_driver;
    driver.load = load_or_fail;
    device_of(handler)->driver = &driver;
    check_late_kernel(handler);
    device_of(handler)->driver = true_driver;
    sgm_handler_free(handler);
    unsetenv("SIGMA_FAKE_CUDA_PRODUCTS");
}

/* --- faults --- */

static void run_with_index(sgm_handler *handler, double index, char *message, size_t size)
{
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value table = sgm_input_value(graph, "table", SGM_FLOAT32, DIMS(3, 2));
    sgm_value indices = sgm_input_value(graph, "indices", SGM_INT32, DIMS(2));
    sgm_value y = sgm_gather(graph, table, indices, 0);
    sgm_output(graph, "y", sgm_multiply(graph, y, sgm_number(graph, 2)));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "table", SGM_FLOAT32, DIMS(3, 2), NUMBERS(1, 2, 3, 4, 5, 6));
    feed(session, program, "indices", SGM_INT32, DIMS(2), NUMBERS(2, index));
    sgm_tensor *read = sgm_tensor_create(SGM_FLOAT32, &(sgm_shape){.rank = 2, .dims = {2, 2}});
    message[0] = '\0';
    if (sgm_session_run(session, program) != SGM_OK ||
        sgm_session_read(session, program, "y", read) != SGM_OK)
        snprintf(message, size, "%s", sgm_last_error());
    sgm_tensor_free(read);
    feed(session, program, "indices", SGM_INT32, DIMS(2), NUMBERS(1, 0));
    CHECK_OK(sgm_session_run(session, program));
    check_output(session, program, "y", NUMBERS(6, 8, 2, 4), 0);
    sgm_graph_free(graph);
    sgm_session_free(session);
}

static void check_faults(sgm_handler *handler)
{
    static const double indices[] = {3, -1, 2147483647, 0};
    char expected[512], message[512];
    sgm_handler *cpu = sgm_handler_create("cpu");
    for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) {
        run_with_index(cpu, indices[i], expected, sizeof expected);
        run_with_index(handler, indices[i], message, sizeof message);
        CHECK_STR(message, expected);
    }
    sgm_handler_free(cpu);
}

TEST(indices_out_of_range_are_told_as_by_the_cpu)
{
    with_devices(check_faults);
}

/* Each state is written in another way: by a chain, by a gather, a one-hot and a scatter that end in it. */
static sgm_program *index_program(sgm_session *session, sgm_graph *graph)
{
    sgm_value table = sgm_input_value(graph, "table", SGM_FLOAT32, DIMS(3, 2));
    sgm_value indices = sgm_input_value(graph, "indices", SGM_INT32, DIMS(2));
    sgm_value taken = sgm_gather(graph, table, indices, 0);
    sgm_value chain = sgm_state(graph, "chain", SGM_FLOAT32, DIMS(2, 2));
    sgm_assign(graph, chain, sgm_add(graph, chain, taken));
    sgm_assign(graph, sgm_state(graph, "gathered", SGM_FLOAT32, DIMS(2, 2)), taken);
    sgm_assign(graph, sgm_state(graph, "one_hot", SGM_FLOAT32, DIMS(2, 3)),
               sgm_one_hot_values(graph, indices, 3, SGM_FLOAT32));
    sgm_assign(graph, sgm_state(graph, "scattered", SGM_FLOAT32, DIMS(3, 2)),
               sgm_scatter_add(graph, taken, indices, 0, 3));
    return sgm_session_prepare(session, graph);
}

static void check_state(sgm_session *session, const char *name, const double *expected)
{
    sgm_tensor *value = sgm_session_get(session, name);
    CHECK_OK(value);
    for (int64_t i = 0; i < sgm_shape_elements(sgm_tensor_shape(value)); i++)
        CHECK_NEAR(((const float *)sgm_tensor_const_data(value))[i], expected[i], 0);
    sgm_tensor_free(value);
}

static void check_states(sgm_session *session, const double *chain, const double *gathered,
                         const double *one_hot, const double *scattered)
{
    check_state(session, "chain", chain);
    check_state(session, "gathered", gathered);
    check_state(session, "one_hot", one_hot);
    check_state(session, "scattered", scattered);
}

static void check_unharmed(sgm_handler *handler)
{
    static const char out_of_range[] = "index 3 is out of range: axis 0 has 3 entries";
    double sum;
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create(), *other = sgm_graph_create();
    set_state(session, "chain", SGM_FLOAT32, DIMS(2, 2), NUMBERS(1, 2, 3, 4));
    set_state(session, "gathered", SGM_FLOAT32, DIMS(2, 2), NUMBERS(5, 6, 7, 8));
    set_state(session, "one_hot", SGM_FLOAT32, DIMS(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    set_state(session, "scattered", SGM_FLOAT32, DIMS(3, 2), NUMBERS(6, 5, 4, 3, 2, 1));
    sgm_program *program = index_program(session, graph);
    CHECK_OK(program);
    sgm_output(other, "sum",
               sgm_reduce_sum(other, sgm_state(other, "chain", SGM_FLOAT32, DIMS(2, 2)), NULL, 0, false));
    sgm_program *reader = sgm_session_prepare(session, other);
    CHECK_OK(reader);
    feed(session, program, "table", SGM_FLOAT32, DIMS(3, 2), NUMBERS(10, 20, 30, 40, 50, 60));
    feed(session, program, "indices", SGM_INT32, DIMS(2), NUMBERS(1, 3));
    CHECK_OK(sgm_session_run(session, program));
    /* Nobody has looked yet: the next run writes nothing either. */
    feed(session, program, "indices", SGM_INT32, DIMS(2), NUMBERS(1, 2));
    CHECK_OK(sgm_session_run(session, program));
    CHECK_ERROR(sgm_session_get(session, "chain"), out_of_range);
    check_states(session, NUMBERS(1, 2, 3, 4), NUMBERS(5, 6, 7, 8), NUMBERS(1, 2, 3, 4, 5, 6),
                 NUMBERS(6, 5, 4, 3, 2, 1));
    CHECK_OK(sgm_session_run(session, program)); /* and all goes on */
    check_states(session, NUMBERS(31, 42, 53, 64), NUMBERS(30, 40, 50, 60), NUMBERS(0, 1, 0, 0, 0, 1),
                 NUMBERS(0, 0, 30, 40, 50, 60));
    /* Another program does not compute with states of a run that went wrong. */
    feed(session, program, "indices", SGM_INT32, DIMS(2), NUMBERS(3, 0));
    CHECK_OK(sgm_session_run(session, program));
    CHECK_ERROR(sgm_session_run(session, reader), out_of_range);
    CHECK_OK(sgm_session_run(session, reader));
    CHECK_OK(sgm_session_read_number(session, reader, "sum", &sum));
    CHECK_NEAR(sum, 31 + 42 + 53 + 64, 0);
    /* Who never reads is told, too. */
    CHECK_OK(sgm_session_run(session, program));
    sgm_status status = SGM_OK;
    for (int i = 0; i < 16 && status == SGM_OK; i++)
        status = sgm_session_run(session, program);
    CHECK_INT(status, SGM_ERROR_ARGUMENT);
    sgm_graph_free(graph);
    sgm_graph_free(other);
    sgm_session_free(session);
}

TEST(indices_out_of_range_harm_no_state)
{
    with_devices(check_unharmed);
}

/* --- a user's own operations --- */

static double cube_plus(const double *x, const sgm_attributes *attributes)
{
    (void)attributes;
    return x[0] * x[0] * x[0] + 1;
}

static sgm_status infer_same(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                             sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

static sgm_status reverse(const sgm_kernel_call *call)
{
    int64_t count = sgm_shape_elements(&call->output.shape);
    for (int64_t i = 0; i < count; i++)
        sgm_array_store(&call->output, i, sgm_array_load(&call->inputs[0], count - 1 - i));
    return SGM_OK;
}

static const sgm_op own_element = {.api = SGM_OP_API,
                                   .flags = SGM_OP_ELEMENTWISE,
                                   .name = "test_cube_plus",
                                   .doc = "of a test",
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .infer = infer_same,
                                   .scalar = cube_plus};
static const sgm_op own_whole = {.api = SGM_OP_API,
                                 .name = "test_reverse",
                                 .doc = "of a test",
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .infer = infer_same,
                                 .forward = reverse};

static void check_own(sgm_handler *handler)
{
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(2, 3));
    sgm_value turned = sgm_permute(graph, sgm_exp(graph, x), (const int32_t[]){1, 0});
    sgm_value own = sgm_record(graph, &own_element, &turned, 1, NULL);
    sgm_value y = sgm_record(graph, &own_whole, &own, 1, NULL);
    sgm_output(graph, "y", sgm_subtract(graph, y, sgm_number(graph, 1)));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    const double k = log(2);
    for (int run = 0; run < 2; run++) {
        feed(session, program, "x", SGM_FLOAT32, DIMS(2, 3), NUMBERS(0, k, 0, 0, 0, k));
        CHECK_OK(sgm_session_run(session, program));
        check_output(session, program, "y", NUMBERS(8, 1, 1, 8, 1, 1), 1e-5);
    }
    CHECK_STR(sgm_handler_support(handler, "test_reverse", SGM_FLOAT32), "reference loop");
    sgm_graph_free(graph);
    sgm_session_free(session);
}

TEST(operations_without_a_kernel_run_on_the_host)
{
    CHECK_OK(sgm_register_op(&own_element));
    CHECK_OK(sgm_register_op(&own_whole));
    with_devices(check_own);
}

static sgm_handler *used_within; /* by an operation, in the midst of a run */

static sgm_status multiply_within(const sgm_kernel_call *call)
{
    sgm_session *session = sgm_session_create(used_within);
    check_small_product(session);
    sgm_session_free(session);
    return reverse(call);
}

static const sgm_op own_user = {.api = SGM_OP_API,
                                .name = "test_multiply_within",
                                .doc = "of a test",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .infer = infer_same,
                                .forward = multiply_within};

static void check_used_within(sgm_handler *handler)
{
    used_within = handler;
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_exp(graph, sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(3)));
    sgm_value y = sgm_record(graph, &own_user, &x, 1, NULL);
    sgm_output(graph, "y", sgm_multiply(graph, y, sgm_number(graph, 2)));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(3), NUMBERS(0, log(2), log(3)));
    alarm(120); /* whoever waited for itself would wait for ever */
    CHECK_OK(sgm_session_run(session, program));
    alarm(0);
    check_output(session, program, "y", NUMBERS(6, 4, 2), 1e-5);
    sgm_graph_free(graph);
    sgm_session_free(session);
}

TEST(an_operation_may_use_the_handler_that_runs_it)
{
    CHECK_OK(sgm_register_op(&own_user));
    with_devices(check_used_within);
}

/* --- several sessions --- */

static void *run_often(void *user)
{
    sgm_session *session = sgm_session_create(user);
    for (int i = 0; i < 20; i++)
        check_small_product(session);
    sgm_session_free(session);
    return NULL;
}

static void check_threads(sgm_handler *handler)
{
    pthread_t threads[3];
    uint64_t used = device_of(handler)->used;
    for (int i = 0; i < 3; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, run_often, handler), 0);
    for (int i = 0; i < 3; i++)
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    CHECK_INT(device_of(handler)->used, used);
}

TEST(sessions_in_threads_share_a_device)
{
    with_devices(check_threads);
}

static void check_times(sgm_handler *handler)
{
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = product_graph(64, 64);
    sgm_program *program = sgm_session_prepare(session, graph);
    sgm__step_time times[4];
    double values[64] = {1};
    CHECK_OK(program);
    CHECK(program->plan->step_count <= 4);
    feed(session, program, "x", SGM_FLOAT32, DIMS(64, 1), values);
    feed(session, program, "y", SGM_FLOAT32, DIMS(1, 64), values);
    CHECK_OK(sgm__session_run_timed(session, program, times));
    CHECK(times[0].seconds > 0 && times[0].seconds < 60);
    CHECK_INT(times[0].with, -1);
    sgm_graph_free(graph);
    sgm_session_free(session);
}

TEST(times_of_steps)
{
    with_devices(check_times);
}

static void check_number(sgm_handler *handler)
{
    const sgm_handler_options options = {.struct_size = sizeof options, .device = 99};
    CHECK_ERROR(sgm_handler_create_options(device_of(handler)->driver->name, &options),
                "there is no device 99: ");
    CHECK_INT(sgm_last_status(), SGM_ERROR_NOT_FOUND);
}

TEST(devices_by_number)
{
    with_devices(check_number);
}

/* --- sums of rows by many indices: in order, so that the same bits come each time --- */

#define MANY 20000
#define ROWS 3001

/* Half of the indices are the same one, as those of padding are. */
static int64_t row_of(int64_t i)
{
    return i % 2 == 0 ? 7 : i * 7919 % ROWS;
}

static float value_of(int64_t i)
{
    return (float)(i * 31 % 1009) * 1.37f - 500;
}

static void check_rows(sgm_handler *handler)
{
    static float expected[ROWS];
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(MANY));
    sgm_value at = sgm_input_value(graph, "at", SGM_INT64, DIMS(MANY));
    sgm_output(graph, "sums", sgm_scatter_add(graph, x, at, 0, ROWS));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    double *values = malloc(MANY * sizeof *values), *indices = malloc(MANY * sizeof *indices);
    memset(expected, 0, sizeof expected);
    for (int64_t i = 0; i < MANY; i++) {
        values[i] = (double)value_of(i);
        indices[i] = (double)row_of(i);
        expected[row_of(i)] += value_of(i);
    }
    feed(session, program, "x", SGM_FLOAT32, DIMS(MANY), values);
    feed(session, program, "at", SGM_INT64, DIMS(MANY), indices);
    CHECK_OK(sgm_session_run(session, program));
    sgm_tensor *sums = sgm_tensor_create(SGM_FLOAT32, DIMS(ROWS));
    CHECK_OK(sgm_session_read(session, program, "sums", sums));
    CHECK_INT(memcmp(sgm_tensor_const_data(sums), expected, sizeof expected), 0);
    sgm_tensor_free(sums);
    free(values);
    free(indices);
    sgm_graph_free(graph);
    sgm_session_free(session);
}

TEST(rows_are_summed_in_order)
{
    with_devices(check_rows);
}
