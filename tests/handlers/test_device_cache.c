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
