/* The inside of a dataset. Internal to dataset.c, dataset_create.c, dataset_extract.c, dataset_view.c,
 * dataset_cache.c and dataset_kept.c.
 *
 * There are two kinds of datasets behind one struct: those with blocks of their own (from an extractor, or
 * from memory), and views, which have a base and hand out parts of its blocks. One mutex per dataset guards
 * what changes. Extraction is long, so it happens outside the mutex: the one thread that has set `busy` owns
 * the extractor and what belongs to it, and other threads wait on `idle` only if they need a block that is
 * not in memory. */
#ifndef SGM_DATA_DATASET_INTERNAL_H
#define SGM_DATA_DATASET_INTERNAL_H

#include "data/dataset.h"
#include <sigma/table.h>

#include <stdatomic.h>

/* All that a dataset knows of one of its blocks. A slot is made when the block is read for the first time and
 * stays when the block is evicted: the number of examples is needed for positions and orders, without the
 * block. */
typedef struct sgm__slot {
    sgm__block *block; /* NULL: not in memory */
    int64_t examples;
    int64_t disk;   /* where the block lies in the cache file, in bytes; -1: the file does not have it */
    uint64_t check; /* hash of its bytes there; 0: they need not be checked */
} sgm__slot;

/* Names and shapes of the fields, learnt from the first block. All other blocks must have the same ones,
 * which dataset_extract.c:settle_block checks; so blocks in the cache file need no header. */
typedef struct sgm__layout {
    int32_t field_count; /* 0: no block was read yet */
    char names[SGM_MAX_FIELDS][SGM__FIELD_NAME];
    sgm_shape examples[SGM_MAX_FIELDS]; /* shape of one example */
    size_t example_bytes;               /* of all fields of one example */
} sgm__layout;

/* A cache file that stays for other runs (dataset_kept.c). */
typedef struct sgm__kept {
    char *folder;
    uint64_t limit;              /* bytes of all files in the folder */
    bool has_begun, is_complete; /* complete: an earlier run wrote it, so that nothing is written */
    sgm__key key;
    char *path, *part; /* of the whole file; of the one that is being written, NULL: none */
} sgm__kept;

/* SGM__BLOCKS has blocks of its own. SGM__VIEW_EXAMPLES is a share of the examples of each block of its base,
 * SGM__VIEW_BLOCKS is some of its base's blocks. */
typedef enum sgm__dataset_kind { SGM__BLOCKS, SGM__VIEW_EXAMPLES, SGM__VIEW_BLOCKS } sgm__dataset_kind;

struct sgm_dataset {
    sgm__dataset_kind kind;
    atomic_int references; /* views and iterators hold one each */
    char *name;
    char **classes;         /* names of the classes of the targets, NULL at the end; NULL: none */
    sgm_pipeline *pipeline; /* that its rows went through, a reference; NULL: none */
    int64_t group;          /* examples in a row that belong together; 0: each is for itself */
    /* guards everything below that changes, except what only the busy thread touches */
    pthread_mutex_t mutex;

    atomic_int views; /* of this one; with one it cannot grow */
    /* Of one in memory that has grown: a tensor for each field, of which the block is the front; its examples
     * are as many as there is room for. Under the mutex. */
    sgm_tensor *room[SGM_MAX_FIELDS];
    int64_t room_examples;

    /* views */
    sgm_dataset *base;
    /* Of a view of examples: its part of each block, as fractions from 0 to 1. */
    double begin, share;
    /* Of a view of blocks: every `interval`-th block from `first` on before `end` (-1: up to the last). */
    int64_t first, end, interval;
    /* Of a view of examples: mapped[i] is the base's block that is block i of the view. Blocks of which the
     * view has no example are left out, so that no block of a view is empty. Filled as far as blocks were
     * asked for. */
    int64_t *mapped;
    size_t mapped_count, mapped_capacity;
    int64_t mapped_until; /* the next block of the base to look at */

