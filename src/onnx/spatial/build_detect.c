/* Build function of NonMaxSuppression: the boxes with the best scores that do not cover each other.
 *
 * How many there are depends on the data, so boxes and scores must be known while the model is recorded, and
 * the result becomes a constant, as in build_choose.c. */
#include "onnx/nodes/onnx.h"

#include <math.h>
#include <stdlib.h>

/* Boxes of an example beyond this number are refused: each is compared with those that are chosen. */
#define MAXIMUM_BOXES 100000

typedef struct box {
    double score, low[2], high[2];
    int64_t place;
} box;

/* What is chosen from. */
typedef struct choice {
    sgm_shape boxes, scores; /* (batch, boxes, 4) and (batch, classes, boxes) */
    double *places, *values; /* their elements, owned */
    double overlap, least;   /* more than that overlaps; scores up to that do not count */
    int64_t most;            /* of each class */
    bool centred;            /* boxes have their centre and size, not two corners */
    int64_t *rows;           /* (batch, class, box) of each that is chosen, owned */
    size_t capacity, count;
} choice;

static int compare_boxes(const void *a, const void *b)
{
    const box *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static box read_box(const choice *c, int64_t batch, int64_t place, double score)
{
    const double *at = c->places + (batch * c->boxes.dims[1] + place) * 4;
    box b = {.score = score, .place = place};
    for (int i = 0; i < 2; i++) {
        double first = c->centred ? at[i] - at[i + 2] / 2 : at[i],
               last = c->centred ? at[i] + at[i + 2] / 2 : at[i + 2];
        b.low[i] = fmin(first, last);
        b.high[i] = fmax(first, last);
    }
    return b;
}

/* The part of the area of both that both cover. */
static double overlap(const box *a, const box *b)
{
    double both = 1, own = 1, other = 1;
    for (int i = 0; i < 2; i++) {
        both *= fmax(0, fmin(a->high[i], b->high[i]) - fmax(a->low[i], b->low[i]));
        own *= a->high[i] - a->low[i];
        other *= b->high[i] - b->low[i];
    }
    double all = own + other - both;
    return all > 0 ? both / all : 0;
}

/* Chooses among the boxes of one class; `boxes` has room for all of them. */
static sgm_status choose(choice *c, int64_t batch, int64_t class, box *boxes)
{
    int64_t all = c->boxes.dims[1], count = 0, chosen = 0;
    for (int64_t i = 0; i < all; i++) {
        double score = c->values[(batch * c->scores.dims[1] + class) * all + i];
        if (score > c->least)
            boxes[count++] = read_box(c, batch, i, score);
    }
    qsort(boxes, (size_t)count, sizeof *boxes, compare_boxes);
    for (int64_t i = 0; i < count && chosen < c->most; i++) {
        bool covered = false;
        for (int64_t k = 0; k < chosen && !covered; k++)
            covered = overlap(&boxes[i], &boxes[k]) > c->overlap;
        if (covered)
            continue;
        boxes[chosen++] = boxes[i]; /* those that are chosen lie in front */
        SGM_TRY(sgm__reserve(&c->rows, &c->capacity, 3 * c->count + 3, sizeof *c->rows));
        memcpy(c->rows + 3 * c->count++, (const int64_t[]){batch, class, boxes[i].place},
               3 * sizeof *c->rows);
    }
    return SGM_OK;
}

static sgm_status choose_all(choice *c)
{
    box *boxes = sgm__alloc((size_t)(c->boxes.dims[1] + 1) * sizeof *boxes);
    sgm_status status = boxes != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < c->boxes.dims[0] * c->scores.dims[1] && status == SGM_OK; i++)
        status = choose(c, i / c->scores.dims[1], i % c->scores.dims[1], boxes);
    sgm__free(boxes);
    return status;
}

static double *read_all(const sgm_tensor *tensor)
{
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(tensor));
    double *values = sgm__alloc((count + 1) * sizeof *values);
    if (values != NULL && sgm_tensor_read(tensor, values, count) == SGM_OK)
        return values;
    sgm__free(values);
    return NULL;
}

/* The rows as a constant; without any it has the shape (0, 3). */
static sgm_value chosen_rows(sgm_graph *g, choice *c)
{
    return sgm__onnx_constant(
        g, c->count > 0 ? sgm_tensor_create_from(SGM_INT64, SGM__ONNX_SHAPE((int64_t)c->count, 3), c->rows)
                        : sgm_tensor_create(SGM_INT64, SGM__ONNX_SHAPE(0, 3)));
}

/* Inputs: boxes, scores, how many of a class at most (none without it), what overlaps, which scores count. */
sgm_value sgm__onnx_non_max_suppression(sgm__onnx_node *n)
{
    const sgm_tensor *boxes = sgm__onnx_known(n, 0), *scores = boxes != NULL ? sgm__onnx_known(n, 1) : NULL;
    choice c = {.most = (int64_t)fmin(fmax(sgm__onnx_known_number(n, 2, 0), 0), MAXIMUM_BOXES),
                .overlap = sgm__onnx_known_number(n, 3, 0),
                .least = sgm__onnx_known_number(n, 4, -INFINITY),
                .centred = sgm__onnx_integer(n, "center_point_box", 0) != 0};
    if (scores == NULL || n->graph->status != SGM_OK)
        return (sgm_value){-1};
    c.boxes = *sgm_tensor_shape(boxes);
    c.scores = *sgm_tensor_shape(scores);
    if (c.boxes.rank != 3 || c.scores.rank != 3 || c.boxes.dims[2] != 4 ||
        c.boxes.dims[0] != c.scores.dims[0] || c.boxes.dims[1] != c.scores.dims[2] ||
        c.boxes.dims[1] > MAXIMUM_BOXES)
        return sgm_graph_fail(
            n->graph, SGM_ERROR_SHAPE,
            "boxes (batch, boxes, 4) and scores (batch, classes, boxes) are needed, of at most %d boxes",
            MAXIMUM_BOXES);
    double *places = read_all(boxes), *values = read_all(scores);
    c.places = places;
    c.values = values;
    sgm_status status = places != NULL && values != NULL ? choose_all(&c) : SGM_ERROR_MEMORY;
    sgm_value y = status == SGM_OK ? chosen_rows(n->graph, &c) : sgm__onnx_fail(n->graph);
    sgm__free(places);
    sgm__free(values);
    sgm__free(c.rows);
    return y;
}
