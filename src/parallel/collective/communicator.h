/* What carries numbers between processes: the table of functions that a plug-in gives. Internal.
 *
 * A plug-in (libsigma-mpi.so) joins the processes that a launcher has started. They are called ranks and
 * numbered from 0. The plug-in knows nothing of training and uses nothing of libsigma, so this header
 * includes no other header of the library.
 *
 * All ranks start the same works in the same order. A work is under way until `test` says that it is done;
 * until then its memory belongs to the communicator. A work makes progress while some thread calls `test`, or
 * by itself, as the MPI library likes. Only one thread at a time may call these functions with the same
 * `self`; another communicator may be used at the same time. Functions return SGM_COMMUNICATOR_OK, or
 * SGM_COMMUNICATOR_FAILED with a sentence in `message` (room for SGM_COMMUNICATOR_MESSAGE bytes) that says
 * what went wrong. */
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
    SGM_COMMUNICATOR_SUM,       /* data[i] becomes the sum over all ranks */
    SGM_COMMUNICATOR_REDUCE,    /* as SUM at rank `root`; the other ranks' data stay as they were */
    SGM_COMMUNICATOR_BROADCAST, /* data becomes the data of rank `root` */
    SGM_COMMUNICATOR_GATHER /* data becomes `count` elements of each rank in turn; each rank sets its own */
} sgm_communicator_kind;

typedef struct sgm_communicator_work {
    sgm_communicator_kind kind;
    sgm_communicator_type type;
    void *data;
    uint64_t count; /* elements, of each rank; less than 2^31 */
    int32_t root;
    bool apart; /* this work has a place only in the order of works that are apart: the ranks may have started
                   different numbers of other works when they come to it */
} sgm_communicator_work;

typedef struct sgm_communicator {
    uint32_t version; /* SGM_COMMUNICATOR_VERSION; first, to be looked at before all else */
    const char *name; /* "Open MPI 4.1.4"; valid after `open` */
    /* Joins the other ranks, which have `seconds` to come; all ranks call it, and equally often. */
    sgm_communicator_result (*open)(void **self, int32_t *rank, int32_t *size, double seconds, char *message);
    /* Gives up works that are under way. The processes stay joined until they end. */
    void (*close)(void *self);
    /* Where a rank is: "host, process 123". */
    const char *(*place)(void *self, int32_t rank);
    /* `*ticket` becomes the work's number for `test`, from 0. */
    sgm_communicator_result (*start)(void *self, const sgm_communicator_work *work, int32_t *ticket,
                                     char *message);
    /* Waits until the work is done, for `seconds` at most; 0: only looks. The ticket of a work that is done
     * is invalid. SGM_COMMUNICATOR_NO_WORK is never done: the call lasts `seconds`, lets other works make
     * progress and answers ranks that call. */
    sgm_communicator_result (*test)(void *self, int32_t ticket, double seconds, bool *done, char *message);
    /* Asks all ranks whether they are there: silent[r] becomes true for each rank that has not answered after
     * `seconds`, as it is gone, stopped, or busy with something else. A rank answers while it is in `test` or
     * `call`. */
    sgm_communicator_result (*call)(void *self, double seconds, bool *silent, char *message);
    /* This rank has failed: its process ends without waiting for the others, whom the launcher ends. */
    void (*fail)(void *self);
} sgm_communicator;

/* What a plug-in exports: sgm_plugin_mpi. */
typedef const sgm_communicator *sgm_communicator_plugin(void);

#endif