    /* datasets with blocks of their own */
    pthread_cond_t idle; /* signalled when `busy` ends */
    /* One thread extracts. It owns extractor, block_size, position, layout, cache, disk and disk_end without
     * the mutex; other threads wait for it or use blocks that are in memory. */
    bool busy;
    sgm__slot *slots;
    size_t slot_count, slot_capacity; /* all blocks below slot_count have been read once */
    bool ended;                       /* the dataset has no blocks beyond slot_count */
    /* Blocks in memory that nobody uses, linked by last use: the oldest is evicted first. `bytes` counts all
     * blocks in memory, also those in use, against `limit`; blocks in use cannot be evicted, so `bytes` may
     * be larger than `limit`. */
    sgm__block *newest, *oldest;
    size_t bytes, limit;
    sgm__layout layout;
    sgm_extractor *extractor; /* NULL: made from memory; the only block is never evicted */
    int64_t block_size;       /* examples of a block; 0: chosen when the first block is read */
    /* block that the extractor gives next; -1: unknown after a failure, it has to be rewound first */
    int64_t position;
    bool told_of_rereading; /* the message about it is logged once */
    char *cache;            /* folder of the cache file; NULL: none was wanted, or the disk failed */
    int disk;               /* the cache file; -1: not opened yet */
    int64_t disk_end;       /* bytes written to it: where the next block goes */
    sgm__kept *kept;        /* NULL: the cache file, if there is one, goes with the dataset */
};

/* --- dataset_cache.c: a file without a name in the cache folder --- */

/* Appends a block to the cache file; *where becomes its place, *check the hash of its bytes. *where is -1 if
 * the disk did not take it: this is logged and no error, and the dataset goes on without a cache. Called by
 * the busy thread, without the mutex. */
void sgm__cache_write(sgm_dataset *dataset, const sgm_block *block, int64_t *where, uint64_t *check);
/* Reads a block from its place into a new *block. Called by the busy thread. */
sgm_status sgm__cache_read(const sgm_dataset *dataset, const sgm__slot *slot, sgm_block **block);
/* Writes all bytes, whatever the system takes at once. False with errno set on failure. */
bool sgm__cache_write_bytes(int file, const void *bytes, size_t length, int64_t where);
sgm_status sgm__cache_read_bytes(int file, void *bytes, size_t length, int64_t where);

/* --- dataset_kept.c: a file that stays in the cache folder; all by the busy thread, without the mutex --- */

sgm_status sgm__kept_create(sgm_dataset *dataset, const sgm_dataset_options *options);
/* Before the first block is read: takes the blocks of an earlier run, or begins a file. */
void sgm__kept_begin(sgm_dataset *dataset);
/* When a block was written or the end was found: completes the file once it has all blocks. */
void sgm__kept_advance(sgm_dataset *dataset);
/* After a block could not be read back: forgets the file, which is deleted, so that all is extracted. */
void sgm__kept_forget(sgm_dataset *dataset);
/* Keeps nothing more; a file that is not complete is deleted. */
void sgm__kept_free(sgm_dataset *dataset);

/* --- dataset_view.c --- */
/* The functions of dataset.h of the same names, for views. */
sgm_status sgm__view_fetch_range(sgm_dataset *view, int64_t index, sgm__example_range *range);
sgm_status sgm__view_block_examples(sgm_dataset *view, int64_t index, int64_t *examples);
sgm_status sgm__view_number(sgm_dataset *view, int64_t index, int64_t row, int64_t *number);

/* --- dataset.c --- */
/* Evicts until `bytes` more fit into the limit, or nothing is left to evict. Under the mutex. */
void sgm__dataset_make_room(sgm_dataset *dataset, size_t bytes);
/* Takes a block into memory, at first without users. The slot must exist and have no block. Under the mutex,
 * except while the dataset is being created. */
void sgm__dataset_insert(sgm_dataset *dataset, sgm_block *block, int64_t index);

/* --- dataset_extract.c --- */
/* Reads block `index`, which is not in memory; NULL past the end. Called by the busy thread without the
 * mutex; the extraction is shown to the user as a task. */
sgm_status sgm__dataset_load(sgm_dataset *dataset, int64_t index, sgm_block **block);
/* Reads on until block `index` was passed, unless an earlier run has left all blocks. Called as the one
 * before.
 */
sgm_status sgm__dataset_read_past(sgm_dataset *dataset, int64_t index);
/* Makes the slot of block `index`, which has just been read. A block that had been read before must have as
 * many examples as then. Under the mutex, except while the dataset is being created. */
sgm_status sgm__dataset_add_slot(sgm_dataset *dataset, int64_t index, int64_t examples);
/* Notes names and shapes of the first block's fields. */
void sgm__dataset_learn_layout(sgm__layout *layout, const sgm_block *block);

/* --- dataset_create.c --- */
/* A block with the tensors cast to float32, which copies them; NULL on failure. */
sgm_block *sgm__block_of(const char *const *fields, sgm_tensor *const *tensors, size_t count);
/* An empty dataset with one reference; `name` is copied, NULL becomes "dataset". */
sgm_dataset *sgm__dataset_allocate(const char *name, sgm__dataset_kind kind);

#endif
