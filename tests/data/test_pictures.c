/* Folders of pictures and their pipelines: pixels by the formula, what is learnt of a part, what is kept as
 * JSON, and what is refused. */
#include "base/allocator.h"
#include "base/base.h"
#include "data_test.h"
#include "image_files.h"
#include <sigma/network.h>
#include <sigma/picture.h>

#include <math.h>
#include <sys/stat.h>

#define SIDE 4

/* Pixel i of picture k has the red value 40 k + i, green 255 less that, and blue 7. */
static unsigned char red(int k, int i)
{
    return (unsigned char)(40 * k + i);
}

static const char *path_of(const char *folder, const char *class, const char *name)
{
    static char path[512];
    mkdir(data_path(folder), 0755);
    snprintf(path, sizeof path, "%s/%s", data_path(folder), class);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/%s/%s", data_path(folder), class, name);
    return path;
}

static void write_picture(const char *path, int k, int width)
{
    unsigned char pixels[64 * SIDE * 3];
    for (int i = 0; i < width * SIDE; i++) {
        pixels[3 * i] = red(k, i);
        pixels[3 * i + 1] = (unsigned char)(255 - red(k, i));
        pixels[3 * i + 2] = 7;
    }
    image_write_png(path, width, SIDE, PNG_COLOR_TYPE_RGB, 8, PNG_INTERLACE_NONE, pixels);
}

/* Four pictures, 0 and 2 of class a, 1 and 3 of class b, which is also their order in the list. */
static sgm_files *four(void)
{
    static const char *const classes[] = {"a", "b"}, *const names[] = {"0.png", "0.PNG", "1.png", "1.png"};
    for (int k = 0; k < 4; k++)
        write_picture(path_of("four", classes[k % 2], names[k]), k, SIDE);
    sgm_files *folder = sgm_files_open(data_path("four"), "pictures");
    CHECK(folder != NULL);
    return folder;
}

/* Mean and deviation of red, in two passes over the pictures whose bits are in `which`. */
static void expect_red(int which, double *mean, double *deviation)
{
    double sum = 0, squares = 0, count = 0;
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < SIDE * SIDE && (which >> k & 1); i++, count++)
            sum += red(k, i) / 255.0;
    *mean = sum / count;
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < SIDE * SIDE && (which >> k & 1); i++)
            squares += pow(red(k, i) / 255.0 - *mean, 2);
    *deviation = sqrt(squares / count);
}

TEST(classes_alternate_in_a_folder)
{
    sgm_files *folder = four();
    CHECK_INT(sgm_files_count(folder), 4);
    const char *const *classes = sgm_files_classes(folder);
    CHECK_STR(classes[0], "a");
    CHECK_STR(classes[1], "b");
    CHECK(classes[2] == NULL);
    for (int64_t i = 0; i < 4; i++)
        CHECK_INT(sgm_files_class(folder, i), i % 2);
    CHECK(strstr(sgm_files_path(folder, 2), "four/a/1.png") != NULL);
    CHECK(sgm_files_path(folder, 4) == NULL);
    CHECK_INT(sgm_files_class(folder, -1), -1);
    int32_t width, height;
    CHECK_OK(sgm_picture_size(sgm_files_path(folder, 0), &width, &height));
    CHECK_INT(width, SIDE);
    CHECK_INT(height, SIDE);
    sgm_split *split = sgm_files_split(folder, .kind = SGM_SPLIT_STRATIFIED, .shares = {0.5, 0.5});
    CHECK_INT(sgm_split_part_examples(split, 0), 2);
    CHECK(sgm_split_part_of(split, 0) != sgm_split_part_of(split, 2)); /* one of each class in each part */
    sgm_split_free(split);
    sgm_files_free(folder);
}

/* Channels first, (byte / 255 - mean) / deviation; the channel that does not vary becomes 0. */
static void check_example(const sgm_block *block, int64_t example, int k, double mean, double deviation)
{
    sgm_tensor *inputs = sgm_block_field(block, "inputs");
    for (int i = 0; i < SIDE * SIDE; i++) {
        int64_t y = i / SIDE, x = i % SIDE;
        double wanted = (red(k, i) / 255.0 - mean) / deviation;
        CHECK_NEAR(sgm_tensor_get(inputs, (int64_t[]){example, 0, y, x}), wanted, 1e-5);
        CHECK_NEAR(sgm_tensor_get(inputs, (int64_t[]){example, 1, y, x}), -wanted, 1e-5);
        CHECK_NEAR(sgm_tensor_get(inputs, (int64_t[]){example, 2, y, x}), 0, 1e-6);
    }
}

