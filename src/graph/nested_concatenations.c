/* Turns a concatenation whose operands are neighbours in a longer one into a slice of the longer one: a pass
 * of the planner.
 *
 * Such pairs come from sequences: all steps but the last one beside all steps. A slice along an axis is a
 * view or at least a single copy, instead of one copy for each part. The longer concatenation may come later
 * in the graph, as long as it is not computed from the shorter one; then the shorter one, and all that needs
 * it, is rebuilt late, after the longer one. If such waiting goes in a circle (A waits for B, which needs
 * something that waits for C, which needs A), the pass starts over with earlier concatenations only. */
#include "graph/passes.h"
#include "graph/rebuild.h"
#include "ops/ops.h"

/* One operand of one concatenation: its number there, and the next place of the same value in `places` (-1:
 * none). */
typedef struct place {
    int32_t concatenation, number, next; /* next: place of the same value; -1 */
} place;

/* The state of the pass; arrays are indexed by values of the old graph. */
typedef struct searching {
    sgm__rebuild *work;
    const sgm_graph *graph; /* the old one */
    int32_t *first;         /* by value: index of its first place; -1: in no concatenation */
    place *places;
    /* By concatenation: the longer one that it is a part of (-1: none), and from which operand on. */
    int32_t *longer, *start;
    /* `reached` is for is_independent; `late` values are not rebuilt yet, and wait for a longer
     * concatenation. */
    bool *reached, *late;
} searching;

static const sgm__instruction *at(const searching *s, int32_t value)
{
    return &s->graph->instructions[value];
}

static const sgm_value *operands(const searching *s, int32_t value)
{
    return s->graph->operands + at(s, value)->first_input;
}

/* Runs backwards, so that the list of a value begins with its earliest concatenation. */
static void list_places(searching *s)
{
    int32_t used = 0;
    for (int32_t i = 0; i < (int32_t)s->graph->count; i++)
        s->first[i] = s->longer[i] = -1;
    for (int32_t i = (int32_t)s->graph->count; i-- > 0;)
        for (int32_t k = 0; at(s, i)->op == &sgm__op_concatenate && k < at(s, i)->input_count; k++) {
            int32_t value = operands(s, i)[k].index;
            s->places[used] = (place){i, k, s->first[value]};
            s->first[value] = used++;
        }
}

/* Whether all operands of `part` follow each other in the other concatenation from `where` on, along the same
 * axis. Equally long ones are duplicates, which sgm__pass_simplify merges. */
static bool is_run(const searching *s, int32_t part, const place *where)
{
    int32_t whole = where->concatenation, count = at(s, part)->input_count;
    if (at(s, whole)->attributes->integers[0] != at(s, part)->attributes->integers[0] ||
        at(s, whole)->input_count - where->number < count || at(s, whole)->input_count == count)
        return false;
    return memcmp(operands(s, part), operands(s, whole) + where->number, (size_t)count * sizeof(sgm_value)) ==
           0;
}

/* Whether `whole`, which comes later than `part`, is not computed from it: marks everything in between that
 * is reached from `part`. */
static bool is_independent(searching *s, int32_t part, int32_t whole)
{
    memset(s->reached + part, 0, (size_t)(whole - part + 1) * sizeof *s->reached);
    s->reached[part] = true;
    for (int32_t i = part + 1; i <= whole; i++)
        for (int32_t k = 0; k < at(s, i)->input_count && !s->reached[i]; k++)
            s->reached[i] = operands(s, i)[k].index >= part && s->reached[operands(s, i)[k].index];
    return !s->reached[whole];
}

/* The longest concatenation that has this one as a run; only one that has the first operand can. `later`:
 * also looks at concatenations behind it. */
static void find_longer(searching *s, int32_t part, bool later)
{
    int32_t best = -1, first = s->first[operands(s, part)[0].index];
    for (int32_t p = first; p >= 0; p = s->places[p].next) {
        int32_t whole = s->places[p].concatenation;
        if (whole == part || !is_run(s, part, &s->places[p]) ||
            (best >= 0 && at(s, whole)->input_count <= at(s, best)->input_count) ||
            (whole > part && !(later && is_independent(s, part, whole))))
            continue;
        best = whole;
        s->start[part] = s->places[p].number;
    }
    s->longer[part] = best;
}

