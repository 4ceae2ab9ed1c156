/* Changes of one picture in place: mirror, shift, rotate, crop, erase.
 *
 * augment.c draws the numbers and calls these functions, on the threads of augmentation_ring.c; nothing here
 * is random or allocates. A picture is (channels, height, width) float32 in one piece. Changes that read
 * pixels in another order than they write them first copy the picture to its scratch. Rotation and crop
 * interpolate bilinearly: each new pixel asks where it was in the old picture, and mixes the four pixels
 * around that place by their distance. */
#include "data/augment.h"

#include <math.h>

#define PI 3.14159265358979323846

static float *channel_of(const sgm__picture *picture, int64_t channel)
{
    return picture->pixels + (size_t)(channel * picture->height * picture->width);
}

/* Copies the picture to its scratch and returns that: the picture as it was. */
static const float *keep(const sgm__picture *picture)
{
    size_t count = (size_t)(picture->channels * picture->height * picture->width);
    memcpy(picture->scratch, picture->pixels, count * sizeof *picture->pixels);
    return picture->scratch;
}

static void swap(float *a, float *b)
{
    float kept = *a;
    *a = *b;
    *b = kept;
}

void sgm__picture_mirror(const sgm__picture *picture, bool left_right, bool top_bottom)
{
    int64_t height = picture->height, width = picture->width;
    for (int64_t c = 0; c < picture->channels; c++) {
        float *pixels = channel_of(picture, c);
        for (int64_t y = 0; y < height && left_right; y++)
            for (int64_t x = 0; x < width / 2; x++)
                swap(&pixels[y * width + x], &pixels[y * width + width - 1 - x]);
        for (int64_t y = 0; y < height / 2 && top_bottom; y++)
            for (int64_t x = 0; x < width; x++)
                swap(&pixels[y * width + x], &pixels[(height - 1 - y) * width + x]);
    }
}

void sgm__picture_shift(const sgm__picture *picture, int64_t down, int64_t right, float fill)
{
    const float *old = keep(picture);
    int64_t height = picture->height, width = picture->width;
    for (int64_t c = 0; c < picture->channels; c++, old += height * width) {
        float *pixels = channel_of(picture, c);
        for (int64_t y = 0; y < height; y++)
            for (int64_t x = 0; x < width; x++) {
                int64_t from_y = y - down, from_x = x - right;
                bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
                pixels[y * width + x] = inside ? old[from_y * width + from_x] : fill;
            }
    }
}

/* The four pixels around a place between pixels: upper left, upper right, lower left, lower right. */
typedef struct neighbours {
    int64_t index[4]; /* within a channel; -1: outside the picture */
    float weight[4];  /* of bilinear interpolation; the four add up to 1 */
} neighbours;

/* Gives the nearest of the neighbours all the weight. */
static void choose_nearest(neighbours *from)
{
    int best = 0;
    for (int i = 1; i < 4; i++)
        if (from->weight[i] > from->weight[best])
            best = i;
    for (int i = 0; i < 4; i++)
        from->weight[i] = i == best;
}

/* The neighbours of row y and column x, which are fractions; pixel centres are at whole numbers here. Rows
 * and columns are compared as doubles, since a place far outside the picture may not fit an int64_t. */
static neighbours around(const sgm__picture *picture, double y, double x)
{
    double top = floor(y), left = floor(x), down = y - top, right = x - left;
    neighbours found = {.weight = {(float)((1 - down) * (1 - right)), (float)((1 - down) * right),
                                   (float)(down * (1 - right)), (float)(down * right)}};
    for (int i = 0; i < 4; i++) {
        double row = i < 2 ? top : top + 1, column = left + i % 2;
        bool inside =
            row >= 0 && row < (double)picture->height && column >= 0 && column < (double)picture->width;
        found.index[i] = inside ? (int64_t)row * picture->width + (int64_t)column : -1;
    }
    if (picture->is_mask)
        choose_nearest(&found);
    return found;
}

/* Sets pixel `at` in all channels to the weighted sum of its four neighbours in the old picture; a neighbour
 * outside counts as `fill`. */
static void put_together(const sgm__picture *picture, const float *old, int64_t at, const neighbours *from,
                         float fill)
{
    int64_t size = picture->height * picture->width;
    for (int64_t c = 0; c < picture->channels; c++, old += size) {
        float sum = 0;
        for (int i = 0; i < 4; i++)
            sum += from->weight[i] * (from->index[i] >= 0 ? old[from->index[i]] : fill);
        channel_of(picture, c)[at] = sum;
    }
}

/* For each new pixel the turn is done backwards, by -degrees, so that each of them gets a value exactly once.
 * `up` and `right` are relative to the centre with `up` as the positive axis, where rows count downwards. */
void sgm__picture_rotate(const sgm__picture *picture, double degrees, float fill)
{
    const float *old = keep(picture);
    double sine = sin(degrees * PI / 180), cosine = cos(degrees * PI / 180);
    double middle_y = (double)(picture->height - 1) / 2, middle_x = (double)(picture->width - 1) / 2;
    for (int64_t y = 0; y < picture->height; y++)
        for (int64_t x = 0; x < picture->width; x++) {
            double up = middle_y - (double)y, right = (double)x - middle_x;
            neighbours from = around(picture, middle_y - (up * cosine - right * sine),
                                     middle_x + right * cosine + up * sine);
            put_together(picture, old, y * picture->width + x, &from, fill);
        }
}

/* Keeps a place within the first and the last pixel centre, which lets the picture go on with its edge. */
static double limited(double value, int64_t size)
{
    double maximum = (double)(size - 1);
    return value < 0 ? 0 : value > maximum ? maximum : value;
}

/* With pixel centres at halves, new pixel y shows the old place top + (y + 1/2) * share - 1/2. */
void sgm__picture_crop(const sgm__picture *picture, double share, double top, double left)
{
    const float *old = keep(picture);
    for (int64_t y = 0; y < picture->height; y++)
        for (int64_t x = 0; x < picture->width; x++) {
            double from_y = top + ((double)y + 0.5) * share - 0.5;
            double from_x = left + ((double)x + 0.5) * share - 0.5;
            neighbours from =
                around(picture, limited(from_y, picture->height), limited(from_x, picture->width));
            /* those outside weigh nothing */
            put_together(picture, old, y * picture->width + x, &from, 0);
        }
}

void sgm__picture_erase(const sgm__picture *picture, int64_t top, int64_t left, int64_t size, float fill)
{
    int64_t bottom = top + size < picture->height ? top + size : picture->height;
    int64_t right = left + size < picture->width ? left + size : picture->width;
    for (int64_t c = 0; c < picture->channels; c++)
        for (int64_t y = top > 0 ? top : 0; y < bottom; y++)
            for (int64_t x = left > 0 ? left : 0; x < right; x++)
                channel_of(picture, c)[y * picture->width + x] = fill;
}
