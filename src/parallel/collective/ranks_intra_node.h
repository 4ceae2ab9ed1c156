/* Ranks of one node: processes on one machine, which can read each other's memory. Internal.
 *
 * Each rank has blocks of memory that the others can read, and the ranks hold meetings: a rank that returns
 * from a meeting sees everything that the other ranks wrote into their blocks before they came to it. So a
 * block must not change while others read it, from one meeting to the next. Blocks are files without a name,
 * which disappear with their processes. All ranks call sgm__intra_node_open and sgm__intra_node_meet
 * together, on the run's thread. */
#ifndef SGM_PARALLEL_COLLECTIVE_RANKS_INTRA_NODE_H
#define SGM_PARALLEL_COLLECTIVE_RANKS_INTRA_NODE_H

#include "base/base.h"

struct sgm__ranks;
typedef struct sgm__intra_node sgm__intra_node;

#define SGM__INTRA_NODE_BLOCKS 67 /* of each rank; numbered from 0 */
/* All ranks together. NULL in *node: not all of them are on this node, or not all are willing; that is no
 * failure. */
sgm_status sgm__intra_node_open(struct sgm__ranks *ranks, bool willing, sgm__intra_node **node);
void sgm__intra_node_close(sgm__intra_node *node);
/* New zeroed memory for a block of this rank, 64-byte aligned; the memory that it had is gone. NULL: there is
 * none. The others see it after the next meeting. */
void *sgm__intra_node_block(sgm__intra_node *node, int32_t block, size_t bytes);
/* A block of any rank as it was in the newest meeting; until the next one. */
sgm_status sgm__intra_node_look(sgm__intra_node *node, int32_t rank, int32_t block, const void **memory);
/* Comes, and waits until all have come; fails as sgm__ranks_wait does. */
sgm_status sgm__intra_node_meet(sgm__intra_node *node, const char *what);

#endif
