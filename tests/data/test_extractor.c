/* Extractors: columns, mappings, regions, offsets over block borders, merging. */
#include "pipeline_test.h"

static sgm_reader *csv(const char *text)
{
    return sgm_csv_reader(sgm_memory_source("table.csv", text, strlen(text)), .missing = "?");
}

static sgm_block *extract(sgm_extractor *extractor, int64_t count)
{
    sgm_block *block;
    CHECK_OK(sgm_extractor_extract(extractor, count, &block));
    return block;
}

TEST(csv_columns_become_fields)
{
    sgm_extractor *table = sgm_csv_extractor(
        csv("1,2,3,x\n4,5,6,o\n7,8,?,b\n"), .fields = {{"inputs", 2, 2}, {"targets", 3, 3}, {"inputs", 0, 1}},
        .mappings = {{3, 3, (const char *[]){"x", "o", "b", NULL}, (const double[]){1, -1, 0.5}}},
        .missing = -9, .has_missing = true);
    sgm_block *block = extract(table, 2);
    CHECK_INT(block->count, 2);
    CHECK_STR(pipeline_shape(block, "inputs"), "(2, 3)");
    CHECK_NEAR(pipeline_at(block, "inputs", 0, 0), 3, 0);
    CHECK_NEAR(pipeline_at(block, "inputs", 0, 1), 1, 0);
    CHECK_NEAR(pipeline_at(block, "inputs", 1, 2), 5, 0);
    CHECK_NEAR(pipeline_at(block, "targets", 0, 0), 1, 0);
    CHECK_NEAR(pipeline_at(block, "targets", 1, 0), -1, 0);
    sgm_block_free(block);
    block = extract(table, 2);
    CHECK_INT(block->count, 1);
    CHECK_NEAR(pipeline_at(block, "inputs", 0, 0), -9, 0);
    CHECK_NEAR(pipeline_at(block, "targets", 0, 0), 0.5, 0);
    sgm_block_free(block);
    CHECK(extract(table, 2) == NULL);
    CHECK_OK(sgm_extractor_rewind(table));
    block = extract(table, 100);
    CHECK_INT(block->count, 3);
    sgm_block_free(block);
    sgm_extractor_free(table);
}

TEST(texts_are_numbered_in_their_order_over_several_columns)
{
    sgm_extractor *table =
        sgm_csv_extractor(csv("x,7,b\no,8,x\n"), .fields = {{"inputs", 0, 2}},
                          .mappings = {{0, 0, (const char *[]){"o", "x", NULL}, NULL},
                                       {1, 2, (const char *[]){"b", "x", "7", "8", NULL}, NULL}});
    sgm_block *block = extract(table, 10);
    static const double expected[2][3] = {{1, 2, 0}, {0, 3, 1}};
    CHECK_INT(block->count, 2);
    for (int row = 0; row < 2; row++)
        for (int column = 0; column < 3; column++)
            CHECK_NEAR(pipeline_at(block, "inputs", row, column), expected[row][column], 0);
    sgm_block_free(block);
    sgm_extractor_free(table);
}

static void check_csv_error(const char *text, int32_t last, const char *part)
{
    sgm_block *block;
    sgm_extractor *table = sgm_csv_extractor(csv(text), .fields = {{"inputs", 0, last}},
                                             .mappings = {{1, 1, (const char *[]){"a", "b", NULL}, NULL}});
    CHECK_ERROR(sgm_extractor_extract(table, 10, &block), part);
    CHECK(block == NULL);
    sgm_extractor_free(table);
}

TEST(csv_errors_name_the_place)
{
    check_csv_error("1,a\n2,b\nthree,a\n", 1,
                    "table.csv: line 3, column 0 (from 0): \"three\" is not a number");
    check_csv_error("1,a\n2,c\n", 1, "line 2, column 1 (from 0): \"c\" is none of the 2 texts");
    check_csv_error("1,a\n?,a\n", 1, "line 2, column 0 (from 0): the value is missing");
    check_csv_error("1,a\n\n\n\"2\n\",a\nx,a\n", 1, "line 6, column 0 (from 0): \"x\" is not a number; skip");
    check_csv_error("1,a\nnan,a\n", 1, "line 2, column 0 (from 0): \"nan\" is no finite number");
    check_csv_error("1,a\n1e39,a\n", 1, "\"1e39\" is too large for float32");
    check_csv_error("1,a\n", 2, "a field reads column 2, but the table has 2: columns 0 to 1");
    check_csv_error("1e60,a\n", 0, "too large for float32");
}

