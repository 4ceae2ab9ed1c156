/* Writes programs as C: what a handler would run becomes one file of C99 that needs no library. Internal.
 *
 * The export of trained networks (src/infer/export/export_c.c) plans graphs with sgm__source_handler and
 * passes the plans to sgm__source_write (source.c). A plan says what is computed in which order and where it
 * lies; for each of its steps there is a function here that writes loops. All sizes are numbers in the text,
 * so that a compiler sees everything.
 *
 * The same writers produce the formulas and loops of kernels for devices (handlers/device/code/): what
 * differs is a dialect, a small table of functions (sgm__source_dialect). Every file of this folder shares
 * one sgm__source_writer, the state of writing.
 */
#ifndef SGM_HANDLERS_SOURCE_H
#define SGM_HANDLERS_SOURCE_H

#include "handlers/handler.h"
#include "ops/window.h"

/* A handler to plan for, which cannot run anything. It computes no composed operation whole, so that the
 * planner expands all of them, draws random numbers in elementwise steps, and allows results with gaps
 * between rows. */
const sgm_handler *sgm__source_handler(void);

/* What an input of a plan is in C: a parameter of the function, an array or one number, or an expression
 * without a parameter. */
typedef struct sgm__source_input {
    const char *name;   /* the parameter's name, or the expression */
    bool number;        /* the parameter is a number and no pointer */
    bool expression;    /* `name` is an expression, such as the count of updates, and no parameter */
    uint32_t functions; /* functions that the expression calls: bits of sgm__source_function */
} sgm__source_input;

/* A plan that becomes the function "int NAME_FUNCTION(inputs..., outputs...)", which returns 0, or 1 if an
 * index was out of range. */
typedef struct sgm__source_program {
    /* `doc` is lines for the comment before the function, without what each parameter is. */
    const char *function, *doc;
    const sgm__plan *plan;
    const sgm__source_input *inputs; /* one for each input of the plan */
    const char *const *outputs;      /* names of the parameters, one for each output of the plan */
    const char *last;                /* a statement at the function's end; NULL: none */
} sgm__source_program;

/* What sgm__source_write shall write: one file with the functions of several plans, which share states and
 * memory. */
typedef struct sgm__source_request {
    const char *name;  /* the prefix of all names in the file: an identifier */
    const char *about; /* lines of the comment at the top of the file */
    sgm_dtype real;    /* the type in which the file computes: float32 or float64 */
    const sgm__source_program *programs;
    int32_t program_count;
    /* The updates that the network has had. Files with `has_states` count on from there, in
     * NAME_updates[0]. */
    int64_t updates;
    /* The file gets functions through which its user saves and restores the states that change. */
    bool has_states;
    /* What the file has beside the functions of the plans: where users see it, and where they do not. NULL:
     * nothing. */
    const char *declarations, *definitions;
    /* Gives a new tensor with a state's value, which the writer frees; NULL: fails. */
    sgm_tensor *(*state)(void *user, const char *name);
    void *user;
} sgm__source_request;

/* Appends the file to `text`. A plan that cannot be written is an error that names the instruction and its
 * layer. */
sgm_status sgm__source_write(const sgm__source_request *request, sgm__text *text);
/* Makes of a name the part of an identifier, in `buffer`: characters that no identifier has become "_". */
char *sgm__source_identifier(const char *name, char *buffer, size_t size);

/* --- inside --- */

/* Expressions live in a ring of so many rooms of so many bytes each: the text of one must be used before
 * SGM__SOURCE_ROOMS others are made. An expression that is longer than a room makes the step or the file
 * fail. */
#define SGM__SOURCE_ROOMS 128
#define SGM__SOURCE_ROOM 384
#define SGM__SOURCE_NAME 128

/* Functions that the text may call; source_functions.c has them for C, handlers/device/code/code_functions.c
 * for devices. The order is such that a function calls only earlier ones. */
