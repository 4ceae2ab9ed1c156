/* Pictures: PNG and JPEG files as inputs of a network. Folders of them, examples and single files are those
 * of sigma/files.h.
 *
 *     sgm_files *pets = sgm_files_open("pets", "pictures");
 *     sgm_pipeline *pipeline = sgm_picture_pipeline(pets, .width = 32, .height = 32);
 *
 * Inputs are (channels, height, width). A picture is scaled to one size by area average, its bytes are
 * divided by 255, and each channel is brought to mean 0 and standard deviation 1 of the pictures that the
 * pipeline was fitted to: (byte / 255 - mean) / deviation. Transparency is dropped; grey pictures have three
 * equal channels where colours are wanted, and colours become 0.299 R + 0.587 G + 0.114 B where grey is.
 *
 * A pipeline that a program writes itself (sgm_pipeline_parse, as sgm_pipeline_json shows them) may say more:
 * "filter": "bilinear" or "bicubic" scales as Pillow does by these, and with "shortest": 256 the shorter side
 * is brought to so many pixels and the middle of width x height is cut out. So do processors of pictures of
 * other libraries. Without "classes" it makes inputs of single pictures, for a network that tells none. */
#ifndef SIGMA_PICTURE_H
#define SIGMA_PICTURE_H

#include <sigma/files.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a file says of its size in pixels; its pixels are not decoded. */
SGM_API sgm_status sgm_picture_size(const char *path, int32_t *width, int32_t *height);

/* Pictures of a folder, each with a mask of its name, MASKS/photo.png of photo.jpg: a PNG file with a palette
 * or of grey, as large as the picture, whose values are classes. Its pipeline, of the kind "masked pictures",
 * has the class of each pixel as targets, (height, width), in the order of the values that there are in all
 * masks; classes are called as these. Masks are scaled by taking the nearest pixel. The caller frees the
 * list; NULL and an error that names a picture without a mask. */
SGM_API sgm_files *sgm_masked_pictures_open(const char *path, const char *masks);

typedef struct sgm_picture_options {
    size_t struct_size;
    int32_t width, height; /* of the inputs; default: of all pictures, which must be of one size then */
    int32_t channels;      /* 1 or 3, the default */
    /* Mean and deviation are of one part of the pictures, or with `other_parts` of all others, so that a
     * network that is measured on the rest has learnt nothing of it. NULL: of all. */
    const sgm_split *split;
    int32_t part;     /* of the split, from 0 */
    bool other_parts; /* all but that part */
    int32_t threads;  /* that decode them; default: one a processor */
} SGM_BY_NAME sgm_picture_options;
/* Fits a pipeline, for which all pictures of the part are decoded once. The caller frees it; it does not need
 * the list any more. At least two classes are expected. */
#define sgm_picture_pipeline(...)                                                                            \
    SGM_WITH_OPTIONS(sgm_picture_pipeline_with, sgm_picture_options, __VA_ARGS__)
SGM_API sgm_pipeline *sgm_picture_pipeline_with(const sgm_files *files, const sgm_picture_options *options);

#ifdef __cplusplus
}
#endif
#endif