TEST(pixels_are_normalised_by_what_was_fitted)
{
    sgm_files *folder = four();
    sgm_pipeline *pipeline = sgm_picture_pipeline(folder);
    sgm_shape shape;
    CHECK_OK(sgm_pipeline_shape(pipeline, "inputs", &shape));
    CHECK_STR(sgm_pipeline_kind(pipeline), "pictures");
    CHECK(sgm_shape_equal(&shape, &(const sgm_shape){.rank = 3, .dims = {3, SIDE, SIDE}}));
    CHECK_INT(sgm_pipeline_width(pipeline, "inputs"), 3 * SIDE * SIDE);
    CHECK_INT(sgm_pipeline_width(pipeline, "targets"), 2);
    CHECK_STR(sgm_pipeline_classes(pipeline)[1], "b");
    CHECK_NEAR(sgm_pipeline_restore(pipeline, 0, 0.25), 0.25, 0);
    double mean, deviation;
    expect_red(15, &mean, &deviation);
    sgm_extractor *extractor = sgm_files_extractor(pipeline, data_path("four"));
    sgm_block *block;
    for (int pass = 0; pass < 2; pass++) {
        CHECK_OK(sgm_extractor_extract(extractor, 9, &block));
        CHECK_INT(block->count, 4);
        for (int k = 0; k < 4; k++) {
            check_example(block, k, k, mean, deviation);
            CHECK_NEAR(sgm_tensor_get(sgm_block_field(block, "targets"), (int64_t[]){k, k % 2}), 1, 0);
            CHECK_NEAR(sgm_tensor_get(sgm_block_field(block, "targets"), (int64_t[]){k, 1 - k % 2}), 0, 0);
        }
        sgm_block_free(block);
        CHECK_OK(sgm_extractor_extract(extractor, 9, &block));
        CHECK(block == NULL);
        CHECK_OK(sgm_extractor_rewind(extractor));
    }
    sgm_extractor_free(extractor);
    sgm_pipeline_free(pipeline);
    sgm_files_free(folder);
}

/* Only the pictures of a part are measured, and only they are examples. */
TEST(a_part_is_learnt_and_read)
{
    sgm_files *folder = four();
    const double keys[] = {0, 1, 2, 3};
    sgm_split *split = sgm_split_create(4, keys, .kind = SGM_SPLIT_TIME, .shares = {0.75, 0.25});
    for (int others = 0; others < 2; others++) {
        sgm_pipeline *pipeline = sgm_picture_pipeline(folder, .split = split, .other_parts = others);
        double mean, deviation;
        expect_red(others ? 8 : 7, &mean, &deviation);
        sgm_extractor *extractor =
            sgm_files_extractor(pipeline, data_path("four"), .split = split, .other_parts = others);
        sgm_block *block;
        CHECK_OK(sgm_extractor_extract(extractor, 9, &block));
        CHECK_INT(block->count, others ? 1 : 3);
        check_example(block, 0, others ? 3 : 0, mean, deviation);
        sgm_block_free(block);
        sgm_extractor_free(extractor);
        sgm_pipeline_free(pipeline);
    }
    CHECK_ERROR(sgm_picture_pipeline(folder, .split = split, .part = 2),
                "a part from 0 to 1 was expected, 2");
    sgm_split_free(split);
    split = sgm_split_create(5, NULL, .kind = SGM_SPLIT_RANDOM, .shares = {0.5, 0.5});
    CHECK_ERROR(sgm_picture_pipeline(folder, .split = split), "there are 4 pictures, and 5 were split");
    sgm_split_free(split);
    sgm_files_free(folder);
}

/* A file and the same bytes in memory are one picture, brought to one size and to grey. */
TEST(pictures_come_from_files_and_from_memory)
{
    sgm_files *folder = four();
    sgm_pipeline *pipeline = sgm_picture_pipeline(folder, .width = 2, .height = 3, .channels = 1);
    const char *path = sgm_files_path(folder, 3);
    char *bytes;
    size_t length;
    CHECK_OK(sgm__file_read(path, 1 << 20, &bytes, &length));
    const sgm_file pictures[] = {{.name = path}, {.name = "memory", .bytes = bytes, .length = length}};
    sgm_block *block = sgm_pipeline_files(pipeline, pictures, 2);
    CHECK(block != NULL);
    sgm_tensor *inputs = sgm_block_field(block, "inputs");
    CHECK(sgm_shape_equal(sgm_tensor_shape(inputs), &(const sgm_shape){.rank = 4, .dims = {2, 1, 3, 2}}));
    for (int64_t i = 0; i < 6; i++) {
        const int64_t one[] = {0, 0, i / 2, i % 2}, two[] = {1, 0, i / 2, i % 2};
        CHECK_NEAR(sgm_tensor_get(inputs, one), sgm_tensor_get(inputs, two), 0);
    }
    sgm_block_free(block);
    for (size_t cut = 0; cut < length; cut++) {
        const sgm_file damaged = {.name = "half.png", .bytes = bytes, .length = cut};
        CHECK_ERROR(sgm_pipeline_files(pipeline, &damaged, 1), "half.png: ");
    }
    sgm__free(bytes);
    CHECK_ERROR(sgm_pipeline_files(pipeline, pictures, 0), "at least one file");
    CHECK_ERROR(sgm_pipeline_files(pipeline, &(const sgm_file){.name = "/no/where.png"}, 1), "/no/where.png");
    CHECK_ERROR(sgm_pipeline_extractor(pipeline, "a.csv"), "a pipeline of a table was expected");
    CHECK_ERROR(sgm_pipeline_apply(pipeline, (const char *const[]){"a"}, 1, (const char *const[]){"1"}, 1),
                "a pipeline of a table was expected");
    sgm_pipeline_free(pipeline);
    sgm_files_free(folder);
}

