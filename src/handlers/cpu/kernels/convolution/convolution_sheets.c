/* Copies images into sheets, as blocks read them; see convolution_blocks.h. */
#include "handlers/cpu/kernels/convolution/convolution_blocks.h"

/* Channels and filters from which on blocks are well filled. */
#define MINIMUM_CHANNELS 16
/* Columns up to which sheets are made from each other: of more, copies of the image's rows are faster. */
#define NARROW 16

bool sgm__sheets_fit(const sgm__cpu *cpu, const sgm__window *w)
{
    return cpu->vector->pairs.block_gather != NULL && w->groups == 1 && w->channels >= MINIMUM_CHANNELS &&
           w->filters >= MINIMUM_CHANNELS && w->size[0] * w->size[1] <= SGM__SHEETS_PLACES &&
           w->stride[0] <= SGM__SHEETS_STRIDE && w->stride[1] <= SGM__SHEETS_STRIDE && w->batch > 0 &&
           w->out[0] * w->out[1] > 0 && w->in[0] * w->in[1] > 0;
}

/* --- which places read what --- */

/* Where place `place` of the kernel reads for row or column 0 of the result: which remainder, and how many
 * strides away; false: never. */
static bool place_at(const sgm__sheets *s, int axis, int64_t place, int64_t phase, int32_t *source_phase,
                     int64_t *shift)
{
    const sgm__window *w = &s->window;
    int64_t stride = w->stride[axis], step = place * w->dilation[axis];
    int64_t at = s->backward ? phase + w->before[axis] - step : step - w->before[axis];
    int64_t remainder = (at % stride + stride) % stride;
    *shift = (at - remainder) / stride;
    *source_phase = s->backward ? 0 : (int32_t)remainder;
    return !s->backward || remainder == 0;
}

/* The sheet with these columns, which is added if there is none yet; it begins at the first row that a place
 * reads of it. */
static int32_t find_sheet(sgm__sheet_pass *pass, sgm__sheet wanted)
{
    int32_t i = 0;
    for (; i < pass->sheet_count; i++) {
        sgm__sheet *sheet = &pass->sheets[i];
        if (sheet->phase[0] == wanted.phase[0] && sheet->phase[1] == wanted.phase[1] &&
            sheet->shift == wanted.shift) {
            sheet->origin = sgm__minimum(sheet->origin, wanted.origin);
            return i;
        }
    }
    pass->sheets[pass->sheet_count++] = wanted;
    return i;
}

static void make_pass(const sgm__sheets *s, sgm__sheet_pass *pass)
{
    const sgm__window *w = &s->window;
    for (int axis = 0; axis < 2; axis++)
        pass->out[axis] = sgm__divide_up(s->out[axis] - pass->phase[axis], s->target_stride[axis]);
    for (int64_t row = 0; row < w->size[0]; row++)
        for (int64_t column = 0; column < w->size[1]; column++) {
            sgm__sheet sheet = {.shift = 0};
            if (!place_at(s, 0, row, pass->phase[0], &sheet.phase[0], &sheet.origin) ||
                !place_at(s, 1, column, pass->phase[1], &sheet.phase[1], &sheet.shift))
                continue;
            pass->places[pass->place_count++] = (sgm__sheet_place){(int32_t)(row * w->size[1] + column),
                                                                   find_sheet(pass, sheet), sheet.origin};
        }
    pass->rows = pass->out[0];
    for (int32_t i = 0; i < pass->place_count; i++) {
        sgm__sheet_place *place = &pass->places[i];
        place->row -= pass->sheets[place->sheet].origin;
        pass->rows = place->row + pass->out[0] > pass->rows ? place->row + pass->out[0] : pass->rows;
    }
}

