/* Ranks of one node: how they find each other, the blocks of memory that they show to each other, and
 * meetings.
 *
 * ranks_shared_memory.c builds on this to share gradients and parameters; this file knows only bytes. Linux
 * only: a block is an anonymous file (memfd_create), which another process of the same user opens as
 * /proc/PROCESS/fd/FILE and maps for reading. Each rank has a board, a first such file, on which it posts the
 * files of its blocks and counts the meetings to which it has come. Boards are found once, by addresses that
 * all ranks exchange as messages.
 *
 * Memory order: a rank writes its blocks and its board, then raises its count with release; others read the
 * count with acquire, and see everything that was written before. A block must not be written again before
 * the next meeting. */
#include "parallel/collective/ranks_intra_node.h"

#include "parallel/collective/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Blocks of at least this size begin at a multiple of it and are collapsed into huge
 * pages: memory of memfd_create gets no huge pages by itself. */
#define HUGE_PAGE ((size_t)1 << 21)
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

/* Where others find a block: the number of a file descriptor of the process that owns the block. */
typedef struct posted_block {
    int32_t file;
    uint32_t version; /* another one each time that the block has new memory */
    uint64_t bytes;
} posted_block;

/* What each rank shows to all others. Only its owner writes to it. */
typedef struct board {
    uint64_t token; /* a number that only this rank of this job has: whoever finds it here has found the right
                       board */
    posted_block blocks[SGM__INTRA_NODE_BLOCKS];
    _Alignas(64) _Atomic uint64_t
        meetings; /* number of meetings to which this rank has come; in a cache line of its own */
} board;

/* A mapping of a block or board: this process's own, which may be written, or another's, which is read-only.
 */
typedef struct view {
    void *memory;
    size_t bytes;
    int file; /* the descriptor; -1: the memory is another process's */
    uint32_t version;
} view;

/* A rank as this one sees it. A block is mapped when it is first looked at, and again when its version
 * changes. */
typedef struct peer {
    long process;
    view board;
    view blocks[SGM__INTRA_NODE_BLOCKS];
} peer;

struct sgm__intra_node {
    struct sgm__ranks *ranks;
    peer *peers;       /* by rank; this rank's own entry has the memory that the others see */
    uint64_t meetings; /* number of meetings so far */
};

/* --- memory --- */

static const board *board_of(const sgm__intra_node *node, int32_t rank)
{
    return node->peers[rank].board.memory;
}

static void drop(view *dropped)
{
    if (dropped->memory != NULL)
        munmap(dropped->memory, dropped->bytes);
    if (dropped->file >= 0)
        close(dropped->file);
    *dropped = (view){.file = -1};
}

/* Maps a file at an address that is a multiple of HUGE_PAGE: reserves room of one huge page more, maps the
 * file at the first such address within it, and returns the rest. NULL: it failed. */
