/* The interface between sessions and the mathematics: sgm__handler_type, a table of functions. Internal.
 *
 * A handler (other libraries say backend) gives memory, compiles plans and runs them. Sessions (session.c,
 * session_run.c) are its only callers besides the debugging handler, which wraps another one. A handler never
 * sees layers, networks or trainers, and the code above sessions never sees buffers or kernels. Handlers are
 * opened by name in handler.c; the plan that `compile` gets is described in program.h and made in plan/.
 */
#ifndef SGM_HANDLERS_HANDLER_H
#define SGM_HANDLERS_HANDLER_H

#include "handlers/program.h"
#include <sigma/handler.h>
#include <sigma/registry.h>

/* The memory that one run works on. The session owns all of it; each pointer was given by the handler's own
 * `allocate` (or, for a handler with SGM__HANDLER_HOST, is memory of the host that another session owns).
 * Only such a handler may dereference the pointers: elsewhere they are handles. Buffers of the host begin at
 * multiples of 64 bytes. */
typedef struct sgm__memory {
    void *arena, *constants;
    void **inputs; /* one for each of plan->inputs, in that order */
    void **states; /* one for each of plan->states, in that order */
} sgm__memory;

/* What a handler asks of the plans that are made for it. The planner (plan/) reads these flags. */
typedef enum sgm__handler_flags {
    SGM__HANDLER_UNFUSED = 1, /* one node in each step, and every value in memory: no fusion */
    SGM__HANDLER_HOST = 2,    /* its buffers are ordinary memory of this process */
    /* Elementwise steps can write results with gaps between their rows, so the operands of a concatenation
     * may be computed in its memory. */
    SGM__HANDLER_PARTS = 4,
    /* Elementwise steps can contain random_uniform and draw its numbers themselves. */
    SGM__HANDLER_DRAWS = 8,
    /* Constant factors and terms behind a convolution may go into its weights and biases, which changes last
     * digits. */
    SGM__HANDLER_SCALES = 16,
    /* While it compiles it reads constants by sgm__plan_constant, and it leaves all that `run` reads in the
     * plan's block. */
    SGM__HANDLER_FILLS = 32
} sgm__handler_flags;

/* An answer of `support`: the planner inserts casts, so that a bfloat16 operation is computed in float32. */
#define SGM__THROUGH_FLOAT32 "through float32"

/* How a program is divided among threads, and what was made for it. The seconds are estimates from shapes and
 * constants; they only decide the number of threads and are shown to users, but predict no time. */
typedef struct sgm__estimate {
    /* The threads that run the program, and all that the handler has; 0: unknown. */
    int32_t threads, of_threads;
    /* Estimated seconds of a run by one thread, and by all threads of the handler. */
    double alone, shared;
    /* Bytes of what kernels made of constants: for this program, and for all of the handler together. */
    int64_t packed, packed_by_all;
} sgm__estimate;

/* The time that one step of a plan took in a timed run. */
typedef struct sgm__step_time {
    double seconds;
    /* The step whose `seconds` include this step's time, since one pass computed both; -1: this step has a
     * time of its own. */
    int32_t with;
} sgm__step_time;

/* Sums over the memory of several handlers of one type, the peers, in this process and in others, that do not
 * pass through the host's memory (NCCL between GPUs, for instance).
 *
 * One peer makes an invitation with `invite`; its bytes are passed on to all peers, and each calls `join`.
 * Afterwards all peers call `sum` with equal counts and types, in the same order. `join`, `sum` and `leave`
 * block until the other peers call them too, so each peer needs a thread of its own.
 * src/parallel/operator_peers.c is the caller.
 */
#define SGM__IDENTITY 16
#define SGM__INVITATION 128
/* The place of one peer in a group that is about to join. */
typedef struct sgm__peer_place {
    unsigned char invitation[SGM__INVITATION];
    int32_t number, of; /* this peer's number, from 0, and the number of peers */
    double seconds;     /* how long this peer waits for the others in `join`, and later in each sum */
} sgm__peer_place;
/* One buffer that takes part in a sum: its first `elements` elements. */
typedef struct sgm__addend {
    void *buffer; /* from the handler's `allocate` */
    int64_t elements;
} sgm__addend;
typedef struct sgm__peers {
    /* Writes 16 bytes that name the physical device, equal in all processes: two handlers on one device
     * cannot be peers. Fails with SGM_ERROR_UNSUPPORTED if this handler cannot sum at all (a library is
     * missing, say). */
    sgm_status (*identify)(void *self, unsigned char *identity);
    sgm_status (*invite)(void *self, unsigned char *invitation);
    sgm_status (*join)(void *self, const sgm__peer_place *place);
    /* Each buffer becomes the sum of that buffer over all peers. The sum begins after all work queued before
     * it and is complete on return. If it fails here, the other peers still wait inside their own `sum`, and
     * the caller calls `give_up` for them. */
    sgm_status (*sum)(void *self, const sgm__addend *addends, size_t count, sgm_dtype dtype, double seconds);
    /* Ends a waiting `join` or `sum`; any thread may call it at any time until `leave`. */
    void (*give_up)(void *self);
    void (*leave)(void *self);
} sgm__peers;

