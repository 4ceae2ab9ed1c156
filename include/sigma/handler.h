/* Handlers do the mathematics; sessions run graphs on one and keep the state between runs.
 *
 *     sgm_handler *handler = sgm_handler_create("cpu", .threads = 2);
 *     sgm_session *session = sgm_session_create(handler);
 *     sgm_session_set(session, "w", weights);                 (a state of the graph)
 *     const sgm_program *program = sgm_session_prepare(session, graph);
 *     sgm_session_feed(session, program, "x", batch);
 *     sgm_session_run(session, program);
 *     sgm_session_read(session, program, "cost", cost);       (an output of the graph)
 *
 * A session is used by one thread at a time; sessions of one handler may run side by side. (`cpu` lets them
 * take turns, a run each, since every run has all of its threads.)
 */
#ifndef SIGMA_HANDLER_H
#define SIGMA_HANDLER_H

#include <sigma/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What computes: a processor or a device. */
typedef struct sgm_handler sgm_handler;
typedef struct sgm_handler_options {
    size_t struct_size;
    int threads;              /* cpu; default: one per processor this process may use */
    bool report_only;         /* debug: log what is wrong instead of failing the run */
    const char *dense;        /* cpu: library for matrix products: "openblas", "onednn" or "own"; default: the
                                 fastest here. "onednn" also multiplies bfloat16, with float32 sums */
    const char *instructions; /* cpu: vectors of "portable" C, "avx2", "avx512" or "neon"; default: the widest
                                 here. With the same ones processors give the same bits */
    bool approximate;         /* cpu: exp of float32 and bfloat16 to 0.011 % from -87 to 88 (beyond, as at
                               * the limits), so sigmoid, too, and tanh to 0.0001 */
    bool no_machine_code; /* cpu: interpret elementwise steps even where code could be made for them: slower,
                             the same bits */
    int device;           /* opencl, cuda: which one, numbered from 0 as sgm_handler_describe lists them */
    bool tf32; /* cuda: products of float32 may round their operands to 10 bits behind the point: faster */
    bool keep_subnormals; /* cpu: results too small for full precision (below 1.2e-38 in float32, 2.2e-308 in
                           * float64) stay what they are instead of becoming 0: processors may compute with
                           * such numbers a hundred times slower */
    const char *bfloat16; /* cpu: how products of bfloat16 are computed, with float32 sums: "own" for own
                           * loops over pairs (AVX512_BF16), "amx" for own blocks (AMX), "onednn" for that
                           * library, "float32" for products of float32 between casts. Default: blocks or
                           * loops that the processor has instructions for, if they are faster than float32,
                           * which is measured once in a process; else float32 */
    bool exact; /* cpu: convolutions of 3 x 3 in float32 and bfloat16 are summed up as they are defined;
                 * default: where it is faster, by Winograd's minimal filtering (Lavin and Gray, 2016), whose
                 * rounding errors are up to four times as large, in bfloat16 up to six times */
} SGM_BY_NAME sgm_handler_options;
/* sgm_handler_create("cpu", .threads = 2): the name, then any of the options above. */
#define sgm_handler_create(...) SGM_WITH_OPTIONS(sgm_handler_create_with, sgm_handler_options, __VA_ARGS__)
/* "cpu", "opencl" and "cuda" (devices, by plug-ins that are loaded now; without plug-in, driver or device it
 * fails with a sentence that says which), "reference" (plain loops in double), "null" (computes nothing),
 * "debug:NAME" (checks every value of handler NAME for NaN, infinity and shape, and names the instruction,
 * the layer and the run). Options may stand behind the name, where a program or a file has only that:
 * "cpu(dense=onednn, instructions=avx2, approximate=true)", "cuda(device=1, tf32=true)"; they go before those
 * given here. */
SGM_API sgm_handler *sgm_handler_create_with(const char *name, const sgm_handler_options *options);
/* Frees it, after its sessions; NULL: nothing happens. */
SGM_API void sgm_handler_free(sgm_handler *handler);
/* The name that it was created with. */
SGM_API const char *sgm_handler_name(const sgm_handler *handler);
/* Processor, threads, libraries chosen, as lines of text; free with sgm_string_free. */
SGM_API char *sgm_handler_describe(const sgm_handler *handler);
/* Which way products of bfloat16 go there, as a text that lives as long as the handler: "through float32, but
 * by constant weights as they are: no AMX and no AVX512_BF16 here", "oneDNN 3.6.1, with AMX". */
SGM_API const char *sgm_handler_bfloat16(const sgm_handler *handler);
/* Names that there are, be there such a device here or not; `index` from 0, NULL past the last. */
SGM_API const char *sgm_handler_name_at(size_t index);
/* How this handler does an operation: "kernel", "composed", "through float32" (bfloat16 between casts),
 * "reference loop" or "none". */
SGM_API const char *sgm_handler_support(const sgm_handler *handler, const char *operation, sgm_dtype dtype);

/* Graphs that run on a handler, with the state that they share. */
typedef struct sgm_session sgm_session;
/* A graph that was compiled; it belongs to its session. */
typedef struct sgm_program sgm_program;

/* A session without states, which the caller frees before the handler; NULL: out of memory. */
SGM_API sgm_session *sgm_session_create(sgm_handler *handler);
SGM_API void sgm_session_free(sgm_session *session);

/* State by name. Setting one that exists wants the same type; the first set defines it. */
SGM_API sgm_status sgm_session_set(sgm_session *session, const char *state, const sgm_tensor *value);
/* A copy of a state: a new tensor, or NULL and an error if there is none. */
SGM_API sgm_tensor *sgm_session_get(sgm_session *session, const char *state);
/* Whether there is such a state. */
SGM_API bool sgm_session_has(const sgm_session *session, const char *state);
/* The names of the states, in order of definition, from 0; NULL past the last. */
SGM_API const char *sgm_session_state_at(const sgm_session *session, size_t index);
/* Type and shape of a state. */
SGM_API sgm_status sgm_session_state_type(const sgm_session *session, const char *state, sgm_type *type);

