/* Goes once over the rows of a reader, with several threads where the reader is of csv. Internal to src/data.
 *
 * Pieces of the file are split into cells, and handed to a function of the caller's, by as many threads as
 * there are. The caller takes the results in the order of the file, as slots. Pieces end where the bytes say,
 * and the caller combines slots in order: so nothing depends on the number of threads. While the caller works
 * on the slots of one batch of pieces, the threads are at the next one, and a third one is being read; this
 * bounds memory. Rows of other readers come as runs in slot 0, on the caller's thread. */
#ifndef SGM_DATA_CSV_PASS_H
#define SGM_DATA_CSV_PASS_H

#include "data/block/block.h"
#include "data/csv/csv.h"

#define SGM__PASS_BATCH 32 /* pieces */
#define SGM__PASS_SLOTS (2 * SGM__PASS_BATCH)
#define SGM__PASS_MAXIMUM_THREADS 16

/* Turns rows into something that is kept in slot number `slot`, whose content was used up. Rows that cannot
 * be read come without those from the first bad one on. Rows may be taken out of those that are given
 * (sgm__csv_rows_keep). Called on several threads at once: never twice for a slot, and never twice for a
 * worker, of which there are as many as threads. */
typedef sgm_status (*sgm__pass_work)(void *user, size_t slot, size_t worker, sgm__csv_rows *rows);

typedef struct sgm__pass sgm__pass;
/* The reader stays the caller's, who may have read rows from it. `threads` 0: one per processor. `expansion`:
 * bytes that are kept of a byte of text, about; where it is large, batches are small. Nothing is read yet. */
sgm__pass *sgm__pass_create(sgm_reader *reader, int32_t threads, double expansion, sgm__pass_work work,
                            void *user);
size_t sgm__pass_threads(const sgm__pass *pass);
/* The next slot, which is valid until the next call; *slot SGM__PASS_SLOTS: the file has ended. Fails as the
 * work on the slot did, or as the rows of its piece did, and then again at each further call; *slot then is
 * the one with the rows before the bad one, or SGM__PASS_SLOTS. */
sgm_status sgm__pass_next(sgm__pass *pass, size_t *slot);
/* Waits for the threads and forgets what they have done, so that the reader can be rewound and read again. */
void sgm__pass_stop(sgm__pass *pass);
void sgm__pass_free(sgm__pass *pass);

/* --- blocks of rows (pass_blocks.c) --- */

/* Appends rows to a builder, whose fields it adds if there are none; rows may be taken out before. Called on
 * several threads at once. */
typedef sgm_status (*sgm__rows_convert)(void *user, sgm__csv_rows *rows, sgm__builder *builder);
/* The examples of a pass. Zeroed but for what the owner sets: at the beginning. */
typedef struct sgm__pass_blocks {
    sgm_reader *reader; /* owned */
    sgm__rows_convert convert;
    void *user;
    int32_t threads;
    double numbers_per_cell; /* of examples, about; 0: one */
    sgm__pass *pass;         /* NULL: not begun */
    sgm__builder *builders;  /* one for each slot */
    size_t slot;             /* that examples are taken from, the first `taken` of which were */
    int64_t taken;
    bool has_failed; /* the rows of the slot are the last ones before a failure */
} sgm__pass_blocks;
/* Reads the first row, whose cells are valid until the next call; header->count is 0 if there is none. */
sgm_status sgm__pass_blocks_header(sgm__pass_blocks *blocks, sgm_examples *header);
/* Appends up to `count` examples to a builder with the same fields, fewer only at the end. */
sgm_status sgm__pass_blocks_take(sgm__pass_blocks *blocks, int64_t count, sgm__builder *builder);
/* Passes over up to `count` examples. */
sgm_status sgm__pass_blocks_skip(sgm__pass_blocks *blocks, int64_t count, int64_t *skipped);
sgm_status sgm__pass_blocks_rewind(sgm__pass_blocks *blocks);
void sgm__pass_blocks_free(sgm__pass_blocks *blocks);

#endif
