/* Handlers as text with options: "cpu(dense=onednn, instructions=avx2)", "opencl(device=1)". Internal. */
#ifndef SGM_HANDLERS_HANDLER_TEXT_H
#define SGM_HANDLERS_HANDLER_TEXT_H

#include <sigma/handler.h>

typedef struct sgm__handler_text {
    sgm_handler_options options; /* those given, with what the text says; may point into this */
    char dense[32], instructions[32];
    unsigned given; /* bits of the options that the text has */
} sgm__handler_text;

/* Characters of the name without its options. */
size_t sgm__handler_text_name(const char *text);
/* Options of the cpu, or of devices. *to is used where it lies: it must not be copied. */
sgm_status sgm__handler_text_read(const char *text, bool of_device, const sgm_handler_options *given,
                                  sgm__handler_text *to);

#endif
