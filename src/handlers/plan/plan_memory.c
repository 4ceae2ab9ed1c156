/* Planning: keeps to a budget of memory by computing values of the forward pass again.
 *
 * What a choice saves depends on what is fused and on what fits where, so choices are not estimated but
 * planned, in the order of what they cost, until one fits. First products are kept and only what passes over
 * memory is computed again; then everything is, which takes about the time of one forward pass more. More
 * segments leave less to be computed again at a time, but keep more at their cuts. Of the first choice that
 * fits, as many segments as possible get their products kept. */
#include "handlers/plan/plan_build.h"

#include "graph/passes.h"

/* Numbers of segments that are tried. */
static const int32_t segment_counts[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
#define COUNTS (sizeof segment_counts / sizeof *segment_counts)
/* Choices in a row that save nothing more, after which more segments are not tried. */
#define PATIENCE 2

/* The search: the smallest plan so far, or one that fits. */
typedef struct search {
    const sgm_graph *lowered;
    const sgm_handler *handler;
    int64_t budget, unsaved;
    sgm__plan *best;
} search;

int64_t sgm__budget_bytes(const sgm__memory_budget *budget, int64_t unsaved)
{
    if (budget->share > 0)
        return (int64_t)(budget->share * (double)unsaved);
    return budget->bytes > 0 ? budget->bytes : INT64_MAX;
}

/* A number alone is a share, with a unit a size. */
sgm_status sgm__memory_budget_parse(const char *text, sgm__memory_budget *budget)
{
    *budget = (sgm__memory_budget){0};
    if (text == NULL || *text == '\0')
        return SGM_OK;
    double number = 0, bytes = 0;
    bool share = sgm__parse_double(text, &number) && number > 0 && number <= 1;
    bool size = sgm__parse_bytes(text, &bytes) && bytes >= 1 && bytes < 1e18;
    if (!share && !size)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "expected a share of what a training step takes, more than 0 and at most 1, such as "
                        "0.5, or a size such as 500MB, got '%s'",
                        text);
    *budget = (sgm__memory_budget){.share = share ? number : 0, .bytes = size ? (int64_t)bytes : 0};
    return SGM_OK;
}

static bool fits(const search *s)
{
    return s->best->arena_bytes <= s->budget;
}

/* Plans a choice; *better: it is the best plan now, since it fits, or is the smallest so far. */
static sgm_status try_choice(search *s, const sgm__recomputing *choice, bool *better)
{
    sgm__plan *plan = NULL;
    sgm_graph *graph = sgm__pass_recompute(s->lowered, choice);
    if (graph == NULL)
        return sgm_last_status() != SGM_OK ? sgm_last_status() : SGM_ERROR_MEMORY;
    sgm_status status = sgm__plan_lowered(graph, s->handler, &plan);
    if (status == SGM_OK) {
        plan->unsaved_bytes = s->unsaved;
        plan->again_count = (int32_t)(graph->count - s->lowered->count);
        *better = plan->arena_bytes <= s->budget || plan->arena_bytes < s->best->arena_bytes;
        sgm__plan_free(*better ? s->best : plan);
        s->best = *better ? plan : s->best;
    }
    sgm_graph_free(graph);
    return status;
}

/* Tries more and more segments until one choice fits or more save nothing; *segments is the number of the
 * last choice. */
static sgm_status try_counts(search *s, int32_t turn, bool products, int32_t *segments)
{
    int patience = PATIENCE;
    for (size_t i = 0; i < COUNTS && patience > 0 && !fits(s); i++) {
        bool better = false;
        *segments = segment_counts[i];
        SGM_TRY(try_choice(s, &(sgm__recomputing){turn, *segments, products ? *segments : 0}, &better));
        patience = better ? PATIENCE : patience - 1;
    }
    return SGM_OK;
}

/* All products of `segments` segments are computed again, and that fits: finds the smallest number of
 * segments for which that suffices. */
static sgm_status keep_products(search *s, int32_t turn, int32_t segments)
{
    int32_t too_few = 0, enough = segments - 1; /* the last segment is kept anyway */
    while (enough - too_few > 1) {
        int32_t middle = (too_few + enough) / 2;
        bool better = false;
        SGM_TRY(try_choice(s, &(sgm__recomputing){turn, segments, middle}, &better));
        *(better ? &enough : &too_few) = middle;
    }
    return SGM_OK;
}

static sgm_status search_plans(search *s, int32_t turn)
{
    int32_t segments = 0;
    SGM_TRY(try_counts(s, turn, false, &segments));
    if (fits(s))
        return SGM_OK;
    SGM_TRY(try_counts(s, turn, true, &segments));
    return fits(s) ? keep_products(s, turn, segments) : SGM_OK;
}

sgm_status sgm__plan_save_memory(const sgm_graph *lowered, const sgm_handler *handler,
                                 const sgm__memory_budget *budget, sgm__plan **plan)
{
    int32_t turn = -1;
    for (size_t i = 0; i < lowered->output_count; i++)
        if (strcmp(sgm__graph_string(lowered, lowered->outputs[i].name), budget->cost) == 0)
            turn = lowered->outputs[i].value.index;
    search s = {lowered, handler, sgm__budget_bytes(budget, (*plan)->arena_bytes), (*plan)->arena_bytes,
                *plan};
    sgm_status status = turn >= 0 && !fits(&s) ? search_plans(&s, turn) : SGM_OK;
    *plan = s.best;
    if (status != SGM_OK) {
        sgm__plan_free(*plan);
        *plan = NULL;
    }
    return status;
}