static const char kept[] =
    "{\"version\":1,\"kind\":\"pictures\",\"width\":12,\"height\":8,\"channels\":3,\"mean\":[0.5,0.25,0.125],"
    "\"deviation\":[0.5,0.25,0.75],\"classes\":[\"cat\",\"dog\"]}";

TEST(what_is_kept_reads_back)
{
    sgm_pipeline *pipeline = sgm_pipeline_parse(kept);
    char *json = sgm_pipeline_json(pipeline), *network = sgm_pipeline_network(pipeline);
    CHECK_STR(json, kept);
    CHECK_STR(network,
              "input(3, 8, 12) + convolution(16, 3, relu, same) + max_pooling(2) + dense(64, relu) + "
              "dense(2) + softmax_cross_entropy");
    sgm_network *parsed = sgm_network_parse(network);
    CHECK(parsed != NULL);
    sgm_network_free(parsed);
    sgm_string_free(json);
    sgm_string_free(network);
    sgm_pipeline_free(pipeline);
}

/* A JPEG of one colour, scaled to the 12 x 8 pixels and normalised by the three means of the text. */
TEST(jpeg_is_read_by_what_is_kept)
{
    static const unsigned char colour[] = {250, 130, 10};
    static const double mean[] = {0.5, 0.25, 0.125}, deviation[] = {0.5, 0.25, 0.75};
    const char *path = data_path("one.jpg");
    image_write_jpeg(path, 30, 20, 3, colour, 1);
    sgm_pipeline *pipeline = sgm_pipeline_parse(kept);
    sgm_block *block = sgm_pipeline_files(pipeline, &(const sgm_file){.name = path}, 1);
    CHECK(block != NULL);
    for (int c = 0; c < 3; c++) {
        double wanted = (colour[c] / 255.0 - mean[c]) / deviation[c];
        CHECK_NEAR(sgm_tensor_get(sgm_block_field(block, "inputs"), (int64_t[]){0, c, 7, 11}), wanted, 0.05);
    }
    sgm_block_free(block);
    sgm_pipeline_free(pipeline);
}

/* A network that makes vectors of pictures tells no classes. */
TEST(a_pipeline_without_classes_makes_inputs_alone)
{
    static const unsigned char pixels[] = {255, 0, 51, 255, 0, 51, 255, 0, 51, 255, 0, 51};
    const char *text = "{\"version\":1,\"kind\":\"pictures\",\"width\":2,\"height\":2,\"channels\":3,"
                       "\"mean\":[0.5,0.5,0.5],\"deviation\":[0.5,0.5,0.5]}";
    sgm_pipeline *pipeline = sgm_pipeline_parse(text);
    CHECK_OK(pipeline);
    char *again = sgm_pipeline_json(pipeline);
    CHECK_STR(again, text);
    sgm_string_free(again);
    CHECK(sgm_pipeline_classes(pipeline) == NULL);
    const char *path = data_path("alone.png");
    image_write_png(path, 2, 2, PNG_COLOR_TYPE_RGB, 8, PNG_INTERLACE_NONE, pixels);
    sgm_block *block = sgm_pipeline_files(pipeline, &(const sgm_file){.name = path}, 1);
    CHECK_OK(block);
    CHECK_NEAR(sgm_tensor_get(sgm_block_field(block, "inputs"), (int64_t[]){0, 0, 1, 1}), 1, 1e-6);
    CHECK_NEAR(sgm_tensor_get(sgm_block_field(block, "inputs"), (int64_t[]){0, 2, 0, 0}), -0.6, 1e-6);
    sgm_block_free(block);
    CHECK_ERROR(sgm_pipeline_network(pipeline), "the pipeline has no classes, for which a network");
    CHECK_ERROR(sgm_files_extractor(pipeline, "folder"),
                "folder: the pipeline has no classes, so that folders of them are no data");
    sgm_pipeline_free(pipeline);
}

