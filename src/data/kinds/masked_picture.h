/* What is fitted to pictures with masks. Internal. */
#ifndef SGM_DATA_KINDS_MASKED_PICTURE_H
#define SGM_DATA_KINDS_MASKED_PICTURE_H

#include "data/kinds/picture.h"

#define SGM__MASK_VALUES 256

/* The inputs are those of pictures, and class k is what pixels of masks have as values[k], in rising order.
 * The picture's form is the first member, so that a pointer to this one is one to it. */
typedef struct sgm__masked_form {
    sgm__picture_form picture;
    int32_t class_count;
    unsigned char values[SGM__MASK_VALUES];
} sgm__masked_form;

extern const sgm__file_kind sgm__masked_pictures;

#endif
