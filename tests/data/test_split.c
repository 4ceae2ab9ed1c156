/* Splits: shares of parts, classes, groups and times; the extractor; tables split by their columns. */
#include "base/base.h"
#include "data_test.h"
#include "pipeline_test.h"
#include <sigma/split.h>
#include <sigma/table.h>

#include <math.h>

#define EXAMPLES 1000

/* Examples of a key in a part. */
static int64_t count_of(const sgm_split *split, const double *keys, double key, int32_t part)
{
    int64_t count = 0;
    for (int64_t i = 0; i < sgm_split_examples(split); i++)
        count += keys[i] == key && sgm_split_part_of(split, i) == part;
    return count;
}

TEST(random_parts_have_their_shares)
{
    sgm_split *split = sgm_split_create(EXAMPLES, NULL, .shares = {0.7, 0.2}, .seed = 3);
    CHECK(split != NULL && sgm_split_parts(split) == 3);
    CHECK(sgm_split_part_examples(split, 0) == 700 && sgm_split_part_examples(split, 1) == 200);
    CHECK(sgm_split_part_examples(split, 2) == 100 && sgm_split_part_examples(split, 3) == 0);
    CHECK(sgm_split_part_of(split, -1) == -1 && sgm_split_part_of(split, EXAMPLES) == -1);
    /* Mixed: the first half has about its share of the second part, with a deviation of 6. */
    int64_t early = 0, same = 0;
    for (int64_t i = 0; i < EXAMPLES / 2; i++)
        early += sgm_split_part_of(split, i) == 1;
    CHECK(early > 75 && early < 125);
    sgm_split *again = sgm_split_create(EXAMPLES, NULL, .shares = {0.7, 0.2}, .seed = 3);
    sgm_split *other = sgm_split_create(EXAMPLES, NULL, .shares = {0.7, 0.2}, .seed = 4);
    for (int64_t i = 0; i < EXAMPLES; i++) {
        CHECK(sgm_split_part_of(split, i) == sgm_split_part_of(again, i));
        same += sgm_split_part_of(split, i) == sgm_split_part_of(other, i);
    }
    CHECK(same < 700);
    sgm_split_free(split);
    sgm_split_free(again);
    sgm_split_free(other);
}

TEST(stratified_parts_have_their_share_of_each_class)
{
    double keys[EXAMPLES];
    for (int i = 0; i < EXAMPLES; i++) /* sorted by class: 20 of 2, 180 of 5, 800 of 7 */
        keys[i] = i < 20 ? 2 : i < 200 ? 5 : 7;
    sgm_split *split = sgm_split_create(EXAMPLES, keys, .kind = SGM_SPLIT_STRATIFIED, .shares = {0.8, 0.2});
    CHECK(split != NULL && sgm_split_part_examples(split, 1) == 200);
    CHECK(llabs(count_of(split, keys, 2, 1) - 4) <= 1);
    CHECK(llabs(count_of(split, keys, 5, 1) - 36) <= 1);
    CHECK(llabs(count_of(split, keys, 7, 1) - 160) <= 1);
    sgm_split_free(split);
    split =
        sgm_split_create(EXAMPLES, keys, .kind = SGM_SPLIT_STRATIFIED, .shares = {0.2, 0.2, 0.2, 0.2, 0.2});
    for (int part = 0; part < 5; part++) {
        CHECK(sgm_split_part_examples(split, part) == 200);
        CHECK(llabs(count_of(split, keys, 2, part) - 4) <= 2);
    }
    sgm_split_free(split);
}

TEST(groups_stay_together)
{
    double keys[EXAMPLES];
    for (int i = 0; i < EXAMPLES; i++)
        keys[i] = i % 37 * i % 37 % 19; /* groups of different sizes, everywhere in the source */
    sgm_split *split = sgm_split_create(EXAMPLES, keys, .kind = SGM_SPLIT_GROUP, .shares = {0.75, 0.25});
    CHECK(split != NULL);
    for (int i = 0; i < EXAMPLES; i++)
        for (int k = 0; k < i; k++)
            CHECK(keys[i] != keys[k] || sgm_split_part_of(split, i) == sgm_split_part_of(split, k));
    CHECK(llabs(sgm_split_part_examples(split, 1) - 250) < 60);
    sgm_split_free(split);
    double one[4] = {5, 5, 5, 5};
    CHECK_ERROR(sgm_split_create(4, one, .kind = SGM_SPLIT_GROUP, .shares = {0.5, 0.5}),
                "a split of 4 examples leaves none for part 1 of 2: there are too few groups");
}

TEST(the_past_comes_first)
{
    double keys[10] = {5, 3, 9, 1, 7, 2, 8, 4, 6, 0};
    sgm_split *split = sgm_split_create(10, keys, .kind = SGM_SPLIT_TIME, .shares = {0.6, 0.3, 0.1});
    for (int i = 0; i < 10; i++)
        CHECK(sgm_split_part_of(split, i) == (keys[i] < 6 ? 0 : keys[i] < 9 ? 1 : 2));
    sgm_split_free(split);
}

TEST(wrong_splits_are_refused)
{
    double keys[2] = {1, NAN};
    CHECK_ERROR(sgm_split_create(10, NULL, .shares = {0.8, 0.3}), "they are 1.1");
    CHECK_ERROR(sgm_split_create(10, NULL, .shares = {0}), "such as {0.8, 0.2}; they are 0");
    CHECK_ERROR(sgm_split_create(10, NULL, .shares = {-1}), "for part 0, -1 came");
    CHECK_ERROR(sgm_split_create(10, NULL, .shares = {0.5}, .kind = SGM_SPLIT_TIME), "not random needs keys");
    CHECK_ERROR(sgm_split_create(2, keys, .shares = {0.5}), "key of example 1 is no number");
    CHECK_ERROR(sgm_split_create(1, NULL, .shares = {0.5, 0.5}), "too few examples");
    CHECK_ERROR(sgm_split_create(0, NULL, .shares = {1}), "a split of 0 examples");
}

