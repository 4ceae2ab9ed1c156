/* A folder of pictures as minibatches would have it: read, decoded, scaled and normalised.
 *
 *     pictures                         writes pictures, and measures PNG and JPEG on 1, 2, 4, ... threads
 *     pictures make FOLDER COUNT       writes FOLDER/jpeg and FOLDER/png, in two classes
 *     pictures read FOLDER THREADS     measures one of them: a line for each pass, which pictures.awk reads
 */
#include "base/base.h"
#include "measure.h"

#include <ftw.h>
#include <png.h>
#include <sigma/sigma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
/* After stdio.h, on which it depends. */
#include <jpeglib.h>

#define FROM 256 /* pixels on a side, */
#define TO 64    /* and of the inputs */
#define COUNT 2000
#define QUALITY 90 /* of JPEG */
#define PASSES 3

static void check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "pictures: %s: %s\n", what, sgm_last_error());
    exit(1);
}

/* --- pictures: waves of colours with some noise, which compress about as photographs do --- */

static void draw(unsigned char *pixels, unsigned *random)
{
    unsigned a = 1 + rand_r(random) % 7, b = 1 + rand_r(random) % 5;
    for (unsigned y = 0; y < FROM; y++)
        for (unsigned x = 0; x < FROM; x++)
            for (unsigned c = 0; c < 3; c++) {
                unsigned wave = (x * a + y * b + 40 * c) % 256, fold = wave < 128 ? 2 * wave : 511 - 2 * wave;
                pixels[(y * FROM + x) * 3 + c] =
                    (unsigned char)((fold * 15 + (unsigned)rand_r(random) % 256) / 16);
            }
}

static void write_jpeg(const char *path, unsigned char *pixels)
{
    FILE *file = fopen(path, "wb");
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    check(file != NULL, path);
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_width = jpeg.image_height = FROM;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, QUALITY, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < jpeg.image_height)
        jpeg_write_scanlines(&jpeg, (JSAMPROW[]){pixels + jpeg.next_scanline * FROM * 3}, 1);
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    fclose(file);
}

static void write_png(const char *path, const unsigned char *pixels)
{
    png_image image = {.version = PNG_IMAGE_VERSION, .width = FROM, .height = FROM, .format = PNG_FORMAT_RGB};
    check(png_image_write_to_file(&image, path, 0, pixels, 0, NULL) != 0, path);
}

static void make_folders(const char *folder)
{
    static const char *const below[] = {"", "/jpeg", "/png", "/jpeg/a", "/jpeg/b", "/png/a", "/png/b"};
    char path[512];
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        snprintf(path, sizeof path, "%s%s", folder, below[i]);
        mkdir(path, 0755);
    }
}

static void make(const char *folder, int count)
{
    static unsigned char pixels[FROM * FROM * 3];
    unsigned random = 1;
    char path[512];
    make_folders(folder);
    for (int i = 0; i < count; i++) {
        draw(pixels, &random);
        snprintf(path, sizeof path, "%s/jpeg/%c/%d.jpg", folder, 'a' + i % 2, i);
        write_jpeg(path, pixels);
        snprintf(path, sizeof path, "%s/png/%c/%d.png", folder, 'a' + i % 2, i);
        write_png(path, pixels);
    }
}

/* --- reading --- */

static double processor_time(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)used.ru_utime.tv_sec + 1e-6 * (double)used.ru_utime.tv_usec +
           (double)used.ru_stime.tv_sec + 1e-6 * (double)used.ru_stime.tv_usec;
}

/* All examples of the folder once, as blocks. */
static int64_t read_all(sgm_pipeline *pipeline, const char *folder, int threads)
{
    sgm_dataset *data = sgm_dataset_create(
        "pictures", .extractor = sgm_files_extractor(pipeline, folder, .threads = threads));
    int64_t examples = 0;
    check(data != NULL && sgm_dataset_examples(data, &examples) == SGM_OK, folder);
    sgm_dataset_free(data);
    return examples;
}

/* A line for each pass: the folder's last name, this program's, threads, pictures a second, microseconds of
 * the processor for a picture. */
static void measure(const char *folder, int threads)
{
    sgm_files *files = sgm_files_open(folder, "pictures");
    sgm_pipeline *pipeline = sgm_picture_pipeline(files, .width = TO, .height = TO, .threads = threads);
    check(pipeline != NULL, folder);
    const char *name = strrchr(folder, '/');
    for (int pass = 0; pass < PASSES; pass++) {
        double begin = now(), processor = processor_time();
        double examples = (double)read_all(pipeline, folder, threads);
        double wall = now() - begin, busy = processor_time() - processor;
        printf("%s sigma %d %.0f %.0f\n", name != NULL ? name + 1 : folder, threads, examples / wall,
               1e6 * busy / examples);
    }
    fflush(stdout);
    sgm_pipeline_free(pipeline);
    sgm_files_free(files);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info, (void)kind, (void)walk;
    return remove(path);
}

static void measure_all(void)
{
    char folder[] = "/tmp/sigma-bench-XXXXXX", path[64];
    check(mkdtemp(folder) != NULL, "a folder for pictures");
    make(folder, COUNT);
    for (int format = 0; format < 2; format++)
        for (int threads = 1; threads <= sgm__processors(); threads *= 2) {
            snprintf(path, sizeof path, "%s/%s", folder, format == 0 ? "jpeg" : "png");
            measure(path, threads);
        }
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(int count, char **arguments)
{
    if (count == 4 && strcmp(arguments[1], "make") == 0)
        make(arguments[2], atoi(arguments[3]));
    else if (count == 4 && strcmp(arguments[1], "read") == 0)
        measure(arguments[2], atoi(arguments[3]));
    else if (count == 1)
        measure_all();
    else
        return 2;
    return 0;
}
