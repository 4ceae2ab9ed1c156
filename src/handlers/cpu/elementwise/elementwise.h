/* A fused elementwise step as a small program that runs tile by tile. Internal.
 *
 * The step's elements are seen as `rows` of `columns`; where all operands lie so, as one long row. A tile is
 * a part of one row, or some whole rows. Each instruction is one loop over the tile, which stays in the first
 * cache; operands that do not lie as the result does are loaded into a buffer first. Machine code goes from
 * row to row by itself where each operand's rows lie together, so that nothing has to be loaded or stored
 * beside it; where random numbers are drawn, those of a few rows at a time.
 */
#ifndef SGM_HANDLERS_CPU_ELEMENTWISE_ELEMENTWISE_H
#define SGM_HANDLERS_CPU_ELEMENTWISE_ELEMENTWISE_H

#include "handlers/cpu/elementwise/assembler.h"
#include "handlers/cpu/elementwise/step.h"

#define SGM__ELEMENTWISE_MAXIMUM_INPUTS 16

typedef enum sgm__slot_kind {
    SGM__SLOT_DENSE,  /* memory in the order of the result: used where it is */
    SGM__SLOT_ROW,    /* a part of a row lies together: used where it is */
    SGM__SLOT_STILL,  /* one number: SGM__STILL_BYTES of it, filled once by each task */
    SGM__SLOT_FIXED,  /* the same for each tile: loaded once by each task */
    SGM__SLOT_LOADED, /* loaded for each tile */
    SGM__SLOT_DRAWN,  /* random numbers, drawn for each tile before its first instruction */
    SGM__SLOT_STORED, /* a result that is stored after each tile */
    SGM__SLOT_BUFFER  /* between two instructions */
} sgm__slot_kind;

/* A value of the step: an operand from outside, a result, or something in between. */
typedef struct sgm__slot {
    sgm__slot_kind kind;
    int32_t node;
    int32_t buffer; /* number of its buffer; -1: none */
    size_t size;    /* of an element */
    sgm__place place;
    int64_t strides[SGM_MAX_RANK]; /* collapsed */
    bool written;
    bool drawn; /* random numbers: no instruction's result */
} sgm__slot;

typedef struct sgm__micro {
    sgm__vector_function function; /* NULL: the formula for one element, by `op` */
    const sgm_op *op;
    const sgm_attributes *attributes;
    int32_t input_count, inputs[SGM__ELEMENTWISE_MAXIMUM_INPUTS], output; /* slots */
    uint32_t still;                                                       /* bit k: input k is */
} sgm__micro;

struct sgm__elementwise {
    const sgm__plan *plan;
    sgm__slot *slots;
    int32_t slot_count;
    sgm__micro *micros;
    int32_t micro_count;
    int32_t draws; /* slots that are drawn */
    int32_t rank;
    int64_t dims[SGM_MAX_RANK];
    int64_t elements, rows, columns;
    int64_t tile_rows, tile_columns; /* one of them is 1, or all rows are in one tile */
    int64_t tiles, tasks;
    int32_t stills, buffers; /* a thread's scratch memory: those of single numbers, then those of tiles */
    size_t buffer_bytes, thread_bytes;
    int32_t threads;
    bool copies;     /* one strided copy and nothing else */
    bool by_rows;    /* a tile is a row; machine code does any number of them */
    int64_t code_at; /* where its machine code begins; -1: there is none */
    /* Of `rows` rows of `n` elements; the slots' addresses, which it changes. NULL: interpreted. */
    void (*code)(int64_t n, void **addresses, int64_t rows);
    bool whole; /* machine code takes any number of tiles as one */
};

/* The slot's elements lie as the result's do. */
bool sgm__slot_is_dense(const sgm__elementwise *e, const sgm__slot *slot);
/* Adds the step's machine code and sets `code_at`, if it can be written (generate.c). */
void sgm__generate(sgm__elementwise *e, const sgm__vector *vector, sgm__assembler *assembler);
/* Chooses tiles and tasks, and gives values their buffers. `coded`: for machine code, else for loops; the
 * last call counts. */
sgm_status sgm__elementwise_lay_out(sgm__elementwise *e, bool coded);
/* Bytes from one row of a slot in memory to the next. */
int64_t sgm__slot_row_bytes(const sgm__elementwise *e, const sgm__slot *slot);

#endif
