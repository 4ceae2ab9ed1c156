/* Examples that are files: folders of pictures, sounds or texts, one folder for each class, and the pipelines
 * that make inputs of them.
 *
 *     sgm_files *pets = sgm_files_open("pets", "pictures");           pets/cat/1.png, pets/dog/7.jpg, ...
 *     sgm_pipeline *pipeline = sgm_picture_pipeline(pets, .width = 32, .height = 32);
 *     sgm_dataset *data = sgm_dataset_create("pets", .extractor = sgm_files_extractor(pipeline, "pets"));
 *     sgm_dataset_set_pipeline(data, pipeline);
 *
 * What becomes of a file is decided by its kind, whose header fits a pipeline (sigma/table.h):
 *
 *     "pictures"    PNG and JPEG     sigma/picture.h
 *     "sounds"      WAV and FLAC     sigma/sound.h
 *     "texts"       TXT              sigma/text_files.h
 *
 * Such a pipeline has the field "inputs", and "targets", one-hot classes in the byte order of their folders'
 * names. Of sounds with transcripts, inputs are (frames, mels), "lengths" is how many frames count, and
 * targets are the labels of the characters, with zeros behind. */
#ifndef SIGMA_FILES_H
#define SIGMA_FILES_H

#include <sigma/table.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The files of a folder of classes, as a list in which the classes alternate; or the rows of a table, in its
 * order. */
typedef struct sgm_files sgm_files;
/* Lists the files of a kind, and opens none. The caller frees the list; NULL and an error that names the file
 * for what lies in a wrong place: a file beside the classes or of another format (.gif), a folder within a
 * class, a class without a file. Sounds may also be those of a table (its name ends in .csv, .tsv or .jsonl)
 * with the columns "file", paths from where the table is, and "text", what is said: transcripts. */
SGM_API sgm_files *sgm_files_open(const char *path, const char *kind);
SGM_API void sgm_files_free(sgm_files *files);
/* How many files there are. */
SGM_API int64_t sgm_files_count(const sgm_files *files);
/* Names of the classes, NULL at the end; they live as long as the list. */
SGM_API const char *const *sgm_files_classes(const sgm_files *files);
/* The path of a file; NULL past the last one. */
SGM_API const char *sgm_files_path(const sgm_files *files, int64_t file);
/* The class of a file, from 0; -1 past the last one. */
SGM_API int32_t sgm_files_class(const sgm_files *files, int64_t file);
/* The transcript of a file; NULL past the last one, and where there are classes. */
SGM_API const char *sgm_files_transcript(const sgm_files *files, int64_t file);
/* Splits the files; the key of each is its class. */
#define sgm_files_split(...) SGM_WITH_OPTIONS(sgm_files_split_with, sgm_split_options, __VA_ARGS__)
SGM_API sgm_split *sgm_files_split_with(const sgm_files *files, const sgm_split_options *options);

/* What a pipeline is of: "table", or a kind of files. */
SGM_API const char *sgm_pipeline_kind(const sgm_pipeline *pipeline);
/* Of transcripts the characters that they may have, NULL at the end; NULL: there are classes. Character i is
 * the label i + 1 of the cost ctc, whose blank is 0. */
SGM_API const char *const *sgm_pipeline_characters(const sgm_pipeline *pipeline);
/* The shape of an example of a field, such as (channels, height, width). An error for a field that it does
 * not have. */
SGM_API sgm_status sgm_pipeline_shape(const sgm_pipeline *pipeline, const char *field, sgm_shape *shape);

typedef struct sgm_files_extractor_options {
    size_t struct_size;
    sgm_split *split; /* only its part, or all others; only their files are read. NULL: all files */
    int32_t part;     /* of the split, from 0 */
    bool other_parts; /* all but that part */
    int32_t threads; /* that read the files of a block, which do not change by it; default: one a processor */
    /* Of pictures with masks (sgm_masked_pictures_open): their folder. */
    const char *masks;
} SGM_BY_NAME sgm_files_extractor_options;
/* The files of a folder of classes, which are found by their names: each must be one of the pipeline's. */
#define sgm_files_extractor(...)                                                                             \
    SGM_WITH_OPTIONS_2(sgm_files_extractor_with, sgm_files_extractor_options, __VA_ARGS__)
SGM_API sgm_extractor *sgm_files_extractor_with(sgm_pipeline *pipeline, const char *path,
                                                const sgm_files_extractor_options *options);

/* A file, or with `bytes` one that is in memory, of which `name` tells in messages. */
typedef struct sgm_file {
    const char *name;  /* of the file; with `bytes` for messages */
    const void *bytes; /* what a file would have; NULL: the file is read */
    size_t length;     /* of the bytes */
} sgm_file;
/* The inputs of `count` files. The caller frees the block; NULL and an error that names the file. */
SGM_API sgm_block *sgm_pipeline_files(const sgm_pipeline *pipeline, const sgm_file *files, size_t count);

#ifdef __cplusplus
}
#endif
#endif
