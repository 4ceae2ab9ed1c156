/* Files of JSON Lines: an object on each line. Internal. */
#ifndef SIGMA_MODELS_JSON_LINES_H
#define SIGMA_MODELS_JSON_LINES_H

#include <jansson.h>
#include <sigma/base.h>

/* Calls add(user, object) for each line that is not blank, of which at most `most` are read (0: all), one at
 * a time. Errors name file and line; `expected`, what a line is to be, follows those of lines that are no
 * JSON. `line_number` gets the number of the line, from 1, before the call; NULL: not wanted. */
sgm_status sgm__json_lines_read(const char *path, size_t most, const char *expected,
                                sgm_status (*add)(void *user, const json_t *object), void *user,
                                int64_t *line_number);

#endif
