/* The inside of a dataset. Internal to dataset*.c. */
#ifndef SGM_DATA_DATASET_INTERNAL_H
#define SGM_DATA_DATASET_INTERNAL_H

#include "data/dataset.h"

#include <stdatomic.h>

/* What is known of one block. */
typedef struct sgm__slot {
    sgm__block *block; /* NULL: not in memory */
    int64_t examples;
    int64_t disk; /* where it lies in the cache file, -1: not there */
} sgm__slot;

/* Fields are the same in all blocks. */
typedef struct sgm__layout {
    int32_t field_count; /* 0: not known yet */
    char names[SGM_MAX_FIELDS][SGM__FIELD_NAME];
    sgm_shape examples[SGM_MAX_FIELDS]; /* shape of one example */
    size_t example_bytes;               /* of all fields */
} sgm__layout;

typedef enum sgm__dataset_kind { SGM__BLOCKS, SGM__VIEW_EXAMPLES, SGM__VIEW_BLOCKS } sgm__dataset_kind;

struct sgm_dataset {
    sgm__dataset_kind kind;
    atomic_int references;
    char *name;
    char **classes;        /* their names, NULL at the end; NULL: none */
    pthread_mutex_t mutex; /* of everything below that changes, except what only the busy thread touches */

    /* views */
    sgm_dataset *base;
    double begin, share;
    int64_t first, end, interval;
    /* a view of examples: which of its base's blocks are not empty in it, as far as it was asked for */
    int64_t *mapped;
    size_t mapped_count, mapped_capacity;
    int64_t mapped_until; /* the next block of the base to look at */

    /* datasets with blocks of their own */
    pthread_cond_t idle;
    bool busy; /* one thread extracts (it owns extractor, position, layout and disk); others wait or use what
                  is there */
    sgm__slot *slots;
    size_t slot_count, slot_capacity; /* all blocks below slot_count have been seen */
    bool ended;                       /* there are no more than these */
    sgm__block *newest, *oldest;      /* blocks in memory that can go */
    size_t bytes, limit;              /* in memory */
    sgm__layout layout;
    sgm_extractor *extractor; /* NULL: the one block is in memory for good */
    int64_t block_size;       /* 0: not known yet */
    int64_t position;         /* block that the extractor gives next, -1: it has to be rewound first */
    bool told_of_rereading;
    char *cache; /* folder, NULL: none */
    int disk;    /* -1: no file yet */
    int64_t disk_end;
};

/* --- dataset_cache.c: a file without a name in the cache folder --- */

/* Writes a block behind the others; *where is -1 if the disk would not take it, which is logged and no error.
 */
void sgm__cache_write(sgm_dataset *dataset, const sgm_block *block, int64_t *where);
sgm_status sgm__cache_read(const sgm_dataset *dataset, int64_t where, int64_t examples, sgm_block **block);

/* --- dataset_view.c --- */
sgm_status sgm__view_fetch_run(sgm_dataset *view, int64_t index, sgm__run *run);
sgm_status sgm__view_block_examples(sgm_dataset *view, int64_t index, int64_t *examples);
sgm_status sgm__view_number(sgm_dataset *view, int64_t index, int64_t row, int64_t *number);

/* --- dataset_create.c --- */
sgm_dataset *sgm__dataset_allocate(const char *name, sgm__dataset_kind kind);

#endif
