/* All that has a name and can be asked for by `sigma info NAME`, kind by kind: from the library's tables, so
 * that what a plug-in adds is there too. */
#ifndef SGM_CLI_NAMES_KINDS_H
#define SGM_CLI_NAMES_KINDS_H

#include "text/described.h"
#include "text/names.h"

typedef struct named_kind {
    const char *name, *option; /* "layer"; the option that lists all, "--layers" */
    sgm__name_kind names;      /* where names of other programs are looked up */
    /* Row by row; false: past the last. What it fills in stays until the next call. */
    bool (*describe)(size_t index, sgm__described *described);
    /* What stands around an example, with "%s" for it; where the row has no example its name is one. */
    const char *frame;
    sgm_status (*check)(const char *example); /* whether it can be read, with what stands around it */
    /* Whether its arguments are told elsewhere, too: as keys of a file, or as those of another kind. */
    bool repeats;
} named_kind;
extern const named_kind named_kinds[];
extern const size_t named_kind_count;

/* The example with what stands around it; sgm__free. */
char *named_example(const named_kind *kind, const sgm__described *described);
/* Finds a row by its name; false: there is none. */
bool named_find(const named_kind *kind, const char *name, sgm__described *described);
/* All names of the kind; sgm__free. NULL: out of memory. */
const char **named_all(const named_kind *kind, size_t *count);

#endif
