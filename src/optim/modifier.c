/* Modifiers: changes of a parameter after each update, such as clipping it, or limiting the norm of the
 * weights that lead to one output.
 *
 * Like updates, modifiers are recorded (sgm__modifiers_record, called by optimiser.c), so they cost no pass
 * of their own; the hook modifier (hooks_ready/modifier_hook.c) records one by itself. A trainer keeps
 * modifiers with patterns of parameters' names (sgm_trainer_add_modifier). The library's own modifiers are
 * rows of `types`; a program's is a function that records instructions. */
#include "optim/modifier.h"
#include "registry/pattern.h"
#include "text/call_text.h"
#include "text/names.h"
#include <sigma/graph.h>

#define LARGEST 2 /* numbers that a modifier takes */

struct sgm_modifier {
    sgm_modifier_function function;
    void *user;
    double numbers[LARGEST]; /* arguments of one of the library's own, whose `user` is the modifier itself */
};

/* The library's own modifiers get themselves as `user`, and read their arguments from there. */
static sgm_value clip(void *user, sgm_graph *graph, sgm_value parameter)
{
    const sgm_modifier *self = user;
    return sgm_clip(graph, parameter, self->numbers[0], self->numbers[1]);
}

static sgm_value scale(void *user, sgm_graph *graph, sgm_value parameter)
{
    const sgm_modifier *self = user;
    return sgm_multiply(graph, parameter, sgm_number(graph, self->numbers[0]));
}

/* Multiplies each column (what goes into one output) by min(1, limit / norm) (Srivastava et al., 2014). The
 * norm is over all dimensions but the last; a vector has one norm. */
static sgm_value max_norm(void *user, sgm_graph *graph, sgm_value parameter)
{
    const sgm_modifier *self = user;
    int32_t axes[SGM_MAX_RANK], rank = sgm_value_type(graph, parameter).shape.rank;
    for (int32_t i = 0; i + 1 < rank; i++)
        axes[i] = i;
    sgm_value squares =
        sgm_reduce_sum(graph, sgm_square(graph, parameter), axes, rank > 1 ? rank - 1 : 0, true);
    sgm_value limit = sgm_filled_like(graph, squares, self->numbers[0]);
    /* a norm of 0 gives an infinite quotient, and so the factor 1 */
    sgm_value factor =
        sgm_minimum(graph, sgm_divide(graph, limit, sgm_square_root(graph, squares)), sgm_number(graph, 1));
    return sgm_multiply(graph, parameter, factor);
}

/* One of the library's own modifiers, as texts name it: "clip(-1, 1)". */
typedef struct modifier_type {
    const char *name;
    sgm_modifier_function function;
    sgm_option arguments[LARGEST]; /* a name of NULL: fewer */
    const char *doc, *formula, *example;
} modifier_type;

static const modifier_type types[] = {
    {"clip",
     clip,
     {{"minimum", SGM_KIND_NUMBER, .required = true, .doc = "what smaller numbers become"},
      {"maximum", SGM_KIND_NUMBER, .required = true, .doc = "what larger numbers become"}},
     "keeps each number between two bounds",
     "min(max(p, minimum), maximum)",
     "clip(-1, 1)"},
    {"scale",
     scale,
     {{"factor", SGM_KIND_NUMBER, .required = true, .doc = "what all numbers are multiplied by"}},
     "makes all numbers smaller, or larger",
     "factor p",
     "scale(0.999)"},
    {"max_norm",
     max_norm,
     {{"limit", SGM_KIND_NUMBER, .required = true, .doc = "the largest norm"}},
     "makes what goes into one output, a column, no longer than a limit (Srivastava et al., 2014)",
     "p min(1, limit / |p|)",
     "max_norm(3)"},
};
#define TYPE_COUNT (sizeof types / sizeof *types)

bool sgm__modifier_describe(size_t index, sgm__described *described)
{
    if (index >= TYPE_COUNT)
        return false;
    const modifier_type *type = &types[index];
    size_t count = 0;
    while (count < LARGEST && type->arguments[count].name != NULL)
        count++;
    *described = (sgm__described){.name = type->name,
                                  .doc = type->doc,
                                  .formula = type->formula,
                                  .example = type->example,
                                  .arguments = type->arguments,
                                  .argument_count = count};
    return true;
}

