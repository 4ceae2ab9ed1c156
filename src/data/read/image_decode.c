/* PNG and JPEG files, decoded row by row and scaled on the way by area average; called by reader_image.c
 * and by the kind of files `pictures`.
 *
 * Files come from anywhere, so sides, pixels, scans and the libraries' memory are bounded, and a damaged
 * image is an error, never grey pixels. Scaling works on one row at a time in exact integers; only
 * interlaced PNG files need the whole image in memory. libpng and libjpeg report errors by jumping
 * (longjmp). Everything that must survive a jump lives in struct decoder, which sgm__image_decode owns and
 * cleans up; functions that are jumped over hold no resources. */
#include "data/read/reader.h"
#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
/* After stdio.h, on which they depend. */
#include <jpeglib.h>

#include <jerror.h>

/* Bounds of an image: 2^26 pixels are 192 MiB in RGB. */
#define LARGEST_SIDE 32768
#define MAXIMUM_PIXELS ((uint64_t)1 << 26)
#define MAXIMUM_SCANS 100                /* of a progressive JPEG: each is a pass over the whole image */
#define MAXIMUM_JPEG_MEMORY (512L << 20) /* the coefficients of MAXIMUM_PIXELS, about */

/* Averages the pixels that a target pixel covers. A source pixel is `target` units wide and a target pixel
 * `source` units, so that all overlaps are whole numbers. */
typedef struct scaler {
    uint32_t width, height, channels; /* of the source */
    uint32_t out_width, out_height;
    uint64_t *line, *sums; /* one target row: of the present source row, and of all that belong to it */
    uint32_t row;          /* of the source, next */
    uint32_t out_row;
    unsigned char *out;
    uint64_t area; /* of a pixel of the result, in the units of sums */
} scaler;

/* One image that is being decoded. What is not NULL, or `has_jpeg`, is released by clean_up(). */
typedef struct decoder {
    const char *path;
    FILE *file;
    int channels;
    int32_t width, height; /* wanted; 0 at first: as the image is */
    sgm__bytes *bytes;     /* NULL: only the size is asked for */
    sgm_status status;
    jmp_buf jump;
    scaler scaler;
    unsigned char *pixels; /* one row, or the whole of an interlaced image */
    png_bytep *rows;       /* of an interlaced image */
    png_structp png;
    png_infop info;
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr jpeg_errors;
    struct jpeg_progress_mgr jpeg_progress;
    bool has_jpeg;
} decoder;

/* --- scaling --- */

/* One source row into `line`: sums of value * overlap, in all `width` units for each target pixel. */
static void scale_line(const scaler *s, const unsigned char *pixels)
{
    uint32_t channels = s->channels;
    memset(s->line, 0, (size_t)s->out_width * channels * sizeof *s->line);
    uint64_t begin = 0; /* of the source pixel, in units */
    uint32_t x = 0;     /* target pixel that it begins in */
    for (uint32_t i = 0; i < s->width; i++, pixels += channels) {
        uint64_t end = begin + s->out_width;
        while (begin < end) {
            uint64_t border = (uint64_t)(x + 1) * s->width, stop = border < end ? border : end;
            for (uint32_t c = 0; c < channels; c++)
                s->line[x * channels + c] += pixels[c] * (stop - begin);
            begin = stop;
            x += begin == border;
        }
    }
}

/* A target row is complete: its sums divided by the pixels' area, rounded to the nearest. */
static void emit_row(scaler *s)
{
    uint64_t area = s->area;
    size_t count = (size_t)s->out_width * s->channels;
    for (size_t i = 0; i < count; i++)
        s->out[i] = (unsigned char)((s->sums[i] + area / 2) / area);
    memset(s->sums, 0, count * sizeof *s->sums);
    s->out += count;
    s->out_row++;
}

/* Adds one source row of width * channels bytes to the target row or rows that it overlaps. Without scaling
 * it is copied. */
