/* The stand-in for CUDA (fake_cuda/) instead of NVIDIA's libraries, for the tests of one program; with
 * SIGMA_TEST_CUDA in the environment, the real ones. */
#ifndef SIGMA_TEST_CUDA_STAND_IN_H
#define SIGMA_TEST_CUDA_STAND_IN_H

#include "test.h"

#include <unistd.h>

__attribute__((unused)) static bool cuda_is_real(void)
{
    return getenv("SIGMA_TEST_CUDA") != NULL;
}

/* Called first in each test; skips it where kernels cannot be compiled. */
__attribute__((unused)) static void use_cuda(void)
{
    char folder[4096];
    if (cuda_is_real())
        return;
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 32);
    CHECK(length > 0);
    folder[length > 0 ? length : 0] = '\0';
    char *tests = strstr(folder, "/tests/");
    CHECK(tests != NULL);
    memcpy(tests, "/tests/fake_cuda", sizeof "/tests/fake_cuda");
    setenv("SIGMA_CUDA_LIBRARIES", folder, 1);
    if (system("c++ --version >/dev/null 2>&1") != 0)
        SKIP("there is no C++ compiler (c++), with which the stand-in for CUDA compiles kernels");
}

#endif
