/* The handler that watches another. Internal. */
#ifndef SGM_HANDLERS_DEBUG_DEBUG_H
#define SGM_HANDLERS_DEBUG_DEBUG_H

#include "handlers/handler.h"

/* Opens handler `watched` and watches it: what sgm__debug_handler's other functions take as self. */
sgm_status sgm__debug_open(const char *watched, const sgm_handler_options *options, void **self);

#endif
