/* What is fitted to pictures. Internal. */
#ifndef SGM_DATA_KINDS_PICTURE_H
#define SGM_DATA_KINDS_PICTURE_H

#include "data/kinds/kind.h"

/* Pictures are scaled to one size, and their channels normalised. With `shortest` they keep their
 * proportions: the shorter side is brought to so many pixels, and the middle is cut out. */
typedef struct sgm__picture_form {
    int32_t width, height, channels; /* channels: 1 or 3 */
    sgm__image_filter filter;
    int32_t shortest; /* at least width and height, with a filter; 0: the whole picture is taken */
    double mean[3], deviation[3]; /* of each channel, whose bytes are divided by 255 */
} sgm__picture_form;

#endif