#define SGM__HANDLER_SETTINGS 8
/* A row of them: a member of sgm_handler_options, what it says of itself, and its kind. */
#define SGM__HANDLER_SETTING(member, words, ...)                                                             \
    {                                                                                                        \
        .option = {.name = #member, .doc = words, __VA_ARGS__}, SGM_MEMBER(sgm_handler_options, member)      \
    }

/* The table of functions of one handler. `self` is what `open` returned. Sessions of one handler may call
 * from several threads at once; the handler itself serialises what needs it. A session calls from one thread
 * at a time. */
typedef struct sgm__handler_type {
    const char *name, *doc, *example; /* the name with an option; NULL: the name alone */
    uint32_t flags;
    /* What may stand in brackets behind the name (handler_text.c): members of sgm_handler_options that are
     * flags, integers or texts, which `open` checks. NULL and 0: it has no options. */
    const sgm_setting *settings;
    size_t setting_count; /* at most SGM__HANDLER_SETTINGS */
    sgm_status (*open)(const sgm_handler_options *options, void **self);
    void (*close)(void *self);
    void (*describe)(void *self, sgm__text *text);
    /* A phrase for users on how matrix products of bfloat16 are computed; NULL: in no special way. */
    const char *(*bfloat16)(void *self);
    /* How the handler computes an operation whose operands have this type: "kernel", SGM__THROUGH_FLOAT32,
     * "composed", "reference loop" or "none". For an operation with `compose`, "kernel" and
     * SGM__THROUGH_FLOAT32 keep the planner from expanding it into its parts. */
    const char *(*support)(void *self, const sgm_op *op, sgm_dtype dtype);
    /* Whether products of float32 can round their right operand to bfloat16 while they read it, so that
     * weights need no rounded copy where bfloat16 is computed through float32; NULL: they cannot. */
    bool (*rounds)(const void *self);
    /* Whether products by constants of bfloat16 are computed as they are where others go through float32, so
     * that weights which only predict are read as halves; NULL: they are not. */
    bool (*reads_halves)(const void *self);
    /* Whether weights of products that are constant are kept as they were packed, and nowhere else; NULL:
     * they are not. */
    bool (*packs)(const void *self);
    sgm_status (*allocate)(void *self, size_t bytes, void **buffer); /* all bytes 0 */
    void (*release)(void *self, void *buffer);
    sgm_status (*write)(void *self, void *buffer, size_t offset, const void *host, size_t bytes);
    sgm_status (*read)(void *self, void *buffer, size_t offset, void *host, size_t bytes);
    /* Makes of a plan what `run` takes. The session keeps `plan` until it has discarded the executable. */
    sgm_status (*compile)(void *self, const sgm__plan *plan, void **executable);
    void (*discard)(void *self, void *executable);
    /* Runs, or queues, the steps `first` to `first + count - 1`. In the steady state it allocates nothing. */
    sgm_status (*run)(void *self, void *executable, const sgm__memory *memory, int32_t first, int32_t count);
    /* Runs all steps, each after the one before has ended, and stores the time of each in times[step], whose
     * `with` the caller has set to -1. NULL: the session times single steps with `run` and `wait`. */
    sgm_status (*time)(void *self, void *executable, const sgm__memory *memory, sgm__step_time *times);
    /* Waits for the executable's runs and reports a failure that `run` could not return because it only
     * queued them: an index out of range. A run writes no state after the step that met one. NULL: `run`
     * itself returns every failure. */
    sgm_status (*check)(void *self, void *executable);
    /* Returns when all runs have ended, or when every later read and write is ordered after them. */
    sgm_status (*wait)(void *self);
    void (*estimate)(void *self, const void *executable, sgm__estimate *to); /* NULL: there is no estimate */
    /* NULL: this handler cannot sum with others. */
    const sgm__peers *peers;
} sgm__handler_type;

/* A handler as users hold it; sessions keep a pointer to it and call through `type`. */
struct sgm_handler {
    const sgm__handler_type *type;
    void *self;
    char name[128];
    int threads; /* the option `threads` as given; 0: one for each processor */
};

extern const sgm__handler_type sgm__reference_handler, sgm__cpu_handler, sgm__opencl_handler,
    sgm__cuda_handler, sgm__null_handler, sgm__debug_handler;
/* Opens the handler `watched` and wraps it. The result is the `self` that the other functions of
 * sgm__debug_handler take. */
sgm_status sgm__debug_open(const char *watched, const sgm_handler_options *options, void **self);
/* Checks that the text names a known handler and that its options are valid, without opening anything (a
 * device or plug-in may be missing here). */
sgm_status sgm__handler_check(const char *text);
/* Checks the name only: the options may suit another machine. */
sgm_status sgm__handler_check_name(const char *text);
sgm_status sgm__cpu_check(const sgm_handler_options *options);

/* The memory that a place is in, as the handler allocated it; NULL: in none. */
static inline void *sgm__place_memory(const sgm__place *place, const sgm__memory *memory)
{
    switch (place->store) {
    case SGM__STORE_ARENA:
        return memory->arena;
    case SGM__STORE_INPUT:
        return memory->inputs[place->index];
    case SGM__STORE_STATE:
        return memory->states[place->index];
    case SGM__STORE_CONSTANT:
        return memory->constants;
    case SGM__STORE_NONE:
        break;
    }
    return NULL;
}

/* The address of the first element of a value. NULL: the value exists only inside a fused step. Only for
 * handlers with SGM__HANDLER_HOST, and for host copies of memory (device/run/host.c). */
static inline unsigned char *sgm__place_address(const sgm__place *place, const sgm__memory *memory)
{
    unsigned char *start = sgm__place_memory(place, memory);
    return start != NULL ? start + place->offset : NULL;
}

/* A value of the plan as the `forward` function of an operation takes it: address, shape, type and
 * strides. */
sgm_array sgm__plan_array(const sgm__plan *plan, int32_t node, const sgm__memory *memory);

#endif