static const modifier_type *find_type(const char *name)
{
    const char *names[TYPE_COUNT];
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        names[i] = types[i].name;
        if (strcmp(names[i], name) == 0)
            return &types[i];
    }
    const char *real = sgm__name_real(SGM__NAME_MODIFIER, name, names, TYPE_COUNT, NULL);
    char hint[SGM__NAME_HINT];
    if (real != NULL)
        return find_type(real);
    sgm__name_hint(SGM__NAME_MODIFIER, name, names, TYPE_COUNT, hint);
    sgm_fail(SGM_ERROR_NOT_FOUND, "unknown modifier '%s'%s", name,
             hint[0] != '\0' ? hint : "; there are clip, scale and max_norm");
    return NULL;
}

/* Checks what no single row can say. Conditions are written so that NaN fails them. */
static sgm_status check_numbers(const modifier_type *type, const double *numbers)
{
    if (type->function == clip && !(numbers[0] < numbers[1]))
        return sgm_fail(SGM_ERROR_ARGUMENT, "modifier clip: minimum, %g, must be below maximum, %g",
                        numbers[0], numbers[1]);
    if (type->function == max_norm && !(numbers[0] > 0))
        return sgm_fail(SGM_ERROR_ARGUMENT, "modifier max_norm: the limit must be above 0, not %g",
                        numbers[0]);
    return SGM_OK;
}

sgm_modifier *sgm_modifier_create(sgm_modifier_function function, void *user)
{
    if (function == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "a modifier wants a function");
        return NULL;
    }
    sgm_modifier *modifier = sgm__calloc(1, sizeof(sgm_modifier));
    if (modifier == NULL)
        return NULL;
    modifier->function = function;
    modifier->user = user;
    return modifier;
}

/* Reads the arguments of a text behind the modifier's name; all of them are required. */
static sgm_status read_numbers(sgm__phrase *phrase, const modifier_type *type, double numbers[LARGEST])
{
    sgm__call call = {.name = type->name, .rows = type->arguments};
    while (call.row_count < LARGEST && type->arguments[call.row_count].name != NULL)
        call.row_count++;
    sgm_status status = sgm__call_finish(phrase, &call);
    for (size_t i = 0; i < call.row_count; i++)
        numbers[i] = call.values[i].number;
    sgm__call_free(&call);
    return status == SGM_OK ? check_numbers(type, numbers) : status;
}

/* "max_norm(3)"; the caller frees the modifier. Its `user` is set to itself last, as only a copy that does so
 * is a modifier of the library's own (is_own). */
sgm_modifier *sgm_modifier_parse(const char *text)
{
    char name[SGM__CALL_NAME];
    sgm__phrase phrase;
    double numbers[LARGEST] = {0};
    if (text == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "a modifier expects a text, such as \"clip(-1, 1)\"; got NULL");
        return NULL;
    }
    if (sgm__call_begin(&phrase, text, name) != SGM_OK)
        return NULL;
    const modifier_type *type = find_type(name);
    if (type == NULL || read_numbers(&phrase, type, numbers) != SGM_OK)
        return NULL;
    sgm_modifier *modifier = sgm_modifier_create(type->function, NULL);
    if (modifier == NULL)
        return NULL;
    modifier->user = modifier;
    memcpy(modifier->numbers, numbers, sizeof numbers);
    return modifier;
}

/* Whether it is one of the library's own: its `user` is itself, and must be so in a copy. */
static bool is_own(const sgm_modifier *modifier)
{
    return modifier->user == modifier;
}

sgm_modifier *sgm__modifier_copy(const sgm_modifier *modifier)
{
    sgm_modifier *copy = sgm__calloc(1, sizeof *copy);
    if (copy == NULL)
        return NULL;
    *copy = *modifier;
    if (is_own(modifier))
        copy->user = copy;
    return copy;
}

/* Two of the library's own are equal if their numbers are: each has itself as `user`. */
bool sgm__modifier_equal(const sgm_modifier *a, const sgm_modifier *b)
{
    return a->function == b->function && a->numbers[0] == b->numbers[0] && a->numbers[1] == b->numbers[1] &&
           (a->user == b->user || (is_own(a) && is_own(b)));
}

void sgm_modifier_free(sgm_modifier *modifier)
{
    sgm__free(modifier);
}

/* Applies all rules that match, in their order, each to the result of the one before. */
sgm_value sgm__modifiers_record(const sgm__modifier_rule *rules, size_t count, sgm_graph *graph,
                                const char *parameter, sgm_value value)
{
    for (size_t i = 0; i < count; i++)
        if (sgm__pattern_matches(rules[i].pattern, parameter))
            value = rules[i].modifier->function(rules[i].modifier->user, graph, value);
    return value;
}
