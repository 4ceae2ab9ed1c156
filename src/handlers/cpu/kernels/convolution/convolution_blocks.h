/* Convolutions of bfloat16 by blocks, as AMX multiplies them, and both their gradients. Internal.
 *
 * Forward, rows of a block are filters, its columns are neighbouring pixels of the result, its steps are
 * (32 channels, place of the kernel). What a place reads for neighbouring pixels has to be neighbours, too:
 * so each image is copied into sheets, one for each shift of the columns that the places of a row make, whose
 * rows are as long as those of the result. In a sheet a place of another row is a multiple of a row away.
 * With a stride, sheets are of every second row and column. The gradient by the input is the same with the
 * roles of channels and filters swapped; with a stride it is a pass for each remainder that rows and columns
 * of the input leave, which has the places that meet those. The gradient by the weights has channels as rows,
 * filters as columns and the pixels of some images as steps. */
#ifndef SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_CONVOLUTION_BLOCKS_H
#define SGM_HANDLERS_CPU_KERNELS_CONVOLUTION_CONVOLUTION_BLOCKS_H

#include "handlers/cpu/kernels/convolution/convolution.h"

#define SGM__SHEETS_PLACES 64 /* of a kernel, at most */
#define SGM__SHEETS_STRIDE 2  /* at most */
#define SGM__SHEETS_PASSES (SGM__SHEETS_STRIDE * SGM__SHEETS_STRIDE)

/* Rows and columns of the source, from `phase` on, `source_stride` apart. Column i of the sheet is column i +
 * shift of these, row i row i + origin; what is not there is 0. */
typedef struct sgm__sheet {
    int32_t phase[2];
    int64_t shift, origin;
} sgm__sheet;

/* What a place of the kernel reads for pixel 0 of the result: row `row` of a sheet. */
typedef struct sgm__sheet_place {
    int32_t place, sheet;
    int64_t row;
} sgm__sheet_place;

/* Some rows and columns of the result, `target_stride` apart from `phase` on, and the places that reach them.
 */
typedef struct sgm__sheet_pass {
    int64_t phase[2], out[2];
    int64_t rows; /* of a sheet */
    int32_t place_count, sheet_count;
    sgm__sheet_place places[SGM__SHEETS_PLACES];
    sgm__sheet sheets[SGM__SHEETS_PLACES];
} sgm__sheet_pass;

/* A convolution as sheets. `in` and `depth`: what sheets are copied from, and its channels; `out` and
 * `width`: what is computed. */
typedef struct sgm__sheets {
    sgm__window window;
    bool backward; /* the gradient by the input */
    int64_t in[2], out[2], depth, width, source_stride[2], target_stride[2];
    int32_t pass_count;
    sgm__sheet_pass passes[SGM__SHEETS_PASSES];
} sgm__sheets;

/* Elements from one line of memory to the next: a step more where lines would lie so that they displace each
 * other in the first cache. */
static inline int64_t sgm__sheet_spread(int64_t elements, int64_t step)
{
    return elements % 512 == 0 ? elements + step : elements;
}

/* Whether blocks compute a convolution of this window, in all three ways. */
bool sgm__sheets_fit(const sgm__cpu *cpu, const sgm__window *window);
/* For the result, or if `backward` for the gradient by the input. */
sgm__sheets sgm__sheets_make(const sgm__window *window, bool backward);

/* How sheets lie in memory. Elements are bfloat16, or pairs of two channels; all but the first two members
 * count them. Images may be side by side: then a row of the sheet has that row of each of them, so that a row
 * away stays a multiple of a vector away. */
typedef struct sgm__sheet_layout {
    bool pairs;
    int64_t images;
    int64_t length; /* of a row, with all images */
    int64_t row;    /* from a row to the next one */
    int64_t apart;  /* from a channel's or a pair's sheet to the next one */
    int64_t planes; /* channels or pairs of a sheet; those behind the last channel are 0 */
    int64_t size;   /* a sheet of all planes */
} sgm__sheet_layout;

/* Of pairs, for blocks that read SGM__BLOCK_COLUMNS / 2 neighbours at a time, and up to as many behind the
 * end: with a row of all planes together, if rows are whole vectors, else one plane behind the other. */
sgm__sheet_layout sgm__sheets_of_pairs(const sgm__sheet_pass *pass, int64_t planes);
/* The rows *first .. *last - 1 of a sheet that are rows of the image; the others are 0. */
void sgm__sheet_rows(const sgm__sheets *s, const sgm__sheet_pass *pass, int32_t sheet, int64_t *first,
                     int64_t *last);
/* `count` channels of an image to one sheet, as image number `position` of those side by side; with number 0
 * planes without a channel are cleared. */
void sgm__sheets_copy(const sgm__cpu *cpu, const sgm__sheets *s, const sgm__sheet_pass *pass, int32_t sheet,
                      const sgm__sheet_layout *l, const uint16_t *image, int64_t count, int64_t position,
                      void *to);

/* The sheet that differs from this one by its shift alone, which is 0, and has all columns of the image; -1:
 * there is none. */
int32_t sgm__sheet_base(const sgm__sheets *s, const sgm__sheet_pass *pass, int32_t sheet);
/* A sheet from its base, of all images. */
void sgm__sheets_shift(const sgm__sheet_pass *pass, int32_t sheet, const sgm__sheet_layout *l, int64_t planes,
                       const void *base, void *to);

/* The kernels, for calls whose window fits. */
size_t sgm__blocks_scratch(const sgm__cpu_call *call, const sgm__sheets *s);
void sgm__blocks_run(const sgm__cpu_call *call, const sgm__sheets *s);
size_t sgm__blocks_weights_scratch(const sgm__cpu_call *call, const sgm__sheets *s);
void sgm__blocks_weights_run(const sgm__cpu_call *call, const sgm__sheets *s);

#endif
