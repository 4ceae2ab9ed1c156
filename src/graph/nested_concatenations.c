/* Concatenations that are a part of another: all but the last step of a sequence, say. They become slices,
 * which are looked at and not copied. */
#include "graph/passes.h"
#include "graph/rebuild.h"
#include "ops/ops.h"

/* An operand of a concatenation. */
typedef struct place {
    int32_t concatenation, number, next; /* next: place of the same value; -1 */
} place;

typedef struct searching {
    sgm__rebuild *work;
    const sgm_graph *graph; /* the old one */
    int32_t *first;         /* of values: their first place; -1 */
    place *places;
    int32_t *longer,
        *start; /* of concatenations: what they are a part of (-1: nothing), and from which operand */
    bool *reached, *late; /* late: waits for a longer one */
} searching;

static const sgm__instruction *at(const searching *s, int32_t value)
{
    return &s->graph->instructions[value];
}

static const sgm_value *operands(const searching *s, int32_t value)
{
    return s->graph->operands + at(s, value)->first_input;
}

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

static bool is_run(const searching *s, int32_t part, const place *where)
{
    int32_t whole = where->concatenation, count = at(s, part)->input_count;
    if (at(s, whole)->attributes->integers[0] != at(s, part)->attributes->integers[0] ||
        at(s, whole)->input_count - where->number < count || at(s, whole)->input_count == count)
        return false;
    return memcmp(operands(s, part), operands(s, whole) + where->number, (size_t)count * sizeof(sgm_value)) ==
           0;
}

/* `whole`, which comes later, is not computed from `part`. */
static bool is_independent(searching *s, int32_t part, int32_t whole)
{
    memset(s->reached + part, 0, (size_t)(whole - part + 1) * sizeof *s->reached);
    s->reached[part] = true;
    for (int32_t i = part + 1; i <= whole; i++)
        for (int32_t k = 0; k < at(s, i)->input_count && !s->reached[i]; k++)
            s->reached[i] = operands(s, i)[k].index >= part && s->reached[operands(s, i)[k].index];
    return !s->reached[whole];
}

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

/* False: something it needs is late. */
static bool rebuild_one(searching *s, int32_t value)
{
    const sgm__instruction *instruction = at(s, value);
    if (s->longer[value] >= 0) {
        if (!sgm_value_is(s->work->map[s->longer[value]]))
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

/* What waits is tried again behind each concatenation that something waits for. */
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

/* Each waits for something that does not wait for it, but in a circle they may: then nothing waits. */
static sgm_graph *rebuild_runs(searching *s)
{
    for (int later = 1; later >= 0; later--) {
        if (!sgm__rebuild_begin(s->work, s->graph))
            return NULL;
        find_all(s, later == 1);
        rebuild_all(s);
        if (!is_stuck(s))
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
