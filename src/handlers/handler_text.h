/* Parses handlers written as text with options: "cpu(dense=onednn, instructions=avx2)", "opencl(device=1)".
 * Internal.
 *
 * Files of settings and the command have only a name for a handler, so options must fit into it. handler.c is
 * the caller.
 */
#ifndef SGM_HANDLERS_HANDLER_TEXT_H
#define SGM_HANDLERS_HANDLER_TEXT_H

#include "handlers/handler.h"
#include "text/described.h"

/* The options that a text gives, on top of those of the caller. `options.dense` and its like may
 * point into the arrays of the same struct, so a copy of the struct would point into the original. */
typedef struct sgm__handler_text {
    sgm_handler_options options; /* the caller's options, overwritten by those of the text */
    char words[SGM__HANDLER_SETTINGS][32];
    bool given[SGM__HANDLER_SETTINGS]; /* which rows the text contains, to refuse one a second time */
} sgm__handler_text;

/* The number of characters of the name, before the opening bracket. */
size_t sgm__handler_text_name(const char *text);
/* Reads the options in brackets into *to, starting from `given`. `type`, which the text names, says which
 * there are. */
sgm_status sgm__handler_text_read(const char *text, const sgm__handler_type *type,
                                  const sgm_handler_options *given, sgm__handler_text *to);

/* For `sigma info` (handler.c): the types, without debug:NAME; false: past the last. The options, which are
 * left out of the description, are *settings. */
bool sgm__handler_describe(size_t index, sgm__described *described, const sgm_setting **settings,
                           size_t *count);

#endif