TEST(options_are_checked)
{
    CHECK_ERROR(sgm_csv_extractor(csv("1\n"), .fields = {{"inputs", 3, 1}}), "columns 3 to 1");
    CHECK_ERROR(sgm_csv_extractor(csv("1\n"), .missing = 0), "no fields");
    CHECK_ERROR(
        sgm_csv_extractor(csv("1\n"), .fields = {{"a name that is much longer than a field's", 0, 0}}),
        "longer than 31 characters");
    CHECK_ERROR(sgm_array_extractor(counting_make(3, 2), .regions = {{.field = "a", .offset = -1}}),
                "offset of -1");
    CHECK_ERROR(sgm_csv_extractor(NULL, .fields = {{"inputs", 0, 0}}), "reader");
}

TEST(regions_of_arrays)
{
    uint8_t bytes[24];
    for (int i = 0; i < 24; i++)
        bytes[i] = (uint8_t)i;
    /* two examples of 12 bytes: a part in the middle, two bytes joined with another one, and the whole as 3x4
     */
    sgm_extractor *parts =
        sgm_array_extractor(sgm_byte_reader(sgm_memory_source("bytes", bytes, sizeof bytes), 0, 12),
                            .regions = {{"middle", sgm_shape_of(4), sgm_shape_of(8), sgm_shape_of(2, 2), 0},
                                        {"joined", sgm_shape_of(10), sgm_shape_of(12), {0}, 0},
                                        {"joined", sgm_shape_of(0), sgm_shape_of(1), {0}, 0},
                                        {.field = "whole", .shape = sgm_shape_of(3, 4)}});
    sgm_block *block = extract(parts, 10);
    CHECK_INT(block->count, 2);
    CHECK_STR(pipeline_shape(block, "middle"), "(2, 2, 2)");
    CHECK_STR(pipeline_shape(block, "joined"), "(2, 3)");
    CHECK_STR(pipeline_shape(block, "whole"), "(2, 3, 4)");
    CHECK_NEAR(pipeline_at(block, "middle", 1, 3), 19, 0);
    CHECK_NEAR(pipeline_at(block, "joined", 1, 0), 22, 0);
    CHECK_NEAR(pipeline_at(block, "joined", 1, 1), 23, 0);
    CHECK_NEAR(pipeline_at(block, "joined", 1, 2), 12, 0);
    CHECK_NEAR(pipeline_at(block, "whole", 1, 11), 23, 0);
    CHECK_ERROR(sgm_block_field(block, "outputs"), "\"middle\", \"joined\", \"whole\"");
    sgm_block_free(block);
    sgm_extractor_free(parts);
}

TEST(regions_outside_the_example)
{
    sgm_block *block;
    sgm_extractor *outside = sgm_array_extractor(
        counting_make(3, 2), .regions = {{"a", sgm_shape_of(1), sgm_shape_of(3), {0}, 0}});
    CHECK_ERROR(sgm_extractor_extract(outside, 2, &block),
                "the region (1,) to (3,) lies outside examples of shape (2,)");
    sgm_extractor_free(outside);
    sgm_extractor *shape =
        sgm_array_extractor(counting_make(3, 2), .regions = {{.field = "a", .shape = sgm_shape_of(3)}});
    CHECK_ERROR(sgm_extractor_extract(shape, 2, &block), "2 elements, which do not fit shape (3,)");
    sgm_extractor_free(shape);
}

/* Targets are the inputs two examples on, also where those are in the next block; the last two have none. */
static void check_offsets(int64_t total, int64_t block_size)
{
    sgm_extractor *next = sgm_array_extractor(
        counting_make(total, 2), .regions = {{.field = "inputs"}, {.field = "targets", .offset = 2}});
    int64_t seen = 0;
    for (sgm_block *block; (block = extract(next, block_size)) != NULL; sgm_block_free(block)) {
        CHECK(block->count == block_size || seen + block->count == total - 2);
        for (int64_t i = 0; i < block->count; i++, seen++) {
            CHECK_NEAR(pipeline_at(block, "inputs", i, 1), (double)seen + 0.5, 0);
            CHECK_NEAR(pipeline_at(block, "targets", i, 1), (double)seen + 2.5, 0);
        }
    }
    CHECK_INT(seen, total - 2);
    sgm_extractor_free(next);
}

TEST(offsets_over_block_borders)
{
    check_offsets(10, 3);
    check_offsets(10, 1);
    check_offsets(10, 8);
    check_offsets(10, 100);
    check_offsets(300, 100); /* several chunks of the reader in a block */
    check_offsets(3, 2);
}