static void *map(int file, size_t bytes, int access)
{
    unsigned char *room = mmap(NULL, bytes + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return NULL;
    size_t before = HUGE_PAGE - (size_t)((uintptr_t)room & (HUGE_PAGE - 1));
    void *memory = mmap(room + before, bytes, access, MAP_SHARED | MAP_FIXED, file, 0);
    munmap(room, before);
    if (before < HUGE_PAGE)
        munmap(room + before + bytes, HUGE_PAGE - before);
    return memory != MAP_FAILED ? memory : NULL;
}

/* Makes zeroed memory that others can map. Its size is rounded up to whole pages. It is written once before
 * the system is asked for huge pages, since memory that no page was given yet cannot be collapsed; if the
 * system refuses, small pages do. */
static sgm_status make(view *made, size_t bytes)
{
    size_t page = bytes < HUGE_PAGE ? (size_t)sysconf(_SC_PAGESIZE) : HUGE_PAGE;
    *made = (view){.file = memfd_create("sigma", MFD_CLOEXEC), .bytes = (bytes + page) / page * page};
    if (made->file >= 0 && ftruncate(made->file, (off_t)made->bytes) == 0)
        made->memory = map(made->file, made->bytes, PROT_READ | PROT_WRITE);
    if (made->memory == NULL) {
        sgm_status status = sgm_fail(SGM_ERROR_MEMORY, "no %zu bytes of memory that other ranks can see: %s",
                                     bytes, sgm__errno_text(errno));
        drop(made);
        return status;
    }
    memset(made->memory, 0, made->bytes);
    if (made->bytes >= HUGE_PAGE)
        (void)madvise(made->memory, made->bytes, MADV_COLLAPSE);
    return SGM_OK;
}

/* Maps another process's memory. The descriptor is closed at once, as the mapping keeps the memory. */
static sgm_status open_view(view *opened, long process, int file, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", process, file);
    int own = open(path, O_RDONLY | O_CLOEXEC);
    *opened = (view){.file = -1, .bytes = bytes};
    if (own >= 0)
        opened->memory = map(own, bytes, PROT_READ);
    if (own >= 0)
        close(own);
    return opened->memory != NULL ? SGM_OK
                                  : sgm_fail(SGM_ERROR_STATE, "memory of process %ld cannot be seen: %s",
                                             process, sgm__errno_text(errno));
}

/* The others keep their mapping of the old memory until they look again: the old memory lives as long as it
 * is mapped anywhere. */
void *sgm__intra_node_block(sgm__intra_node *node, int32_t block, size_t bytes)
{
    peer *own = &node->peers[node->ranks->rank];
    view made;
    if (make(&made, bytes) != SGM_OK)
        return NULL;
    made.version = own->blocks[block].version + 1;
    drop(&own->blocks[block]);
    own->blocks[block] = made;
    ((board *)own->board.memory)->blocks[block] =
        (posted_block){.file = made.file, .version = made.version, .bytes = made.bytes};
    return made.memory;
}

/* Reads the board of the other rank, which must not change meanwhile: between two meetings it does not. */
sgm_status sgm__intra_node_look(sgm__intra_node *node, int32_t rank, int32_t block, const void **memory)
{
    peer *looked = &node->peers[rank];
    const posted_block *posted = &board_of(node, rank)->blocks[block];
    view *known = &looked->blocks[block];
    if (known->version != posted->version) {
        drop(known);
        SGM_TRY(open_view(known, looked->process, posted->file, posted->bytes));
        known->version = posted->version;
    }
    *memory = known->memory;
    return SGM_OK;
}

/* --- meetings --- */

/* Whether each rank has come to this meeting. A rank that is ahead has come to it, too. */
static bool all_have_come(const void *user)
{
    const sgm__intra_node *node = user;
    for (int32_t i = 0; i < node->ranks->count; i++)
        if (atomic_load_explicit(&board_of(node, i)->meetings, memory_order_acquire) < node->meetings)
            return false;
    return true;
}

sgm_status sgm__intra_node_meet(sgm__intra_node *node, const char *what)
{
    board *own = node->peers[node->ranks->rank].board.memory;
    atomic_store_explicit(&own->meetings, ++node->meetings, memory_order_release);
    return sgm__ranks_wait_until(node->ranks, all_have_come, node, what);
}

/* --- finding each other --- */

/* What each rank tells to all. Ranks with equal kernel (its boot id) and host name are taken for neighbours
 * and look for each other's board; the token then proves it, since containers may share both and still see
 * other processes under the same numbers. */
typedef struct address {
    char kernel[40], host[64];
    uint64_t token;
    int64_t process;
    int32_t file;
    bool willing; /* the rank can share, and wants to */
} address;

static void read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(line, (int)size, file) == NULL)
        line[0] = '\0';
    if (file != NULL)
        fclose(file);
}

/* Fills in this rank's address and writes the token onto its board, before any other rank knows the address.
 */
