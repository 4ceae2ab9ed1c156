/* Pictures in another size by a filter, bilinear or bicubic, as Pillow and the processors of pictures that
 * stand on it do: a result is a weighted mean of the pixels around it, over a wider range where the picture
 * shrinks, so that nothing is skipped (antialiasing). One side is scaled first, then the other one, with
 * bytes in between and weights in whole numbers, so that results are those of Pillow 13 to the bit. */
#include "data/read/reader.h"

#include <math.h>

/* Weights are multiples of 2^-22; a sum of 255 times such weights fits into 32 bits. */
#define PRECISION 22

static const char *const filter_names[] = {"area", "bilinear", "bicubic"};

const char *sgm__image_filter_name(sgm__image_filter filter)
{
    return filter_names[filter];
}

bool sgm__image_filter_find(const char *name, sgm__image_filter *filter)
{
    for (size_t i = 0; i < sizeof filter_names / sizeof *filter_names; i++)
        if (strcmp(filter_names[i], name) == 0) {
            *filter = (sgm__image_filter)i;
            return true;
        }
    return false;
}

/* Of a distance in pixels of the coarser picture. Bicubic is that of Keys (1981) with a = -0.5. */
static double weight_at(sgm__image_filter filter, double distance)
{
    double x = fabs(distance);
    if (filter == SGM__IMAGE_BILINEAR)
        return x < 1 ? 1 - x : 0;
    if (x < 1)
        return (1.5 * x - 2.5) * x * x + 1;
    return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

/* Along one side: result i is the sum of weights[i * room + k] times the pixel first[i] + k, k < count[i]. */
typedef struct side {
    int32_t *first, *count, *weights;
    int32_t room;
} side;

static void free_side(side *s)
{
    sgm__free(s->first);
    sgm__free(s->count);
    sgm__free(s->weights);
}

/* The weights of one result, around `centre`; `found` has room for them. */
static void weigh(sgm__image_filter filter, double centre, double scale, double reach, int32_t size, side *s,
                  int32_t i, double *found)
{
    int32_t first = (int32_t)(centre - reach + 0.5), end = (int32_t)(centre + reach + 0.5);
    double sum = 0;
    s->first[i] = first = first > 0 ? first : 0;
    s->count[i] = (end < size ? end : size) - first;
    for (int32_t k = 0; k < s->count[i]; k++)
        sum += found[k] = weight_at(filter, (first + k - centre + 0.5) * (1 / scale));
    for (int32_t k = 0; k < s->count[i]; k++) {
        double whole = (sum != 0 ? found[k] / sum : found[k]) * (1 << PRECISION);
        s->weights[(size_t)i * (size_t)s->room + (size_t)k] =
            (int32_t)(whole < 0 ? whole - 0.5 : whole + 0.5);
    }
}

/* Call free_side also on failure. */
static sgm_status make_side(sgm__image_filter filter, int32_t size, int32_t wanted, side *s)
{
    double ratio = (double)size / wanted, scale = ratio > 1 ? ratio : 1;
    double reach = (filter == SGM__IMAGE_BILINEAR ? 1 : 2) * scale;
    s->room = 2 * (int32_t)ceil(reach) + 1;
    s->first = sgm__calloc((size_t)wanted, sizeof *s->first);
    s->count = sgm__calloc((size_t)wanted, sizeof *s->count);
    s->weights = sgm__calloc((size_t)wanted * (size_t)s->room, sizeof *s->weights);
    double *found = sgm__calloc((size_t)s->room, sizeof *found);
    bool made = s->first != NULL && s->count != NULL && s->weights != NULL && found != NULL;
    for (int32_t i = 0; made && i < wanted; i++)
        weigh(filter, (i + 0.5) * ratio, scale, reach, size, s, i, found);
    sgm__free(found);
    return made ? SGM_OK : SGM_ERROR_MEMORY;
}

/* `lines` lines of results, of which neighbours lie `step` bytes apart, as do those of a source line;
 * lines lie `from_line` and `to_line` bytes apart. */
static void apply(const side *s, int32_t wanted, int32_t lines, size_t step, const unsigned char *from,
                  size_t from_line, unsigned char *to, size_t to_line)
{
    for (int32_t i = 0; i < wanted; i++) {
        const int32_t *weights = s->weights + (size_t)i * (size_t)s->room;
        const unsigned char *first = from + (size_t)s->first[i] * step;
        for (int32_t line = 0; line < lines; line++) {
            int32_t sum = 1 << (PRECISION - 1);
            for (int32_t k = 0; k < s->count[i]; k++)
                sum += weights[k] * first[(size_t)line * from_line + (size_t)k * step];
            int32_t value = sum >> PRECISION;
            to[(size_t)line * to_line + (size_t)i * step] = (unsigned char)(value < 0     ? 0
                                                                            : value > 255 ? 255
                                                                                          : value);
        }
    }
}

/* Each channel of the rows by itself: it is a line of its own. */
static void apply_columns(const side *s, int32_t wanted, const sgm__image *from, unsigned char *to)
{
    size_t channels = (size_t)from->channels;
    for (size_t c = 0; c < channels; c++)
        apply(s, wanted, from->height, channels, from->pixels + c, (size_t)from->width * channels, to + c,
              (size_t)wanted * channels);
}

static sgm_status resize_columns(sgm__image_filter filter, const sgm__image *from, int32_t width,
                                 unsigned char *to)
{
    side s = {0};
    sgm_status status = make_side(filter, from->width, width, &s);
    if (status == SGM_OK)
        apply_columns(&s, width, from, to);
    free_side(&s);
    return status;
}

/* A column of bytes is a line, whose neighbours lie a row apart. */
static sgm_status resize_rows(sgm__image_filter filter, const sgm__image *from, int32_t height,
                              unsigned char *to)
{
    side s = {0};
    size_t row = (size_t)from->width * (size_t)from->channels;
    sgm_status status = make_side(filter, from->height, height, &s);
    if (status == SGM_OK)
        apply(&s, height, (int32_t)row, row, from->pixels, 1, to, 1);
    free_side(&s);
    return status;
}

/* To another width or to another height; a picture that has it is copied. */
static sgm_status resize_side(sgm__image_filter filter, const sgm__image *from, bool columns, int32_t wanted,
                              unsigned char *to)
{
    if (wanted != (columns ? from->width : from->height))
        return columns ? resize_columns(filter, from, wanted, to) : resize_rows(filter, from, wanted, to);
    memcpy(to, from->pixels, (size_t)from->width * (size_t)from->height * (size_t)from->channels);
    return SGM_OK;
}

/* The bytes in between are rounded, so the order shows. Pillow begins with the rows where more than twice as
 * many rows as columns are lost; before 13 it began with the columns always. */
static bool begins_with_columns(const sgm__image *from, int32_t width, int32_t height)
{
    int64_t rows = (int64_t)from->height - height, columns = (int64_t)from->width - width;
    return rows <= 0 || rows <= 2 * columns;
}

sgm_status sgm__image_resize(sgm__image_filter filter, const sgm__image *from, int32_t width, int32_t height,
                             unsigned char *to)
{
    const bool columns = begins_with_columns(from, width, height);
    sgm__image between = *from;
    *(columns ? &between.width : &between.height) = columns ? width : height;
    unsigned char *bytes =
        sgm__calloc((size_t)between.height, (size_t)between.width * (size_t)from->channels);
    if (bytes == NULL)
        return SGM_ERROR_MEMORY;
    between.pixels = bytes;
    sgm_status status = resize_side(filter, from, columns, columns ? width : height, bytes);
    if (status == SGM_OK)
        status = resize_side(filter, &between, !columns, columns ? height : width, to);
    sgm__free(bytes);
    return status;
}
