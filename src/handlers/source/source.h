/* Programs as C: what a handler would run is written down instead, as one file of C99. Internal.
 *
 * The plan says what is computed in which order and where it lies; for each of its steps there is a function
 * that writes loops. All sizes are numbers in the text, so that a compiler sees everything.
 */
#ifndef SGM_HANDLERS_SOURCE_H
#define SGM_HANDLERS_SOURCE_H

#include "handlers/handler.h"
#include "ops/window.h"

/* A handler to plan for: it has no kernels of its own, draws random numbers where they are wanted, and cannot
 * run anything. */
const sgm_handler *sgm__source_handler(void);

/* What an input of a plan is in C. */
typedef struct sgm__source_input {
    const char *name;   /* of the parameter, or an expression */
    bool number;        /* a parameter that is one number */
    bool expression;    /* no parameter */
    uint32_t functions; /* that the expression calls: bits of sgm__source_function */
} sgm__source_input;

/* A plan that becomes a function: "int NAME_FUNCTION(inputs..., outputs...)". */
typedef struct sgm__source_program {
    const char *function, *doc; /* lines of a comment, without what each parameter is */
    const sgm__plan *plan;
    const sgm__source_input *inputs; /* one for each of the plan's */
    const char *const *outputs;      /* names of parameters */
    const char *last;                /* a statement at its end; NULL: none */
} sgm__source_program;

typedef struct sgm__source_request {
    const char *name;  /* what all names begin with: an identifier */
    const char *about; /* lines for the top of the file */
    sgm_dtype real;    /* float32 or float64: what is computed in */
    const sgm__source_program *programs;
    int32_t program_count;
    int64_t updates; /* so far: counted in NAME_updates[0], which is there if has_states */
    bool has_states; /* a function that gives the states that change */
    /* A new tensor with the state's value; NULL: fails. */
    sgm_tensor *(*state)(void *user, const char *name);
    void *user;
} sgm__source_request;

/* Appends the file. What cannot be written is an error that names the instruction and its layer. */
sgm_status sgm__source_write(const sgm__source_request *request, sgm__text *text);
/* A name as the part of an identifier, into `buffer`. */
char *sgm__source_identifier(const char *name, char *buffer, size_t size);

/* --- inside --- */

#define SGM__SOURCE_ROOMS 128
#define SGM__SOURCE_ROOM 384
#define SGM__SOURCE_NAME 128

/* Functions that the text calls; source_functions.c. */
typedef enum sgm__source_function {
    SGM__SOURCE_EXP,
    SGM__SOURCE_LOG,
    SGM__SOURCE_LOG1P,
    SGM__SOURCE_SQRT,
    SGM__SOURCE_SIGMOID,
    SGM__SOURCE_TANH,
    SGM__SOURCE_ERFC,
    SGM__SOURCE_ERF,
    SGM__SOURCE_GELU,
    SGM__SOURCE_GELU_GRADIENT,
    SGM__SOURCE_TURN,
    SGM__SOURCE_SIN,
    SGM__SOURCE_COS,
    SGM__SOURCE_TAN,
    SGM__SOURCE_ATAN,
    SGM__SOURCE_ASIN,
    SGM__SOURCE_ACOS,
    SGM__SOURCE_FLOOR,
    SGM__SOURCE_POWER,
    SGM__SOURCE_COMPLEMENT,
    SGM__SOURCE_INTEGER,
    SGM__SOURCE_WITHIN,
    SGM__SOURCE_DRAW,
    SGM__SOURCE_FUNCTION_COUNT
} sgm__source_function;

typedef struct sgm__source_writer sgm__source_writer;

/* What each language has in its own way; C is the one without devices. */
typedef struct sgm__source_dialect {
    const char *counter; /* the type that counts elements */
    /* What the array is called that a node lies in, and at which of its elements the node begins (NULL: 0).
     */
    const char *(*array)(sgm__source_writer *w, int32_t node, bool written, const char **begin);
    /* The number itself, where the text needs no array; else NULL. */
    const char *(*known)(sgm__source_writer *w, int32_t node);
    /* What draws number `number` of a node's random numbers; lines before it may prepare that. */
    const char *(*draw)(sgm__source_writer *w, int32_t node, const char *number);
    /* A turn for each element of the axes `axes` (bits) of a shape; NULL: loops. */
    void (*turns)(sgm__source_writer *w, const sgm_shape *shape, uint32_t axes, const char **index);
} sgm__source_dialect;

