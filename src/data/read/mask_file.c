/* Masks: PNG files whose pixels are numbers of classes, those of a palette or of grey. They are read as they
 * are and scaled by taking the nearest pixel, since no class lies between two others.
 *
 * As in image_decode.c, libpng reports errors by jumping: what must survive a jump lives in the struct. */
#include "data/read/reader.h"
#include <png.h>
#include <setjmp.h>
#include <stdio.h>

#define LARGEST_SIDE 32768
#define MAXIMUM_PIXELS ((uint64_t)1 << 26)

typedef struct mask {
    const char *path;
    FILE *file;
    png_structp png;
    png_infop info;
    png_bytep *rows;
    unsigned char *pixels;
    uint32_t width, height;
    sgm_status status;
    jmp_buf jump;
} mask;

static void png_fail(png_structp png, png_const_charp text)
{
    mask *m = png_get_error_ptr(png);
    m->status = sgm_fail(SGM_ERROR_FORMAT, "%s: cannot be decoded: %s; the mask is damaged: get it again",
                         m->path, text);
    longjmp(m->jump, 1);
}

static void png_ignore(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

static sgm_status check_header(mask *m)
{
    m->width = png_get_image_width(m->png, m->info);
    m->height = png_get_image_height(m->png, m->info);
    png_byte colour = png_get_color_type(m->png, m->info);
    if ((colour != PNG_COLOR_TYPE_PALETTE && colour != PNG_COLOR_TYPE_GRAY) ||
        png_get_bit_depth(m->png, m->info) > 8)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "%s: a mask is a PNG file with a palette, or of grey with 8 bits at most, whose values are "
            "classes; this one has other colours: save it so",
            m->path);
    if (m->width > LARGEST_SIDE || m->height > LARGEST_SIDE ||
        (uint64_t)m->width * m->height > MAXIMUM_PIXELS)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "%s: a mask of at most %d pixels on a side was expected",
                        m->path, LARGEST_SIDE);
    return SGM_OK;
}

/* One byte for each pixel, also where the file has several in one. */
static sgm_status read_pixels(mask *m)
{
    png_init_io(m->png, m->file);
    png_set_user_limits(m->png, LARGEST_SIDE, LARGEST_SIDE);
    png_read_info(m->png, m->info);
    SGM_TRY(check_header(m));
    png_set_packing(m->png);
    png_set_interlace_handling(m->png);
    png_read_update_info(m->png, m->info);
    m->pixels = sgm__alloc((size_t)m->width * m->height);
    m->rows = sgm__calloc(m->height, sizeof *m->rows);
    if (m->pixels == NULL || m->rows == NULL)
        return SGM_ERROR_MEMORY;
    for (uint32_t y = 0; y < m->height; y++)
        m->rows[y] = m->pixels + (size_t)y * m->width;
    png_read_image(m->png, m->rows);
    png_read_end(m->png, NULL);
    return SGM_OK;
}

static sgm_status decode(mask *m)
{
    unsigned char magic[8] = {0};
    size_t got = fread(magic, 1, sizeof magic, m->file);
    if (got != sizeof magic || png_sig_cmp(magic, 0, sizeof magic) != 0)
        return sgm_fail(SGM_ERROR_FORMAT, "%s: a mask is a PNG file, and this is none", m->path);
    rewind(m->file);
    m->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, m, png_fail, png_ignore);
    m->info = m->png != NULL ? png_create_info_struct(m->png) : NULL;
    if (m->info == NULL)
        return sgm__fail_memory(sizeof *m);
    if (setjmp(m->jump) != 0)
        return m->status;
    return read_pixels(m);
}

/* Pixel x of n shows what lies at (x + 1/2) / n of the whole. */
static sgm_status scale(const mask *m, int32_t *width, int32_t *height, sgm__bytes *bytes)
{
    if (*width == 0)
        *width = (int32_t)m->width, *height = (int32_t)m->height;
    size_t w = (size_t)*width, h = (size_t)*height;
    SGM_TRY(sgm__bytes_reserve(bytes, w * h));
    for (size_t y = 0; y < h; y++)
        for (size_t x = 0; x < w; x++) {
            size_t from_y = (2 * y + 1) * m->height / (2 * h), from_x = (2 * x + 1) * m->width / (2 * w);
            bytes->data[bytes->length++] = m->pixels[from_y * m->width + from_x];
        }
    return SGM_OK;
}

sgm_status sgm__mask_decode(const char *path, int32_t *width, int32_t *height, sgm__bytes *bytes)
{
    mask *m = sgm__calloc(1, sizeof *m);
    if (m == NULL)
        return SGM_ERROR_MEMORY;
    m->path = path;
    m->file = sgm__file_open_stream(path);
    sgm_status status = m->file != NULL ? decode(m) : sgm__last_failure();
    if (status == SGM_OK)
        status = scale(m, width, height, bytes);
    if (m->png != NULL)
        png_destroy_read_struct(&m->png, m->info != NULL ? &m->info : NULL, NULL);
    if (m->file != NULL)
        fclose(m->file);
    sgm__free(m->rows);
    sgm__free(m->pixels);
    sgm__free(m);
    return status;
}

/* --- writing --- */

/* The colours of value `value`: black, then colours that differ from each other (those of PASCAL VOC), and
 * white. */
static void set_colour(unsigned char *colour, int value)
{
    colour[0] = colour[1] = colour[2] = value == 255 ? 255 : 0;
    for (int bit = 7, rest = value; value < 255 && rest > 0; bit--, rest >>= 3)
        for (int c = 0; c < 3; c++)
            colour[c] |= (unsigned char)((rest >> c & 1) << bit);
}

sgm_status sgm__mask_write(const char *path, int32_t width, int32_t height, const unsigned char *values)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = PNG_FORMAT_RGB_COLORMAP,
                       .colormap_entries = 256};
    unsigned char colours[256][3];
    png_alloc_size_t size = 0;
    for (int value = 0; value < 256; value++)
        set_colour(colours[value], value);
    void *file = NULL;
    bool good = png_image_write_to_memory(&image, NULL, &size, 0, values, 0, colours) != 0 &&
                (file = sgm__alloc(size)) != NULL &&
                png_image_write_to_memory(&image, file, &size, 0, values, 0, colours) != 0;
    sgm_status status = good           ? sgm__file_write_atomic(path, file, size)
                        : file == NULL ? sgm__last_failure()
                                       : sgm_fail(SGM_ERROR_FILE, "%s: %s", path, image.message);
    sgm__free(file);
    return status;
}
