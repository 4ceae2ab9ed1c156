/* Values of trials: puts them in, counts their combinations, and draws new combinations at random.
 *
 * search_plan.c draws all trials of random search and of halving, and the first ones of TPE (search_tpe.c),
 * which also comes here when it has suggested nothing new. Combinations are numbered: a point is a number in
 * a mixed radix, whose digits are the choices of each value, the last one changing fastest. */
#include "environment/search.h"

#include <math.h>

/* Draws for one trial after which its combinations are taken to be nearly used up. */
#define ATTEMPTS 100
/* Up to so many combinations are counted off, one by one, to find those that are left. */
#define COUNTED_POINTS 1000000

/* --- values --- */

sgm_status sgm__search_set_value(const sgm_search *search, sgm__trial *trial, size_t index, char *text)
{
    if (text == NULL)
        return sgm__last_failure();
    sgm_trial_value *value = &trial->values[index];
    sgm_string_free((char *)(uintptr_t)value->text);
    value->name = search->options.values[index].name;
    value->text = text;
    if (!sgm__parse_double(text, &value->number))
        value->number = NAN;
    return SGM_OK;
}

void sgm__search_clear_values(const sgm_search *search, sgm__trial *trial)
{
    for (size_t i = 0; i < search->value_count; i++) {
        sgm_string_free((char *)(uintptr_t)trial->values[i].text);
        trial->values[i].text = NULL;
    }
}

size_t sgm__search_count_choices(const sgm_search_values *values)
{
    size_t count = 0;
    while (values->choices[count] != NULL)
        count++;
    return count;
}

size_t sgm__search_find_choice(const sgm_search_values *values, const char *text)
{
    size_t index = 0;
    while (values->choices[index] != NULL && strcmp(values->choices[index], text) != 0)
        index++;
    return index;
}

/* --- the unit interval --- */

/* The ends of a range, or their logarithms; whole numbers have a half beyond their ends. */
static void ends_of(const sgm_search_values *values, double *low, double *high)
{
    double half = values->whole ? 0.5 : 0;
    *low = values->logarithmic ? log(values->from - half) : values->from - half;
    *high = values->logarithmic ? log(values->to + half) : values->to + half;
}

double sgm__search_unit_of(const sgm_search_values *values, const sgm_trial_value *value)
{
    if (values->choices != NULL)
        return ((double)sgm__search_find_choice(values, value->text) + 0.5) /
               (double)sgm__search_count_choices(values);
    double low, high, number = values->logarithmic ? log(value->number) : value->number;
    ends_of(values, &low, &high);
    return (number - low) / (high - low);
}

double sgm__search_number_at(const sgm_search_values *values, double unit)
{
    double low, high;
    ends_of(values, &low, &high);
    double number = low + unit * (high - low);
    number = values->logarithmic ? exp(number) : number;
    return fmin(fmax(values->whole ? round(number) : number, values->from), values->to);
}

/* --- points --- */

/* How many texts a value may have; infinite for a range that is not of whole numbers. */
static double count_texts(const sgm_search_values *values)
{
    if (values->choices != NULL)
        return (double)sgm__search_count_choices(values);
    return values->whole ? values->to - values->from + 1 : INFINITY;
}

double sgm__search_count_points(const sgm_search *search)
{
    double count = 1;
    for (size_t i = 0; i < search->value_count; i++)
        count *= count_texts(&search->options.values[i]);
    return count;
}

sgm_status sgm__search_set_point(const sgm_search *search, sgm__trial *trial, size_t point)
{
    for (size_t i = search->value_count; i-- > 0;) {
        const sgm_search_values *values = &search->options.values[i];
        size_t count = (size_t)count_texts(values), digit = point % count;
        char *text = values->choices != NULL ? sgm__strdup(values->choices[digit])
                                             : sgm__format("%.0f", values->from + (double)digit);
        SGM_TRY(sgm__search_set_value(search, trial, i, text));
        point /= count;
    }
    return SGM_OK;
}

/* The point of a trial, of a search whose combinations can be counted. */
static size_t point_of(const sgm_search *search, const sgm__trial *trial)
{
    size_t point = 0;
    for (size_t i = 0; i < search->value_count; i++) {
        const sgm_search_values *values = &search->options.values[i];
        const sgm_trial_value *value = &trial->values[i];
        size_t digit = values->choices != NULL ? sgm__search_find_choice(values, value->text)
                                               : (size_t)(value->number - values->from);
        point = point * (size_t)count_texts(values) + digit;
    }
    return point;
}

/* --- drawing --- */

/* Uniform in [0, 1), 53 bits, from the counter-based generator Philox (Salmon et al., 2011) with the seed
 * as key and (name, trial, attempt) as counter. So a number depends on these alone: another value beside
 * it, or more trials, change none of the others. */
