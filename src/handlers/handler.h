/* The interface between sessions and the mathematics. Internal.
 *
 * A handler gives memory, compiles plans and runs them. Nothing above this line knows what a device is,
 * nothing below it what a layer is.
 */
#ifndef SGM_HANDLERS_HANDLER_H
#define SGM_HANDLERS_HANDLER_H

#include "handlers/program.h"
#include <sigma/handler.h>

/* The memory that a run works on; buffers come from `allocate`. All are at least 64-byte aligned. */
typedef struct sgm__memory {
    void *arena, *constants;
    void **inputs; /* in the order of plan->inputs */
    void **states; /* in the order of plan->states */
} sgm__memory;

typedef enum sgm__handler_flags {
    SGM__HANDLER_UNFUSED = 1, /* wants every value in memory, one instruction a step */
    SGM__HANDLER_HOST = 2,    /* its buffers are the computer's memory */
    SGM__HANDLER_PARTS = 4,   /* elementwise results may have gaps between their rows */
    SGM__HANDLER_DRAWS = 8    /* random numbers may be drawn in elementwise steps */
} sgm__handler_flags;

/* bfloat16 is computed in float32, between casts that the plan adds. */
#define SGM__THROUGH_FLOAT32 "through float32"

/* How a program is divided among threads. Seconds are estimates, good for no more than that choice. */
typedef struct sgm__estimate {
    int32_t threads, of_threads; /* that run it; that the handler has. 0: the handler does not say */
    double alone, shared;        /* seconds of a run with one thread, and as it is divided */
} sgm__estimate;

/* How long a step took. */
typedef struct sgm__step_time {
    double seconds;
    int32_t with; /* the step in whose time this one's is, as both were one pass; -1: its own */
} sgm__step_time;

/* Sums over the memory of several handlers of one type, the peers, in this process and others, without the
 * way through the computer's memory. One makes an invitation, all are told it and join; then all sum the same
 * in the same order. `join`, `sum` and `leave` wait for the others, so each peer has a thread of its own. */
#define SGM__IDENTITY 16
#define SGM__INVITATION 128
typedef struct sgm__peer_place {
    unsigned char invitation[SGM__INVITATION];
    int32_t number, of; /* from 0 */
    double seconds;     /* that the others may let this one wait, also in each sum */
} sgm__peer_place;
typedef struct sgm__addend {
    void *buffer; /* from its beginning */
    int64_t elements;
} sgm__addend;
typedef struct sgm__peers {
    /* Whose memory it is, the same in all processes: two with one identity cannot be peers. Fails with
     * SGM_ERROR_UNSUPPORTED where something that sums need is not there. */
    sgm_status (*identify)(void *self, unsigned char *identity);
    sgm_status (*invite)(void *self, unsigned char *invitation);
    sgm_status (*join)(void *self, const sgm__peer_place *place);
    /* Each buffer becomes the sum of all peers'. After what is under way; done on return. A failed one ends
     * the peer's part in it, but not the others', who wait: they are told to give up. */
    sgm_status (*sum)(void *self, const sgm__addend *addends, size_t count, sgm_dtype dtype, double seconds);
    void (*give_up)(void *self); /* any thread at any time, until it leaves */
    void (*leave)(void *self);
} sgm__peers;

typedef struct sgm__handler_type {
    const char *name, *doc;
    uint32_t flags;
    sgm_status (*open)(const sgm_handler_options *options, void **self);
    void (*close)(void *self);
    void (*describe)(void *self, sgm__text *text);
    /* Which way products of bfloat16 go; NULL: as all others do. */
    const char *(*bfloat16)(void *self);
    /* "kernel", SGM__THROUGH_FLOAT32, "reference loop", "none"; for composed operations "kernel" means that
     * it wants them whole. */
    const char *(*support)(void *self, const sgm_op *op, sgm_dtype dtype);
    sgm_status (*allocate)(void *self, size_t bytes, void **buffer); /* zeroed */
    void (*release)(void *self, void *buffer);
    sgm_status (*write)(void *self, void *buffer, size_t offset, const void *host, size_t bytes);
    sgm_status (*read)(void *self, void *buffer, size_t offset, void *host, size_t bytes);
    /* `plan` stays valid as long as the executable does. */
    sgm_status (*compile)(void *self, const sgm__plan *plan, void **executable);
    void (*discard)(void *self, void *executable);
    /* Steps first .. first + count - 1. Allocates nothing. */
    sgm_status (*run)(void *self, void *executable, const sgm__memory *memory, int32_t first, int32_t count);
    /* Runs all steps, each after the one before has ended, and notes how long they took. NULL: as `run` does
     * one by one. */
    sgm_status (*time)(void *self, void *executable, const sgm__memory *memory, sgm__step_time *times);
    /* What the executable's runs could not say when they were queued: an index out of range; waits for them.
     * A run that met one wrote no state behind it. NULL: runs say everything. */
    sgm_status (*check)(void *self, void *executable);
    /* Runs are over, or nobody can tell that they are not: reads and writes come after them. */
    sgm_status (*wait)(void *self);
    void (*estimate)(void *self, const void *executable, sgm__estimate *to); /* NULL: it does not say */
    const sgm__peers *peers;                                                 /* NULL: it cannot */
} sgm__handler_type;

struct sgm_handler {
    const sgm__handler_type *type;
    void *self;
    char name[128];
    int threads; /* as asked for */
};

extern const sgm__handler_type sgm__reference_handler, sgm__cpu_handler, sgm__opencl_handler,
    sgm__cuda_handler, sgm__null_handler, sgm__debug_handler;
/* Opens handler `watched` and watches it: what sgm__debug_handler's other functions take as self. */
sgm_status sgm__debug_open(const char *watched, const sgm_handler_options *options, void **self);
/* Whether there is a handler of that text, and its options may be so; nothing is opened. */
sgm_status sgm__handler_check(const char *text);
sgm_status sgm__handler_check_name(const char *text); /* the name alone, as another machine may have it */
sgm_status sgm__cpu_check(const sgm_handler_options *options);

/* Where a value begins; NULL: it is never in memory. */
static inline unsigned char *sgm__place_address(const sgm__place *place, const sgm__memory *memory)
{
    void *start = NULL;
    switch (place->store) {
    case SGM__STORE_ARENA:
        start = memory->arena;
        break;
    case SGM__STORE_INPUT:
        start = memory->inputs[place->index];
        break;
    case SGM__STORE_STATE:
        start = memory->states[place->index];
        break;
    case SGM__STORE_CONSTANT:
        start = memory->constants;
        break;
    case SGM__STORE_NONE:
        break;
    }
    return start != NULL ? (unsigned char *)start + place->offset : NULL;
}

/* The operand of a step as a kernel sees it. */
sgm_array sgm__plan_array(const sgm__plan *plan, int32_t node, const sgm__memory *memory);

#endif
