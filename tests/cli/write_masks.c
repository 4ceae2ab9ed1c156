/* Writes pictures with masks for the tests of the command: a disc and a square of random colours and places
 * on a noisy ground, FOLDER/photos/0.png, ... and FOLDER/masks/0.png, ..., whose values are 0, 1 (disc) and 2
 * (square); with a last argument those of grey files 0, 128 and 255.
 *
 *     write_masks FOLDER COUNT SIDE [grey] */
#include "image_files.h"

#include <string.h>
#include <sys/stat.h>

#define LARGEST_SIDE 64

static unsigned char pixels[LARGEST_SIDE * LARGEST_SIDE * 3], values[LARGEST_SIDE * LARGEST_SIDE];

/* The class of a pixel: a square over a disc over the ground. */
static int class_of(int x, int y, const int *at, int size)
{
    int dx = x - at[0], dy = y - at[1];
    if (x >= at[2] - size && x < at[2] + size && y >= at[3] - size && y < at[3] + size)
        return 2;
    return dx * dx + dy * dy < size * size ? 1 : 0;
}

static void draw(int side, int grey)
{
    int at[4], size = side / 8 + rand() % (side / 8 + 1);
    static const int light[] = {60, 170, 120}, shown[] = {0, 128, 255};
    for (int i = 0; i < 4; i++)
        at[i] = rand() % side;
    for (int i = 0; i < side * side; i++) {
        int class = class_of(i % side, i / side, at, size);
        values[i] = (unsigned char)(grey ? shown[class] : class);
        for (int c = 0; c < 3; c++)
            pixels[3 * i + c] = (unsigned char)(light[(class + (class > 0) * c) % 3] + rand() % 40);
    }
}

static void write_mask(const char *path, int side, int grey)
{
    static const unsigned char colours[3][3] = {{0, 0, 0}, {200, 0, 0}, {0, 200, 0}};
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)side,
                       .height = (png_uint_32)side,
                       .format = PNG_FORMAT_RGB_COLORMAP,
                       .colormap_entries = 3};
    if (grey)
        image_write_png(path, side, side, PNG_COLOR_TYPE_GRAY, 8, PNG_INTERLACE_NONE, values);
    else if (png_image_write_to_file(&image, path, 0, values, 0, colours) == 0)
        exit(1);
}

int main(int count, char **arguments)
{
    static const unsigned char blue[] = {20, 40, 200};
    int grey = count == 5, side = atoi(arguments[3]);
    char path[512];
    if (count < 4 || side > LARGEST_SIDE)
        return 2;
    srand(3);
    static const char *const below[] = {"", "/photos", "/masks"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", arguments[1], below[i]);
        mkdir(path, 0755);
    }
    for (int i = 0; i < atoi(arguments[2]); i++) {
        draw(side, grey);
        snprintf(path, sizeof path, "%s/photos/%d.png", arguments[1], i);
        image_write_png(path, side, side, PNG_COLOR_TYPE_RGB, 8, PNG_INTERLACE_NONE, pixels);
        snprintf(path, sizeof path, "%s/masks/%d.png", arguments[1], i);
        write_mask(path, side, grey);
    }
    snprintf(path, sizeof path, "%s/blue.jpg", arguments[1]);
    image_write_jpeg(path, 40, 20, 3, blue, 0);
    return 0;
}
