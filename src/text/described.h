/* What there is to say of a thing that has a name, for `sigma info NAME`. Internal.
 *
 * Tables of types say it of their rows; what has no public table has a function that fills this in, row by
 * row. */
#ifndef SGM_TEXT_DESCRIBED_H
#define SGM_TEXT_DESCRIBED_H

#include <sigma/registry.h>

/* All texts stay. */
typedef struct sgm__described {
    const char *name, *doc;
    const char *formula, *example; /* NULL: none */
    const sgm_option *arguments;
    size_t argument_count;
} sgm__described;

#endif
