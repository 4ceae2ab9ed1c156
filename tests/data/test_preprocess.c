/* Preprocessors against numbers computed by hand. */
#include "pipeline_test.h"

static sgm_block *extract(sgm_extractor *extractor, int64_t count)
{
    sgm_block *block;
    CHECK_OK(sgm_extractor_extract(extractor, count, &block));
    return block;
}

static sgm_extractor *table(const char *text)
{
    return sgm_csv_extractor(sgm_csv_reader(sgm_memory_source("table", text, strlen(text)), .separator = ','),
                             .fields = {{"inputs", 0, 1}, {"targets", 2, 2}});
}

#define ROWS "1,10,0\n3,20,2\n5,40,1\n2,10,2\n"

TEST(normalise_is_linear)
{
    sgm_extractor *scaled = sgm_normalise(table(ROWS), .field = "inputs", .input_min = 1, .input_max = 5,
                                          .output_min = -1, .output_max = 1);
    sgm_block *block = extract(scaled, 10);
    CHECK_NEAR(pipeline_at(block, "inputs", 0, 0), -1, 0);
    CHECK_NEAR(pipeline_at(block, "inputs", 1, 0), 0, 0);
    CHECK_NEAR(pipeline_at(block, "inputs", 2, 0), 1, 0);
    CHECK_NEAR(pipeline_at(block, "inputs", 3, 0), -0.5, 0);
    CHECK_NEAR(pipeline_at(block, "inputs", 0, 1), 3.5, 0);
    CHECK_NEAR(pipeline_at(block, "targets", 1, 0), 2, 0); /* another field */
    sgm_block_free(block);
    sgm_extractor_free(scaled);
    CHECK_ERROR(sgm_normalise(table(ROWS), .input_min = 2, .input_max = 2), "2 to 2 is empty");
    sgm_extractor *none = sgm_normalise(table(ROWS), .field = "output", .input_max = 1);
    CHECK_ERROR(sgm_extractor_extract(none, 1, &block),
                "no field \"output\": the block has \"inputs\", \"targets\"");
    sgm_extractor_free(none);
}

TEST(one_hot_classes)
{
    sgm_extractor *encoded = sgm_one_hot(table(ROWS), .field = "targets", .classes = 3);
    sgm_block *block = extract(encoded, 10);
    const int classes[] = {0, 2, 1, 2};
    CHECK_STR(pipeline_shape(block, "targets"), "(4, 3)");
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++)
            CHECK_NEAR(pipeline_at(block, "targets", i, k), k == classes[i], 0);
    sgm_block_free(block);
    sgm_extractor_free(encoded);
    encoded = sgm_one_hot(table(ROWS), .field = "targets", .classes = 2);
    CHECK_ERROR(sgm_extractor_extract(encoded, 10, &block),
                "field \"targets\", example 1 of its block: 2 is none of the 2 classes, which are whole "
                "numbers from 0 on");
    sgm_extractor_free(encoded);
    CHECK_ERROR(sgm_one_hot(table(ROWS), .field = "targets"), "0 classes");
}

TEST(one_hot_values)
{
    sgm_extractor *encoded = sgm_one_hot(table("1,1,-1\n1,1,1\n1,1,0\n"), .field = "targets", .classes = 3,
                                         .values = (const double[]){-1, 0, 1});
    sgm_block *block = extract(encoded, 10);
    CHECK_NEAR(pipeline_at(block, "targets", 0, 0), 1, 0);
    CHECK_NEAR(pipeline_at(block, "targets", 1, 2), 1, 0);
    CHECK_NEAR(pipeline_at(block, "targets", 2, 1), 1, 0);
    CHECK_NEAR(pipeline_at(block, "targets", 2, 2), 0, 0);
    sgm_block_free(block);
    sgm_extractor_free(encoded);
    encoded = sgm_one_hot(table(ROWS), .field = "inputs", .classes = 41); /* (4, 2) to (4, 2, 41) */
    block = extract(encoded, 10);
    CHECK_STR(pipeline_shape(block, "inputs"), "(4, 2, 41)");
    CHECK_NEAR(pipeline_at(block, "inputs", 2, 41 + 40), 1, 0);
    CHECK_NEAR(pipeline_at(block, "inputs", 2, 5), 1, 0);
    sgm_block_free(block);
    sgm_extractor_free(encoded);
}

TEST(permute_moves_axes_of_an_example)
{
    uint8_t bytes[12];
    for (int i = 0; i < 12; i++)
        bytes[i] = (uint8_t)i;
    sgm_reader *reader = sgm_byte_reader(sgm_memory_source("bytes", bytes, sizeof bytes), 0, 6);
    sgm_extractor *examples =
        sgm_array_extractor(reader, .regions = {{.field = "inputs", .shape = sgm_shape_of(2, 3)}});
    sgm_extractor *transposed = sgm_permute_field(examples, .axes = {1, 0}, .axis_count = 2);
    sgm_block *block = extract(transposed, 10);
    const int expected[] = {0, 3, 1, 4, 2, 5};
    CHECK_STR(pipeline_shape(block, "inputs"), "(2, 3, 2)");
    for (int i = 0; i < 6; i++) {
        CHECK_NEAR(pipeline_at(block, "inputs", 0, i), expected[i], 0);
        CHECK_NEAR(pipeline_at(block, "inputs", 1, i), expected[i] + 6, 0);
    }
    sgm_block_free(block);
    sgm_extractor_free(transposed);
    CHECK_ERROR(sgm_permute_field(table(ROWS), .axes = {1, 1}, .axis_count = 2), "each once");
    transposed = sgm_permute_field(table(ROWS), .axes = {1, 0}, .axis_count = 2);
    CHECK_ERROR(sgm_extractor_extract(transposed, 2, &block),
                "shape (2, 2), which 2 axes and the examples do not fit");
    sgm_extractor_free(transposed);
}

