/* Memory that runs out while a table of several pieces is read, at each allocation in turn: always an error
 * of memory, and nothing is lost. Once only that allocation fails, once all from it on. */
#include "base/allocator.h"
#include "base/base.h"
#include "data_test.h"
#include <sigma/table.h>

/* Quotes, texts of many lengths, rows without a target, and cells over the ends of pieces. */
static const char *table_file(void)
{
    sgm__text content = {0};
    sgm__text_append(&content, "id,kind,note,day,y\n");
    for (int i = 0; i < 3000; i++)
        sgm__text_append(&content, "%d,k%d,\"a \"\"quoted\"\" note %*s\",2020-01-%02d,%s\n", i, i % 7, i % 50,
                         "x", 1 + i % 28,
                         i % 10 == 0 ? ""
                         : i % 3 > 0 ? "2.5"
                                     : "1");
    CHECK_OK(sgm__file_write_atomic(data_path("memory.csv"), content.data, content.length));
    sgm__text_free(&content);
    return data_path("memory.csv");
}

/* Reads all examples. Takes the extractor; NULL passes a failure on. */
static bool read_all(sgm_extractor *extractor)
{
    sgm_block *block = NULL;
    bool good = extractor != NULL;
    do {
        sgm_block_free(block);
        block = NULL;
        good = good && sgm_extractor_extract(extractor, 1500, &block) == SGM_OK;
    } while (good && block != NULL);
    sgm_extractor_free(extractor);
    return good;
}

static bool by_names(const char *path, int32_t threads)
{
    sgm_table *table = sgm_table_open(path, .skip_missing = {"y"}, .threads = threads);
    sgm_split *split =
        table != NULL ? sgm_table_split(table, "kind", .kind = SGM_SPLIT_GROUP, .shares = {0.7, 0.3}) : NULL;
    sgm_pipeline *pipeline =
        split != NULL ? sgm_pipeline_fit(table, .targets = {"y"}, .drop = {"note"}) : NULL;
    bool good = pipeline != NULL &&
                read_all(sgm_split_extractor(sgm_pipeline_extractor(pipeline, path, .threads = threads),
                                             split, 0, false));
    sgm_pipeline_free(pipeline);
    sgm_split_free(split);
    sgm_table_free(table);
    return good;
}

static bool by_numbers(const char *path, int32_t threads)
{
    return read_all(sgm_csv_extractor(
        sgm_csv_reader(sgm_file_source(path), .skip_rows = 1, .missing = "none"), .has_missing = true,
        .fields = {{"inputs", 0, 0}, {"targets", 4, 4}}, .threads = threads));
}

static void check(bool (*read)(const char *path, int32_t threads), int32_t threads, bool once)
{
    const char *path = table_file();
    bool failed = true;
    for (long n = 1; failed; n++) {
        if (once)
            allocator_start_once(n);
        else
            allocator_start(n);
        sgm_clear_error();
        bool good = read(path, threads);
        sgm_status status = sgm_last_status();
        failed = atomic_load(&allocator_calls) >= n;
        long live = atomic_load(&allocator_live);
        allocator_stop();
        CHECK(failed ? !good && status == SGM_ERROR_MEMORY : good);
        CHECK_INT(live, 0);
        CHECK(n < 20000);
    }
}

TEST(by_names_on_one_thread)
{
    check(by_names, 1, true);
    check(by_names, 1, false);
}

TEST(by_names_on_threads)
{
    check(by_names, 3, false);
}

TEST(by_numbers_of_columns)
{
    check(by_numbers, 1, true);
    check(by_numbers, 1, false);
    check(by_numbers, 3, false);
}
