/* Rows without a target are left out: a table that has them is then, in all that is made of it, the table
 * from which somebody has removed them. */
#include "base/base.h"
#include "data_test.h"
#include <sigma/table.h>

#include <math.h>
#include <zlib.h>

#define ROWS 40000

static const int32_t thread_counts[] = {1, 2, 5};

/* Row `i` of the table. Some stretches without a target are longer than a piece of the file. */
static void append_row(sgm__text *to, int i, bool is_lacking, bool as_json)
{
    static const char *const marks[] = {"", "NA", "null"};
    const char *mark = marks[i % 3];
    char y[32], z[32];
    snprintf(y, sizeof y, "%s", as_json ? "null" : mark);
    snprintf(z, sizeof z, "%d.25", i % 11);
    if (!is_lacking || i % 7 == 3) /* the other target alone is missing */
        snprintf(y, sizeof y, "%d.5", i % 13);
    if (is_lacking && i % 7 == 3)
        snprintf(z, sizeof z, "%s", as_json ? "null" : mark);
    sgm__text_append(to,
                     as_json
                         ? "{\"x\":%d,\"w\":%d,\"kind\":\"k%d\",\"day\":\"%d-01-%02d\",\"y\":%s,\"z\":%s}\n"
                         : "%d,%d,k%d,%d-01-%02d,%s,%s\n",
                     is_lacking ? 1000000 : i % 501, 1 + i % 3, i % 9 + (is_lacking ? 100 : 0), 1980 + i % 40,
                     1 + i % 28, y, z);
}

static bool lacks(int i)
{
    return (i > 5000 && i < 13000) || i % 5 == 0 || i > ROWS - 20 || i == ROWS - 4000;
}

/* The table with all rows, or with those alone that have targets. */
static const char *table_file(const char *name, bool all)
{
    sgm__text content = {0};
    bool as_json = strstr(name, ".jsonl") != NULL, is_packed = strstr(name, ".gz") != NULL;
    const char *path = data_path(name);
    sgm__text_append(&content, "%s", as_json ? "" : "x,w,kind,day,y,z\n");
    for (int i = 0; i < ROWS; i++)
        if (all || !lacks(i))
            append_row(&content, i, lacks(i), as_json);
    if (is_packed) {
        gzFile packed = gzopen(path, "wb1");
        CHECK_INT(gzwrite(packed, content.data, (unsigned)content.length), (int64_t)content.length);
        gzclose(packed);
    } else {
        CHECK_OK(sgm__file_write_atomic(path, content.data, content.length));
    }
    sgm__text_free(&content);
    return path;
}

static sgm_pipeline *fit(const sgm_table *table)
{
    return sgm_pipeline_fit(table, .targets = {"y", "z"}, .weights = "w", .scale = SGM_SCALE_ROBUST);
}

static void check_same_table(const sgm_table *a, const sgm_table *b)
{
    CHECK(a != NULL && b != NULL);
    CHECK_INT(sgm_table_rows(a), sgm_table_rows(b));
    for (size_t i = 0; i < sgm_table_columns(b); i++) {
        const sgm_table_column *left = sgm_table_column_at(a, i), *right = sgm_table_column_at(b, i);
        CHECK_INT(left->kind, right->kind);
        CHECK_INT(left->missing, right->missing);
        CHECK_INT((int64_t)left->category_count, (int64_t)right->category_count);
        CHECK(left->mean == right->mean || (isnan(left->mean) && isnan(right->mean)));
        CHECK(left->maximum == right->maximum || (isnan(left->maximum) && isnan(right->maximum)));
    }
}

static void check_same_examples(sgm_extractor *a, sgm_extractor *b, int64_t expected)
{
    static const char *const fields[] = {"inputs", "targets", "weights"};
    sgm_block *left = NULL, *right = NULL;
    int64_t total = 0, wrong = 0;
    do {
        sgm_block_free(left);
        sgm_block_free(right);
        CHECK_OK(sgm_extractor_extract(a, 777, &left));
        CHECK_OK(sgm_extractor_extract(b, 777, &right));
        CHECK_INT(left != NULL ? left->count : 0, right != NULL ? right->count : 0);
        for (size_t i = 0; left != NULL && right != NULL && i < 3; i++) {
            sgm_tensor *one = sgm_block_field(left, fields[i]), *other = sgm_block_field(right, fields[i]);
            wrong += memcmp(sgm_tensor_data(one), sgm_tensor_data(other),
                            (size_t)sgm_shape_elements(sgm_tensor_shape(other)) * sizeof(float)) != 0;
        }
        total += left != NULL ? left->count : 0;
    } while (left != NULL);
    CHECK_INT(total, expected);
    CHECK_INT(wrong, 0);
    sgm_extractor_free(a);
    sgm_extractor_free(b);
}