struct sgm__source_writer {
    const sgm__source_dialect *dialect;
    const sgm__source_request *request;
    const sgm__source_program *program; /* which is written now */
    const sgm__plan *plan;              /* of it */
    char (*states)[SGM__SOURCE_NAME];   /* identifiers of its states */
    bool *constants;                    /* of its nodes: those that are arrays in the file */
    bool *inputs;                       /* that are read */
    char capitals[SGM__SOURCE_NAME], real[SGM__SOURCE_NAME]; /* the prefix in capitals, the type of numbers */
    sgm__text text;                                          /* the function's body */
    int32_t depth;                                           /* of blocks */
    int32_t opened;                                          /* of them, by the step */
    uint32_t functions;             /* bits of sgm__source_function, of the whole file */
    int32_t *step_of, *position_of; /* of nodes that an elementwise step computes; -1 */
    bool failed;                    /* an expression was too long for its room */
    int32_t next_room;
    char rooms[SGM__SOURCE_ROOMS][SGM__SOURCE_ROOM];
};

/* Axes that all operands and results of an elementwise step walk through in one go, made one. */
typedef struct sgm__source_walk {
    int32_t count;
    int64_t sizes[SGM_MAX_RANK];
    int32_t axes[SGM_MAX_RANK]; /* the last one of each: its strides count */
} sgm__source_walk;

/* source_text.c */
extern const sgm__source_dialect sgm__source_c;
/* A text that lasts until some dozens more were made. */
const char *sgm__source_format(sgm__source_writer *w, const char *format, ...) SGM_PRINTF(2, 3);
void sgm__source_line(sgm__source_writer *w, const char *format, ...) SGM_PRINTF(2, 3);
/* "for (...) {"; returns the variable, or NULL and no loop if there is only one turn. */
const char *sgm__source_loop(sgm__source_writer *w, const char *variable, int64_t count);
/* A block, unless the step has opened one already: for variables of its own. */
void sgm__source_block(sgm__source_writer *w);
void sgm__source_close(sgm__source_writer *w, int32_t count); /* so many blocks that were opened last */
/* Loops over the axes from `first` on, so many, of a shape, by the variables i0, i1, ...; how many were
 * opened.
 */
int32_t sgm__source_loops(sgm__source_writer *w, const sgm_shape *shape, int32_t first, int32_t count,
                          const char **index);
/* The same for those of the bits in `axes`, as the dialect has it: what is computed in them is independent.
 */
void sgm__source_turns(sgm__source_writer *w, const sgm_shape *shape, uint32_t axes, const char **index);
/* What elements are computed in. */
const char *sgm__source_type(const sgm__source_writer *w, sgm_dtype dtype);
/* A number of floating point, or an element of any type; a negative one stands in brackets. */
const char *sgm__source_number(sgm__source_writer *w, sgm_dtype dtype, double value);
const char *sgm__source_literal(sgm__source_writer *w, sgm_dtype dtype, const void *element);
/* An element of a value that lies in memory: an expression for each axis, NULL for 0. */
const char *sgm__source_element(sgm__source_writer *w, int32_t node, const char *const *index);
/* The same by an expression for its number, where the elements lie one after the other. */
const char *sgm__source_flat(sgm__source_writer *w, int32_t number, const char *expression);
/* Lines that make an element of a result `value`. */
void sgm__source_store(sgm__source_writer *w, int32_t node, const char *const *index, const char *value);
void sgm__source_store_flat(sgm__source_writer *w, int32_t node, const char *expression, const char *value);
/* "a * factor" of an expression, or NULL for NULL. */
const char *sgm__source_times(sgm__source_writer *w, const char *a, int64_t factor);
/* "a + b"; NULL is 0. */
const char *sgm__source_plus(sgm__source_writer *w, const char *a, const char *b);
void sgm__source_need(sgm__source_writer *w, sgm__source_function function);
int32_t sgm__source_operand(const sgm__source_writer *w, int32_t node, int32_t number);

