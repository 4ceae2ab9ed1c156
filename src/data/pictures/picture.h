/* Folders of pictures and what makes numbers of a picture. Internal to src/data/pictures.
 *
 * picture_folder.c lists a folder, picture_fit.c learns what a pipeline of pictures is, picture_apply.c makes
 * the inputs of single pictures by it, picture_extractor.c the examples of a folder. */
#ifndef SGM_DATA_PICTURES_PICTURE_H
#define SGM_DATA_PICTURES_PICTURE_H

#include "data/read/image_folder.h"
#include "data/read/reader.h"
#include "data/table/pipeline.h"

struct sgm_picture_folder {
    char *path;
    sgm__image_folder images;
};

/* Whether a picture belongs to a part of a split, or with `others` to another one; without a split it does.
 */
bool sgm__picture_is_of_part(const sgm_split *split, int32_t part, bool others, int64_t picture);
/* The split must be of as many pictures as the folder has, and have the part. NULL is right. */
sgm_status sgm__picture_check_split(const sgm_picture_folder *folder, const sgm_split *split, int32_t part,
                                    bool others);
/* Writes the inputs of one picture, (channels, height, width); `bytes` is memory that is used again. */
sgm_status sgm__picture_read(const sgm_pipeline *pipeline, const sgm_picture *picture, sgm__bytes *bytes,
                             float *to);

#endif
