/* Criteria as trees: building, copying, comparing, and saving what they remember.
 *
 * Criteria tell whether something holds of a training's values, check after check
 * (include/sigma/rules.h). This file knows neither values nor texts: criteria_check.c checks,
 * criteria_text.c reads and writes. A hook owns its criteria (hook.c); the engine checks them on the
 * hook's thread and puts their memory into checkpoints (hooks_state.c).
 *
 * Every constructor takes over the criteria that it is given, also when it fails, and passes NULL on: so
 * constructors nest, and a program checks the outermost one only. `and` and `or` are kept flat: no part of
 * an `and` is an `and`. So equal texts give equal trees, however the criteria were put together. */
#include "hooks/when/criteria.h"

#include <math.h>

/* --- building --- */

void sgm_criteria_free(sgm_criteria *criteria)
{
    if (criteria == NULL)
        return;
    for (size_t i = 0; i < criteria->part_count; i++)
        sgm_criteria_free(criteria->parts[i]);
    sgm__free(criteria->parts);
    sgm__free(criteria->identifier);
    sgm__free(criteria);
}

/* A node without parts; all that its kind does not use stays 0. */
static sgm_criteria *create(sgm__criteria_kind kind)
{
    sgm_criteria *node = sgm__calloc(1, sizeof *node);
    if (node == NULL)
        return NULL;
    node->kind = kind;
    node->depth = 1;
    node->nodes = 1;
    return node;
}

/* A node for the value of an identifier. The identifier must be one that the text form can name, as
 * criteria are written into checkpoints and lists. */
static sgm_criteria *create_of(sgm__criteria_kind kind, const char *identifier)
{
    if (!sgm__is_identifier(identifier)) {
        sgm_fail(
            SGM_ERROR_ARGUMENT,
            "criteria need an identifier such as validation.accuracy (letters, digits, '_', '-', '.', '*', "
            "and no word of the grammar), not '%.80s'",
            identifier != NULL ? identifier : "");
        return NULL;
    }
    sgm_criteria *node = create(kind);
    if (node != NULL && (node->identifier = sgm__strdup(identifier)) == NULL) {
        sgm_criteria_free(node);
        return NULL;
    }
    return node;
}

/* Numbers to compare with are finite: texts have no infinity, and a comparison with NaN never holds. */
static bool is_finite(double value, const char *what)
{
    if (!isfinite(value))
        sgm_fail(SGM_ERROR_ARGUMENT, "%s needs a finite number to compare with", what);
    return isfinite(value);
}

/* Counts stay exact as doubles, which the memory and checkpoints hold. */
static bool is_count(int64_t count, const char *what)
{
    bool good = count >= 1 && count <= SGM__PHRASE_MAXIMUM_COUNT;
    if (!good)
        sgm_fail(SGM_ERROR_ARGUMENT, "%s needs a number from 1 to 2^53, not %lld", what, (long long)count);
    return good;
}

/* Comparisons come from programs as numbers, so their range is checked; the cast makes negative ones
 * large. */
sgm_criteria *sgm_threshold_criteria(const char *identifier, sgm_comparison comparison, double value,
                                     bool edge)
{
    if (!is_finite(value, "a threshold"))
        return NULL;
    if ((unsigned)comparison > SGM_BELOW) {
        sgm_fail(SGM_ERROR_ARGUMENT, "there is no comparison %d; see sgm_comparison", (int)comparison);
        return NULL;
    }
    sgm_criteria *node = create_of(SGM__CRITERIA_THRESHOLD, identifier);
    if (node == NULL)
        return NULL;
    node->comparison = comparison;
    node->value = value;
    node->flag = edge;
    return node;
}

/* A node that looks in a direction: towards larger values (SGM_MAXIMUM) or smaller ones. */
static sgm_criteria *create_towards(sgm__criteria_kind kind, const char *identifier, sgm_extremum extremum)
{
    if ((unsigned)extremum > SGM_MINIMUM) {
        sgm_fail(SGM_ERROR_ARGUMENT, "there is no extremum %d; see sgm_extremum", (int)extremum);
        return NULL;
    }
    sgm_criteria *node = create_of(kind, identifier);
    if (node != NULL)
        node->extremum = extremum;
    return node;
}