/* source_elementwise.c */
/* Which elementwise step computes a node, and as which of its members: `step_of`, which is to be freed, and
 * `position_of`. */
sgm_status sgm__source_note_steps(sgm__source_writer *w);
sgm_status sgm__source_write_elementwise(sgm__source_writer *w, int32_t step);
bool sgm__source_has_formula(const sgm_op *op);
/* Integers of fewer than 64 bits: they are added up in 64, and brought within limits when that is stored. */
bool sgm__source_is_narrow(sgm_dtype dtype);
const char *sgm__source_sum_type(const sgm__source_writer *w, sgm_dtype dtype);
const char *sgm__source_of_sum(sgm__source_writer *w, sgm_dtype dtype, const char *sum);
/* A line that adds a product of two elements to "sum". */
void sgm__source_add_product(sgm__source_writer *w, sgm_dtype dtype, const char *a, const char *b);
void sgm__source_find_walk(const sgm__source_writer *w, int32_t step, sgm__source_walk *walk);
/* Lines that compute one element of each member, and store those that others read. */
void sgm__source_write_members(sgm__source_writer *w, int32_t step, const sgm__source_walk *walk,
                               const char *const *index);
/* The line before a loop that draws random numbers in C, and the expression for number `number`. */
void sgm__source_draw_begin(sgm__source_writer *w, int32_t node);
const char *sgm__source_draw(sgm__source_writer *w, int32_t node, const char *number);

/* source_kernels.c */
/* Whether a part of a concatenation was made in its place. */
bool sgm__source_lies_there(const sgm__node *part, const sgm__node *whole, int32_t axis, int64_t start);
/* A writer of kernels; false: not one of its operations. */
typedef bool (*sgm__source_kernel)(sgm__source_writer *w, int32_t node);
sgm__source_kernel sgm__source_find_kernel(const sgm_op *op); /* NULL: none */
sgm_status sgm__source_write_kernel(sgm__source_writer *w, int32_t step);

/* source_windows.c */
bool sgm__source_write_windows(sgm__source_writer *w, int32_t node);
/* The window that a node's operation moves. */
sgm_status sgm__source_measure(const sgm__source_writer *w, int32_t node, sgm__window *window);
/* (a * size + b), the way that nested arrays are counted. */
const char *sgm__source_nest(sgm__source_writer *w, const char *a, int64_t size, const char *b);

/* source_functions.c */
/* The body of the function that draws: Philox4x32-10 (Salmon et al., 2011). */
#define SGM__SOURCE_PHILOX                                                                                   \
    "    const uint64_t counter = (stream << 40) + (uint64_t)block;\n"                                       \
    "    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);\n"                                   \
    "    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);\n"                                 \
    "    uint32_t c2 = (uint32_t)step, c3 = (uint32_t)(step >> 32);\n"                                       \
    "    for (int round = 0; round < 10; round++) {\n"                                                       \
    "        const uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;\n"               \
    "        c0 = (uint32_t)(b >> 32) ^ c1 ^ key0;\n"                                                        \
    "        c1 = (uint32_t)b;\n"                                                                            \
    "        c2 = (uint32_t)(a >> 32) ^ c3 ^ key1;\n"                                                        \
    "        c3 = (uint32_t)a;\n"                                                                            \
    "        key0 += 0x9E3779B9u;\n"                                                                         \
    "        key1 += 0xBB67AE85u;\n"                                                                         \
    "    }\n"                                                                                                \
    "    words[0] = c0;\n"                                                                                   \
    "    words[1] = c1;\n"                                                                                   \
    "    words[2] = c2;\n"                                                                                   \
    "    words[3] = c3;\n"

/* Those of `needed` and what they call, in order. */
void sgm__source_write_functions(const sgm__source_request *request, uint32_t needed, sgm__text *text);
/* `$` stands for the prefix of names, `@` for the type of numbers, `~` for the prefix in capitals. */
void sgm__source_write_template(const sgm__source_request *request, const char *words, sgm__text *text);
char *sgm__source_capitals(const char *name, char *buffer, size_t size);
char *sgm__source_real(const sgm__source_request *request, char *buffer, size_t size);

#endif
