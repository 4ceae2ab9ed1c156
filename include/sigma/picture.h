/* Pictures: folders of PNG and JPEG files, one folder for each class, and the pipeline that makes inputs of
 * them.
 *
 *     sgm_picture_folder *pets = sgm_picture_folder_open("pets");      pets/cat/1.png, pets/dog/7.jpg, ...
 *     sgm_pipeline *pipeline = sgm_picture_pipeline(pets, .width = 32, .height = 32);
 *     sgm_dataset *data = sgm_dataset_create("pets", .extractor = sgm_picture_extractor(pipeline, "pets"));
 *     sgm_dataset_set_pipeline(data, pipeline);
 *
 * The pipeline (sigma/table.h) has two fields: "inputs", (channels, height, width), and "targets", one-hot
 * classes in the byte order of their folders' names. A picture is scaled to one size by area average, its
 * bytes are divided by 255, and each channel is brought to mean 0 and standard deviation 1 of the pictures
 * that the pipeline was fitted to: (byte / 255 - mean) / deviation. Transparency is dropped; grey pictures
 * have three equal channels where colours are wanted, and colours become 0.299 R + 0.587 G + 0.114 B where
 * grey is. */
#ifndef SIGMA_PICTURE_H
#define SIGMA_PICTURE_H

#include <sigma/table.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The pictures of a folder of classes, as a list in which the classes alternate. */
typedef struct sgm_picture_folder sgm_picture_folder;
/* Lists the files, and opens none. The caller frees the folder; NULL and an error that names the file for
 * what lies in a wrong place: a picture beside the classes or of another format (.gif), a folder within a
 * class, a class without a picture. */
SGM_API sgm_picture_folder *sgm_picture_folder_open(const char *path);
SGM_API void sgm_picture_folder_free(sgm_picture_folder *folder);
/* How many pictures there are. */
SGM_API int64_t sgm_picture_folder_count(const sgm_picture_folder *folder);
/* Names of the classes, NULL at the end; they live as long as the folder. */
SGM_API const char *const *sgm_picture_folder_classes(const sgm_picture_folder *folder);
/* The path of a picture; NULL past the last one. */
SGM_API const char *sgm_picture_folder_path(const sgm_picture_folder *folder, int64_t picture);
/* The class of a picture, from 0; -1 past the last one. */
SGM_API int32_t sgm_picture_folder_class(const sgm_picture_folder *folder, int64_t picture);
/* Splits the pictures; the key of each is its class. */
#define sgm_picture_folder_split(...)                                                                        \
    SGM_WITH_OPTIONS(sgm_picture_folder_split_with, sgm_split_options, __VA_ARGS__)
SGM_API sgm_split *sgm_picture_folder_split_with(const sgm_picture_folder *folder,
                                                 const sgm_split_options *options);
/* What a file says of its size in pixels; its pixels are not decoded. */
SGM_API sgm_status sgm_picture_size(const char *path, int32_t *width, int32_t *height);

typedef struct sgm_picture_options {
    size_t struct_size;
    int32_t width, height; /* of the inputs; default: of all pictures, which must be of one size then */
    int32_t channels;      /* 1 or 3, the default */
    /* Mean and deviation are of one part of the pictures, or with `other_parts` of all others, so that a
     * network that is measured on the rest has learnt nothing of it. NULL: of all. */
    const sgm_split *split;
    int32_t part;     /* of the split, from 0 */
    bool other_parts; /* all but that part */
} SGM_BY_NAME sgm_picture_options;
/* Fits a pipeline, for which all pictures of the part are decoded once. The caller frees it; it does not need
 * the folder any more. At least two classes are expected. */
#define sgm_picture_pipeline(...)                                                                            \
    SGM_WITH_OPTIONS(sgm_picture_pipeline_with, sgm_picture_options, __VA_ARGS__)
SGM_API sgm_pipeline *sgm_picture_pipeline_with(const sgm_picture_folder *folder,
                                                const sgm_picture_options *options);
/* Whether a pipeline is of pictures; *shape becomes that of its inputs, (channels, height, width). */
SGM_API bool sgm_pipeline_picture_shape(const sgm_pipeline *pipeline, sgm_shape *shape);

typedef struct sgm_picture_extractor_options {
    size_t struct_size;
    sgm_split *split; /* only its part, or all others; only their files are decoded. NULL: all pictures */
    int32_t part;     /* of the split, from 0 */
    bool other_parts; /* all but that part */
} SGM_BY_NAME sgm_picture_extractor_options;
/* The pictures of a folder of classes, which are found by their names: each must be one of the pipeline's. */
#define sgm_picture_extractor(...)                                                                           \
    SGM_WITH_OPTIONS_2(sgm_picture_extractor_with, sgm_picture_extractor_options, __VA_ARGS__)
SGM_API sgm_extractor *sgm_picture_extractor_with(sgm_pipeline *pipeline, const char *path,
                                                  const sgm_picture_extractor_options *options);

/* A file, or with `bytes` one that is in memory, of which `name` tells in messages. */
typedef struct sgm_picture {
    const char *name;  /* of the file; with `bytes` for messages */
    const void *bytes; /* what a file would have; NULL: the file is read */
    size_t length;     /* of the bytes */
} sgm_picture;
/* The inputs of `count` pictures. The caller frees the block; NULL and an error that names the picture. */
SGM_API sgm_block *sgm_pipeline_pictures(const sgm_pipeline *pipeline, const sgm_picture *pictures,
                                         size_t count);

#ifdef __cplusplus
}
#endif
#endif