sgm__sheets sgm__sheets_make(const sgm__window *window, bool backward)
{
    const sgm__window *w = window;
    sgm__sheets s = {.window = *w,
                     .backward = backward,
                     .depth = backward ? w->filters : w->channels,
                     .width = backward ? w->channels : w->filters};
    for (int axis = 0; axis < 2; axis++) {
        s.in[axis] = backward ? w->out[axis] : w->in[axis];
        s.out[axis] = backward ? w->in[axis] : w->out[axis];
        s.source_stride[axis] = backward ? 1 : w->stride[axis];
        s.target_stride[axis] = backward ? w->stride[axis] : 1;
    }
    for (int64_t row = 0; row < s.target_stride[0]; row++)
        for (int64_t column = 0; column < s.target_stride[1]; column++) {
            sgm__sheet_pass *pass = &s.passes[s.pass_count];
            *pass = (sgm__sheet_pass){.phase = {row, column}}; /* the last one may have been empty */
            make_pass(&s, pass);
            s.pass_count += pass->out[0] > 0 && pass->out[1] > 0;
        }
    return s;
}

/* --- layouts --- */

sgm__sheet_layout sgm__sheets_of_pairs(const sgm__sheet_pass *pass, int64_t planes)
{
    int64_t width = pass->out[1], half = SGM__BLOCK_COLUMNS / 2;
    sgm__sheet_layout l = {.pairs = true, .images = half % width == 0 ? half / width : 1, .planes = planes};
    l.length = l.images * width;
    if (l.length % half == 0) {
        l.row = planes * l.length;
        l.apart = l.length;
        l.size = pass->rows * l.row + half;
        return l;
    }
    l.row = l.length;
    l.apart = sgm__sheet_spread(sgm__divide_up(pass->rows * l.length + half, half) * half, half);
    l.size = planes * l.apart;
    return l;
}

void sgm__sheet_rows(const sgm__sheets *s, const sgm__sheet_pass *pass, int32_t sheet, int64_t *first,
                     int64_t *last)
{
    const sgm__sheet *from = &pass->sheets[sheet];
    int64_t there = sgm__divide_up(s->in[0] - from->phase[0], s->source_stride[0]);
    *first = sgm__minimum(from->origin < 0 ? -from->origin : 0, pass->rows);
    *last = sgm__minimum(pass->rows, there - from->origin);
    *last = *last > *first ? *last : *first;
}

/* --- copies --- */

typedef uint32_t pair;

/* An element and the one behind it. */
static inline pair load_two(const uint16_t *from)
{
    pair two;
    memcpy(&two, from, sizeof two);
    return two;
}

/* Neighbours of two channels, of a number that is known where this is inlined. */
static inline __attribute__((always_inline)) void join_rows(const uint16_t *from, int64_t partner,
                                                            int64_t count, pair *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i] | (pair)from[partner + i] << 16;
}

/* `count` elements of one or two channels, `stride` apart. `partner`: from a channel to the next one; 0:
 * there is none. */
static void copy_apart(bool pairs, const uint16_t *from, int64_t partner, int64_t stride, int64_t count,
                       void *to)
{
    uint16_t *singles = to;
    pair *both = to;
    int64_t i = 0;
    if (pairs && partner != 0 && stride == 1 && count == 8) {
        join_rows(from, partner, 8, both);
        return;
    }
    if (pairs && partner != 0 && stride == 1 && count == 4) {
        join_rows(from, partner, 4, both);
        return;
    }
    /* Elements between those are read, and left out: but behind the last there may be nothing. */
    if (pairs && partner != 0 && stride == 2)
        for (; i < count - 1; i++)
            both[i] = (load_two(from + 2 * i) & 0xffff) | load_two(from + partner + 2 * i) << 16;
    for (; pairs && i < count; i++)
        both[i] = from[i * stride] | (partner != 0 ? (pair)from[partner + i * stride] << 16 : 0);
    for (; i < count; i++)
        singles[i] = from[i * stride];
}

/* The same of neighbours. */
static void copy_neighbours(const sgm__cpu *cpu, bool pairs, const uint16_t *from, int64_t partner,
                            int64_t count, void *to)
{
    if (pairs)
        cpu->vector->pairs.copy_rows(to, count, from, partner, count, partner != 0 ? 2 : 1);
    else
        memcpy(to, from, (size_t)count * sizeof *from);
}

/* A few elements. */
static inline void clear(bool pairs, void *to, int64_t first, int64_t count)
{
    for (int64_t i = first; i < first + count; i++)
        if (pairs)
            ((pair *)to)[i] = 0;
        else
            ((uint16_t *)to)[i] = 0;
}