sgm_criteria *sgm_extremum_criteria(const char *identifier, sgm_extremum extremum)
{
    return create_towards(SGM__CRITERIA_EXTREMUM, identifier, extremum);
}

/* A change is one kind of node for both directions: towards larger values, or smaller ones. */
sgm_criteria *sgm_increasing_criteria(const char *identifier)
{
    return create_towards(SGM__CRITERIA_CHANGE, identifier, SGM_MAXIMUM);
}

sgm_criteria *sgm_decreasing_criteria(const char *identifier)
{
    return create_towards(SGM__CRITERIA_CHANGE, identifier, SGM_MINIMUM);
}

/* From below (SGM_MAXIMUM) the value is reached when it is there or above. */
sgm_criteria *sgm_reaching_criteria(const char *identifier, sgm_extremum direction, double value)
{
    if (!is_finite(value, "what is to be reached"))
        return NULL;
    sgm_criteria *node = create_towards(SGM__CRITERIA_REACHES, identifier, direction);
    if (node != NULL)
        node->value = value;
    return node;
}

/* A count of checks; texts also have epochs and iterations, which their reader converts. */
sgm_criteria *sgm_stalling_criteria(const char *identifier, sgm_extremum extremum, int64_t checks)
{
    if (!is_count(checks, "to stall"))
        return NULL;
    sgm_criteria *node = create_towards(SGM__CRITERIA_STALLS, identifier, extremum);
    if (node != NULL)
        node->count = checks;
    return node;
}

/* The name is written in quotes, and so may have spaces. Who presses the button sends the name in JSON, which
 * is UTF-8; nobody could send any other. */
static bool is_button_name(const char *name)
{
    return name != NULL && *name != '\0' &&
           strnlen(name, SGM__IDENTIFIER_LONGEST + 1) <= SGM__IDENTIFIER_LONGEST && sgm__is_line(name);
}

sgm_criteria *sgm_external_criteria(const char *name)
{
    if (!is_button_name(name)) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "external criteria need a name of 1 to %d bytes of UTF-8 without control characters, by "
                 "which somebody presses them",
                 SGM__IDENTIFIER_LONGEST);
        return NULL;
    }
    sgm_criteria *node = create(SGM__CRITERIA_EXTERNAL);
    if (node != NULL && (node->identifier = sgm__strdup(name)) == NULL) {
        sgm_criteria_free(node);
        return NULL;
    }
    return node;
}

/* --- joining --- */

/* Puts `part` behind the parts of `node`, or, if both are an `and` or both an `or`, puts the parts of
 * `part` there, which keeps the tree flat. Frees `part` when it fails; `node` is unchanged then. */
static sgm_status adopt(sgm_criteria *node, sgm_criteria *part)
{
    bool same =
        part->kind == node->kind && (node->kind == SGM__CRITERIA_AND || node->kind == SGM__CRITERIA_OR);
    size_t more = same ? part->part_count : 1, nodes = node->nodes + part->nodes - same;
    unsigned depth = part->depth + !same;
    sgm_status status = SGM_OK;
    if (depth > SGM__CRITERIA_DEEPEST || nodes > SGM__CRITERIA_MAXIMUM_NODES)
        status = sgm_fail(SGM_ERROR_ARGUMENT, "criteria have at most %d parts, %d deep",
                          SGM__CRITERIA_MAXIMUM_NODES, SGM__CRITERIA_DEEPEST);
    sgm_criteria **parts = NULL;
    if (status == SGM_OK) {
        parts = sgm__realloc(node->parts, (node->part_count + more) * sizeof *parts);
        status = parts != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    }
    if (status != SGM_OK) {
        sgm_criteria_free(part);
        return status;
    }
    node->parts = parts;
    for (size_t i = 0; i < more; i++)
        parts[node->part_count++] = same ? part->parts[i] : part;
    node->nodes = nodes;
    node->depth = depth > node->depth ? depth : node->depth;
    if (same) {
        part->part_count = 0;
        sgm_criteria_free(part);
    }
    return SGM_OK;
}

