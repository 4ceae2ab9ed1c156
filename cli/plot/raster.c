/* Draws a plot into pixels and writes them as PNG. See plot.h.
 *
 * A pixel of the plot is SCALE x SCALE pixels of the picture, so that screens with many pixels show it sharp.
 */
#include "plot/plot.h"

#include <math.h>
#include <png.h>

#define SCALE 2
#define CHANNELS 3
/* Pixels of a text's size for each pixel of a letter. */
#define LETTER_PIXELS 10

typedef struct raster {
    int width, height;
    unsigned char *pixels; /* (height, width, CHANNELS) */
} raster;

/* Mixes a colour into a pixel; `share` 1 covers it. Outside of the picture nothing happens. */
static void mix(raster *r, int x, int y, uint32_t colour, double share)
{
    if (x < 0 || y < 0 || x >= r->width || y >= r->height)
        return;
    unsigned char *pixel = r->pixels + ((size_t)y * (size_t)r->width + (size_t)x) * CHANNELS;
    for (int i = 0; i < CHANNELS; i++) {
        double wanted = (double)(colour >> (8 * (CHANNELS - 1 - i)) & 255);
        pixel[i] = (unsigned char)lround(pixel[i] + share * (wanted - pixel[i]));
    }
}

static int to_pixel(double x)
{
    return (int)lround(x * SCALE);
}

static void draw_rectangle(raster *r, const plot_shape *shape)
{
    int left = to_pixel(shape->x), right = to_pixel(shape->x + shape->width), top = to_pixel(shape->y),
        bottom = to_pixel(shape->y + shape->height);
    for (int y = top; y < bottom; y++)
        for (int x = left; x < right; x++)
            mix(r, x, y, shape->colour, 1);
}

static void draw_line(raster *r, const plot_shape *shape)
{
    double longer = fmax(fabs(shape->width), fabs(shape->height)) * SCALE;
    for (int i = 0; i <= (int)longer; i++) {
        double share = longer > 0 ? i / longer : 0;
        mix(r, to_pixel(shape->x + share * shape->width), to_pixel(shape->y + share * shape->height),
            shape->colour, 1);
    }
}

/* Half transparent, with an edge that gets thinner over one pixel. */
static void draw_point(raster *r, const plot_shape *shape)
{
    double radius = shape->width * SCALE, x = shape->x * SCALE, y = shape->y * SCALE;
    for (int row = (int)(y - radius) - 1; row <= (int)(y + radius) + 1; row++)
        for (int column = (int)(x - radius) - 1; column <= (int)(x + radius) + 1; column++) {
            double inside = radius + 0.5 - hypot(column - x, row - y);
            if (inside > 0)
                mix(r, column, row, shape->colour, 0.5 * fmin(inside, 1));
        }
}

static void draw_letter(raster *r, char letter, int x, int y, int pixels, uint32_t colour)
{
    const unsigned char *columns = plot_letter(letter);
    for (int column = 0; column < LETTER_WIDTH * pixels; column++)
        for (int row = 0; row < LETTER_HEIGHT * pixels; row++)
            if ((columns[column / pixels] >> (row / pixels) & 1) != 0)
                mix(r, x + column, y + row, colour, 1);
}

/* A character of UTF-8 is one '?', which its first byte becomes. */
static bool begins_character(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

static void draw_text(raster *r, const plot_shape *shape)
{
    int pixels = (int)(shape->size * SCALE / LETTER_PIXELS), count = 0, step = (LETTER_WIDTH + 1) * pixels;
    for (const char *c = shape->text; *c != '\0'; c++)
        count += begins_character(*c);
    int x = to_pixel(shape->x) - (int)shape->anchor * (count * step - pixels) / 2;
    int y = to_pixel(shape->y) - LETTER_HEIGHT * pixels / 2 + pixels / 2;
    for (const char *c = shape->text; *c != '\0'; c++)
        if (begins_character(*c)) {
            draw_letter(r, *c, x, y, pixels, shape->colour);
            x += step;
        }
}

static void draw(raster *r, const plot_shape *shape)
{
    switch (shape->kind) {
    case PLOT_RECTANGLE:
        draw_rectangle(r, shape);
        return;
    case PLOT_LINE:
        draw_line(r, shape);
        return;
    case PLOT_POINT:
        draw_point(r, shape);
        return;
    case PLOT_TEXT:
        draw_text(r, shape);
        return;
    }
}

static sgm_status write_png(const raster *r, sgm__text *bytes)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)r->width,
                       .height = (png_uint_32)r->height,
                       .format = PNG_FORMAT_RGB};
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    char *packed = sgm__alloc(size);
    if (packed == NULL)
        return SGM_ERROR_MEMORY;
    if (png_image_write_to_memory(&image, packed, &size, 0, r->pixels, 0, NULL) != 0)
        sgm__text_append_bytes(bytes, packed, size);
    sgm__free(packed);
    return PNG_IMAGE_FAILED(image)
               ? sgm_fail(SGM_ERROR_MEMORY, "the picture cannot be made: %s", image.message)
               : SGM_OK;
}

sgm_status plot_png(const plot *drawing, sgm__text *bytes)
{
    raster r = {.width = drawing->width * SCALE, .height = drawing->height * SCALE};
    size_t size = (size_t)r.width * (size_t)r.height * CHANNELS;
    r.pixels = sgm__alloc(size);
    if (r.pixels == NULL)
        return SGM_ERROR_MEMORY;
    memset(r.pixels, 255, size);
    for (size_t i = 0; i < drawing->count; i++)
        draw(&r, &drawing->shapes[i]);
    sgm_status status = write_png(&r, bytes);
    sgm__free(r.pixels);
    return status;
}
