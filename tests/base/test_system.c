#include "allocator.h"
#include "base/base.h"
#include "test.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

/* A new folder for each test; its files are removed by name. */
static const char *path_of(const char *name)
{
    static char path[4][256];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

static void make_test_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/sigma-system-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
}

static void check_content(const char *path, const char *expected)
{
    char *data = NULL;
    size_t length = 0;
    CHECK_OK(sgm__file_read(path, 1 << 20, &data, &length));
    CHECK_INT(length, strlen(expected));
    CHECK_STR(data, expected);
    sgm__free(data);
}

TEST(the_clock_goes_forward)
{
    double before = sgm__now();
    usleep(2000);
    double passed = sgm__now() - before;
    CHECK(passed >= 0.002 && passed < 5);
}

TEST(what_is_written_is_read)
{
    make_test_folder();
    const char *path = path_of("file");
    CHECK(!sgm__file_exists(path));
    CHECK_OK(sgm__file_write_atomic(path, "first", 5));
    CHECK_OK(sgm__file_write_atomic(path, "second", 6));
    CHECK(sgm__file_exists(path));
    CHECK(!sgm__file_exists(path_of("file.tmp")));
    check_content(path, "second");
    CHECK_OK(sgm__file_write_atomic(path, "", 0));
    check_content(path, "");
    unlink(path);
    rmdir(folder);
}

TEST(large_binary_files_are_read_whole)
{
    make_test_folder();
    const char *path = path_of("large");
    size_t size = 300007, length = 0;
    char *written = sgm__alloc(size), *read = NULL;
    for (size_t i = 0; i < size; i++)
        written[i] = (char)(i * 31 >> 3);
    CHECK_OK(sgm__file_write_atomic(path, written, size));
    CHECK_OK(sgm__file_read(path, size, &read, &length));
    CHECK_INT(length, size);
    CHECK(memcmp(read, written, size) == 0);
    CHECK_INT(read[size], 0);
    sgm__free(read);
    CHECK_ERROR(sgm__file_read(path, size - 1, &read, &length), "at most 300006");
    CHECK(read == NULL && length == 0);
    sgm__free(written);
    unlink(path);
    rmdir(folder);
}

TEST(files_without_a_size_are_read)
{
    char *data = NULL;
    size_t length = 0;
    if (!sgm__file_exists("/proc/self/status"))
        SKIP("there is no /proc");
    CHECK_OK(sgm__file_read("/proc/self/status", 1 << 20, &data, &length));
    CHECK(length > 100 && strstr(data, "VmRSS") != NULL);
    sgm__free(data);
    CHECK_ERROR(sgm__file_read("/proc/self/status", 50, &data, &length), "more than the 50 bytes");
}

TEST(files_that_cannot_be_read_are_named)
{
    char *data = NULL;
    size_t length = 0;
    CHECK_ERROR(sgm__file_read("/no/such/file", 10, &data, &length), "'/no/such/file': No such file");
    CHECK_INT(sgm_last_status(), SGM_ERROR_FILE);
    CHECK_ERROR(sgm__file_read("/tmp", 10, &data, &length), "it is a folder");
    CHECK_ERROR(sgm__file_read("/dev/zero", 10, &data, &length), "it is a device, expected a file");
}

TEST(nobody_waits_for_a_named_pipe)
{
    make_test_folder();
    const char *path = path_of("pipe");
    char *data = NULL, given[64];
    size_t length = 0;
    CHECK_INT(mkfifo(path, 0666), 0);
    CHECK_ERROR(sgm__file_read(path, 10, &data, &length), "it is a named pipe, expected a file");
    unlink(path);
    int ends[2];
    CHECK_INT(pipe(ends), 0);
    CHECK_INT(write(ends[1], "abc", 3), 3);
    close(ends[1]);
    snprintf(given, sizeof given, "/dev/fd/%d", ends[0]);
    CHECK_OK(sgm__file_read(given, 10, &data, &length));
    CHECK_STR(data, "abc");
    sgm__free(data);
    close(ends[0]);
    rmdir(folder);
}