/* What is copied: one sheet's share of an image, and where it lies. `begin` and `width`: columns of the sheet
 * that are columns of the image, of which the first one is `column`; rows are `first` .. `last` - 1. */
typedef struct copying {
    const sgm__cpu *cpu;
    const sgm__sheets *s;
    const sgm__sheet_pass *pass;
    const sgm__sheet *sheet;
    const sgm__sheet_layout *l;
    const uint16_t *image;
    int64_t count, first, last, begin, width, column;
} copying;

static size_t element_size(const sgm__sheet_layout *l)
{
    return l->pairs ? sizeof(pair) : sizeof(uint16_t);
}

/* Row `row` of the sheet in the image's first channel. */
static const uint16_t *image_row(const copying *c, int64_t row)
{
    const sgm__sheets *s = c->s;
    int64_t at = (row + c->sheet->origin) * s->source_stride[0] + c->sheet->phase[0];
    return c->image + at * s->in[1] + c->column;
}

/* One row of one plane: `from` is NULL where it is not in the image. */
static void copy_row(const copying *c, const uint16_t *from, int64_t partner, void *to)
{
    int64_t end = c->begin + c->width, stride = c->s->source_stride[1];
    unsigned char *filled = (unsigned char *)to + (size_t)c->begin * element_size(c->l);
    clear(c->l->pairs, to, 0, from != NULL ? c->begin : c->pass->out[1]);
    if (from == NULL)
        return;
    if (stride == 1 && c->width >= SGM__BLOCK_STEPS)
        copy_neighbours(c->cpu, c->l->pairs, from, partner, c->width, filled);
    else
        copy_apart(c->l->pairs, from, partner, stride, c->width, filled);
    clear(c->l->pairs, to, end, c->pass->out[1] - end);
}

/* Row by row of each plane. */
static void copy_rows(const copying *c, unsigned char *to)
{
    int64_t step = c->l->pairs ? 2 : 1, channel = c->s->in[0] * c->s->in[1];
    size_t size = element_size(c->l);
    for (int64_t i = 0; i < c->count; i += step, to += (size_t)c->l->apart * size)
        for (int64_t row = 0; row < c->pass->rows; row++) {
            bool there = row >= c->first && row < c->last && c->width > 0;
            copy_row(c, there ? image_row(c, row) + i * channel : NULL, i + 1 < c->count ? channel : 0,
                     to + (size_t)(row * c->l->row) * size);
        }
}

/* Planes whose rows are rows of the image as they lie: all at once; columns that are beyond its edges are
 * cleared then. */
static void copy_planes(const copying *c, unsigned char *to)
{
    int64_t step = c->l->pairs ? 2 : 1, channel = c->s->in[0] * c->s->in[1], length = c->l->length;
    int64_t shift = c->sheet->shift, left = shift < 0 ? -shift : 0, right = shift > 0 ? shift : 0;
    int64_t all = (c->last - c->first) * length - left - right;
    size_t size = element_size(c->l);
    for (int64_t i = 0; i < c->count; i += step, to += (size_t)c->l->apart * size) {
        const uint16_t *from = c->image + i * channel + (c->first + c->sheet->origin) * length + right;
        memset(to, 0, (size_t)(c->first * length) * size);
        if (all > 0)
            copy_neighbours(c->cpu, c->l->pairs, from, i + 1 < c->count ? channel : 0, all,
                            to + (size_t)(c->first * length + left) * size);
        for (int64_t row = c->first; row < c->last; row++) {
            clear(c->l->pairs, to, row * length, left);
            clear(c->l->pairs, to, (row + 1) * length - right, right);
        }
        memset(to + (size_t)(c->last * length) * size, 0,
               (size_t)((c->pass->rows - c->last) * length) * size);
    }
}

/* Pairs of which a row of all planes is together: rows of the image become rows of all pairs at once. What
 * clears a row's end clears the beginning of the next pair's row with it, which is beyond the image's left
 * edge. */
