/* A compiled elementwise step: values (slots), instructions (micros), and how tiles cover the elements.
 * Internal.
 *
 * The step's elements are seen as `rows` of `columns`, or as one long row if all operands and results are
 * contiguous. A tile is a part of one row, or some whole rows. Interpreted (elementwise_run.c), each
 * instruction is one loop over the tile, which stays in the first cache; operands that do not lie as the
 * result does are loaded into a buffer first. Machine code (generate.c) does all instructions for 16
 * elements, then the next 16, and goes from row to row by itself where the elements of each operand's rows
 * are contiguous (`by_rows`), so that nothing has to be loaded or stored beside it. Where random numbers are
 * drawn, a tile's numbers are drawn into a buffer before its first instruction.
 *
 * elementwise_compile.c makes slots and micros, elementwise_tiles.c chooses tiles and buffers, generate.c
 * writes machine code. */
#ifndef SGM_HANDLERS_CPU_ELEMENTWISE_ELEMENTWISE_H
#define SGM_HANDLERS_CPU_ELEMENTWISE_ELEMENTWISE_H

#include "handlers/cpu/elementwise/assembler.h"
#include "handlers/cpu/elementwise/step.h"

#define SGM__ELEMENTWISE_MAXIMUM_INPUTS 16

/* Where a value's elements are during a tile. */
typedef enum sgm__slot_kind {
    SGM__SLOT_DENSE, /* contiguous in the order of the result: used in place */
    SGM__SLOT_ROW,   /* contiguous within a row: used in place */
    SGM__SLOT_STILL, /* one number: SGM__STILL_BYTES of it in the thread's memory, filled once by each task */
    SGM__SLOT_FIXED, /* the same for each tile: loaded into a buffer once by each task */
    SGM__SLOT_LOADED, /* loaded into a buffer for each tile */
    SGM__SLOT_DRAWN,  /* random numbers: drawn into a buffer for each tile */
    SGM__SLOT_STORED, /* a result, in a buffer: stored after each tile */
    SGM__SLOT_BUFFER  /* only between two instructions: in a buffer, or in a register of machine code */
} sgm__slot_kind;

/* A value of the step: an operand from outside, a result, or something in between. */
typedef struct sgm__slot {
    sgm__slot_kind kind;
    int32_t node;
    int32_t buffer; /* number of its buffer (STILL: of its single number); -1: none */
    size_t size;    /* of an element */
    sgm__place place;
    int64_t strides[SGM_MAX_RANK]; /* of the collapsed dimensions, in elements */
    bool written;                  /* made by this step, not an operand from outside */
    bool drawn;                    /* random numbers: no instruction's result */
} sgm__slot;

/* One instruction: an operation on slots. */
typedef struct sgm__micro {
    /* A loop over the tile; NULL: the operation's formula, element by element. */
    sgm__vector_function function;
    const sgm_op *op;
    const sgm_attributes *attributes;
    int32_t input_count, inputs[SGM__ELEMENTWISE_MAXIMUM_INPUTS], output; /* slots */
    uint32_t still; /* bit k: input k is one number for all elements */
} sgm__micro;

/* Constant after compiling, so that several threads can run it at once. */
struct sgm__elementwise {
    const sgm__plan *plan;
    sgm__slot *slots;
    int32_t slot_count;
    sgm__micro *micros;
    int32_t micro_count;
    int32_t draws; /* slots of random numbers */
    int32_t rank;  /* of the collapsed dimensions; the last one is the columns */
    int64_t dims[SGM_MAX_RANK];
    int64_t elements, rows, columns;
    int64_t tile_rows, tile_columns; /* of a full tile: part of a row, or whole rows */
    int64_t tiles, tasks;            /* tasks divide the tiles evenly */
    /* How many of both a thread's memory has: single numbers of SGM__STILL_BYTES first, then buffers of
     * `buffer_bytes`, then the addresses of all slots for machine code. thread_bytes is the sum. */
    int32_t stills, buffers;
    size_t buffer_bytes, thread_bytes;
    int32_t threads;
    bool copies;     /* one strided copy and nothing else: sgm__cpu_copy does it */
    bool by_rows;    /* machine code does any number of rows in one call */
    int64_t code_at; /* where its machine code begins; -1: there is none */
    /* Machine code for `rows` rows of `n` elements. `addresses` has one pointer for each slot, which the code
     * moves on from row to row. NULL: interpreted. */
    void (*code)(int64_t n, void **addresses, int64_t rows);
    bool whole; /* machine code can take any number of neighbouring tiles as one */
};

/* Whether the slot's elements are contiguous in the order of the result. */
bool sgm__slot_is_dense(const sgm__elementwise *e, const sgm__slot *slot);
/* Appends the step's machine code and sets `code_at`, if such code can be written (generate.c). */
void sgm__generate(sgm__elementwise *e, const sgm__vector *vector, sgm__assembler *assembler);
/* Chooses tiles and tasks, and gives values their buffers. `coded`: for machine code, else for vector loops.
 * May be called again with the other value; the last call counts. */
sgm_status sgm__elementwise_lay_out(sgm__elementwise *e, bool coded);
/* Bytes from one row of a slot in memory to the next. */
int64_t sgm__slot_row_bytes(const sgm__elementwise *e, const sgm__slot *slot);

#endif