/* A node with one part; takes it over. */
static sgm_criteria *create_around(sgm__criteria_kind kind, sgm_criteria *part)
{
    if (part == NULL)
        return NULL;
    sgm_criteria *node = create(kind);
    if (node == NULL) {
        sgm_criteria_free(part);
        return NULL;
    }
    if (adopt(node, part) != SGM_OK) {
        sgm_criteria_free(node);
        return NULL;
    }
    return node;
}

/* `and` or `or` of two: the first is extended if it is of this kind already, so that joining one by one
 * makes one flat node. */
static sgm_criteria *join(sgm__criteria_kind kind, sgm_criteria *first, sgm_criteria *second)
{
    if (first == NULL || second == NULL) {
        sgm_criteria_free(first);
        sgm_criteria_free(second);
        return NULL;
    }
    sgm_criteria *node = first->kind == kind ? first : create_around(kind, first);
    if (node == NULL) {
        sgm_criteria_free(second);
        return NULL;
    }
    if (adopt(node, second) != SGM_OK) {
        sgm_criteria_free(node);
        return NULL;
    }
    return node;
}

/* Each joins two criteria into one, which owns both. */
sgm_criteria *sgm_and_criteria(sgm_criteria *first, sgm_criteria *second)
{
    return join(SGM__CRITERIA_AND, first, second);
}

sgm_criteria *sgm_or_criteria(sgm_criteria *first, sgm_criteria *second)
{
    return join(SGM__CRITERIA_OR, first, second);
}

/* A missing value makes a `not` neither true nor false; see criteria_check.c. */
sgm_criteria *sgm_not_criteria(sgm_criteria *part)
{
    return create_around(SGM__CRITERIA_NOT, part);
}

/* Three times two times is six times: repeating in the same way only multiplies the count. A product that
 * overflows becomes INT64_MAX, which is_count refuses with its message. */
sgm_criteria *sgm_repeated_criteria(sgm_criteria *part, int64_t times, bool in_a_row)
{
    if (part == NULL)
        return NULL;
    bool stacked = part->kind == SGM__CRITERIA_REPEATED && part->flag == in_a_row;
    int64_t all = times;
    if (stacked && times > 0 && __builtin_mul_overflow(part->count, times, &all))
        all = INT64_MAX;
    if (!is_count(all, "to repeat")) {
        sgm_criteria_free(part);
        return NULL;
    }
    sgm_criteria *node = stacked ? part : create_around(SGM__CRITERIA_REPEATED, part);
    if (node == NULL)
        return NULL;
    node->count = all;
    node->flag = in_a_row;
    return node;
}

/* --- comparing, copying --- */

/* Memory is not compared. Hooks are attached only once if their criteria are built alike, whatever these
 * have seen so far. */
bool sgm_criteria_equal(const sgm_criteria *a, const sgm_criteria *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    if (a->kind != b->kind || a->comparison != b->comparison || a->extremum != b->extremum ||
        a->flag != b->flag || a->value != b->value || a->count != b->count || a->part_count != b->part_count)
        return false;
    if (a->identifier != NULL && strcmp(a->identifier, b->identifier) != 0)
        return false;
    for (size_t i = 0; i < a->part_count; i++)
        if (!sgm_criteria_equal(a->parts[i], b->parts[i]))
            return false;
    return true;
}

/* With memory: a worker's copy of a hook goes on where the original stands. depth and nodes follow from
 * adopt, which cannot merge parts here, since the original is flat. */
sgm_criteria *sgm_criteria_copy(const sgm_criteria *criteria)
{
    sgm_criteria *copy = criteria != NULL ? create(criteria->kind) : NULL;
    if (copy == NULL)
        return NULL;
    copy->comparison = criteria->comparison;
    copy->extremum = criteria->extremum;
    copy->flag = criteria->flag;
    copy->value = criteria->value;
    copy->count = criteria->count;
    memcpy(copy->memory, criteria->memory, sizeof copy->memory);
    atomic_store(&copy->external, atomic_load(&criteria->external));
    copy->identifier = sgm__strdup(criteria->identifier);
    bool good = criteria->identifier == NULL || copy->identifier != NULL;
    for (size_t i = 0; i < criteria->part_count && good; i++) {
        sgm_criteria *part = sgm_criteria_copy(criteria->parts[i]);
        good = part != NULL && adopt(copy, part) == SGM_OK;
    }
    if (good)
        return copy;
    sgm_criteria_free(copy);
    return NULL;
}

