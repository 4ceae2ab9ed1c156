/* Data that is a folder of files, such as `images: pets/`: which key names which kind. The functions are in
 * data/files.c. */
#ifndef SGM_CLI_CONFIG_FILES_H
#define SGM_CLI_CONFIG_FILES_H

#include "config/config.h"

/* All these keys, in messages. */
#define FILE_KEYS "images, sounds, text_folder"

/* How a kind of files is said in a configuration. */
typedef struct file_key {
    const char *name; /* of data_config: its path is at `offset` */
    const char *kind; /* of sgm_files_open */
    size_t offset;
    /* The keys beside it that say how files become inputs, in words, and whether some are given. */
    const char *form;
    bool (*has_form)(const data_config *data);
    /* Checks them; errors begin with `where`, as in "pets.yaml: data.training". NULL: nothing to check. */
    sgm_status (*check)(const char *where, const data_config *data);
    /* Fits a pipeline to a part of the files (sgm_split_options). */
    sgm_pipeline *(*fit)(const sgm_files *files, const data_config *data, const sgm_split *split,
                         int32_t part, bool others);
} file_key;

/* Completes a configuration of pictures: without a size they have that of the network that `from` gives. */
sgm_status files_complete(config *c);
/* NULL past the last one. */
const file_key *file_key_at(size_t index);
/* The kind of files that the data is; NULL: it is none. */
const file_key *data_config_files(const data_config *data);
/* The path that such data has of this kind; NULL: none. */
const char *file_key_path(const file_key *key, const data_config *data);
/* Data that is a folder of a pipeline's kind. `path` is borrowed, and the data is not to be freed. */
data_config data_config_of_files(const sgm_pipeline *pipeline, const char *path);
/* A list of the files that the data is, which the caller frees. */
sgm_files *data_config_open_files(const data_config *data);

#endif