/* What an extractor gives, in blocks of `size`, as the first number of each example. */
static int64_t read_all(sgm_extractor *extractor, int64_t size, double *numbers)
{
    int64_t count = 0;
    sgm_block *block;
    while (sgm_extractor_extract(extractor, size, &block) == SGM_OK && block != NULL) {
        for (int64_t i = 0; i < block->count; i++)
            numbers[count++] = sgm_tensor_get(sgm_block_field(block, "inputs"), (int64_t[]){i, 0});
        sgm_block_free(block);
    }
    return count;
}

TEST(the_extractor_keeps_one_part)
{
    double numbers[100];
    for (int others = 0; others < 2; others++)
        for (int64_t size = 1; size < 60; size += 13) {
            sgm_split *split = sgm_split_create(50, NULL, .shares = {0.6, 0.2, 0.2}, .seed = 9);
            sgm_extractor *extractor = sgm_split_extractor(counting_extractor(50, 2), split, 1, others);
            sgm_split_free(split);
            split = sgm_split_create(50, NULL, .shares = {0.6, 0.2, 0.2}, .seed = 9);
            for (int round = 0; round < 2; round++) { /* and once more, rewound */
                CHECK(read_all(extractor, size, numbers) == (others ? 40 : 10));
                for (int i = 0; i < (others ? 40 : 10); i++) {
                    CHECK(i == 0 || numbers[i] > numbers[i - 1]);
                    CHECK((sgm_split_part_of(split, (int64_t)numbers[i]) == 1) != (others != 0));
                }
                CHECK_OK(sgm_extractor_rewind(extractor));
            }
            sgm_extractor_free(extractor);
            sgm_split_free(split);
        }
}

TEST(a_source_that_has_changed_is_refused)
{
    sgm_block *block = NULL;
    sgm_split *split = sgm_split_create(50, NULL, .shares = {0.5, 0.5});
    for (int more = 0; more < 2; more++) {
        sgm_extractor *extractor =
            sgm_split_extractor(counting_extractor(more ? 60 : 40, 2), split, 0, false);
        CHECK(sgm_extractor_extract(extractor, 100, &block) == SGM_ERROR_FORMAT);
        CHECK_CONTAINS(sgm_last_error(),
                       more ? "more than the 50 examples" : "has 40 examples, and 50 were split");
        sgm_extractor_free(extractor);
    }
    CHECK_ERROR(sgm_split_extractor(counting_extractor(50, 1), split, 2, false),
                "a part from 0 to 1 was expected, 2 came");
    sgm_split_free(split);
}

static const char *file(const char *name, const char *content)
{
    const char *path = data_path(name);
    CHECK_OK(sgm__file_write_atomic(path, content, strlen(content)));
    return path;
}

static const char sales[] = "price,sold,town\n"
                            "10,2020-01-05,Ulm\n"
                            "20,2020-01-02,Bonn\n"
                            "30,2020-01-03,Ulm\n"
                            "1000,2020-01-09,Bonn\n"
                            ",2020-01-01,Kiel\n";

TEST(tables_are_split_by_their_columns)
{
    const char *path = file("sales.csv", sales);
    sgm_table *all = sgm_table_open(path);
    sgm_split *split = sgm_table_split(all, "sold", .kind = SGM_SPLIT_TIME, .shares = {0.8, 0.2});
    CHECK(split != NULL);
    for (int i = 0; i < 5; i++)
        CHECK(sgm_split_part_of(split, i) == (i == 3));
    /* What is measured is of the first part alone: the price of 1000 is in none of it. */
    sgm_table *table = sgm_table_open(path, .split = split);
    const sgm_table_column *price = sgm_table_column_at(table, 0);
    CHECK_NEAR(price->mean, 20, 1e-12);
    CHECK_NEAR(price->maximum, 30, 0);
    CHECK_NEAR(price->standard_deviation, sqrt(200.0 / 3), 1e-12);
    sgm_table_free(table);
    table = sgm_table_open(path, .split = split, .other_parts = true);
    CHECK_NEAR(sgm_table_column_at(table, 0)->mean, 1000, 0);
    sgm_table_free(table);
    sgm_split_free(split);
    split = sgm_table_split(all, "town", .kind = SGM_SPLIT_GROUP, .shares = {0.6, 0.4});
    CHECK(sgm_split_part_of(split, 0) == sgm_split_part_of(split, 2));
    CHECK(sgm_split_part_of(split, 1) == sgm_split_part_of(split, 3));
    CHECK(sgm_split_part_of(split, 0) != sgm_split_part_of(split, 1));
    sgm_split_free(split);
    CHECK_ERROR(sgm_table_split(all, "price", .kind = SGM_SPLIT_GROUP, .shares = {0.5}),
                "line 6: column 'price' has no value");
    CHECK_ERROR(sgm_table_split(all, "twon", .kind = SGM_SPLIT_GROUP, .shares = {0.5}),
                "did you mean 'town'?");
    split = sgm_split_create(4, NULL, .shares = {0.5});
    CHECK_ERROR(sgm_table_open(path, .split = split), "has 5 rows, and the split is of 4");
    sgm_split_free(split);
    sgm_table_free(all);
}
