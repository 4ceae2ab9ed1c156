/* Checking a content against a row, for floors above. Internal. */
#ifndef SGM_REGISTRY_OPTION_CHECK_H
#define SGM_REGISTRY_OPTION_CHECK_H

#include "base/base.h"

#include <sigma/registry.h>

/* Bounds and choices; messages begin with the identifier. */
sgm_status sgm__option_check(const sgm_option *option, const char *identifier, const sgm_content *value);
/* The same of a member of options, where 0 and NULL are not given. Texts and choices pass: they are checked
 * where they are read. "WHAT: threads: expected ..." */
sgm_status sgm__setting_check(const sgm_setting *setting, const void *options, const char *what);

#endif