static void check_same_files(const char *name, const char *kept_name, int32_t threads)
{
    char kept_path[512];
    snprintf(kept_path, sizeof kept_path, "%s", table_file(kept_name, false));
    const char *path = table_file(name, true);
    sgm_table *table = sgm_table_open(path, .skip_missing = {"y", "z"}, .threads = threads),
              *kept = sgm_table_open(kept_path, .threads = threads);
    check_same_table(table, kept);
    CHECK_INT(sgm_table_skipped(table), ROWS - sgm_table_rows(kept));
    CHECK_INT(sgm_table_skipped(kept), 0);
    sgm_pipeline *pipeline = fit(table), *other = fit(kept);
    sgm_extractor *whole = sgm_pipeline_extractor(other, kept_path, .threads = threads);
    check_same_examples(sgm_pipeline_extractor(pipeline, path, .threads = threads), whole,
                        sgm_table_rows(kept));
    sgm_table_free(table);
    sgm_table_free(kept);
    sgm_pipeline_free(pipeline);
    sgm_pipeline_free(other);
}

TEST(all_is_as_without_the_rows)
{
    for (size_t i = 0; i < sizeof thread_counts / sizeof *thread_counts; i++)
        check_same_files("all.csv", "kept.csv", thread_counts[i]);
    check_same_files("all.csv.gz", "kept.csv", 2);
    check_same_files("all.jsonl", "kept.jsonl", 2);
}

static void check_same_split(const sgm_table *table, const sgm_table *kept, const char *column,
                             const sgm_split_options *options)
{
    sgm_split *split = sgm_table_split_with(table, column, options),
              *expected = sgm_table_split_with(kept, column, options);
    CHECK(split != NULL && expected != NULL);
    int64_t wrong = 0;
    for (int64_t row = 0; row < sgm_table_rows(kept); row++)
        wrong += sgm_split_part_of(split, row) != sgm_split_part_of(expected, row);
    CHECK_INT(wrong, 0);
    CHECK_INT(sgm_split_examples(split), sgm_table_rows(kept));
    sgm_table *part =
                  sgm_table_open(data_path("all.csv"), .skip_missing = {"z", "y"}, .split = split, .part = 1),
              *kept_part = sgm_table_open(data_path("kept.csv"), .split = expected, .part = 1);
    check_same_table(part, kept_part); /* what is learnt is of the same rows */
    sgm_pipeline *pipeline = fit(part), *other = fit(kept_part);
    for (int others = 0; others < 2; others++) {
        int64_t count = sgm_split_part_examples(expected, 1);
        check_same_examples(sgm_split_extractor(sgm_pipeline_extractor(pipeline, data_path("all.csv")), split,
                                                1, others == 1),
                            sgm_split_extractor(sgm_pipeline_extractor(other, data_path("kept.csv")),
                                                expected, 1, others == 1),
                            others == 1 ? sgm_table_rows(kept) - count : count);
    }
    sgm_pipeline_free(pipeline);
    sgm_pipeline_free(other);
    sgm_table_free(part);
    sgm_table_free(kept_part);
    sgm_split_free(split);
    sgm_split_free(expected);
}

TEST(splits_are_of_the_rows_that_are_left)
{
    table_file("kept.csv", false);
    sgm_table *table = sgm_table_open(table_file("all.csv", true), .skip_missing = {"y", "z"}),
              *kept = sgm_table_open(data_path("kept.csv"));
    sgm_split_options options = {.struct_size = sizeof options, .shares = {0.6, 0.2, 0.2}, .seed = 3};
    check_same_split(table, kept, NULL, &options);
    options.kind = SGM_SPLIT_GROUP;
    check_same_split(table, kept, "kind", &options);
    options.kind = SGM_SPLIT_TIME;
    check_same_split(table, kept, "day", &options);
    options.kind = SGM_SPLIT_STRATIFIED;
    check_same_split(table, kept, "kind", &options);
    sgm_table_free(table);
    sgm_table_free(kept);
}

/* --- small tables --- */

static const char *file(const char *name, const char *content)
{
    CHECK_OK(sgm__file_write_atomic(data_path(name), content, strlen(content)));
    return data_path(name);
}

static sgm_pipeline *skipping(const char *path)
{
    sgm_table *table = sgm_table_open(path, .skip_missing = {"y"});
    sgm_pipeline *pipeline = table != NULL ? sgm_pipeline_fit(table, .targets = {"y"}) : NULL;
    sgm_table_free(table);
    return pipeline;
}

