/* Writes the images that the tests of readers read. */
#ifndef SIGMA_IMAGE_FILES_H
#define SIGMA_IMAGE_FILES_H

#include <png.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
/* After stdio.h, on which it depends. */
#include <jpeglib.h>

/* `colour` is PNG_COLOR_TYPE_...; the rows of `pixels` are tight. */
static void image_write_png(const char *path, int width, int height, int colour, int depth, int interlace,
                            const unsigned char *pixels)
{
    FILE *file = fopen(path, "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    if (file == NULL || setjmp(png_jmpbuf(png)))
        exit(1);
    png_init_io(png, file);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, depth, colour, interlace,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (colour == PNG_COLOR_TYPE_PALETTE) {
        const png_color palette[3] = {{10, 20, 30}, {100, 150, 200}, {255, 0, 128}};
        png_set_PLTE(png, info, palette, 3);
    }
    png_write_info(png, info);
    size_t row = png_get_rowbytes(png, info);
    png_bytep rows[64];
    for (int y = 0; y < height && y < 64; y++)
        rows[y] = (png_bytep)(uintptr_t)(pixels + (size_t)y * row);
    png_write_image(png, rows);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    fclose(file);
}

/* One colour all over; 1, 3 or 4 (CMYK) channels. */
__attribute__((unused)) static void image_write_jpeg(const char *path, int width, int height, int channels,
                                                     const unsigned char *colour, int is_progressive)
{
    FILE *file = fopen(path, "wb");
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    if (file == NULL)
        exit(1);
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_width = (JDIMENSION)width;
    jpeg.image_height = (JDIMENSION)height;
    jpeg.input_components = channels;
    jpeg.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&jpeg);
    if (is_progressive)
        jpeg_simple_progression(&jpeg);
    jpeg_set_quality(&jpeg, 95, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    unsigned char row[256 * 4];
    for (int i = 0; i < width * channels; i++)
        row[i] = colour[i % channels];
    for (JSAMPROW rows[] = {row}; jpeg.next_scanline < jpeg.image_height;)
        jpeg_write_scanlines(&jpeg, rows, 1);
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    fclose(file);
}

#endif
