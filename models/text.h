/* A text of the C library, as the files of this folder pass them around. */
#ifndef SIGMA_MODELS_TEXT_H
#define SIGMA_MODELS_TEXT_H

#include <sigma/base.h>

/* A formatted text; free with free. NULL and an error: out of memory. */
char *sgm__new_text(const char *format, ...) SGM_PRINTF(1, 2);
bool sgm__has_ending(const char *text, const char *ending);

#endif
