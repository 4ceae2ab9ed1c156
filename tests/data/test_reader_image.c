/* The image reader: scaling, colours, classes. */
#include "image_files.h"
#include "reader_test.h"

static const char *image_folder(const char *name)
{
    static char folder[256];
    strcpy(folder, data_path(name));
    mkdir(folder, 0755);
    return folder;
}

static const char *image_path(const char *folder, const char *class, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, class);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/%s/%s", folder, class, name);
    return path;
}

/* Reads the only image of a folder and compares its values. */
static void check_image(const char *folder, int width, int height, bool grey, const double *expected,
                        double tolerance)
{
    sgm_reader *reader = sgm_image_reader(folder, .width = width, .height = height, .grey = grey);
    sgm_examples r;
    CHECK_OK(sgm_reader_read(reader, 5, &r));
    CHECK_INT(r.count, 1);
    int64_t size = sgm_tensor_shape(r.values)->dims[1];
    CHECK_INT(size, width * height * (grey ? 1 : 3) + 1);
    for (int64_t i = 0; i < size - 1; i++)
        CHECK_NEAR(at(&r, i), expected[i], tolerance);
    sgm_reader_free(reader);
}

TEST(image_scaling_averages_areas)
{
    const char *folder = image_folder("scale");
    const char *path = image_path(folder, "a", "1.png");
    image_write_png(path, 4, 4, PNG_COLOR_TYPE_GRAY, 8, 0,
                    (const unsigned char[]){0, 10, 100, 100, 20, 30, 100, 100, 1, 1, 0, 0, 1, 2, 0, 255});
    check_image(folder, 2, 2, true, (double[]){15, 100, 1, 64}, 0); /* 1.25 and 63.75 rounded */
    check_image(folder, 1, 1, true, (double[]){45}, 0);             /* 720 / 16 */
    check_image(folder, 1, 4, true, (double[]){53, 63, 1, 65}, 0);  /* 52.5, 62.5, 0.5, 64.5 */
    image_write_png(path, 3, 1, PNG_COLOR_TYPE_GRAY, 8, 0, (const unsigned char[]){0, 90, 180});
    check_image(folder, 2, 1, true, (double[]){30, 150}, 0);
    check_image(folder, 2, 2, true, (double[]){30, 150, 30, 150}, 0);
    image_write_png(path, 1, 3, PNG_COLOR_TYPE_GRAY, 8, 0, (const unsigned char[]){0, 90, 180});
    check_image(folder, 1, 2, true, (double[]){30, 150}, 0);
    image_write_png(path, 2, 2, PNG_COLOR_TYPE_GRAY, 8, 0, (const unsigned char[]){1, 2, 3, 4});
    check_image(folder, 4, 4, true, (double[]){1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}, 0);
    check_image(folder, 2, 2, false, (double[]){1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4}, 0);
    image_write_png(path, 2, 2, PNG_COLOR_TYPE_RGB, 8, 1,
                    (const unsigned char[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    check_image(folder, 2, 2, false, (double[]){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 0);
    check_image(folder, 1, 1, false, (double[]){6, 7, 8}, 0); /* 5.5 and so on, rounded up */
}

TEST(image_colours)
{
    const char *folder = image_folder("colour");
    const char *path = image_path(folder, "a", "1.png");
    image_write_png(path, 2, 1, PNG_COLOR_TYPE_RGB_ALPHA, 8, 0,
                    (const unsigned char[]){9, 8, 7, 0, 6, 5, 4, 255});
    check_image(folder, 2, 1, false, (double[]){9, 8, 7, 6, 5, 4}, 0);
    image_write_png(path, 2, 1, PNG_COLOR_TYPE_PALETTE, 8, 0, (const unsigned char[]){2, 0});
    check_image(folder, 2, 1, false, (double[]){255, 0, 128, 10, 20, 30}, 0);
    check_image(folder, 2, 1, true, (double[]){90.8, 18.15}, 1); /* 0.299 R + 0.587 G + 0.114 B */
    image_write_png(path, 1, 1, PNG_COLOR_TYPE_GRAY, 16, 0, (const unsigned char[]){0x80, 0x80});
    check_image(folder, 1, 1, true, (double[]){128}, 0);
    image_write_jpeg(path, 16, 8, 3, (const unsigned char[]){200, 100, 50}, 0); /* by content, not by name */
    check_image(folder, 1, 1, false, (double[]){200, 100, 50}, 3);
    check_image(folder, 1, 1, true, (double[]){124.2}, 3);
    image_write_jpeg(path, 16, 8, 1, (const unsigned char[]){77}, 1);
    check_image(folder, 1, 1, false, (double[]){77, 77, 77}, 2);
    image_write_jpeg(path, 16, 8, 4, (const unsigned char[]){1, 2, 3, 4}, 0);
    sgm_reader *reader = sgm_image_reader(folder, .width = 1, .height = 1);
    sgm_examples r;
    CHECK_ERROR(sgm_reader_read(reader, 1, &r), "colour/a/1.png: a JPEG file with 1 or 3 channels");
    sgm_reader_free(reader);
}

TEST(image_classes_alternate)
{
    const char *folder = image_folder("classes");
    const unsigned char pixels[6] = {0};
    for (int i = 0; i < 4; i++)
        image_write_png(image_path(folder, "b", (const char *[]){"1.png", "2.PNG", "3.png", "4.png"}[i]), 3,
                        2, PNG_COLOR_TYPE_GRAY, 8, 0, pixels);
    for (int i = 0; i < 2; i++)
        image_write_png(image_path(folder, "a", i == 0 ? "x.png" : "y.png"), 3, 2, PNG_COLOR_TYPE_GRAY, 8, 0,
                        pixels);
    image_write_jpeg(image_path(folder, "c", "z.jpeg"), 20, 30, 1, pixels, 0);
    data_write("classes/c/readme.txt", "no image", 8);
    data_write("classes/list.txt", "no class", 8);
    sgm_reader *reader = sgm_image_reader(folder, .grey = true);
    sgm_shape shape;
    CHECK_OK(sgm_image_reader_shape(reader, &shape));
    CHECK(sgm_shape_equal(&shape, &(sgm_shape[]){sgm_shape_of(2, 3, 1)}[0]));
    const int expected[] = {1, 0, 1, 2, 1, 0, 1}; /* places .125 .25 .375 .5 .625 .75 .875 */
    sgm_examples r;
    for (int pass = 0; pass < 2; pass++) {
        CHECK_OK(sgm_reader_read(reader, 100, &r));
        CHECK_INT(r.count, 7);
        for (int i = 0; i < 7; i++)
            CHECK_INT(at(&r, i * 7 + 6), expected[i]);
        CHECK_OK(sgm_reader_read(reader, 100, &r));
        CHECK_INT(r.count, 0);
        CHECK_OK(sgm_reader_rewind(reader));
    }
    sgm_reader_free(reader);
}

/* A size is taken over from a whole image only, not from the header of one whose pixels are missing. */
static void check_damaged_first_image(void)
{
    const char *folder = image_folder("damaged");
    const char *path = image_path(folder, "a", "1.png");
    image_write_png(path, 4, 4, PNG_COLOR_TYPE_GRAY, 8, 0,
                    (const unsigned char[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
    CHECK_INT(truncate(path, 45), 0);
    sgm_reader *reader = sgm_image_reader(folder, .grey = true);
    sgm_examples r;
    CHECK_ERROR(sgm_reader_prepare(reader), "damaged/a/1.png: cannot be decoded");
    image_write_png(path, 2, 1, PNG_COLOR_TYPE_GRAY, 8, 0, (const unsigned char[]){7, 9});
    CHECK_OK(sgm_reader_read(reader, 1, &r));
    CHECK_INT(sgm_tensor_shape(r.values)->dims[1], 2 * 1 + 1);
    sgm_reader_free(reader);
}

TEST(image_errors)
{
    const char *folder = image_folder("wrong");
    sgm_examples r;
    sgm_reader *reader = sgm_image_reader(folder, .grey = true);
    CHECK_ERROR(sgm_reader_prepare(reader), "wrong: no picture was found");
    data_write("wrong/readme.txt", "x", 1);
    image_path(folder, "a", "");
    data_write("wrong/a/text.png", "this is text", 12);
    CHECK_ERROR(sgm_reader_read(reader, 1, &r), "wrong/a/text.png: a PNG or JPEG image was expected");
    sgm_reader_free(reader);
    CHECK_ERROR(sgm_image_reader(folder, .width = 5), "give both");
    check_damaged_first_image();
    reader = sgm_image_reader_with("/nowhere/at/all", NULL);
    CHECK_ERROR(sgm_reader_prepare(reader), "/nowhere/at/all");
    sgm_reader_free(reader);
    sgm_shape shape;
    reader = sgm_byte_reader(memory("x"), 0, 1);
    CHECK_ERROR(sgm_image_reader_shape(reader, &shape), "a reader of images was expected");
    sgm_reader_free(reader);
}