/* The program for a graph: compiled now, or found by the graph's structure if one was before. All states must
 * be defined. Programs stay until the session is freed. */
SGM_API sgm_program *sgm_session_prepare(sgm_session *session, const sgm_graph *graph);
/* Copies (and converts) into an input. The shape is the input's, or one of as many elements for each example.
 * It stays fed until fed again. */
SGM_API sgm_status sgm_session_feed(sgm_session *session, sgm_program *program, const char *input,
                                    const sgm_tensor *value);
/* Feeds an input of rank 0. */
SGM_API sgm_status sgm_session_feed_number(sgm_session *session, sgm_program *program, const char *input,
                                           double value);
/* Runs the program once. On devices an index out of range is told by what is read next, an output or a
 * state, or by one of the next runs; no state was written since it was met. */
SGM_API sgm_status sgm_session_run(sgm_session *session, sgm_program *program);
/* Copies (and converts) an output of the newest run. */
SGM_API sgm_status sgm_session_read(sgm_session *session, sgm_program *program, const char *output,
                                    sgm_tensor *value);
/* Reads an output of rank 0 of the newest run. */
SGM_API sgm_status sgm_session_read_number(sgm_session *session, sgm_program *program, const char *output,
                                           double *value);
/* Whether the program wants such an input. */
SGM_API bool sgm_program_has_input(const sgm_program *program, const char *input);
/* Whether the program gives such an output. */
SGM_API bool sgm_program_has_output(const sgm_program *program, const char *output);
/* Names of what has to be fed; `index` from 0, NULL past the last. */
SGM_API const char *sgm_program_input_at(const sgm_program *program, size_t index);
/* Type and shape of an output; of none float32 of rank 0. */
SGM_API sgm_type sgm_program_output_type(const sgm_program *program, const char *output);

/* What a program takes, in bytes and numbers. */
typedef struct sgm_program_memory {
    int64_t state;     /* bytes of state that it reads or writes */
    int64_t constants; /* bytes of values that never change, but for those that are read as they are packed */
    int64_t inputs;    /* bytes of what is fed */
    int64_t activations; /* bytes of all intermediate values, if each had its own place */
    int64_t arena;       /* bytes they get after planning: the peak */
    /* Of the graph; steps that they became; instructions in steps of several. */
    int32_t instructions, steps, fused;
    int32_t threads;           /* that run it: 1 where one is faster; 0: the handler does not say */
    double seconds_of_one;     /* estimates by shapes, by which the number of threads was chosen: with one */
    double seconds_of_threads; /* thread, and with all that the handler has where sharing pays */
    int64_t unsaved; /* bytes of the arena if nothing were computed again (sgm_env_options.memory) */
    int32_t again;   /* instructions that are computed again, so that it is smaller */
    /* Bytes of constants in the order in which kernels read them, which programs of one handler share: of
     * this program, and of all of them. */
    int64_t packed, packed_by_all;
} sgm_program_memory;
/* What this program takes. */
SGM_API sgm_program_memory sgm_program_get_memory(const sgm_program *program);
/* The program as text: steps, places, sizes; free with sgm_string_free. */
SGM_API char *sgm_program_text(const sgm_program *program);

/* --- gradients against differences --- */
/* An input or a state of a graph, and the place where gradients are checked. */
typedef struct sgm_operand {
    sgm_value value;      /* what sgm_input_value or sgm_state recorded */
    const sgm_tensor *at; /* its value there, of its shape; it stays the caller's */
    bool fixed;           /* no gradient by it is checked, as of targets; integers and booleans always are */
} sgm_operand;
/* The element at which gradients and differences are farthest apart. */
typedef struct sgm_gradient_difference {
    bool known;         /* false: nothing was compared */
    size_t operand;     /* its index among the operands */
    int64_t element;    /* its row-major number */
    double recorded;    /* what autodiff gives */
    double differences; /* what central differences give */
    double error; /* |recorded - differences| / (1 + |differences|); infinite if either is not a number */
} sgm_gradient_difference;
/* How closely. */
typedef struct sgm_gradient_check_options {
    size_t struct_size;
    double step;      /* of the differences, (f(x + step) - f(x - step)) / (2 step); default 1e-5 */
    double tolerance; /* allowed distance from the differences' d, times 1 + |d|; default 2e-6 */
    sgm_gradient_difference *worst; /* what was found, also if all is well; NULL: not wanted */
} SGM_BY_NAME sgm_gradient_check_options;
/* Whether the gradients of `y`, a value of float64 of any shape, are what central differences give: by each
 * element of each operand that is not fixed, with two runs on the handler "reference" for each. All inputs
 * and states that `y` depends on must be among the `count` operands; those checked are of float64. The error
 * names the operand and the element that is farthest off, and has both numbers. Where y has an edge (relu at
 * 0) differences across it fail. What is compared is recorded into the graph, which then is of no other use:
 * clear or free it.
 *
 *     sgm_gradient_check(graph, y, operands, 2, .tolerance = 1e-5) */
#define sgm_gradient_check(...)                                                                              \
    SGM_WITH_OPTIONS_4(sgm_gradient_check_with, sgm_gradient_check_options, __VA_ARGS__)
SGM_API sgm_status sgm_gradient_check_with(sgm_graph *graph, sgm_value y, const sgm_operand *operands,
                                           size_t count, const sgm_gradient_check_options *options);

#ifdef __cplusplus
}
#endif
#endif