/* The *index-th leaf with an identifier, in the order of the text; counts *index down. */
static const char *find_identifier(const sgm_criteria *node, size_t *index)
{
    if (node->part_count == 0 && node->kind != SGM__CRITERIA_EXTERNAL && (*index)-- == 0)
        return node->identifier;
    for (size_t i = 0; i < node->part_count; i++) {
        const char *found = find_identifier(node->parts[i], index);
        if (found != NULL)
            return found;
    }
    return NULL;
}

/* One after the other, for callers that list what criteria ask for; each call walks the tree from its
 * root. */
const char *sgm_criteria_identifier_at(const sgm_criteria *criteria, size_t index)
{
    return criteria != NULL ? find_identifier(criteria, &index) : NULL;
}

/* The *index-th external leaf, in the order of the text; counts *index down. */
static const char *find_external(const sgm_criteria *node, size_t *index)
{
    if (node->kind == SGM__CRITERIA_EXTERNAL && (*index)-- == 0)
        return node->identifier;
    for (size_t i = 0; i < node->part_count; i++) {
        const char *found = find_external(node->parts[i], index);
        if (found != NULL)
            return found;
    }
    return NULL;
}

const char *sgm_criteria_external_at(const sgm_criteria *criteria, size_t index)
{
    return criteria != NULL ? find_external(criteria, &index) : NULL;
}

/* --- what they remember --- */

/* How many places of `memory` a node uses: the length of its part of a state. An external criterion's one
 * number is `external`. */
static size_t memory_size(const sgm_criteria *node)
{
    switch (node->kind) {
    case SGM__CRITERIA_THRESHOLD:
        return node->flag ? 1 : 0;
    case SGM__CRITERIA_EXTREMUM:
    case SGM__CRITERIA_CHANGE:
        return 2;
    case SGM__CRITERIA_STALLS:
        return 3;
    case SGM__CRITERIA_REACHES:
    case SGM__CRITERIA_REPEATED:
    case SGM__CRITERIA_EXTERNAL:
        return 1;
    case SGM__CRITERIA_AND:
    case SGM__CRITERIA_OR:
    case SGM__CRITERIA_NOT:
        break;
    }
    return 0;
}

/* Of a whole tree: numbers of all nodes, each node before its parts. */
static size_t state_size(const sgm_criteria *node)
{
    size_t size = memory_size(node);
    for (size_t i = 0; i < node->part_count; i++)
        size += state_size(node->parts[i]);
    return size;
}

/* Returns the place behind what it wrote. */
static double *write_state(const sgm_criteria *node, double *numbers)
{
    size_t size = memory_size(node);
    if (node->kind == SGM__CRITERIA_EXTERNAL)
        *numbers = (double)atomic_load(&node->external);
    else
        memcpy(numbers, node->memory, size * sizeof *numbers);
    numbers += size;
    for (size_t i = 0; i < node->part_count; i++)
        numbers = write_state(node->parts[i], numbers);
    return numbers;
}

/* The numbers have no names: they only fit criteria that are built in the same way, which
 * sgm_criteria_set_state checks as far as numbers can tell. */
sgm_status sgm_criteria_get_state(const sgm_criteria *criteria, double *numbers, size_t *count)
{
    size_t needed = criteria != NULL ? state_size(criteria) : 0;
    if (numbers != NULL && *count < needed)
        return sgm_fail(SGM_ERROR_ARGUMENT, "these criteria remember %zu numbers, there is room for %zu",
                        needed, *count);
    if (numbers != NULL && criteria != NULL)
        write_state(criteria, numbers);
    *count = needed;
    return SGM_OK;
}

