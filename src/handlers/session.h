/* The inside of sessions: their structs, and the functions that only the library's own code calls. Internal.
 *
 * A session keeps states (parameters, an optimiser's averages) by name and programs by the structure of their
 * graphs, on one handler. The public functions are in include/sigma/handler.h. What is declared here is for
 * code that trains with several sessions (src/parallel/) or must not lose time in each step (src/train/). One
 * thread at a time may use a session.
 */
#ifndef SGM_HANDLERS_SESSION_H
#define SGM_HANDLERS_SESSION_H

#include "base/name_index.h"
#include "handlers/handler.h"

/* A named state. Programs hold copies of the pointer `buffer` in their memory.states. */
typedef struct sgm__session_state {
    char *name;
    sgm_type type;
    void *buffer;
    /* The buffer belongs to another session, or to a block of memory of the caller: this session does not
     * release it. */
    bool shared;
} sgm__session_state;

/* How many places of inputs and outputs a caller may note in a program; src/train/trainer_step.c asserts that
 * they suffice. */
#define SGM__NOTED_PLACES 6
/* A compiled graph of one session, which owns it; it stays until the session is freed. */
struct sgm_program {
    sgm_session *session;
    sgm_program *next;
    uint64_t hash;
    sgm_graph *graph; /* a copy of the graph as recorded, to tell graphs of equal hash apart */
    sgm__plan *plan;
    void *executable;
    sgm__memory memory; /* its `arena` is set at each run, since the session's arena may move */
    /* Tensors on the host that convert what is fed in another type; NULL until needed. */
    sgm_tensor **input_stages;
    sgm_tensor **output_stages;
    bool *fed;
    /* Flags of the inputs that are memory of others, see sgm__session_share_memory; NULL: no input ever
     * was. */
    bool *shared;
    /* `noted` and `places`: room for a caller to note the numbers of inputs and outputs, so that it looks
     * them up by name only once. Sessions do not read them. */
    bool noted;
    uint32_t inference;            /* several sgm__inference: what was made of states; 0: nothing */
    struct sgm__index_rule *rules; /* see session_index.c */
    size_t rule_count, rule_capacity;
    int32_t places[SGM__NOTED_PLACES];
};

/* Memory of the caller that a session's arena lies in instead of the handler's, such as a block that other
 * processes map. */
typedef struct sgm__arena_source {
    /* Zeroed memory on the host that replaces what this source gave before; NULL: failed. */
    void *(*grow)(void *user, size_t bytes);
    void *user;
} sgm__arena_source;

/* A session. `states` is in order of definition; only sgm__session_end_sharing removes some. */
struct sgm_session {
    sgm_handler *handler;
    sgm__session_state *states;
    size_t state_count, state_capacity;
    sgm__name_index state_index; /* from a state's name to its index in `states` */
    sgm_program *programs;
    void *arena; /* one for all programs, as large as the largest needs: they run one after the other */
    int64_t arena_bytes;
    sgm__arena_source source; /* where the arena comes from; .grow NULL: from the handler */
    /* The program that ran last, whose outputs the arena still holds; NULL: none. */
    const sgm_program *newest;
    /* The program whose latest runs were not followed by the handler's `check`, and how many runs that were;
     * see sgm__session_check. */
    const sgm_program *unchecked;
    uint32_t unchecked_runs;
    /* How often states may have got other values; and of the programs for inference: how many there are, and
     * the number of changes when they were made. */
    uint64_t changes, inference_changes;
    int32_t inference_programs;
};

/* --- session.c --- */
/* As sgm_session_prepare, within a budget of memory; NULL: none. */
sgm_program *sgm__session_prepare_within(sgm_session *session, const sgm_graph *graph,
                                         const sgm__memory_budget *budget);
/* As sgm__session_prepare_within, of a graph that is specialised for inference first: several sgm__inference.
 */
sgm_program *sgm__session_prepare_as(sgm_session *session, const sgm_graph *graph,
                                     const sgm__memory_budget *budget, uint32_t inference);