TEST(what_is_kept_is_checked)
{
    static const struct {
        const char *part, *other, *message;
    } cases[] = {
        {"\"version\":1", "\"version\":3", "'version': 1 or 2"},
        {"\"pictures\"", "\"smells\"", "'kind': one of pictures, "},
        {"\"width\":12", "\"width\":0", "'width': a whole number above 0"},
        {"\"width\":12", "\"width\":40000", "pictures of 1 to 32768 pixels on a side"},
        {"\"height\":8", "\"height\":1e3", "'height': a whole number above 0"},
        {"\"channels\":3", "\"channels\":2", "'channels': 1 or 3"},
        {"\"channels\":3", "\"channels\":1", "'mean': a list of one number for each channel"},
        {"0.5,0.25,0.75", "0.5,0.25,0", "channel 2: a mean and a deviation above 0"},
        {"0.5,0.25,0.75", "0.5,0.25,\"x\"", "'deviation': a list of one number"},
        {"[\"cat\",\"dog\"]", "[]", "'classes': a list of 1 to 1,000 texts"},
        {"\"dog\"", "\"cat\"", "the category 'cat' twice"},
        {"\"dog\"", "7", "'classes': a list of texts"},
        {"\"kind\"", "\"header\":true,\"kind\"", "'header' is no member of it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *at = strstr(kept, cases[i].part);
        CHECK(at != NULL);
        char *text =
            sgm__format("%.*s%s%s", (int)(at - kept), kept, cases[i].other, at + strlen(cases[i].part));
        CHECK_ERROR(sgm_pipeline_parse(text), cases[i].message);
        sgm__free(text);
    }
}

TEST(mistakes_name_the_picture)
{
    CHECK_ERROR(sgm_files_open(NULL, "pictures"), "the path of a folder and a kind of files were expected");
    CHECK_ERROR(sgm_files_open("/nowhere/at/all", "pictures"), "/nowhere/at/all: the folder cannot be read");
    CHECK_ERROR(sgm_picture_pipeline(NULL), "a list of files");
    CHECK_ERROR(sgm_files_open("/nowhere", "smells"), "a kind of files was expected (pictures");
    write_picture(path_of("wide", "a", "0.png"), 0, SIDE);
    write_picture(path_of("wide", "b", "0.png"), 0, SIDE + 1);
    sgm_files *folder = sgm_files_open(data_path("wide"), "pictures");
    CHECK_ERROR(sgm_picture_pipeline(folder), "b/0.png is 5 x 4 pixels, but ");
    CHECK_ERROR(sgm_picture_pipeline(folder), "a/0.png is 4 x 4; a network takes pictures of one size");
    CHECK_ERROR(sgm_picture_pipeline(folder, .width = 5), "a width and a height were expected, or neither");
    CHECK_ERROR(sgm_picture_pipeline(folder, .width = 5, .height = 5, .channels = 2), "1 or 3 channels");
    CHECK_ERROR(sgm_picture_pipeline(folder, .width = 40000, .height = 5), "pictures of 1 to 32768 pixels");
    sgm_pipeline *pipeline = sgm_picture_pipeline(folder, .width = 5, .height = 5);
    write_picture(path_of("fish", "fish", "0.png"), 0, SIDE);
    CHECK_ERROR(sgm_files_extractor(pipeline, data_path("fish")),
                "fish/fish: a class that no training picture had; the folders of classes are called a, b");
    CHECK_ERROR(sgm_files_extractor(NULL, data_path("fish")), "a pipeline of files");
    sgm_pipeline_free(pipeline);
    sgm_files_free(folder);
    folder = sgm_files_open(data_path("fish"), "pictures");
    CHECK_ERROR(sgm_picture_pipeline(folder), "there is a single class, 'fish'");
    sgm_files_free(folder);
}

/* Without memory at any place of Sigma's: an error, and nothing is lost. */
TEST(no_memory)
{
    sgm_files_free(four());
    bool done = false;
    for (long n = 1; !done; n++) {
        allocator_start(n);
        sgm_files *folder = sgm_files_open(data_path("four"), "pictures");
        sgm_pipeline *pipeline = folder != NULL ? sgm_picture_pipeline(folder) : NULL;
        sgm_extractor *extractor = pipeline != NULL ? sgm_files_extractor(pipeline, data_path("four")) : NULL;
        sgm_block *block = NULL;
        if (extractor != NULL && sgm_extractor_extract(extractor, 9, &block) == SGM_OK)
            done = block != NULL;
        else
            CHECK_INT(sgm_last_status(), SGM_ERROR_MEMORY);
        sgm_block_free(block);
        sgm_extractor_free(extractor);
        sgm_pipeline_free(pipeline);
        sgm_files_free(folder);
        long live = atomic_load(&allocator_live);
        allocator_stop();
        CHECK_INT(live, 0);
        CHECK(n < 5000);
    }
}