static bool is_flag(double number)
{
    return number == 0 || number == 1;
}

/* Also false for NaN. */
static bool is_whole(double number, double minimum, double maximum)
{
    return number >= minimum && number <= maximum && number == floor(number);
}

/* Whether numbers of a checkpoint can be the memory of this node. A count that is as large as `count`
 * never occurs, since counting begins anew there. The best value may be infinite, but not NaN, which is
 * never best. */
static bool is_good_memory(const sgm_criteria *node, const double *numbers)
{
    switch (node->kind) {
    case SGM__CRITERIA_THRESHOLD:
        return !node->flag || is_flag(numbers[SGM__MEMORY_FLAG]);
    case SGM__CRITERIA_REACHES:
        return is_flag(numbers[SGM__MEMORY_FLAG]);
    case SGM__CRITERIA_EXTREMUM:
    case SGM__CRITERIA_CHANGE:
        return is_flag(numbers[SGM__MEMORY_FLAG]) && !isnan(numbers[SGM__MEMORY_VALUE]);
    case SGM__CRITERIA_STALLS:
        return is_whole(numbers[SGM__MEMORY_COUNT], 0, (double)(node->count - 1)) &&
               !isnan(numbers[SGM__MEMORY_VALUE]) && is_flag(numbers[SGM__MEMORY_SEEN]);
    case SGM__CRITERIA_REPEATED:
        return is_whole(numbers[SGM__MEMORY_COUNT], 0, (double)(node->count - 1));
    case SGM__CRITERIA_EXTERNAL:
        return is_whole(numbers[0], SGM__EXTERNAL_ON, (double)SGM__PHRASE_MAXIMUM_COUNT);
    case SGM__CRITERIA_AND:
    case SGM__CRITERIA_OR:
    case SGM__CRITERIA_NOT:
        break;
    }
    return true;
}

/* The whole tree is checked before read_state changes anything. Returns the place behind the node's
 * numbers; NULL: these are not numbers of such criteria. */
static const double *check_state(const sgm_criteria *node, const double *numbers)
{
    if (!is_good_memory(node, numbers))
        return NULL;
    numbers += memory_size(node);
    for (size_t i = 0; i < node->part_count && numbers != NULL; i++)
        numbers = check_state(node->parts[i], numbers);
    return numbers;
}

/* Takes over checked numbers; returns the place behind them. */
static const double *read_state(sgm_criteria *node, const double *numbers)
{
    size_t size = memory_size(node);
    if (node->kind == SGM__CRITERIA_EXTERNAL)
        atomic_store(&node->external, (int64_t)*numbers);
    else if (size > 0)
        memcpy(node->memory, numbers, size * sizeof *numbers);
    numbers += size;
    for (size_t i = 0; i < node->part_count; i++)
        numbers = read_state(node->parts[i], numbers);
    return numbers;
}

/* `nothing` stands for NULL when there are no numbers, so that the functions above may compute addresses. */
sgm_status sgm_criteria_set_state(sgm_criteria *criteria, const double *numbers, size_t count)
{
    static const double nothing[1] = {0};
    size_t needed = criteria != NULL ? state_size(criteria) : 0;
    if (count != needed || (numbers == NULL && count > 0))
        return sgm_fail(SGM_ERROR_FORMAT,
                        "these criteria remember %zu numbers, but %zu came: they are of others", needed,
                        count);
    if (criteria == NULL)
        return SGM_OK;
    numbers = numbers != NULL ? numbers : nothing;
    if (check_state(criteria, numbers) == NULL)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "these numbers are not what such criteria remember: they are of others, "
                        "or damaged");
    read_state(criteria, numbers);
    return SGM_OK;
}

/* External criteria are also switched off: what someone allowed before belongs to the time before. */
void sgm_criteria_reset(sgm_criteria *criteria)
{
    if (criteria == NULL)
        return;
    memset(criteria->memory, 0, sizeof criteria->memory);
    atomic_store(&criteria->external, 0);
    for (size_t i = 0; i < criteria->part_count; i++)
        sgm_criteria_reset(criteria->parts[i]);
}
