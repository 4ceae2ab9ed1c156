/* The inside of sessions, and what sessions that work together share without copies. Internal. */
#ifndef SGM_HANDLERS_SESSION_H
#define SGM_HANDLERS_SESSION_H

#include "base/name_index.h"
#include "handlers/handler.h"

typedef struct sgm__session_state {
    char *name;
    sgm_type type;
    void *buffer;
    bool shared; /* the buffer belongs to another session */
} sgm__session_state;

#define SGM__NOTED_PLACES 6
struct sgm_program {
    sgm_session *session;
    sgm_program *next;
    uint64_t hash;
    sgm_graph *graph; /* as recorded, to tell equal hashes from equal graphs */
    sgm__plan *plan;
    void *executable;
    sgm__memory memory;        /* arena: filled in at each run */
    sgm_tensor **input_stages; /* for inputs that come in another type; made when first needed */
    sgm_tensor **output_stages;
    bool *fed;
    bool *shared; /* inputs that are memory of another session; NULL: none ever was */
    /* Places of inputs and outputs, for whoever runs the program to note once. */
    bool noted;
    struct sgm__index_rule *rules; /* session_index.c */
    size_t rule_count, rule_capacity;
    int32_t places[SGM__NOTED_PLACES];
};

/* Gives a session's arena memory, on the host and zeroed, in place of what it gave before; it keeps all. */
typedef struct sgm__arena_source {
    void *(*grow)(void *user, size_t bytes); /* NULL: failed */
    void *user;
} sgm__arena_source;

struct sgm_session {
    sgm_handler *handler;
    sgm__session_state *states;
    size_t state_count, state_capacity;
    sgm__name_index state_index; /* of their names in `states` */
    sgm_program *programs;
    void *arena; /* one for all programs: they run one after the other */
    int64_t arena_bytes;
    sgm__arena_source source;     /* .grow NULL: the arena is of the handler's memory */
    const sgm_program *newest;    /* whose outputs the arena holds */
    const sgm_program *unchecked; /* whose runs were not asked yet what they could not say; and how many */
    uint32_t unchecked_runs;
};

static inline size_t sgm__type_bytes(const sgm_type *type)
{
    return (size_t)sgm_shape_elements(&type->shape) * sgm_dtype_size(type->dtype);
}
/* --- session.c --- */
/* NULL: there is none of that name. */
sgm__session_state *sgm__session_find(const sgm_session *session, const char *name);
/* Adds a state under a name that is new to the session, which copies it. The session owns the state's buffer
 * from then on unless it is shared; where this fails, the buffer stays the caller's. */
sgm_status sgm__session_add(sgm_session *session, const char *name, const sgm__session_state *state);

/* --- session_share.c --- */
/* Whether the memory of the session's handler is the computer's, so that others can read it where it is. */
bool sgm__session_is_host(const sgm_session *session);
/* The memory of a state on the host; NULL: it is elsewhere, or there is no such state. */
void *sgm__session_state_memory(const sgm_session *session, const char *name);
/* Defines a state whose memory is that of `owner`'s state; both are on the host, and the owner lives longer.
 */
sgm_status sgm__session_share(sgm_session *session, const sgm_session *owner, const char *name);
/* A state of the host's lies elsewhere from now on, where its values are already; the memory stays the
 * caller's. */
void sgm__session_place_state(sgm_session *session, const char *name, void *memory);
/* And in memory of the session's own again, with its values. */
sgm_status sgm__session_bring_home(sgm_session *session, const char *name);
/* From now on the arena is of such memory; the handler's is the host's. Outputs are gone. */
sgm_status sgm__session_take_arena_from(sgm_session *session, const sgm__arena_source *source);

/* The memory of a state, wherever it is, for sums with other sessions' handlers; it stays as long as the
 * session. */
sgm_status sgm__session_addend(const sgm_session *session, const char *state, sgm__addend *addend);

/* Places of inputs and outputs by name, for many of them in each step; -1: there is none. */
int32_t sgm__program_input(const sgm_program *program, const char *name);
int32_t sgm__program_output(const sgm_program *program, const char *name);
/* As the functions by name, with such a place in a program of this session. */
sgm_status sgm__session_feed_at(sgm_session *session, sgm_program *program, int32_t index,
                                const sgm_tensor *value);
sgm_status sgm__session_feed_number_at(sgm_session *session, sgm_program *program, int32_t index,
                                       double value);
sgm_status sgm__session_read_number_at(sgm_session *session, sgm_program *program, int32_t index,
                                       double *value);
/* The memory of an output of the newest run, on the host. */
const void *sgm__session_output_memory(const sgm_session *session, const sgm_program *program,
                                       int32_t output);
/* Lets a program read its input from memory of its type on the host, until it is shared another; it is not
 * fed any more then. */
sgm_status sgm__session_share_memory(sgm_session *session, sgm_program *program, int32_t input,
                                     const void *memory);
/* As sgm_session_run; `times` has room for each step of the program's plan, which take their turns. NULL:
 * runs only. */
sgm_status sgm__session_run_timed(sgm_session *session, sgm_program *program, sgm__step_time *times);
/* As sgm_session_run, in pieces: `done` is told when the steps before ends[piece], in ascending order, have
 * been run, and then of the whole, as piece `count`. Its failure ends the run. */
typedef struct sgm__pieces {
    const int32_t *ends;
    size_t count;
    sgm_status (*done)(void *user, size_t piece);
    void *user;
} sgm__pieces;
sgm_status sgm__session_run_pieces(sgm_session *session, sgm_program *program, const sgm__pieces *pieces);
/* What the newest runs could not say when they were queued: an index out of range. Whoever uses their states
 * without reading them asks first. */
sgm_status sgm__session_check(sgm_session *session);
/* The number of steps after which an output is complete. */
int32_t sgm__program_output_ready(const sgm_program *program, int32_t output);
/* Copies examples `first` to `first + count - 1` of a contiguous tensor into an input. */
sgm_status sgm__session_feed_part(sgm_session *session, sgm_program *program, const char *input,
                                  sgm_tensor *values, int64_t first, int64_t count);

/* --- session_sums.c --- */
/* A sum of workers (all_reduce) that a program has: once the steps before `end` have run, its memory has what
 * this worker adds, and becomes the sum before the next step runs. */
typedef struct sgm__program_sum {
    int32_t end, node;
    size_t elements;
} sgm__program_sum;
/* In the order of the steps, into an array of the caller's. */
sgm_status sgm__program_sums(const sgm_program *program, sgm__program_sum **sums, size_t *count,
                             size_t *capacity);
/* While the program stands behind that step. */
sgm_status sgm__session_read_sum(const sgm_session *session, const sgm_program *program,
                                 const sgm__program_sum *sum, double *values);
sgm_status sgm__session_write_sum(const sgm_session *session, const sgm_program *program,
                                  const sgm__program_sum *sum, const double *values);

/* --- session_index.c --- */
/* From now on what is fed to the input must be whole numbers from `least` to `most`, of at most 24 bits;
 * `user` is who wants it, "layer '1-embedding'". */
sgm_status sgm__program_expect_index(sgm_program *program, const char *input, const char *user,
                                     double minimum, double maximum);
/* Of contiguous data that is fed. */
sgm_status sgm__program_check_index(const sgm_program *program, int32_t input, const void *data,
                                    sgm_dtype dtype, const sgm_shape *shape);
void sgm__index_rules_free(sgm_program *program);

#endif