/* Frees all programs for inference. Nobody may keep one. */
sgm_status sgm__session_drop_inference(sgm_session *session);
/* The state of that name, valid until the next one is added. NULL: there is none. */
sgm__session_state *sgm__session_find(const sgm_session *session, const char *name);
/* Adds a state under a name that is new to the session and that the session copies. The session owns the
 * buffer from then on, unless the state is `shared`; if this function fails, the buffer remains the
 * caller's. */
sgm_status sgm__session_add(sgm_session *session, const char *name, const sgm__session_state *state);

/* --- programs for inference (session_inference.c) --- */
typedef enum sgm__inference {
    SGM__INFERENCE_CONSTANTS = 1, /* states that the graph does not assign to are constants */
    SGM__INFERENCE_INT8 = 2,      /* and products with them are of integers of 8 bits */
    /* However large they are, if the handler keeps them only as they were packed: for whoever has no other
     * copy of them. */
    SGM__INFERENCE_ANY_SIZE = 4
} sgm__inference;
/* Reads the option `quantize` of whoever predicts: NULL, or "int8". */
sgm_status sgm__quantize_read(const char *quantize, bool *int8);
/* A program of the values that states have now. Whoever keeps it asks sgm__session_is_outdated before a run:
 * if so, the next call frees all such programs that were made before. With SGM__INFERENCE_CONSTANTS alone,
 * states too large to be copied stay states, and the program is an ordinary one. */
sgm_program *sgm__session_prepare_inference(sgm_session *session, const sgm_graph *graph, uint32_t inference);
/* Whether states may have changed since programs for inference were made. */
bool sgm__session_is_outdated(const sgm_session *session);
/* The graph with constants in place of states. */
sgm_status sgm__session_specialise(sgm_session *session, const sgm_graph *graph, uint32_t inference,
                                   sgm_graph **special);

/* --- session_share.c --- */
/* Whether the buffers of the session's handler are ordinary memory of this process, which others can read in
 * place. */
bool sgm__session_is_host(const sgm_session *session);
/* The memory of a state on the host. NULL: the handler's buffers are elsewhere, or there is no such state. */
void *sgm__session_state_memory(const sgm_session *session, const char *name);
/* Defines a state of `session` whose buffer is that of `owner`'s state of the same name. Both sessions must
 * be on the host, and `owner` must live longer. */
sgm_status sgm__session_share(sgm_session *session, const sgm_session *owner, const char *name);
/* States that sgm__session_share defined, and that a program of the session reads, get buffers of the
 * session's own with their present values; the others are removed. The owner is not needed any more. After a
 * failure the session's programs must not be run. */
sgm_status sgm__session_end_sharing(sgm_session *session);
/* Moves a state to `memory` on the host, which already contains its values and stays the caller's. All
 * programs of the session that use the state are redirected. */
void sgm__session_place_state(sgm_session *session, const char *name, void *memory);
/* The opposite of sgm__session_place_state: the state gets a buffer of the session's own, with its present
 * values. */
sgm_status sgm__session_bring_home(sgm_session *session, const char *name);
/* Places the arena in memory of `source` from now on; only on the host. Outputs of earlier runs are lost. */
sgm_status sgm__session_take_arena_from(sgm_session *session, const sgm__arena_source *source);

/* The buffer of a state on any handler, for sgm__peers.sum. The buffer stays in place as long as the session
 * lives. */
sgm_status sgm__session_addend(const sgm_session *session, const char *state, sgm__addend *addend);

/* The number of an input or output by its name, for callers that use it in each step; -1: there is none. */
int32_t sgm__program_input(const sgm_program *program, const char *name);
int32_t sgm__program_output(const sgm_program *program, const char *name);
/* These three do what the public functions do by name, but take a number from sgm__program_input or
 * sgm__program_output. */
sgm_status sgm__session_feed_at(sgm_session *session, sgm_program *program, int32_t index,
                                const sgm_tensor *value);
sgm_status sgm__session_feed_number_at(sgm_session *session, sgm_program *program, int32_t index,
                                       double value);
/* Feeds contiguous data of the input's own type and size, as the functions above do in the end: checks
 * indices and copies. */
