/* The stand-in for CUDA (fake_cuda/) instead of NVIDIA's libraries, for the tests of one program; with
 * SIGMA_TEST_CUDA in the environment, the real ones. */
#ifndef SIGMA_TEST_CUDA_STAND_IN_H
#define SIGMA_TEST_CUDA_STAND_IN_H

#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

__attribute__((unused)) static bool cuda_is_real(void)
{
    return getenv("SIGMA_TEST_CUDA") != NULL;
}

/* Called first in each test; skips it where kernels cannot be compiled. */
__attribute__((unused)) static void use_cuda(void)
{
    char place[4096];
    if (cuda_is_real())
        return;
    ssize_t length = readlink("/proc/self/exe", place, sizeof place - 32);
    CHECK(length > 0);
    place[length > 0 ? length : 0] = '\0';
    char *tests = strstr(place, "/tests/");
    CHECK(tests != NULL);
    memcpy(tests, "/tests/fake_cuda", sizeof "/tests/fake_cuda");
    setenv("SIGMA_CUDA_LIBRARIES", place, 1);
    if (system("c++ --version >/dev/null 2>&1") != 0)
        SKIP("there is no C++ compiler (c++), with which the stand-in for CUDA compiles kernels");
}

/* Does in a process of its own what the stand-in ends processes for; `text` is what it says then. */
#define MISTAKE_TEXT 1024
__attribute__((unused)) static void make_mistake(void (*mistake)(void), char text[MISTAKE_TEXT])
{
    int ends[2], status = 0;
    size_t length = 0;
    ssize_t part;
    fflush(stdout);
    CHECK_INT(pipe(ends), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(ends[1], 2);
        test_can_leave = false; /* the tests that follow are the other process's */
        mistake();
        _exit(0);
    }
    close(ends[1]);
    while ((part = read(ends[0], text + length, MISTAKE_TEXT - 1 - length)) > 0)
        length += (size_t)part;
    text[length] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        TEST_FAIL("nothing was found; %s", text);
}

/* The same with three devices, as no computer surely has. */
__attribute__((unused)) static void use_three_devices(void)
{
    use_cuda();
    if (cuda_is_real())
        SKIP("as many devices as these tests want are there on the stand-in only");
    setenv("SIGMA_FAKE_CUDA_DEVICES", "3", 1);
    unsetenv("SIGMA_FAKE_NCCL_SUMS");
}

/* The same without NCCL, in a folder that `show_nccl` removes. What a process has loaded stays, so such a
 * test is its first one. */
static const char *const without_nccl[] = {"libcuda.so.1", "libnvrtc.so.12", "libcublasLt.so.12"};
#define WITHOUT_NCCL (sizeof without_nccl / sizeof *without_nccl)

__attribute__((unused)) static void hide_nccl(char place[32])
{
    char from[4200], to[64];
    use_cuda();
    memcpy(place, "/tmp/sigma-cuda-XXXXXX", sizeof "/tmp/sigma-cuda-XXXXXX");
    CHECK(mkdtemp(place) != NULL);
    for (size_t i = 0; i < WITHOUT_NCCL; i++) {
        snprintf(from, sizeof from, "%s/%s", getenv("SIGMA_CUDA_LIBRARIES"), without_nccl[i]);
        snprintf(to, sizeof to, "%s/%s", place, without_nccl[i]);
        CHECK_INT(symlink(from, to), 0);
    }
    setenv("SIGMA_CUDA_LIBRARIES", place, 1);
}

__attribute__((unused)) static void show_nccl(const char *place)
{
    char path[64];
    for (size_t i = 0; i < WITHOUT_NCCL; i++) {
        snprintf(path, sizeof path, "%s/%s", place, without_nccl[i]);
        unlink(path);
    }
    rmdir(place);
    use_cuda();
}

#endif