/* The run begins where the operands before it end. */
static sgm_value slice_of(searching *s, int32_t part)
{
    int32_t axis = (int32_t)at(s, part)->attributes->integers[0], whole = s->longer[part];
    int64_t start = 0;
    for (int32_t k = 0; k < s->start[part]; k++)
        start += at(s, operands(s, whole)[k].index)->type.shape.dims[axis];
    if (!sgm__rebuild_label(s->work, at(s, part)))
        return (sgm_value){-1};
    return sgm_slice(s->work->graph, s->work->map[whole], axis, start,
                     start + at(s, part)->type.shape.dims[axis], 1);
}

/* False: the longer concatenation, or an operand, is not rebuilt yet. */
static bool rebuild_one(searching *s, int32_t value)
{
    const sgm__instruction *instruction = at(s, value);
    if (s->longer[value] >= 0) {
        if (!sgm_value_exists(s->work->map[s->longer[value]]))
            return false;
        s->work->map[value] = slice_of(s, value);
        return true;
    }
    for (int32_t k = 0; k < instruction->input_count; k++)
        if (s->late[operands(s, value)[k].index])
            return false;
    sgm__rebuild_map(s->work, instruction);
    s->work->map[value] = sgm__rebuild_transcribe(s->work, instruction);
    return true;
}

/* Rebuilds in order; what has to wait is tried again, in order, behind each concatenation, since only a
 * concatenation can end the waiting. first_late is the first value that waits (count: none). */
static void rebuild_all(searching *s)
{
    int32_t count = (int32_t)s->graph->count, first_late = count;
    for (int32_t i = 0; i < count && s->work->graph->status == SGM_OK; i++) {
        s->late[i] = !rebuild_one(s, i);
        first_late = first_late > i && s->late[i] ? i : first_late;
        if (at(s, i)->op != &sgm__op_concatenate || s->late[i])
            continue;
        for (int32_t k = first_late; k < i && s->work->graph->status == SGM_OK; k++)
            if (s->late[k])
                s->late[k] = !rebuild_one(s, k);
        while (first_late < i && !s->late[first_late])
            first_late++;
        first_late = first_late == i ? count : first_late;
    }
}

static void find_all(searching *s, bool later)
{
    list_places(s);
    for (int32_t i = 0; i < (int32_t)s->graph->count; i++)
        if (at(s, i)->op == &sgm__op_concatenate && at(s, i)->input_count > 1)
            find_longer(s, i, later);
}

static bool is_stuck(const searching *s)
{
    for (size_t i = 0; i < s->graph->count; i++)
        if (s->late[i])
            return true;
    return false;
}

/* First with longer concatenations of both kinds. Each of them is independent of its part, but several
 * together may wait in a circle; then values stay late, and the second attempt uses earlier ones only, for
 * which nothing waits. */
static sgm_graph *rebuild_runs(searching *s)
{
    for (int later = 1; later >= 0; later--) {
        if (!sgm__rebuild_begin(s->work, s->graph))
            return NULL;
        memset(s->late, false, s->graph->count * sizeof *s->late);
        find_all(s, later == 1);
        rebuild_all(s);
        if (s->work->graph->status != SGM_OK || !is_stuck(s) || later == 0)
            break;
        sgm_graph_free(s->work->graph);
        sgm__rebuild_end(s->work);
    }
    return sgm__rebuild_finish(s->work);
}

sgm_graph *sgm__pass_runs(const sgm_graph *graph)
{
    sgm__rebuild work;
    searching s = {.work = &work, .graph = graph};
    size_t count = graph->count + 1;
    s.first = sgm__calloc(count, 3 * sizeof(int32_t));
    s.places = sgm__calloc(graph->operand_count + 1, sizeof(place));
    s.reached = sgm__calloc(count, 2 * sizeof(bool));
    sgm_graph *result = NULL;
    if (s.first != NULL && s.places != NULL && s.reached != NULL) {
        s.longer = s.first + count;
        s.start = s.longer + count;
        s.late = s.reached + count;
        result = rebuild_runs(&s);
    }
    sgm__free(s.first);
    sgm__free(s.places);
    sgm__free(s.reached);
    return result;
}
