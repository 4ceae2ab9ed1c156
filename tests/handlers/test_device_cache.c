/* Compiled kernels on disk: kept, made again if a file is damaged, written by several processes at once. */
#include "each_device.h"

#include "../base/folder.h"
#include <sys/stat.h>
#include <unistd.h>

/* What no library does: with kernels of our own. */
static void check_chain(sgm_session *session)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(3));
    sgm_graph_add_output(graph, "y", sgm_add(graph, sgm_multiply(graph, x, x), x));
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

/* --- what a file is named by --- */

static int count_kept(void)
{
    char command[160];
    int count = -1;
    snprintf(command, sizeof command, "ls '%s'/kernels | wc -l", folder);
    FILE *list = popen(command, "r");
    CHECK(list != NULL);
    CHECK_INT(fscanf(list, "%d", &count), 1);
    pclose(list);
    return count;
}

static void check_kept_count(sgm_handler *handler, int count)
{
    sgm_session *session = sgm_session_create(handler);
    check_chain(session);
    sgm_session_free(session);
    CHECK_INT(count_kept(), count);
}

/* A change of `text` is that of what compiles: its file is another one. */
static void check_named_by(sgm_handler *handler, char *text, int count)
{
    CHECK(text[0] != '\0');
    text[0] ^= 1;
    check_kept_count(handler, count);
    text[0] ^= 1;
    check_kept_count(handler, count);
}

static void check_names(sgm_handler *handler)
{
    sgm__device *device = device_of(handler);
    bool opencl = strcmp(device->driver->name, "opencl") == 0;
    open_folder();
    setenv("SIGMA_CACHE_DIR", folder, 1);
    check_kept_count(handler, 1);
    check_kept_count(handler, 1);
    check_named_by(handler, device->info.name, 2);
    check_named_by(handler, device->info.driver, 3);
    check_named_by(handler, device->info.compiler, 4);
    const sgm_device_driver *driver = device->driver;
    sgm_device_driver newer = *driver;
    char *prelude = sgm__format("/* another one */\n%s", driver->prelude);
    newer.prelude = prelude;
    device->driver = &newer;
    check_kept_count(handler, 5);
    device->driver = driver;
    sgm__free(prelude);
    CHECK(strstr(device->info.compiler, opencl ? "-cl-std=CL1.2" : "--fmad=false") != NULL);
    unsetenv("SIGMA_CACHE_DIR");
    close_folder();
}

TEST(a_file_is_of_a_device_a_driver_a_compiler_its_options_and_the_source)
{
    with_devices(check_names);
}

/* --- numbers that are set while training runs --- */

static void check_factor(sgm_handler *handler, sgm_value (*number)(sgm_graph *graph, double number),
                         double factor, int count)
{
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(3));
    sgm_value y = sgm_minimum(graph, sgm_multiply(graph, x, number(graph, factor)), sgm_number(graph, 7));
    sgm_graph_add_output(graph, "y", y);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(3), NUMBERS(2, -3, 100));
    CHECK_OK(sgm_session_run(session, program));
    check_output(session, program, "y", NUMBERS(2 * factor, -3 * factor, 7), 0);
    CHECK_INT(count_kept(), count);
    sgm_graph_free(graph);
    sgm_session_free(session);
}

static void check_live_numbers(sgm_handler *handler)
{
    open_folder();
    setenv("SIGMA_CACHE_DIR", folder, 1);
    check_factor(handler, sgm_live_number, 2, 1);
    check_factor(handler, sgm_live_number, 0.5, 1);
    check_factor(handler, sgm_live_number, 1, 1);
    check_factor(handler, sgm_number, 2, 2);
    check_factor(handler, sgm_number, 0.5, 3);
    unsetenv("SIGMA_CACHE_DIR");
    close_folder();
}

TEST(live_numbers_are_read_not_compiled)
{
    with_devices(check_live_numbers);
}