static double draw_uniform(const sgm_search *search, const char *name, size_t trial, size_t attempt)
{
    uint32_t words[4];
    sgm__philox(search->options.seed, sgm__hash_text(name), (uint64_t)trial << 20 | attempt, words);
    return (double)((words[0] | (uint64_t)words[1] << 32) >> 11) * 0x1p-53;
}

/* Training uses the number that the table shows, hence the rounding to 6 digits; where that leaves the range,
 * the number keeps all digits. */
char *sgm__search_number_text(const sgm_search_values *values, double number)
{
    double from = values->from, to = values->to, back;
    if (values->whole)
        return sgm__format("%.0f", fmin(fmax(round(number), from), to));
    char *text = sgm__format("%.6g", number);
    if (text == NULL || (sgm__parse_double(text, &back) && back >= from && back <= to))
        return text;
    sgm__free(text);
    return sgm__format("%.17g", fmin(fmax(number, from), to));
}

/* Maps a uniform number to the range. A whole range gives each number the same probability, a logarithmic
 * one is rounded after the exponential. Both ends are kept to. */
static char *draw_number(const sgm_search_values *values, double uniform)
{
    double from = values->from, to = values->to;
    double number = values->whole && !values->logarithmic ? floor(from + uniform * (to - from + 1))
                                                          : sgm__search_between(values, uniform);
    return sgm__search_number_text(values, number);
}

/* The text of value `index` for a trial: one of the choices, or a number of the range. */
static char *draw(const sgm_search *search, size_t index, size_t trial, size_t attempt)
{
    const sgm_search_values *values = &search->options.values[index];
    double uniform = draw_uniform(search, values->name, trial, attempt);
    if (values->choices == NULL)
        return draw_number(values, uniform);
    return sgm__strdup(values->choices[(size_t)(uniform * (double)sgm__search_count_choices(values))]);
}

bool sgm__search_is_new(const sgm_search *search, const sgm__trial *trial)
{
    for (size_t i = 0; i < search->trial_count; i++) {
        const sgm__trial *other = &search->trials[i];
        size_t same = 0;
        if (other == trial || other->open)
            continue;
        while (same < search->value_count && strcmp(other->values[same].text, trial->values[same].text) == 0)
            same++;
        if (same == search->value_count)
            return false;
    }
    return true;
}

/* Marks the points of all trials but `trial`; without marks where they cannot be counted off. */
static sgm_status mark_points(const sgm_search *search, const sgm__trial *trial, sgm__search_points *points)
{
    double count = sgm__search_count_points(search);
    if (count > COUNTED_POINTS)
        return SGM_OK;
    points->used = sgm__calloc((size_t)count, sizeof *points->used);
    if (points->used == NULL)
        return SGM_ERROR_MEMORY;
    points->count = (size_t)count;
    for (size_t i = 0; i < search->trial_count; i++)
        if (&search->trials[i] != trial && !search->trials[i].open)
            points->used[point_of(search, &search->trials[i])] = true;
    return SGM_OK;
}

/* The first point that is left, from one that is drawn. */
static sgm_status take_unused(const sgm_search *search, sgm__trial *trial, sgm__search_points *points,
                              bool *found)
{
    *found = false;
    if (points->used == NULL)
        SGM_TRY(mark_points(search, trial, points));
    if (points->used == NULL)
        return SGM_OK;
    double uniform = draw_uniform(search, "", (size_t)trial->shown.number - 1, ATTEMPTS);
    size_t start = (size_t)(uniform * (double)points->count);
    for (size_t i = 0; i < points->count && !*found; i++) {
        size_t point = (start + i) % points->count;
        *found = !points->used[point];
        if (!*found)
            continue;
        points->used[point] = true;
        SGM_TRY(sgm__search_set_point(search, trial, point));
    }
    return SGM_OK;
}

/* Once the attempts have not sufficed, they are left out for all further trials: the search would spend its
 * time on drawing what it has. */
sgm_status sgm__search_draw(const sgm_search *search, sgm__trial *trial, sgm__search_points *points,
                            bool *found)
{
    *found = false;
    for (size_t attempt = 0; attempt < ATTEMPTS && !*found && !points->crowded; attempt++) {
        for (size_t i = 0; i < search->value_count; i++)
            SGM_TRY(sgm__search_set_value(search, trial, i,
                                          draw(search, i, (size_t)trial->shown.number - 1, attempt)));
        *found = sgm__search_is_new(search, trial);
    }
    points->crowded |= !*found;
    return *found ? SGM_OK : take_unused(search, trial, points, found);
}