typedef enum sgm__source_function {
    SGM__SOURCE_EXP,
    SGM__SOURCE_LOG,
    SGM__SOURCE_LOG1P,
    SGM__SOURCE_SQRT,
    SGM__SOURCE_SIGMOID,
    SGM__SOURCE_TANH,
    SGM__SOURCE_ERF_SERIES,
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

/* What differs between C and the languages of devices. */
typedef struct sgm__source_dialect {
    const char *counter; /* the type of indices and counts of elements */
    /* The name of the array or pointer that a node lies in, and in *begin the index of the node's first
     * element (NULL: 0). */
    const char *(*array)(sgm__source_writer *w, int32_t node, bool written, const char **begin);
    /* The node's value as text, if no array is needed for it (a constant number, a parameter); else NULL. */
    const char *(*known)(sgm__source_writer *w, int32_t node);
    /* An expression for element `number` of a node's random numbers; it may write lines before. */
    const char *(*draw)(sgm__source_writer *w, int32_t node, const char *number);
    /* Opens one turn for each element of the axes of a shape that the bits `axes` select, as work-items, say;
     * NULL: as loops. */
    void (*turns)(sgm__source_writer *w, const sgm_shape *shape, uint32_t axes, const char **index);
} sgm__source_dialect;

/* The state of writing. The first part is of the file or plan, the rest of the function and step that is
 * being written. */
struct sgm__source_writer {
    const sgm__source_dialect *dialect;
    const sgm__source_request *request;
    const sgm__source_program *program; /* the program that is being written */
    const sgm__plan *plan;              /* its plan */
    char (*states)[SGM__SOURCE_NAME];   /* identifiers of the plan's states */
    /* Of nodes: constants that the text uses as arrays, and that the file must contain. */
    bool *constants;
    /* Of inputs: those that the text reads; others are marked as unused. */
    bool *inputs;
    /* The prefix of names in capitals; the name of the type of numbers. */
    char capitals[SGM__SOURCE_NAME], real[SGM__SOURCE_NAME];
    sgm__text text; /* the body of the function, so far */
    int32_t depth;  /* nesting of blocks, for indentation */
    /* How many blocks the present step has opened and not closed. */
    int32_t opened;
    uint32_t functions; /* functions that the whole file calls: bits of sgm__source_function */
    /* Of nodes: the elementwise step that computes them, or -1, and the place in it. */
    int32_t *step_of, *position_of;
    /* Something could not be written, such as an expression too long for its room. */
    bool failed;
    int32_t next_room;
    char rooms[SGM__SOURCE_ROOMS][SGM__SOURCE_ROOM];
};

/* The axes of an elementwise step, with neighbouring axes joined to one where all operands and results
 * continue from one to the other with one stride. */
typedef struct sgm__source_walk {
    int32_t count;
    int64_t sizes[SGM_MAX_RANK];
    int32_t axes[SGM_MAX_RANK]; /* of each: the last axis in it, whose strides hold for all of it */
} sgm__source_walk;

/* source_text.c */
extern const sgm__source_dialect sgm__source_c;
/* A text in one of the writer's rooms: it lasts until SGM__SOURCE_ROOMS more are made. */
const char *sgm__source_format(sgm__source_writer *w, const char *format, ...) SGM_PRINTF(2, 3);
/* Appends an indented line to the function's text. */
void sgm__source_line(sgm__source_writer *w, const char *format, ...) SGM_PRINTF(2, 3);
/* The same for a line in front of a block, "if (a < b)", say; the block is closed by sgm__source_close. */
void sgm__source_open(sgm__source_writer *w, const char *format, ...) SGM_PRINTF(2, 3);
/* Opens a loop of `count` turns and returns its variable. For one turn it opens nothing and returns NULL,
 * which stands for 0. */
const char *sgm__source_loop(sgm__source_writer *w, const char *variable, int64_t count);
/* Opens a block for variables of the step, unless a loop is open already. */
void sgm__source_block(sgm__source_writer *w);
void sgm__source_close(sgm__source_writer *w, int32_t count); /* closes the `count` innermost blocks */
/* Opens loops over `count` axes of a shape from `first` on, with variables i0, i1, ... in `index`; returns
 * how many were opened. */
int32_t sgm__source_loops(sgm__source_writer *w, const sgm_shape *shape, int32_t first, int32_t count,
                          const char **index);
/* Opens a turn for each element of the axes in the bits `axes`, in the dialect's way. Turns must not depend
 * on each other. */
void sgm__source_turns(sgm__source_writer *w, const sgm_shape *shape, uint32_t axes, const char **index);
/* The type that values of `dtype` are computed in. */
const char *sgm__source_type_name(const sgm__source_writer *w, sgm_dtype dtype);
/* A number as text that reads back as the same number; negative ones are in brackets. */
const char *sgm__source_number(sgm__source_writer *w, sgm_dtype dtype, double value);
/* The same for an element in memory of any type. */
const char *sgm__source_literal(sgm__source_writer *w, sgm_dtype dtype, const void *element);
/* A constant of which all elements are one number, as text; NULL: the node is none. */
const char *sgm__source_constant(sgm__source_writer *w, int32_t node);
/* An expression for an element of a value in memory; `index` has an expression for each axis, NULL for 0. */
const char *sgm__source_element(sgm__source_writer *w, int32_t node, const char *const *index);
/* The same by an expression for the element's number, for values without gaps. */
const char *sgm__source_flat(sgm__source_writer *w, int32_t number, const char *expression);
/* A line that stores `value` as an element of a result. */
void sgm__source_store(sgm__source_writer *w, int32_t node, const char *const *index, const char *value);
void sgm__source_store_flat(sgm__source_writer *w, int32_t node, const char *expression, const char *value);
/* The expression "a * factor", in which NULL stands for 0. */
const char *sgm__source_times(sgm__source_writer *w, const char *a, int64_t factor);
/* The expression "a + b", in which NULL stands for 0. */
const char *sgm__source_plus(sgm__source_writer *w, const char *a, const char *b);
/* Notes that the text calls a function. */
void sgm__source_need(sgm__source_writer *w, sgm__source_function function);
/* The node that is operand `number` of a node. */
int32_t sgm__source_operand(const sgm__source_writer *w, int32_t node, int32_t number);

/* source_elementwise.c */
/* Fills in `step_of` and `position_of`, one allocation, which the caller frees through `step_of`. */
sgm_status sgm__source_note_steps(sgm__source_writer *w);
sgm_status sgm__source_write_elementwise(sgm__source_writer *w, int32_t step);
/* Whether an elementwise operation can be written. */
bool sgm__source_has_formula(const sgm_op *op);
/* Integers of fewer than 64 bits: they are added up in 64 bits, and limited to their type's range when the
 * sum is stored. */
bool sgm__source_is_narrow(sgm_dtype dtype);
/* The type in which values of a type are summed, and the expression that makes an element of a sum. */
const char *sgm__source_sum_type(const sgm__source_writer *w, sgm_dtype dtype);
const char *sgm__source_of_sum(sgm__source_writer *w, sgm_dtype dtype, const char *sum);
/* A line that adds the product of two elements to the variable "sum". */
void sgm__source_add_product(sgm__source_writer *w, sgm_dtype dtype, const char *a, const char *b);
/* Finds the axes that a step walks along. */
void sgm__source_find_walk(const sgm__source_writer *w, int32_t step, sgm__source_walk *walk);
/* Lines that compute one element of each member of a step, and store those that lie in memory. */
void sgm__source_write_members(sgm__source_writer *w, int32_t step, const sgm__source_walk *walk,
                               const char *const *index);
/* The line in front of a loop that draws random numbers in C, and within it the expression for number
 * `number`. The loop must go through the numbers in ascending order, as four are drawn at a time. */
void sgm__source_draw_begin(sgm__source_writer *w, int32_t node);
const char *sgm__source_draw(sgm__source_writer *w, int32_t node, const char *number);

/* source_kernels.c */
/* Whether an operand of a concatenation was computed in the result's memory, from entry `start` of the axis
 * on. */
bool sgm__source_lies_there(const sgm__node *part, const sgm__node *whole, int32_t axis, int64_t start);
/* A function that writes the loops of one operation. False: it cannot write this node. */
typedef bool (*sgm__source_kernel)(sgm__source_writer *w, int32_t node);
sgm__source_kernel sgm__source_find_kernel(const sgm_op *op); /* NULL: none */
sgm_status sgm__source_write_kernel(sgm__source_writer *w, int32_t step);

/* source_windows.c */
bool sgm__source_write_windows(sgm__source_writer *w, int32_t node);
/* The window of a convolution, a pooling or one of their gradients. */
sgm_status sgm__source_measure(const sgm__source_writer *w, int32_t node, sgm__window *window);
/* The number of an element in (examples, channels, height, width); `extent` is (height, width). NULL stands
 * for 0. */
const char *sgm__source_in_image(sgm__source_writer *w, const char *example, const char *channel,
                                 int64_t channels, const char *row, const char *column,
                                 const int64_t *extent);
/* The expression "a * size + b", which counts elements of nested arrays. */
const char *sgm__source_nest(sgm__source_writer *w, const char *a, int64_t size, const char *b);

/* source_functions.c */
/* The body of the function that draws four random words: Philox4x32-10 (Salmon et al., 2011), with the seed
 * as key and (stream, block, step) as counter, as src/ops/ has it. Used for C and for devices. */
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

/* Appends the functions in `needed` and those that they call. */
void sgm__source_write_functions(const sgm__source_request *request, uint32_t needed, sgm__text *text);
/* Appends a text in which `$` stands for the prefix of names, `@` for the type of numbers and `~` for the
 * prefix in capitals. */
void sgm__source_write_template(const sgm__source_request *request, const char *words, sgm__text *text);
/* A name in capitals. */
char *sgm__source_capitals(const char *name, char *buffer, size_t size);
/* The name of the type in which the file computes: NAME_REAL, which its user may define as double, or
 * double. */
char *sgm__source_real(const sgm__source_request *request, char *buffer, size_t size);

#endif
