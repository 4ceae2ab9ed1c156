/* The parts of a checkpoint by name, and which part a state belongs to.
 *
 * A state's name tells its part: "optimiser.SLOT.LAYER.NAME" is the optimiser's, "random.*" the
 * generator's, everything else a parameter or its average. States of workers ("workers.N.STATE") and those
 * that are kept only for readers ("trainer.*") belong to no part that can be asked for. */
#include "optim/optimiser.h"
#include "registry/pattern.h"
#include "runs/parts/parts.h"
#include "trainer/strategy.h"

#include <stdio.h>
#include <stdlib.h>

static const struct part_row {
    unsigned part;
    const char *name;
} part_rows[] = {
    {SGM_PART_NETWORK, "network"},   {SGM_PART_PARAMETERS, "parameters"}, {SGM_PART_OPTIMISER, "optimiser"},
    {SGM_PART_POSITION, "position"}, {SGM_PART_RANDOM, "random"},         {SGM_PART_HOOKS, "hooks"},
    {SGM_PART_METRICS, "metrics"},   {SGM_PART_SETTINGS, "settings"},
};
#define PART_COUNT (sizeof part_rows / sizeof *part_rows)

/* `part` is one of SGM_PART_..., no sum; NULL: there is no such part. */
const char *sgm_part_name(unsigned part)
{
    for (size_t i = 0; i < PART_COUNT; i++)
        if (part_rows[i].part == part)
            return part_rows[i].name;
    return NULL;
}

char *sgm__parts_text(unsigned parts)
{
    sgm__text text = {0};
    for (size_t i = 0; i < PART_COUNT; i++)
        if ((parts & part_rows[i].part) != 0)
            sgm__text_append(&text, "%s%s", text.length > 0 ? ", " : "", part_rows[i].name);
    if (text.length == 0)
        sgm__text_append(&text, "nothing");
    return sgm__text_take(&text);
}

/* A part by its name, or "everything"; the error names the nearest. */
static sgm_status find_part(const char *name, unsigned *part)
{
    const char *names[PART_COUNT + 1];
    for (size_t i = 0; i < PART_COUNT; i++) {
        names[i] = part_rows[i].name;
        if (strcmp(name, names[i]) != 0)
            continue;
        *part = part_rows[i].part;
        return SGM_OK;
    }
    names[PART_COUNT] = "everything";
    if (strcmp(name, names[PART_COUNT]) == 0) {
        *part = SGM_PART_EVERYTHING;
        return SGM_OK;
    }
    const char *near = sgm__nearest(name, names, PART_COUNT + 1);
    if (near != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "unknown part '%.40s' (did you mean '%s'?)", name, near);
    char *known = sgm__parts_text(SGM_PART_EVERYTHING);
    sgm_status status = sgm_fail(SGM_ERROR_ARGUMENT, "unknown part '%.40s'; there are %s, everything", name,
                                 known != NULL ? known : "");
    sgm__free(known);
    return status;
}

/* "everything -hooks, -random": names add parts, names with a minus remove them, from left to right. */
sgm_status sgm_parts_parse(const char *text, unsigned *parts)
{
    if (text == NULL || parts == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_parts_parse: expected a text and a place for the parts");
    *parts = 0;
    while (*(text += strspn(text, " ,")) != '\0') {
        char name[48];
        unsigned part = 0;
        bool minus = *text == '-';
        text += minus;
        size_t length = strcspn(text, " ,");
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), text);
        SGM_TRY(find_part(name, &part));
        *parts = minus ? *parts & ~part : *parts | part;
        text += length;
    }
    return *parts != 0 ? SGM_OK
                       : sgm_fail(SGM_ERROR_ARGUMENT, "no parts are left; name some, as in \"parameters\"");
}

static size_t dots_of(const char *name)
{
    size_t dots = 0;
    for (; *name != '\0'; name++)
        dots += *name == '.';
    return dots;
}

/* A layer may be called "optimiser": its parameters are "optimiser.weights", with one dot. Slots have at
 * least three: optimiser.SLOT.LAYER.NAME. */
unsigned sgm__part_of_state(const char *name)
{
    if (sgm__begins_with(name, SGM__SLOT_PREFIX) && dots_of(name) >= 3)
        return SGM_PART_OPTIMISER;
    if (strcmp(name, "random.seed") == 0 || strcmp(name, "random.step") == 0)
        return SGM_PART_RANDOM;
    return SGM_PART_PARAMETERS;
}

/* *state points into `name`. The number is checked against SGM__MAXIMUM_WORKERS, as it comes from a file. */
long sgm__worker_of_state(const char *name, const char **state)
{
    char *end;
    if (!sgm__begins_with(name, SGM__WORKER_PREFIX) || !sgm__is_digit(name[strlen(SGM__WORKER_PREFIX)]))
        return -1;
    long number = strtol(name + strlen(SGM__WORKER_PREFIX), &end, 10);
    *state = end + 1;
    return *end == '.' && number < SGM__MAXIMUM_WORKERS ? number : -1;
}

bool sgm__is_worker_state(const char *name)
{
    const char *state;
    return sgm__worker_of_state(name, &state) >= 0;
}

bool sgm__parts_are_all(const sgm__parts *wanted)
{
    return wanted->parts == SGM_PART_EVERYTHING && wanted->pattern_count == 0;
}

/* A pattern selects among parameters and the optimiser's states; states of the random generator come along
 * with any pattern. States of workers and states kept for readers belong to no part. */
bool sgm__parts_have(const sgm__parts *wanted, const char *state)
{
    unsigned part = sgm__part_of_state(state);
    bool is_kept = sgm__begins_with(state, SGM__KEPT_PREFIX);
    if ((wanted->parts & part) == 0 || is_kept || sgm__is_worker_state(state))
        return false;
    bool matches = wanted->pattern_count == 0 || part == SGM_PART_RANDOM;
    for (size_t i = 0; i < wanted->pattern_count && !matches; i++)
        matches = sgm__pattern_matches(wanted->patterns[i], state);
    return matches;
}