static void fill_address(const sgm__intra_node *node, bool willing, address *own)
{
    const view *shown = &node->peers[node->ranks->rank].board;
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    read_line("/proc/sys/kernel/random/boot_id", own->kernel, sizeof own->kernel);
    gethostname(own->host, sizeof own->host - 1);
    own->process = getpid();
    own->file = shown->file;
    own->token = sgm__hash(&time, sizeof time, (uint64_t)own->process);
    own->willing = willing && shown->memory != NULL && own->kernel[0] != '\0';
    if (own->willing)
        ((board *)shown->memory)->token = own->token;
}

/* Whether this rank can see the memory of another one; if so, maps that rank's board. */
static bool is_intra_node(const sgm__intra_node *node, const address *all, int32_t rank)
{
    const address *own = &all[node->ranks->rank], *other = &all[rank];
    peer *found = &node->peers[rank];
    if (!own->willing || !other->willing || strcmp(own->kernel, other->kernel) != 0 ||
        strcmp(own->host, other->host) != 0)
        return false;
    found->process = (long)other->process;
    return rank == node->ranks->rank || (open_view(&found->board, found->process, other->file,
                                                   node->peers[node->ranks->rank].board.bytes) == SGM_OK &&
                                         board_of(node, rank)->token == other->token);
}

/* Exchanges addresses and opens all boards. *far becomes the number of ranks that do not see all others: it
 * is a sum over ranks, so all ranks get the same number and decide alike. */
static sgm_status find_all(sgm__intra_node *node, bool willing, double *far)
{
    struct sgm__ranks *ranks = node->ranks;
    address *all = sgm__calloc((size_t)ranks->count, sizeof *all);
    if (all == NULL)
        return SGM_ERROR_MEMORY;
    fill_address(node, willing, &all[ranks->rank]);
    const sgm_communicator_work tell = {
        .kind = SGM_COMMUNICATOR_GATHER, .type = SGM_COMMUNICATOR_BYTES, .data = all, .count = sizeof *all};
    sgm_status status = sgm__ranks_do(ranks, &tell, "the addresses");
    *far = 0;
    for (int32_t i = 0; i < ranks->count && status == SGM_OK && *far == 0; i++)
        *far = !is_intra_node(node, all, i);
    sgm__free(all);
    SGM_TRY(status);
    const sgm_communicator_work agree = {
        .kind = SGM_COMMUNICATOR_SUM, .type = SGM_COMMUNICATOR_FLOAT64, .data = far, .count = 1};
    return sgm__ranks_do(ranks, &agree, "the addresses");
}

/* A rank that cannot make or see a board still takes part in the messages, as the others wait for them. That
 * failure is no error: gradients are sent as messages then. */
sgm_status sgm__intra_node_open(struct sgm__ranks *ranks, bool willing, sgm__intra_node **node)
{
    double far = 1;
    sgm__intra_node *made = sgm__calloc(1, sizeof *made);
    *node = made;
    if (made == NULL)
        return SGM_ERROR_MEMORY;
    made->ranks = ranks;
    made->peers = sgm__calloc((size_t)ranks->count, sizeof *made->peers);
    for (int32_t i = 0; made->peers != NULL && i < ranks->count; i++) {
        made->peers[i].board.file = -1;
        for (int32_t k = 0; k < SGM__INTRA_NODE_BLOCKS; k++)
            made->peers[i].blocks[k].file = -1;
    }
    willing &= made->peers != NULL && make(&made->peers[ranks->rank].board, sizeof(board)) == SGM_OK;
    sgm_status status = made->peers != NULL ? find_all(made, willing, &far) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        sgm_clear_error();
    if (status == SGM_OK && far == 0)
        return SGM_OK;
    sgm__intra_node_close(made);
    *node = NULL;
    return status;
}

void sgm__intra_node_close(sgm__intra_node *node)
{
    if (node == NULL)
        return;
    for (int32_t i = 0; node->peers != NULL && i < node->ranks->count; i++) {
        drop(&node->peers[i].board);
        for (int32_t k = 0; k < SGM__INTRA_NODE_BLOCKS; k++)
            drop(&node->peers[i].blocks[k]);
    }
    sgm__free(node->peers);
    sgm__free(node);
}
