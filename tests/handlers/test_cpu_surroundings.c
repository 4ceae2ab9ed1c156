/* Variables that libraries listen to change neither the kernels nor the threads that a handler chose. Each
 * surrounding is a process of its own, as libraries look at them when they are loaded. */
#include "graphs.h"

#include "handlers/handler.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIDE 256

static const char *const plain[] = {NULL};
static const char *const slow[] = {"OPENBLAS_CORETYPE=Haswell", "OPENBLAS_NUM_THREADS=8",
                                   "GOTO_NUM_THREADS=8", "OMP_NUM_THREADS=8", NULL};
static const char *const nonsense[] = {"OPENBLAS_CORETYPE=Abacus", "OMP_NUM_THREADS=many", "OMP_DYNAMIC=true",
                                       "OMP_NUM_THREADS=8",        "MKL_NUM_THREADS=8",    NULL};

/* In place of the C library's: other threads may be reading the environment, so the library must not change
 * it. */
static int changes;
int setenv(const char *name, const char *value, int overwrite)
{
    (void)name, (void)value, (void)overwrite;
    return ++changes;
}

static int threads_now(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = 0;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    if (folder != NULL)
        closedir(folder);
    return count;
}

/* Says what the handler says of itself, and how many threads there are after a product. */
static void report(const char *dense, int to)
{
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 2, .dense = dense);
    if (handler == NULL) {
        dprintf(to, "%s\n", sgm_last_error());
        return;
    }
    sgm_graph *graph = sgm_graph_create();
    sgm_session *session = sgm_session_create(handler);
    sgm_tensor *x = sgm_tensor_create(SGM_FLOAT32, DIMS(SIDE, SIDE));
    sgm_value value = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(SIDE, SIDE));
    sgm_graph_add_output(graph, "y", sgm_matmul(graph, value, value));
    sgm_program *program = sgm_session_prepare(session, graph);
    sgm_status status = sgm_session_feed(session, program, "x", x);
    status = status == SGM_OK ? sgm_session_run(session, program) : status;
    char *text = sgm_handler_describe(handler), *measured = strstr(text, "measured: ");
    /* Two measurements differ. It is the last line. */
    if (measured != NULL)
        *measured = '\0';
    dprintf(to, "%s%s\n%d threads, %d changes\n", text, sgm_status_text(status), threads_now(), changes);
    sgm_string_free(text);
    sgm_session_free(session);
    sgm_tensor_free(x);
    sgm_graph_free(graph);
    sgm_handler_free(handler);
}

/* What `tell` writes in a process of its own. */
static void report_by(void (*tell)(int to), char *text, size_t size)
{
    int ends[2], status;
    CHECK_INT(pipe(ends), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        tell(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t n = 1; n > 0 && length<size - 1; length += n> 0 ? (size_t)n : 0)
        n = read(ends[0], text + length, size - 1 - length);
    text[length] = '\0';
    close(ends[0]);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
}

static const char *const *variables_now;
static const char *dense_now;

static void report_with_variables(int to)
{
    for (int i = 0; variables_now[i] != NULL; i++)
        putenv((char *)(uintptr_t)variables_now[i]);
    report(dense_now, to);
}

static void report_within(const char *const *variables, const char *dense, char *text, size_t size)
{
    variables_now = variables;
    dense_now = dense;
    report_by(report_with_variables, text, size);
}

static void compare(const char *dense)
{
    static const char *const variables[] = {"OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"};
    const char *const *const others[] = {slow, nonsense};
    char expected[2048], got[2048];
    for (int i = 0; i < 3; i++)
        unsetenv(variables[i]);
    report_within(plain, dense, expected, sizeof expected);
    if (strstr(expected, "not installed") != NULL)
        SKIP("this library is not installed");
    CHECK(strstr(expected, "instructions: ") != NULL && strstr(expected, "matrix products: ") != NULL);
    CHECK(strstr(expected, " 0 changes\n") != NULL);
    for (int i = 0; i < 2; i++) {
        report_within(others[i], dense, got, sizeof got);
        if (strcmp(got, expected) != 0)
            TEST_FAIL("with %s and others:\n%sWithout:\n%s", others[i][0], got, expected);
    }
}

TEST(own_loops)
{
    compare(NULL);
}

TEST(openblas)
{
    compare("openblas");
}

TEST(onednn)
{
    compare("onednn");
}

/* A library of that name that has none of the functions; it is found by its name once it is loaded. */
static void report_empty(int to)
{
    char path[] = "/tmp/sigma-onednn-XXXXXX", command[160];
    int file = mkstemp(path);
    CHECK(file >= 0);
    close(file);
    snprintf(command, sizeof command, "cc -x c /dev/null -shared -Wl,-soname,libdnnl.so.3 -o %s", path);
    CHECK_INT(system(command), 0);
    CHECK(dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL);
    unlink(path);
    report("onednn", to);
}

TEST(a_library_without_the_functions)
{
    char text[2048];
    report_by(report_empty, text, sizeof text);
    CHECK_STR(text,
              "dense is 'onednn', but the library that is installed here has no dnnl_sgemm; \"own\" needs "
              "none\n");
}

static void report_checks(int to)
{
    static const char *const names[] = {"cpu(dense=openblas)", "cpu(dense=onednn)", "cpu(dense=own)"};
    static const char *const libraries[] = {"libopenblas.so.0", "libdnnl.so.3", "libdnnl.so.2"};
    for (int i = 0; i < 3; i++)
        dprintf(to, "%s ", sgm_status_text(sgm__handler_check(names[i])));
    for (int i = 0; i < 3; i++)
        dprintf(to, "%d", dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD) != NULL);
    dprintf(to, " %s", sgm__handler_check("cpu(dense=mkl)") != SGM_OK ? sgm_last_error() : "");
}

TEST(checking_a_name_loads_nothing)
{
    char text[1024];
    report_by(report_checks, text, sizeof text);
    CHECK_STR(text, "ok ok ok 000 handler 'cpu(dense=mkl)': dense is 'mkl'; give \"openblas\", "
                    "\"onednn\" or \"own\"");
}
