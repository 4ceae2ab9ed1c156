/* Networks as C when memory runs out: an error, a whole file or none, and the trainer is as it was. */
#include "base/allocator.h"
#include "base/base.h"
#include "test.h"
#include <sigma/sigma.h>
#include <unistd.h>

/* Only the folder may fail once the file is there. */
static bool is_whole_or_none(const char *path)
{
    char *text;
    size_t length;
    if (access(path, F_OK) != 0)
        return true;
    CHECK_OK(sgm__file_read(path, 1 << 20, &text, &length));
    bool whole = length > 8 && strcmp(text + length - 8, "\n#endif\n") == 0;
    sgm__free(text);
    return whole;
}

TEST(any_allocation_may_fail_in_an_export)
{
    char path[] = "/tmp/sigma-export-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    close(file);
    unlink(path);
    sgm_env *env = sgm_env_create("export", .seed = 7);
    sgm_trainer *trainer = sgm_trainer_create(env, "t");
    CHECK_OK(sgm_trainer_set_network(
        trainer, "input(4) + dropout(0.5) + dense(3, gelu) + dense(2) + softmax_cross_entropy"));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_adam()));
    CHECK_OK(sgm_trainer_prepare(trainer));
    long failures = 0;
    for (long n = 1;; n++) {
        allocator_start_once(n);
        sgm_clear_error();
        sgm_status status = sgm_trainer_export_c(trainer, path, .train = 2);
        bool told = sgm_last_status() != SGM_OK;
        bool failed = atomic_load(&allocator_calls) >= n;
        allocator_stop();
        if (!failed) {
            CHECK_OK(status);
            break;
        }
        failures += status != SGM_OK;
        if (!is_whole_or_none(path) || (status != SGM_OK && !told))
            TEST_FAIL("allocation %ld failed: half a file, or no word of it", n);
        unlink(path);
        CHECK(n < 100000);
    }
    CHECK(failures > 100);
    CHECK(access(path, F_OK) == 0);
    CHECK_OK(sgm_trainer_status(trainer));
    unlink(path);
    sgm_env_free(env);
}
