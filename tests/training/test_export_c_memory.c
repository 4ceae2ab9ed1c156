/* Exports when memory runs out: an error, a whole file or none, and the trainer is as it was. */
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

static bool is_there_or_not(const char *path)
{
    (void)path;
    return true;
}

/* Calls `act` until no allocation of it fails, each time with another one failing. */
static void fail_each(sgm_status (*act)(sgm_trainer *, const char *), sgm_trainer *trainer,
                      bool (*is_good)(const char *path))
{
    char path[] = "/tmp/sigma-export-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    close(file);
    unlink(path);
    long failures = 0;
    for (long n = 1;; n++) {
        allocator_start_once(n);
        sgm_clear_error();
        sgm_status status = act(trainer, path);
        bool told = sgm_last_status() != SGM_OK;
        bool failed = atomic_load(&allocator_calls) >= n;
        allocator_stop();
        if (!failed) {
            CHECK_OK(status);
            break;
        }
        failures += status != SGM_OK;
        if (!is_good(path) || (status != SGM_OK && !told))
            TEST_FAIL("allocation %ld failed: half a file, or no word of it", n);
        unlink(path);
        CHECK(n < 100000);
    }
    CHECK(failures > 100);
    CHECK(access(path, F_OK) == 0);
    CHECK_OK(sgm_trainer_status(trainer));
    unlink(path);
}

static sgm_status export_c(sgm_trainer *trainer, const char *path)
{
    return sgm_trainer_export_c(trainer, path, .train = 2);
}

static sgm_status export_onnx(sgm_trainer *trainer, const char *path)
{
    return sgm_trainer_export_onnx(trainer, path);
}

TEST(any_allocation_may_fail_in_an_export)
{
    sgm_env *env = sgm_env_create("export", .seed = 7);
    sgm_trainer *trainer = sgm_trainer_create(env, "t");
    CHECK_OK(sgm_trainer_set_network(
        trainer, "input(4) + dropout(0.5) + dense(3, gelu) + dense(2) + softmax_cross_entropy"));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_adam()));
    CHECK_OK(sgm_trainer_prepare(trainer));
    fail_each(export_c, trainer, is_whole_or_none);
    sgm_env_free(env);
}

/* Columns of all kinds, and a field of their own. */
static const char rows[] = "area,town,zip,built,price\n80.5,Ulm,89073,1990-01-02,1\n,Bonn,1,1980-05-06,2.5\n"
                           "70,Bonn,1,,2\n90,Ulm,89073,1970-01-01,3\n";

TEST(any_allocation_may_fail_in_the_export_of_a_table)
{
    char path[] = "/tmp/sigma-table-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    CHECK(write(file, rows, strlen(rows)) == (ssize_t)strlen(rows));
    close(file);
    sgm_table *table = sgm_table_open(path, .separator = ',');
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"price"}, .categorical = {"zip"},
                                              .embedding = {{.column = "town"}}, .impute = SGM_IMPUTE_FLAG);
    char *network = sgm_pipeline_network(pipeline);
    sgm_dataset *data = sgm_dataset_create("rows", .extractor = sgm_pipeline_extractor(pipeline, path));
    CHECK_OK(sgm_dataset_set_pipeline(data, pipeline));
    sgm_env *env = sgm_env_create("export", .seed = 7);
    sgm_trainer *trainer = sgm_trainer_create(env, "t");
    CHECK_OK(sgm_trainer_set_network(trainer, network));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_adam()));
    CHECK_OK(sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = 2)));
    CHECK_OK(sgm_trainer_prepare(trainer));
    fail_each(export_c, trainer, is_whole_or_none);
    sgm_status status = sgm_trainer_export_onnx(trainer, path);
    if (status != SGM_ERROR_UNSUPPORTED)
        fail_each(export_onnx, trainer, is_there_or_not);
    unlink(path);
    sgm_env_free(env);
    sgm_string_free(network);
    sgm_dataset_free(data);
    sgm_pipeline_free(pipeline);
    sgm_table_free(table);
}