static void add_row(scaler *s, const unsigned char *pixels)
{
    size_t count = (size_t)s->out_width * s->channels;
    if (s->width == s->out_width && s->height == s->out_height) {
        memcpy(s->out, pixels, count);
        s->out += count;
        return;
    }
    scale_line(s, pixels);
    uint64_t begin = (uint64_t)s->row * s->out_height, end = begin + s->out_height;
    while (begin < end) {
        uint64_t border = (uint64_t)(s->out_row + 1) * s->height, stop = border < end ? border : end;
        for (size_t i = 0; i < count; i++)
            s->sums[i] += s->line[i] * (stop - begin);
        begin = stop;
        if (begin == border)
            emit_row(s);
    }
    s->row++;
}

/* Checks the size, fixes the target's size where it is open, and makes room for the scaler and the whole
 * result, which a header alone can demand only up to the bounds. */
static sgm_status begin_image(decoder *d, uint64_t width, uint64_t height)
{
    if (width == 0 || height == 0 || width > LARGEST_SIDE || height > LARGEST_SIDE ||
        width * height > MAXIMUM_PIXELS)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "%s: images up to %d pixels on a side and %llu in all were expected, %llu x %llu came; make it "
            "smaller",
            d->path, LARGEST_SIDE, (unsigned long long)MAXIMUM_PIXELS, (unsigned long long)width,
            (unsigned long long)height);
    if (d->width == 0)
        d->width = (int32_t)width, d->height = (int32_t)height;
    if (d->bytes == NULL)
        return SGM_OK;
    scaler *s = &d->scaler;
    *s = (scaler){.width = (uint32_t)width,
                  .height = (uint32_t)height,
                  .area = width * height,
                  .channels = (uint32_t)d->channels,
                  .out_width = (uint32_t)d->width,
                  .out_height = (uint32_t)d->height};
    size_t row = (size_t)s->out_width * s->channels, size = row * s->out_height;
    s->line = sgm__calloc(row, sizeof *s->line);
    s->sums = sgm__calloc(row, sizeof *s->sums);
    if (s->line == NULL || s->sums == NULL)
        return SGM_ERROR_MEMORY;
    SGM_TRY(sgm__bytes_reserve(d->bytes, size));
    s->out = d->bytes->data + d->bytes->length;
    return SGM_OK;
}

/* --- PNG --- */

/* libpng's error function must not return. */
static void png_fail(png_structp png, png_const_charp text)
{
    decoder *d = png_get_error_ptr(png);
    d->status = sgm_fail(SGM_ERROR_FORMAT,
                         "%s: cannot be decoded at byte %ld: %s; the image is damaged: get it again", d->path,
                         ftell(d->file), text);
    longjmp(d->jump, 1);
}

static void png_ignore(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

/* Whatever the file has becomes 8 bits a channel in the wanted number of channels, without transparency.
 * Grey is 0.299 R + 0.587 G + 0.114 B, the weights of JPEG. */
static void set_png_output(decoder *d)
{
    int colour = png_get_color_type(d->png, d->info);
    png_set_scale_16(d->png);
    png_set_expand(d->png);
    png_set_strip_alpha(d->png);
    if (d->channels == 3)
        png_set_gray_to_rgb(d->png);
    else if (colour & PNG_COLOR_MASK_COLOR) /* the weights that JPEG has too */
        png_set_rgb_to_gray_fixed(d->png, PNG_ERROR_ACTION_NONE, 29900, 58700);
}

/* The rows come in several passes over the image, so all of them are kept until the last pass. */
static sgm_status read_interlaced(decoder *d, size_t row_size)
{
    uint32_t height = d->scaler.height;
    d->pixels = sgm__calloc(height, row_size);
    d->rows = sgm__calloc(height, sizeof *d->rows);
    if (d->pixels == NULL || d->rows == NULL)
        return SGM_ERROR_MEMORY;
    for (uint32_t y = 0; y < height; y++)
        d->rows[y] = d->pixels + y * row_size;
    png_read_image(d->png, d->rows);
    for (uint32_t y = 0; y < height; y++)
        add_row(&d->scaler, d->rows[y]);
    return SGM_OK;
}

/* Reads the header within bounds, then the rows. */
static sgm_status read_png_rows(decoder *d)
{
    png_init_io(d->png, d->file);
    png_set_user_limits(d->png, LARGEST_SIDE, LARGEST_SIDE);
    png_set_chunk_malloc_max(d->png, 8u << 20);
    png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
    png_read_info(d->png, d->info);
    SGM_TRY(begin_image(d, png_get_image_width(d->png, d->info), png_get_image_height(d->png, d->info)));
    if (d->bytes == NULL)
        return SGM_OK;
    set_png_output(d);
    int passes = png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
    size_t row_size = png_get_rowbytes(d->png, d->info);
    if (row_size != (size_t)d->scaler.width * d->scaler.channels)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "%s: the colours of this PNG file cannot be converted; save it as RGB", d->path);
    if (passes > 1) {
        SGM_TRY(read_interlaced(d, row_size));
    } else {
        d->pixels = sgm__alloc(row_size);
        if (d->pixels == NULL)
            return SGM_ERROR_MEMORY;
        for (uint32_t y = 0; y < d->scaler.height; y++) {
            png_read_row(d->png, d->pixels, NULL);
            add_row(&d->scaler, d->pixels);
        }
    }
    png_read_end(d->png, NULL);
    return SGM_OK;
}

