/* What carries numbers between processes: the table that a plug-in gives. Internal.
 *
 * A plug-in (libsigma-mpi.so) joins the processes that a launcher has started, which are called ranks and
 * numbered from 0. It knows nothing of training, and uses nothing of libsigma; hence this header stands
 * alone.
 *
 * All ranks start the same works in the same order. A work is under way until `test` says that it is done;
 * until then its memory is the communicator's. It goes on while somebody calls `test`, or by itself, as the
 * library beneath likes. One thread at a time calls these functions for what one `open` has given; others may
 * be used meanwhile. They return SGM_COMMUNICATOR_OK, or
 * what went wrong with a sentence in `message` (room for SGM_COMMUNICATOR_MESSAGE bytes).
 */
#ifndef SGM_PARALLEL_COLLECTIVE_COMMUNICATOR_H
#define SGM_PARALLEL_COLLECTIVE_COMMUNICATOR_H

#include <stdbool.h>
#include <stdint.h>

#define SGM_COMMUNICATOR_VERSION 2
#define SGM_COMMUNICATOR_MESSAGE 1024
#define SGM_COMMUNICATOR_NAME 128
#define SGM_COMMUNICATOR_NO_WORK (-1) /* a ticket for `test` */

typedef enum sgm_communicator_result { SGM_COMMUNICATOR_OK, SGM_COMMUNICATOR_FAILED } sgm_communicator_result;

typedef enum sgm_communicator_type {
    SGM_COMMUNICATOR_FLOAT32,
    SGM_COMMUNICATOR_FLOAT64,
    SGM_COMMUNICATOR_BFLOAT16, /* in uint16_t; sums of two are made in float32 */
    SGM_COMMUNICATOR_BYTES     /* not for sums */
} sgm_communicator_type;

typedef enum sgm_communicator_kind {
    SGM_COMMUNICATOR_SUM,       /* data[i] becomes the sum of all ranks' */
    SGM_COMMUNICATOR_REDUCE,    /* the same at `root`; elsewhere data is as it was */
    SGM_COMMUNICATOR_BROADCAST, /* data becomes what `root` has */
    SGM_COMMUNICATOR_GATHER /* data has `count` elements of each rank in turn, of which it brings its own */
} sgm_communicator_kind;

typedef struct sgm_communicator_work {
    sgm_communicator_kind kind;
    sgm_communicator_type type;
    void *data;
    uint64_t count; /* elements, of each rank; less than 2^31 */
    int32_t root;
    bool apart; /* among works that are apart only: others may be amid the rest, as not all are where this is
                 */
} sgm_communicator_work;

typedef struct sgm_communicator {
    uint32_t version; /* SGM_COMMUNICATOR_VERSION; first, to be looked at before all else */
    const char *name; /* "Open MPI 4.1.4"; valid after `open` */
    /* Joins the others, which have so many seconds to come; all ranks call it, as often as each other. */
    sgm_communicator_result (*open)(void **self, int32_t *rank, int32_t *size, double seconds, char *message);
    /* What is under way is given up. The processes stay joined until they end. */
    void (*close)(void *self);
    /* Where a rank is: "host, process 123". */
    const char *(*place)(void *self, int32_t rank);
    /* `*ticket` is what the work is called, from 0. */
    sgm_communicator_result (*start)(void *self, const sgm_communicator_work *work, int32_t *ticket,
                                     char *message);
    /* Whether the work is done, after `seconds` at most; 0: as it is. Done ones have no ticket any more. With
     * NO_WORK, which is never done, the time passes, and who calls is answered. */
    sgm_communicator_result (*test)(void *self, int32_t ticket, double seconds, bool *done, char *message);
    /* Asks all who they are waiting for: silent[r] is set for those who have not answered after `seconds`,
     * as they are gone, stopped, or busy with something else. Who is in `test` answers. */
    sgm_communicator_result (*call)(void *self, double seconds, bool *silent, char *message);
    /* This rank has failed: its process ends without waiting for the others, whom the launcher ends. */
    void (*fail)(void *self);
} sgm_communicator;

/* What a plug-in exports: sgm_plugin_mpi. */
typedef const sgm_communicator *sgm_communicator_plugin(void);

#endif