TEST(numbers_that_float32_does_not_hold)
{
    static const char header[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }";
    const double numbers[] = {1, 2, 3e38, -4, 5, -1e39};
    char file[128 + sizeof numbers];
    snprintf(file, sizeof file, "\x93NUMPY\x01%cv%c%-117s\n", 1, 1, header);
    file[7] = file[9] = 0;
    memcpy(file + 128, numbers, sizeof numbers);
    sgm_block *block = NULL;
    sgm_extractor *one = sgm_array_extractor(sgm_npy_reader(sgm_memory_source("f8", file, sizeof file), NULL),
                                             .regions = {{.field = "inputs"}});
    CHECK_OK(sgm_extractor_extract(one, 2, &block));
    sgm_block_free(block);
    CHECK_ERROR(sgm_extractor_extract(one, 2, &block),
                "f8: field \"inputs\": example 2, element 1 (both from 0): "
                "-1e+39 is too large for float32");
    CHECK_OK(sgm_extractor_rewind(one));
    CHECK_ERROR(sgm_extractor_extract(one, 3, &block), "example 2, element 1");
    sgm_extractor_free(one);
}

TEST(offset_beyond_the_end)
{
    sgm_extractor *next =
        sgm_array_extractor(counting_make(3, 1), .regions = {{.field = "targets", .offset = 5}});
    CHECK(extract(next, 2) == NULL);
    CHECK_OK(sgm_extractor_rewind(next));
    CHECK(extract(next, 2) == NULL);
    sgm_extractor_free(next);
}

TEST(merging)
{
    sgm_extractor *left = sgm_array_extractor(counting_make(5, 1), .regions = {{.field = "left"}});
    sgm_extractor *right = sgm_array_extractor(counting_make(5, 2), .regions = {{.field = "right"}});
    sgm_extractor *both = sgm_merge_extractor(left, right);
    sgm_block_free(extract(both, 3));
    sgm_block *block = extract(both, 3);
    CHECK_INT(block->count, 2);
    CHECK_NEAR(pipeline_at(block, "left", 1, 0), 4, 0);
    CHECK_NEAR(pipeline_at(block, "right", 1, 1), 4.5, 0);
    sgm_block_free(block);
    CHECK(extract(both, 3) == NULL);
    sgm_extractor_free(both);

    left = sgm_array_extractor(counting_make(5, 1), .regions = {{.field = "same"}});
    right = sgm_array_extractor(counting_make(5, 1), .regions = {{.field = "same"}});
    both = sgm_merge_extractor(left, right);
    CHECK_ERROR(sgm_extractor_extract(both, 3, &block), "a field \"same\" already");
    sgm_extractor_free(both);

    left = sgm_array_extractor(counting_make(5, 1), .regions = {{.field = "left"}});
    right = sgm_array_extractor(counting_make(4, 1), .regions = {{.field = "right"}});
    both = sgm_merge_extractor(left, right);
    CHECK_ERROR(sgm_extractor_extract(both, 9, &block),
                "'left' has 5 examples where 'right' has 4: name arrays of one length");
    sgm_extractor_free(both);
    CHECK_ERROR(
        sgm_merge_extractor(sgm_array_extractor(counting_make(1, 1), .regions = {{.field = "x"}}), NULL),
        "two extractors");
    CHECK_INT(atomic_load(&allocator_live), 0);
}

/* --- an extractor written outside the library --- */

static sgm_status doubled_extract(void *self, sgm_extractor *parent, int64_t count, sgm_block **block)
{
    ++*(int *)self;
    sgm_status status = sgm_extractor_extract(parent, count, block);
    if (status == SGM_OK && *block) {
        sgm_tensor *old = sgm_block_field(*block, "inputs");
        status =
            sgm_block_add(*block, "copy", sgm_tensor_cast(old, *(int *)self > 1 ? SGM_INT32 : SGM_FLOAT32));
    }
    return status;
}

TEST(own_types_are_checked)
{
    static const sgm_extractor_type type = {.name = "doubled", .extract = doubled_extract};
    int calls = 0;
    sgm_extractor *own = sgm_extractor_create(&type, &calls, counting_extractor(6, 2), NULL);
    sgm_block *block = extract(own, 2);
    CHECK_NEAR(pipeline_at(block, "copy", 1, 1), 1.5, 0);
    sgm_block_free(block);
    CHECK_ERROR(sgm_extractor_extract(own, 2, &block), "has to be float32, but is int32");
    CHECK(block == NULL);
    sgm_extractor_free(own);
    CHECK_ERROR(sgm_extractor_create(&type, &calls, NULL, NULL), "rewind");
    CHECK_INT(atomic_load(&allocator_live), 0);
}