/* setjmp returns a second time, with 1, after an error in libpng. */
static sgm_status decode_png(decoder *d)
{
    d->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, png_fail, png_ignore);
    d->info = d->png != NULL ? png_create_info_struct(d->png) : NULL;
    if (d->info == NULL)
        return sgm__fail_memory(sizeof *d);
    if (setjmp(d->jump) != 0)
        return d->status;
    return read_png_rows(d);
}

/* --- JPEG --- */

/* Notes the error and jumps back to decode_jpeg. */
static void jpeg_fail_text(decoder *d, const char *text)
{
    d->status = sgm_fail(SGM_ERROR_FORMAT,
                         "%s: cannot be decoded at byte %ld: %s; the image is damaged: get it again", d->path,
                         ftell(d->file), text);
    longjmp(d->jump, 1);
}

static void jpeg_fail(j_common_ptr jpeg)
{
    char text[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, text);
    jpeg_fail_text(jpeg->client_data, text);
}

/* libjpeg goes on with grey pixels where data is damaged or missing; for training that is an error. */
static void jpeg_message(j_common_ptr jpeg, int level)
{
    int code = jpeg->err->msg_code;
    if (level < 0 &&
        (code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_JPEG_EOF ||
         code == JWRN_ARITH_BAD_CODE || code == JWRN_BOGUS_PROGRESSION || code == JWRN_MUST_RESYNC))
        jpeg_fail(jpeg);
}

/* libjpeg calls this now and then; a small file with very many scans would take hours. */
static void jpeg_count_scans(j_common_ptr jpeg)
{
    const decoder *d = jpeg->client_data;
    if (jpeg->is_decompressor && d->jpeg.input_scan_number > MAXIMUM_SCANS)
        jpeg_fail_text(jpeg->client_data, "it has more than 100 scans");
}

/* Reads the header within bounds, then the rows. JDCT_ISLOW is the exact integer transformation, so pixels
 * are the same on all processors. */
static sgm_status read_jpeg_rows(decoder *d)
{
    struct jpeg_decompress_struct *jpeg = &d->jpeg;
    jpeg_create_decompress(jpeg);
    d->has_jpeg = true;
    jpeg->client_data = d;
    jpeg->progress = &d->jpeg_progress;
    jpeg->progress->progress_monitor = jpeg_count_scans;
    jpeg->mem->max_memory_to_use = MAXIMUM_JPEG_MEMORY;
    jpeg_stdio_src(jpeg, d->file);
    jpeg_read_header(jpeg, TRUE);
    SGM_TRY(begin_image(d, jpeg->image_width, jpeg->image_height));
    if (d->bytes == NULL)
        return SGM_OK;
    if (jpeg->num_components != 1 && jpeg->num_components != 3)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "%s: a JPEG file with 1 or 3 channels was expected, %d came; save it as RGB", d->path,
                        jpeg->num_components);
    jpeg->out_color_space = d->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg->dct_method = JDCT_ISLOW;
    jpeg_start_decompress(jpeg);
    d->pixels = sgm__alloc((size_t)d->scaler.width * d->scaler.channels);
    if (d->pixels == NULL)
        return SGM_ERROR_MEMORY;
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = d->pixels;
        jpeg_read_scanlines(jpeg, &row, 1);
        add_row(&d->scaler, d->pixels);
    }
    jpeg_finish_decompress(jpeg);
    return SGM_OK;
}