TEST(shuffle_keeps_fields_together)
{
    enum { COUNT = 100 };
    sgm_extractor *mixed = sgm_shuffle(counting_extractor(2 * COUNT, 3), .seed = 7);
    int moved = 0, different = 0;
    double first[COUNT];
    for (int b = 0; b < 2; b++) {
        bool seen[2 * COUNT] = {false};
        sgm_block *block = extract(mixed, COUNT);
        for (int i = 0; i < COUNT; i++) {
            double example = pipeline_at(block, "targets", i, 0);
            CHECK(example >= b * COUNT && example < (b + 1) * COUNT && !seen[(int)example]);
            seen[(int)example] = true;
            CHECK_NEAR(pipeline_at(block, "inputs", i, 2), example + 1, 0);
            moved += example != b * COUNT + i;
            different += b == 1 && example - COUNT != first[i];
            if (b == 0)
                first[i] = example;
        }
        sgm_block_free(block);
    }
    CHECK(moved > 150 && different > 50); /* blocks are not mixed alike */
    CHECK_OK(sgm_extractor_rewind(mixed));
    sgm_block *block = extract(mixed, COUNT);
    for (int i = 0; i < COUNT; i++)
        CHECK_NEAR(pipeline_at(block, "targets", i, 0), first[i], 0);
    sgm_block_free(block);
    sgm_extractor_free(mixed);
}

TEST(per_index_ranges)
{
    const double ranges[] = {1, 10, 40};
    sgm_extractor *scaled = sgm_per_index_normalise(table(ROWS), "inputs", ranges, 1, -1, 2);
    sgm_block *block = extract(scaled, 10);
    CHECK_NEAR(pipeline_at(block, "inputs", 0, 0), 1, 0); /* not chosen */
    CHECK_NEAR(pipeline_at(block, "inputs", 0, 1), -1, 0);
    CHECK_NEAR(pipeline_at(block, "inputs", 1, 1), 0, 1e-6);
    CHECK_NEAR(pipeline_at(block, "inputs", 2, 1), 2, 0);
    sgm_block_free(block);
    sgm_extractor_free(scaled);
    const double wrong[] = {2, 0, 1}, empty[] = {0, 1, 1};
    scaled = sgm_per_index_normalise(table(ROWS), "inputs", wrong, 1, 0, 1);
    CHECK_ERROR(sgm_extractor_extract(scaled, 1, &block), "2 elements an example, no index 2");
    sgm_extractor_free(scaled);
    CHECK_ERROR(sgm_per_index_normalise(table(ROWS), "inputs", empty, 1, 0, 1), "larger maximum");
}

TEST(adaptive_learns_from_all_blocks)
{
    /* The second block holds the largest values; the first one is scaled by them all the same. */
    sgm_extractor *scaled = sgm_adaptive_normalise(table(ROWS), .field = "inputs", .output_max = 39);
    sgm_block *block = extract(scaled, 2);
    CHECK_NEAR(pipeline_at(block, "inputs", 0, 0), 0, 0);
    CHECK_NEAR(pipeline_at(block, "inputs", 1, 1), 19, 1e-5);
    sgm_block_free(block);
    block = extract(scaled, 2);
    CHECK_NEAR(pipeline_at(block, "inputs", 0, 1), 39, 1e-5);
    CHECK_NEAR(pipeline_at(block, "targets", 1, 0), 2, 0);
    sgm_block_free(block);
    sgm_extractor_free(scaled);
}

TEST(adaptive_per_index)
{
    sgm_extractor *scaled = sgm_adaptive_per_index(table("1,7,0\n3,7,0\n5,7,0\n"), .field = "inputs",
                                                   .output_min = 2, .output_max = 4);
    sgm_block *block = extract(scaled, 10);
    for (int i = 0; i < 3; i++) {
        CHECK_NEAR(pipeline_at(block, "inputs", i, 0), 2 + i, 1e-6);
        CHECK_NEAR(pipeline_at(block, "inputs", i, 1), 2, 0); /* no width */
    }
    sgm_block_free(block);
    sgm_extractor_free(scaled);
}

TEST(adaptive_per_block)
{
    sgm_extractor *scaled = sgm_adaptive_normalise(counting_extractor(4, 1), .per_block = true);
    for (int b = 0; b < 2; b++) {
        sgm_block *block = extract(scaled, 2);
        CHECK_NEAR(pipeline_at(block, "inputs", 0, 0), 0, 0);
        CHECK_NEAR(pipeline_at(block, "inputs", 1, 0), 1, 0);
        sgm_block_free(block);
    }
    sgm_extractor_free(scaled);
}

TEST(learning_goes_through_the_chain)
{
    /* The outer one learns from what the inner one gives: 0 to 1, stretched to 0 to 10, then to -1 to 1. */
    sgm_extractor *inner = sgm_adaptive_normalise(counting_extractor(11, 1), .field = "inputs");
    sgm_extractor *middle = sgm_normalise(inner, .field = "inputs", .input_max = 1, .output_max = 10);
    sgm_extractor *outer =
        sgm_adaptive_per_index(middle, .field = "inputs", .output_min = -1, .output_max = 1);
    sgm_block *block = extract(outer, 4);
    CHECK_NEAR(pipeline_at(block, "inputs", 0, 0), -1, 1e-6);
    CHECK_NEAR(pipeline_at(block, "inputs", 3, 0), -0.4, 1e-6);
    sgm_block_free(block);
    sgm_extractor_free(outer);
    CHECK_INT(atomic_load(&allocator_live), 0);
}