sgm_status sgm__session_write_input(sgm_session *session, sgm_program *program, int32_t index,
                                    const void *data);
sgm_status sgm__session_read_number_at(sgm_session *session, sgm_program *program, int32_t index,
                                       double *value);
/* The memory of an output of the newest run; only on the host. */
const void *sgm__session_output_memory(const sgm_session *session, const sgm_program *program,
                                       int32_t output);
/* Makes a program read its input directly from `memory` on the host, of the input's type and size, until the
 * next call with other memory. The input counts as fed, and must not be fed any more. */
sgm_status sgm__session_share_memory(sgm_session *session, sgm_program *program, int32_t input,
                                     const void *memory);
/* Runs a program like sgm_session_run and stores the time of each step of its plan in `times`, which has room
 * for them. The steps run strictly one after the other then. `times` NULL: an ordinary run. */
sgm_status sgm__session_run_timed(sgm_session *session, sgm_program *program, sgm__step_time *times);
/* How a run is cut into pieces. `ends` ascends; piece k ends before step ends[k], and a last piece, number
 * `count`, ends with the plan. After each piece `done` is called on the same thread, when the steps of the
 * piece have been computed. A failure of `done` ends the run. */
typedef struct sgm__pieces {
    const int32_t *ends;
    size_t count;
    sgm_status (*done)(void *user, size_t piece);
    void *user;
} sgm__pieces;
sgm_status sgm__session_run_pieces(sgm_session *session, sgm_program *program, const sgm__pieces *pieces);
/* Asks the handler for failures that the newest runs could not return when they were queued (an index out of
 * range on a device). Everything that uses states without reading them through the session must call this
 * first. */
sgm_status sgm__session_check(sgm_session *session);
/* The number of steps after which an output has its final value. */
int32_t sgm__program_output_ready(const sgm_program *program, int32_t output);
/* Feeds examples `first` to `first + count - 1` of a tensor, whose first axis counts examples. Where type and
 * layout suit, they are copied straight into the handler's memory. */
sgm_status sgm__session_feed_part(sgm_session *session, sgm_program *program, const char *input,
                                  sgm_tensor *values, int64_t first, int64_t count);

/* --- session_sums.c --- */
/* A sum over workers (the operation all_reduce) within a program. When the steps before `end` have run, the
 * memory of the node holds this worker's addend; before step `end` runs, the caller replaces it by the sum
 * over all workers. */
typedef struct sgm__program_sum {
    int32_t end, node;
    size_t elements;
} sgm__program_sum;
/* Lists a program's sums in the order of its steps in the caller's growing array. */
sgm_status sgm__program_sums(const sgm_program *program, sgm__program_sum **sums, size_t *count,
                             size_t *capacity);
/* Copy the addend out as double, and the sum in. Only between two pieces of a run, while the program stands
 * at sum->end. */
sgm_status sgm__session_read_sum(const sgm_session *session, const sgm_program *program,
                                 const sgm__program_sum *sum, double *values);
sgm_status sgm__session_write_sum(const sgm_session *session, const sgm_program *program,
                                  const sgm__program_sum *sum, const double *values);

/* --- session_index.c --- */
/* From now on, values that are fed to the input must be whole numbers from `minimum` to `maximum`, which have
 * at most 24 bits, so that float32 holds them. `user` names the layer for messages: "layer '1-embedding'".
 * `remedy`, which is kept and not copied, is told of a number below the minimum; NULL: there is none. */
sgm_status sgm__program_expect_index(sgm_program *program, const char *input, const char *user,
                                     double minimum, double maximum, const char *remedy);
/* Checks contiguous data of the input's type that is about to be fed. sgm__failed_example tells which example
 * is wrong. */
sgm_status sgm__program_check_index(const sgm_program *program, int32_t input, const void *data);
void sgm__index_rules_free(sgm_program *program);

/* --- what is computed of constants (session_fold.c) --- */

/* The graph with the results of what it computes of constants, computed by this handler; *folded is NULL,
 * with SGM_OK, if there is nothing of that kind. */
sgm_status sgm__session_fold(sgm_handler *handler, const sgm_graph *graph, sgm_graph **folded);

#endif
