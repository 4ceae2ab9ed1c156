/* Declares faster ways to read numbers than sgm__parse_double, for whoever reads many. Internal. */
#ifndef SGM_BASE_NUMBER_PARSE_DOUBLE_H
#define SGM_BASE_NUMBER_PARSE_DOUBLE_H

#include "base/base.h"

/* As sgm__parse_double, of a text behind whose final 0 eight more bytes may be read. */
bool sgm__parse_double_padded(const char *text, double *value);
/* The same, but only of decimal numbers of at most 19 digits: false says little. */
bool sgm__parse_short_double(const char *text, double *value);

#endif