static void copy_together(const copying *c, pair *to)
{
    const sgm__sheet_layout *l = c->l;
    int64_t filled = sgm__divide_up(c->count, 2) * l->length;
    memset(to, 0, (size_t)(c->first * l->row) * sizeof *to);
    for (int64_t row = c->first; row < c->last; row++) {
        pair *line = to + row * l->row;
        clear(true, line, 0, c->begin);
        c->cpu->vector->pairs.copy_rows(line + c->begin, l->length, image_row(c, row),
                                        c->s->in[0] * c->s->in[1], c->width, c->count);
        memset(line + filled, 0, (size_t)(l->row - filled) * sizeof *to);
    }
    memset(to + c->last * l->row, 0, (size_t)((c->pass->rows - c->last) * l->row) * sizeof *to);
}

static void clear_planes(const copying *c, unsigned char *to)
{
    size_t size = element_size(c->l);
    for (int64_t i = sgm__divide_up(c->count, c->l->pairs ? 2 : 1); i < c->l->planes; i++)
        for (int64_t row = 0; row < c->pass->rows; row++)
            memset(to + (size_t)(i * c->l->apart + row * c->l->row) * size, 0, (size_t)c->l->length * size);
}

/* --- sheets from others --- */

int32_t sgm__sheet_base(const sgm__sheets *s, const sgm__sheet_pass *pass, int32_t sheet)
{
    const sgm__sheet *of = &pass->sheets[sheet];
    int64_t width = pass->out[1];
    if (width > NARROW || of->shift == 0 || of->shift <= -width || of->shift >= width || s->in[1] > width ||
        s->source_stride[1] != 1)
        return -1;
    for (int32_t i = 0; i < pass->sheet_count; i++) {
        const sgm__sheet *at = &pass->sheets[i];
        if (at->shift == 0 && at->origin == of->origin && at->phase[0] == of->phase[0])
            return i;
    }
    return -1;
}

void sgm__sheets_shift(const sgm__sheet_pass *pass, int32_t sheet, const sgm__sheet_layout *l, int64_t planes,
                       const void *base, void *to)
{
    int64_t shift = pass->sheets[sheet].shift, width = pass->out[1];
    int64_t left = shift < 0 ? -shift : 0, right = shift > 0 ? shift : 0;
    size_t size = element_size(l);
    int64_t all = l->row > l->apart ? pass->rows * l->row : (planes - 1) * l->apart + pass->rows * l->row;
    memcpy((unsigned char *)to + (size_t)left * size, (const unsigned char *)base + (size_t)right * size,
           (size_t)(all - left - right) * size);
    for (int64_t plane = 0; plane < planes; plane++)
        for (int64_t row = 0; row < pass->rows; row++) {
            int64_t at = plane * l->apart + row * l->row;
            for (int64_t i = 0; i < l->images; i++, at += width) {
                clear(l->pairs, to, at, left);
                clear(l->pairs, to, at + width - right, right);
            }
        }
}

void sgm__sheets_copy(const sgm__cpu *cpu, const sgm__sheets *s, const sgm__sheet_pass *pass, int32_t sheet,
                      const sgm__sheet_layout *l, const uint16_t *image, int64_t count, int64_t position,
                      void *to)
{
    const sgm__sheet *from = &pass->sheets[sheet];
    copying c = {cpu, s, pass, from, l, image, count, .begin = from->shift < 0 ? -from->shift : 0};
    int64_t columns = sgm__divide_up(s->in[1] - from->phase[1], s->source_stride[1]) - from->shift;
    unsigned char *own = (unsigned char *)to + (size_t)(position * pass->out[1]) * element_size(l);
    bool neighbours = s->source_stride[0] == 1 && s->source_stride[1] == 1 && l->images == 1;
    sgm__sheet_rows(s, pass, sheet, &c.first, &c.last);
    c.width = sgm__minimum(pass->out[1], columns) - c.begin;
    c.column = (c.begin + from->shift) * s->source_stride[1] + from->phase[1];
    if (neighbours && l->row != l->length && c.width > 0)
        copy_together(&c, to);
    else if (neighbours && l->row == l->length && s->in[1] == l->length && c.width > 0)
        copy_planes(&c, own);
    else
        copy_rows(&c, own);
    if (position == 0)
        clear_planes(&c, to);
}
