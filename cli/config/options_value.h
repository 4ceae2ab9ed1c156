/* Values of options on their way into a struct: what options.c, which goes by keys, asks of
 * options_value.c. */
#ifndef SGM_CLI_CONFIG_OPTIONS_VALUE_H
#define SGM_CLI_CONFIG_OPTIONS_VALUE_H

#include "config/options.h"

#include <limits.h>

/* Bytes of a key in messages; a longer one ends in "...". */
#define MAX_PATH_TEXT 200

/* A value on its way in: its source, its node, and the key that leads to it, such as
 * "optimiser.schedule.kind". */
typedef struct arrival {
    const option_source *source;
    const yaml_node *node;
    char path[MAX_PATH_TEXT];
    const option_table *outer; /* the table that has the node's key, for messages; NULL: not known */
} arrival;
/* Bytes of a place in messages. */
#define MAX_PLACE_TEXT (PATH_MAX + 400)

static inline void *option_member(const option *o, void *base)
{
    return (char *)base + o->offset;
}

/* "digits.yaml:3:7: optimiser.momentum" or "argument 'epochs=x': epochs". Writes into `buffer`, which it
 * returns. */
char *option_place(const arrival *at, char *buffer, size_t size);
/* The arrival of a child: its node, and the key with `key` appended. */
arrival option_inside(const arrival *at, const yaml_node *node, const char *key);
/* "PLACE: expected WANTED, got WHAT". */
sgm_status option_fail(const option *o, const arrival *at, const yaml_node *node);
/* Checks the arrival's node by the kind of a complete option that is no group, and stores it. */
sgm_status option_set_value(const option *o, void *base, const arrival *at);
/* Notes where a value stands, for checks of several values together. */
sgm_status option_note_place(const arrival *at);
/* Adds an entry to the option's map, or replaces it; the arrival's path is the entry's. */
sgm_status option_set_entry(const option *o, void *base, const arrival *at, const char *key,
                            const yaml_node *value);
/* Frees what the option's member owns, which is no group. */
void option_free_value(const option *o, void *base);

#endif