/* The number of examples of a file; -1: it failed. */
static int64_t count_examples(sgm_pipeline *pipeline, const char *path, bool inputs_only)
{
    sgm_extractor *extractor = sgm_pipeline_extractor(pipeline, path, .inputs_only = inputs_only);
    sgm_block *block = NULL;
    int64_t count = sgm_extractor_extract(extractor, 100, &block) != SGM_OK ? -1
                    : block != NULL                                         ? block->count
                                                                            : 0;
    sgm_block_free(block);
    sgm_extractor_free(extractor);
    return count;
}

TEST(pipelines_keep_it)
{
    sgm_pipeline *pipeline = skipping(file("s.csv", "x,y\n1,2\n2,\n3,4\n4,?\n")), *parsed;
    CHECK(pipeline != NULL);
    char *json = sgm_pipeline_json(pipeline);
    CHECK_CONTAINS(json, "\"version\":2");
    CHECK_CONTAINS(json, "\"skip\":true");
    parsed = sgm_pipeline_parse(json);
    CHECK(parsed != NULL);
    CHECK_INT(count_examples(parsed, data_path("s.csv"), false), 2);
    CHECK_INT(count_examples(parsed, data_path("s.csv"), true), 4); /* predictions need no targets */
    CHECK_INT(count_examples(parsed, file("n.csv", "x,y\n1,\n2,\n"), false), -1);
    CHECK_CONTAINS(sgm_last_error(), "n.csv: all rows are left out, as none has a target");
    CHECK_INT(count_examples(parsed, file("n.csv", "x,y\n1,\n2,oh\n"), false), -1);
    CHECK_CONTAINS(sgm_last_error(), "n.csv: line 3, column 'y': \"oh\" is no number");
    sgm_string_free(json);
    sgm_pipeline_free(pipeline);
    sgm_pipeline_free(parsed);
    CHECK(sgm_pipeline_parse("{\"version\":2,\"header\":true,\"decimal\":\".\",\"columns\":[{\"name\":\"x\","
                             "\"kind\":\"number\",\"field\":\"inputs\",\"required\":true,\"skip\":true,"
                             "\"offset\":0,\"factor\":1}]}") == NULL);
    CHECK_CONTAINS(sgm_last_error(), "skip");
}

TEST(columns_by_numbers)
{
    sgm_table *table = sgm_table_open(file("d.csv", "7,\n1,2\n2,\n3,4\n"), .skip_missing = {"1"});
    CHECK_INT(sgm_table_rows(table), 2); /* the first row is left out, too */
    CHECK_INT(sgm_table_skipped(table), 2);
    CHECK_NEAR(sgm_table_column_at(table, 0)->mean, 2, 0);
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"1"});
    CHECK_INT(count_examples(pipeline, data_path("d.csv"), false), 2);
    sgm_pipeline_free(pipeline);
    sgm_table_free(table);
}

TEST(refusals)
{
    CHECK(sgm_table_open(file("r.csv", "x,y\n1,\n2,NA\n"), .skip_missing = {"y"}) == NULL);
    CHECK_CONTAINS(sgm_last_error(), "r.csv: all rows are left out, as none has a value in column 'y'");
    CHECK(sgm_table_open(file("r.csv", "x,y\n1,1\n"), .skip_missing = {"why"}) == NULL);
    CHECK_CONTAINS(sgm_last_error(), "skip_missing: ");
    CHECK_CONTAINS(sgm_last_error(), "has no column 'why'");
    sgm_table *table = sgm_table_open(file("r.csv", "x,y\n1,1\n,3\n"), .skip_missing = {"x"});
    CHECK(sgm_pipeline_fit(table, .targets = {"y"}) == NULL);
    CHECK_CONTAINS(sgm_last_error(), "skip_missing: column 'x' is no target");
    sgm_table_free(table);
    table = sgm_table_open(file("r.csv", "x,y\n1,1\n2,\n3,3\n")); /* refused unless it is asked for */
    sgm_pipeline *pipeline = sgm_pipeline_fit(table, .targets = {"y"});
    CHECK_INT(count_examples(pipeline, data_path("r.csv"), false), -1);
    CHECK_CONTAINS(sgm_last_error(),
                   "line 3, column 'y': the target is missing; fill it in, or leave such rows "
                   "out: missing_target: skip, in C skip_missing");
    sgm_pipeline_free(pipeline);
    sgm_table_free(table);
}
