/* Members of JSON objects: written so that none is missing, read strictly. Internal.
 *
 * A text may come from anywhere: kinds and types of members are checked, numbers are finite (jansson holds no
 * others), and what is not known is refused. Messages name the member and what was expected. */
#ifndef SGM_TEXT_JSON_MEMBERS_H
#define SGM_TEXT_JSON_MEMBERS_H

#include "base/base.h"
#include <jansson.h>

/* Without the member the text would tell something else: *failed says that it could not be added. Takes
 * `value`. */
void sgm__json_put(json_t *object, const char *member, json_t *value, bool *failed);
void sgm__json_put_numbers(json_t *object, const char *member, const double *numbers, size_t count,
                           bool *failed);
void sgm__json_put_texts(json_t *object, const char *member, const char *const *texts, size_t count,
                         bool *failed);

/* The members of an object must be among `known`, or `more` (NULL: none); NULL ends each. */
sgm_status sgm__json_check_members(json_t *object, const char *const *known, const char *const *more);
/* "'mean': a number was expected". */
sgm_status sgm__json_fail_member(const char *member, const char *expected);
/* False if it is missing. */
sgm_status sgm__json_take_flag(const json_t *object, const char *member, bool *flag);
sgm_status sgm__json_take_number(const json_t *object, const char *member, double *number);
/* A whole number from 1 on. */
sgm_status sgm__json_take_size(const json_t *object, const char *member, int32_t *size);
/* A list of `count` numbers; `expected` describes it in the message. */
sgm_status sgm__json_take_numbers(const json_t *object, const char *member, size_t count,
                                  const char *expected, double *numbers);
/* A list of 1 to `most` texts, which the caller owns, NULL at the end: sgm__free for each and for the list.
 */
sgm_status sgm__json_take_texts(const json_t *object, const char *member, size_t most, char ***texts,
                                size_t *count);

#endif