static sgm_status decode_jpeg(decoder *d)
{
    d->jpeg.err = jpeg_std_error(&d->jpeg_errors);
    d->jpeg_errors.error_exit = jpeg_fail;
    d->jpeg_errors.emit_message = jpeg_message;
    d->jpeg.client_data = d;
    if (setjmp(d->jump) != 0)
        return d->status;
    return read_jpeg_rows(d);
}

/* --- both --- */

/* After success and after every failure, wherever it was. */
static void clean_up(decoder *d)
{
    if (d->png != NULL)
        png_destroy_read_struct(&d->png, d->info != NULL ? &d->info : NULL, NULL);
    if (d->has_jpeg)
        jpeg_destroy_decompress(&d->jpeg);
    if (d->file != NULL)
        fclose(d->file);
    sgm__free(d->scaler.line);
    sgm__free(d->scaler.sums);
    sgm__free(d->pixels);
    sgm__free(d->rows);
}

/* The first bytes of the file decide between PNG and JPEG; its name does not matter. */
static sgm_status decode_file(decoder *d)
{
    unsigned char magic[8] = {0};
    if (d->file == NULL)
        return sgm__last_failure();
    size_t got = fread(magic, 1, sizeof magic, d->file);
    rewind(d->file);
    if (got == sizeof magic && png_sig_cmp(magic, 0, sizeof magic) == 0)
        return decode_png(d);
    if (got >= 3 && magic[0] == 0xff && magic[1] == 0xd8 && magic[2] == 0xff)
        return decode_jpeg(d);
    return sgm_fail(SGM_ERROR_FORMAT,
                    "%s: a PNG or JPEG image was expected, its first bytes are of neither; convert or "
                    "remove it",
                    d->path);
}

/* Takes the file, which is NULL after a failure to open it. The decoder is allocated, since local variables
 * that change between setjmp and longjmp would be indeterminate. */
static sgm_status decode(const char *path, FILE *file, int32_t *width, int32_t *height, int32_t channels,
                         sgm__bytes *bytes)
{
    decoder *d = sgm__calloc(1, sizeof *d);
    if (d == NULL) {
        if (file != NULL)
            fclose(file);
        return SGM_ERROR_MEMORY;
    }
    d->path = path;
    d->file = file;
    d->width = *width;
    d->height = *height;
    d->channels = channels;
    d->bytes = bytes;
    sgm_status status = decode_file(d);
    if (status == SGM_OK) {
        *width = d->width;
        *height = d->height;
    }
    if (status == SGM_OK && bytes != NULL)
        bytes->length += (size_t)*width * (size_t)*height * (size_t)channels;
    clean_up(d);
    sgm__free(d);
    return status;
}

sgm_status sgm__image_decode(const char *path, int32_t *width, int32_t *height, int32_t channels,
                             sgm__bytes *bytes)
{
    return decode(path, sgm__file_open_stream(path), width, height, channels, bytes);
}

sgm_status sgm__image_size(const char *path, int32_t *width, int32_t *height)
{
    *width = *height = 0;
    return decode(path, sgm__file_open_stream(path), width, height, 3, NULL);
}

sgm_status sgm__image_decode_memory(const char *name, const void *image, size_t length, int32_t *width,
                                    int32_t *height, int32_t channels, sgm__bytes *bytes)
{
    if (length == 0)
        return sgm_fail(SGM_ERROR_FORMAT, "%s: a PNG or JPEG image was expected, no byte came", name);
    FILE *file = fmemopen((void *)(uintptr_t)image, length, "rb");
    if (file == NULL)
        return sgm__fail_memory(length);
    return decode(name, file, width, height, channels, bytes);
}
