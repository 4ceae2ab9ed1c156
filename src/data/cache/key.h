/* What extracted blocks depend on, as a number: files by what the system knows of them, and what is done with
 * them by what each part says of itself. Internal to src/data.
 *
 * A file is taken as unchanged if path, size, device, number, and both times of change (of its content and of
 * its description) are, as version control does: the second time cannot be set back by a program, so no byte
 * needs to be read. A part that says nothing of itself makes the key of no use, and nothing is kept then. */
#ifndef SGM_DATA_CACHE_KEY_H
#define SGM_DATA_CACHE_KEY_H

#include "base/base.h"

#include <time.h>

/* Zeroed: nothing was added yet. */
typedef struct sgm__key {
    uint64_t halves[2];     /* hashes with different seeds: 128 bits are too many for a collision */
    uint64_t files;         /* hash of the files alone */
    struct timespec newest; /* change of a file */
    char refused[64];       /* the first part that cannot be described; "": none */
} sgm__key;

void sgm__key_add_bytes(sgm__key *key, const void *bytes, size_t length);
void sgm__key_add_text(sgm__key *key, const char *text); /* NULL differs from "" */
/* A list of texts that ends in NULL; NULL: none. */
void sgm__key_add_texts(sgm__key *key, const char *const *texts);
void sgm__key_add_number(sgm__key *key, double number);
/* An ordinary file; another one, or none, refuses the key. */
void sgm__key_add_file(sgm__key *key, const char *path);
/* Whatever `what` names is not known well enough. */
void sgm__key_refuse(sgm__key *key, const char *what);
/* Whether a change of the files from now on will be seen in a later key. A file that was changed within the
 * same tick of the clock is waited for, a hundredth of a second at most; on a file system with a coarse clock
 * it is refused. */
bool sgm__key_is_settled(const sgm__key *key);

#endif
