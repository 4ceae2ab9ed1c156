/* Declares a faster way to read numbers than sgm__parse_double, for whoever reads many. Internal. */
#ifndef SGM_BASE_NUMBER_PARSE_DOUBLE_H
#define SGM_BASE_NUMBER_PARSE_DOUBLE_H

#include "base/base.h"

/* As sgm__parse_double, of a text behind whose final 0 eight more bytes may be read. */
bool sgm__parse_double_padded(const char *text, double *value);

#endif