TEST(a_failed_write_leaves_the_old_file)
{
    make_test_folder();
    const char *path = path_of("file"), *temporary = path_of("file.tmp");
    CHECK_OK(sgm__file_write_atomic(path, "old", 3));
    /* A limit on the size of files lets the write begin, and fail in its middle. */
    struct rlimit old_limit, limit;
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    limit = old_limit;
    limit.rlim_cur = 4096;
    char *large = sgm__calloc(100000, 1);
    void (*old_handler)(int) = signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    sgm_status status = sgm__file_write_atomic(path, large, 100000);
    setrlimit(RLIMIT_FSIZE, &old_limit);
    signal(SIGXFSZ, old_handler);
    sgm__free(large);
    CHECK_INT(status, SGM_ERROR_FILE);
    CHECK(strstr(sgm_last_error(), "cannot write") != NULL);
    CHECK(!sgm__file_exists(temporary));
    check_content(path, "old");
    /* The temporary file cannot be created. */
    CHECK_INT(mkdir(temporary, 0777), 0);
    CHECK_ERROR(sgm__file_write_atomic(path, "new", 3), "cannot create");
    check_content(path, "old");
    rmdir(temporary);
    /* There is no memory for its name. */
    allocator_start(1);
    CHECK_ERROR(sgm__file_write_atomic(path, "new", 3), "cannot allocate");
    allocator_stop();
    check_content(path, "old");
    unlink(path);
    rmdir(folder);
}

TEST(a_pipe_is_written_to)
{
    make_test_folder();
    const char *path = path_of("pipe");
    char got[4] = "";
    CHECK_INT(mkfifo(path, 0666), 0);
    int end = open(path, O_RDWR | O_NONBLOCK);
    CHECK_OK(sgm__file_write_atomic(path, "new", 3));
    CHECK_INT(read(end, got, 3), 3);
    CHECK_STR(got, "new");
    close(end);
    unlink(path);
    rmdir(folder);
}

TEST(a_folder_is_not_replaced)
{
    make_test_folder();
    const char *path = path_of("sub");
    CHECK_INT(mkdir(path, 0777), 0);
    CHECK_ERROR(sgm__file_write_atomic(path, "new", 3), "cannot replace");
    CHECK(!sgm__file_exists(path_of("sub.tmp")));
    rmdir(path);
    CHECK_ERROR(sgm__file_write_atomic(path_of("no/file"), "new", 3), "No such file or directory");
    rmdir(folder);
}

TEST(a_temporary_link_is_not_followed)
{
    make_test_folder();
    const char *path = path_of("file"), *victim = path_of("victim"), *link = path_of("file.tmp");
    CHECK_OK(sgm__file_write_atomic(victim, "precious", 8));
    CHECK_INT(symlink(victim, link), 0);
    CHECK_ERROR(sgm__file_write_atomic(path, "new", 3), "cannot create");
    check_content(victim, "precious");
    unlink(link);
    unlink(victim);
    rmdir(folder);
}

TEST(folders_are_made_with_their_parents)
{
    make_test_folder();
    CHECK_OK(sgm__make_folders(path_of("a/b//c/")));
    CHECK_OK(sgm__make_folders(path_of("a/b/c")));
    CHECK(sgm__file_exists(path_of("a/b/c")));
    CHECK_OK(sgm__file_write_atomic(path_of("a/file"), "x", 1));
    CHECK_ERROR(sgm__make_folders(path_of("a/file")), "a file of that name exists");
    CHECK_ERROR(sgm__make_folders(path_of("a/file/d")), "a file of that name exists");
    CHECK_ERROR(sgm__make_folders(""), "cannot create the folder");
    CHECK_ERROR(sgm__make_folders(NULL), "no path");
    unlink(path_of("a/file"));
    rmdir(path_of("a/b/c"));
    rmdir(path_of("a/b"));
    rmdir(path_of("a"));
    rmdir(folder);
}

/* What the build refuses otherwise. */
TEST(pointers_have_64_bits)
{
    CHECK_INT(sizeof(void *), 8);
    CHECK_INT(sizeof(size_t), sizeof(int64_t));
}
