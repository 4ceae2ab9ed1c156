/* Which of a model's classes the targets of a table are.
 *
 * A table calls them by the names that the model has for them, by their numbers from 0, or, where the model
 * has no names, by texts: these are numbered in their alphabetical order, as scikit-learn and `sigma train`
 * do it, if the table has all of them: else nobody knows which one is missing. A classifier may tell other
 * numbers, such as -1 and 1 or 1 to 3: then all numbers that it tells, or the table has, are the classes. */
#include "eval/rows.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Of probabilities that a model gives for an example, the sum may differ from 1 by as much. */
#define TOLERANCE 1e-3
/* Names that a message has at most. */
#define SHOWN_NAMES 4
/* Below it float64 has every whole number. */
#define MOST_EXACT 9007199254740992.0
/* In place of a number that the model never tells. */
#define UNTOLD INT64_MIN

int64_t eval_rows_class(eval_rows *r, const char *text, int64_t line)
{
    for (size_t i = 0; i < r->class_count; i++)
        if (strcmp(r->classes[i].text, text) == 0)
            return (int64_t)i;
    if (r->class_count == MOST_ROW_CLASSES) {
        sgm_fail(SGM_ERROR_FORMAT,
                 "line %lld: the target has more than %d different values, and the model tells classes apart",
                 (long long)line, MOST_ROW_CLASSES);
        return -1;
    }
    if (sgm__reserve(&r->classes, &r->class_capacity, r->class_count + 1, sizeof *r->classes) != SGM_OK)
        return -1;
    char *copy = sgm__strdup(text);
    if (copy == NULL)
        return -1;
    r->classes[r->class_count] = (row_class){.text = copy, .line = line};
    return (int64_t)r->class_count++;
}

/* --- numbers of classes --- */

/* Whole numbers count as such in the way that pandas writes those of a column with floats, too: "1.0". */
static bool parse_class(const char *text, int64_t *number)
{
    double parsed;
    if (sgm__parse_int64(text, number))
        return true;
    if (!sgm__parse_double(text, &parsed) || !(fabs(parsed) < MOST_EXACT) || parsed != floor(parsed))
        return false;
    *number = (int64_t)parsed;
    return true;
}

static int64_t count_model_names(const eval_rows *r)
{
    int64_t count = 0;
    while (r->onnx.onnx != NULL && sgm_onnx_class_at(r->onnx.onnx, (size_t)count) != NULL)
        count++;
    return count;
}

static sgm_status fail_name(const eval_rows *r, const row_class *class, int64_t count)
{
    sgm__text names = {0};
    for (int64_t i = 0; i < count && i < SHOWN_NAMES; i++)
        sgm__text_append(&names, "%s'%.40s'", i > 0 ? ", " : "", sgm_onnx_class_at(r->onnx.onnx, (size_t)i));
    char *text = sgm__text_take(&names);
    sgm_fail(SGM_ERROR_FORMAT, "line %lld: '%.60s' is no class of the model, which names %s%s",
             (long long)class->line, class->text, text != NULL ? text : "them",
             count > SHOWN_NAMES ? " and others" : "");
    sgm_string_free(text);
    return SGM_ERROR_FORMAT;
}

static bool is_called(const char *name, const char *text)
{
    int64_t a, b;
    return strcmp(name, text) == 0 || (parse_class(name, &a) && parse_class(text, &b) && a == b);
}

/* By the names that the model has; a number is one from 0, if no class has a number as its name. */
static sgm_status number_by_names(eval_rows *r, int64_t count)
{
    int64_t number;
    bool has_numbers = false;
    for (int64_t i = 0; i < count; i++)
        has_numbers |= parse_class(sgm_onnx_class_at(r->onnx.onnx, (size_t)i), &number);
    for (size_t k = 0; k < r->class_count; k++) {
        row_class *class = &r->classes[k];
        for (class->number = 0; class->number < count; class->number++)
            if (is_called(sgm_onnx_class_at(r->onnx.onnx, (size_t) class->number), class->text))
                break;
        if (class->number == count && (has_numbers || !parse_class(class->text, &class->number) ||
                                       class->number < 0 || class->number >= count))
            return fail_name(r, class, count);
    }
    return SGM_OK;
}

/* Takes the texts as whole numbers. *are_numbers false: none is a number, so they are names. Some of both are
 * an error, as a line without a class ("NaN") or a heading would become a class. */
static sgm_status number_by_texts(eval_rows *r, bool *are_numbers)
{
    const row_class *name = NULL, *number = NULL;
    double parsed;
    for (size_t k = 0; k < r->class_count; k++) {
        row_class *class = &r->classes[k];
        bool is_whole = parse_class(class->text, &class->number);
        if (!is_whole && name == NULL)
            name = class;
        if (number == NULL && (is_whole || sgm__parse_double(class->text, &parsed)))
            number = class;
    }
    *are_numbers = number != NULL;
    if (name == NULL || number == NULL)
        return SGM_OK;
    if (name == number)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "line %lld: the target '%.60s' is no whole number, and the model tells classes apart",
                        (long long)name->line, name->text);
    return sgm_fail(SGM_ERROR_FORMAT,
                    "line %lld: the target '%.60s' is no whole number, and '%.60s' of line %lld is a number: "
                    "call all classes by numbers, or all by names",
                    (long long)name->line, name->text, number->text, (long long)number->line);
}

/* --- names without numbers --- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* All numbers that are told, or that the first `classes` of the table have, in their order; *count of them.
 * sgm__free. */
static int64_t *find_numbers(const eval_rows *r, size_t classes, size_t *count)
{
    size_t all = (size_t)r->count + classes, kept = 0;
    int64_t *numbers = sgm__calloc(all, sizeof *numbers);
    if (numbers == NULL)
        return NULL;
    memcpy(numbers, r->told, (size_t)r->count * sizeof *numbers);
    for (size_t k = 0; k < classes; k++)
        numbers[r->count + (int64_t)k] = r->classes[k].number;
    qsort(numbers, all, sizeof *numbers, compare);
    for (size_t i = 0; i < all; i++)
        if (kept == 0 || numbers[i] != numbers[kept - 1])
            numbers[kept++] = numbers[i];
    *count = kept;
    return numbers;
}

/* Whether the outputs are scores of `count` classes, the largest of which is what the model tells. */
static bool are_scores(const eval_rows *r, int64_t count)
{
    if (r->each != count)
        return false;
    for (int64_t i = 0; r->tells && i < r->count; i++)
        if (largest_of(r->outputs + i * count, count) != r->told[i])
            return false;
    return true;
}

static sgm_status fail_untold(const eval_rows *r, const int64_t *told, size_t count)
{
    sgm__text numbers = {0};
    for (size_t i = 0; i < count && i < SHOWN_NAMES; i++)
        sgm__text_append(&numbers, "%s%lld", i > 0 ? ", " : "", (long long)told[i]);
    char *text = sgm__text_take(&numbers);
    sgm_fail(SGM_ERROR_FORMAT,
             "the table has %zu classes by name, and the model tells %s%s without names: write the numbers "
             "of its classes",
             r->class_count, text != NULL ? text : "numbers", count > SHOWN_NAMES ? ", ..." : "");
    sgm_string_free(text);
    return SGM_ERROR_FORMAT;
}

/* Names can be put in order only if they are as many as the model's classes. Where its outputs do not count
 * these, the numbers do that it tells. */
static sgm_status check_names(const eval_rows *r, int64_t *count)
{
    *count = r->each;
    if (r->tells && (r->each == 1 || !are_scores(r, r->each))) {
        size_t found;
        int64_t *told = find_numbers(r, 0, &found);
        if (told == NULL)
            return SGM_ERROR_MEMORY;
        *count = (int64_t)found;
        bool is_from_0 = told[0] == 0 && told[found - 1] == *count - 1;
        sgm_status status = is_from_0 ? SGM_OK : fail_untold(r, told, found);
        sgm__free(told);
        SGM_TRY(status);
    }
    return (int64_t)r->class_count == *count
               ? SGM_OK
               : sgm_fail(SGM_ERROR_FORMAT,
                          "the table has %zu classes by name, and the model %lld without names: write their "
                          "numbers, from 0",
                          r->class_count, (long long)*count);
}

/* In the alphabetical order of their texts. */
static sgm_status number_by_order(eval_rows *r)
{
    sgm__text order = {0};
    for (size_t k = 0; k < r->class_count; k++) {
        r->classes[k].number = 0;
        for (size_t i = 0; i < r->class_count; i++)
            r->classes[k].number += strcmp(r->classes[i].text, r->classes[k].text) < 0;
    }
    r->names = sgm__calloc(r->class_count, sizeof *r->names);
    if (r->names == NULL)
        return SGM_ERROR_MEMORY;
    r->name_count = (int64_t)r->class_count;
    for (size_t k = 0; k < r->class_count; k++)
        if ((r->names[r->classes[k].number] = sgm__strdup(r->classes[k].text)) == NULL)
            return SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < r->name_count && i < SHOWN_NAMES; i++)
        sgm__text_append(&order, "%s%.40s %lld", i > 0 ? ", " : "", r->names[i], (long long)i);
    char *text = sgm__text_take(&order);
    complain("note: the model does not name its classes, so they are numbered in alphabetical order: %s%s; a "
             "table with their numbers says another order\n",
             text != NULL ? text : "", r->name_count > SHOWN_NAMES ? ", ..." : "");
    sgm_string_free(text);
    return SGM_OK;
}

static sgm_status keep_model_names(eval_rows *r, int64_t count)
{
    r->names = sgm__calloc((size_t)count, sizeof *r->names);
    for (; r->names != NULL && r->name_count < count; r->name_count++)
        if ((r->names[r->name_count] = sgm__strdup(sgm_onnx_class_at(r->onnx.onnx, (size_t)r->name_count))) ==
            NULL)
            return SGM_ERROR_MEMORY;
    return r->names != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* --- other numbers than those from 0 --- */

static int64_t place_of(const int64_t *numbers, size_t count, int64_t number)
{
    const int64_t *found = bsearch(&number, numbers, count, sizeof number, compare);
    return found - numbers;
}

static bool are_probabilities(const eval_rows *r)
{
    for (int64_t i = 0; i < r->count; i++) {
        double sum = 0;
        for (int64_t k = 0; k < r->each; k++) {
            double share = r->outputs[i * r->each + k];
            if (!(share >= -TOLERANCE && share <= 1 + TOLERANCE))
                return false;
            sum += share;
        }
        if (fabs(sum - 1) > TOLERANCE)
            return false;
    }
    return true;
}

/* The number that is told where each output is the largest, UNTOLD where it never is. False: these numbers
 * are not in the outputs' order. */
static bool find_told(const eval_rows *r, int64_t *told)
{
    int64_t last = UNTOLD;
    for (int64_t k = 0; k < r->each; k++)
        told[k] = UNTOLD;
    for (int64_t i = 0; i < r->count; i++) {
        int64_t *number = &told[largest_of(r->outputs + i * r->each, r->each)];
        if (*number != UNTOLD && *number != r->told[i])
            return false;
        *number = r->told[i];
    }
    for (int64_t k = 0; k < r->each; k++) {
        if (told[k] != UNTOLD && told[k] <= last)
            return false;
        last = told[k] != UNTOLD ? told[k] : last;
    }
    return true;
}

/* The first class of the table that is never told. */
static sgm_status fail_unknown(const eval_rows *r, const int64_t *told)
{
    for (size_t k = 0; k < r->class_count; k++) {
        const row_class *class = &r->classes[k];
        bool is_told = false;
        int64_t first = UNTOLD, last = UNTOLD;
        for (int64_t i = 0; i < r->each; i++) {
            is_told |= told[i] == class->number;
            first = first == UNTOLD ? told[i] : first;
            last = told[i] != UNTOLD ? told[i] : last;
        }
        if (!is_told)
            return sgm_fail(SGM_ERROR_FORMAT,
                            "line %lld: the target '%.60s' is no class of the model, which has %lld and "
                            "tells those from %lld to %lld",
                            (long long)class->line, class->text, (long long)r->each, (long long)first,
                            (long long)last);
    }
    return sgm_fail(SGM_ERROR_FORMAT, "the table has other classes than the model");
}

/* Where the outputs are probabilities of the classes, each class of the table must be one of them: below and
 * above a number that is told there are no more classes than outputs before and behind its own. */
static sgm_status check_told(const eval_rows *r, const int64_t *numbers, size_t count)
{
    bool fits = true;
    if (r->each < 2 || !are_probabilities(r))
        return SGM_OK;
    int64_t *told = sgm__calloc((size_t)r->each, sizeof *told);
    if (told == NULL)
        return SGM_ERROR_MEMORY;
    if (find_told(r, told))
        for (int64_t k = 0; k < r->each; k++) {
            int64_t place = told[k] != UNTOLD ? place_of(numbers, count, told[k]) : k;
            fits &= told[k] == UNTOLD || (place <= k && (int64_t)count - place <= r->each - k);
        }
    sgm_status status = fits ? SGM_OK : fail_unknown(r, told);
    sgm__free(told);
    return status;
}

/* Numbers become their places among all, and the names of these. */
static sgm_status renumber(eval_rows *r)
{
    size_t count;
    int64_t *numbers = find_numbers(r, r->class_count, &count);
    if (numbers != NULL && check_told(r, numbers, count) != SGM_OK) {
        sgm__free(numbers);
        return sgm__last_failure();
    }
    r->names = numbers != NULL && count <= MOST_ROW_CLASSES ? sgm__calloc(count, sizeof *r->names) : NULL;
    sgm_status status = r->names != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (numbers != NULL && count > MOST_ROW_CLASSES)
        status = sgm_fail(SGM_ERROR_UNSUPPORTED, "the model tells more than %d classes", MOST_ROW_CLASSES);
    for (size_t i = 0; status == SGM_OK && i < count; i++, r->name_count++)
        if ((r->names[i] = sgm__format("%lld", (long long)numbers[i])) == NULL)
            status = SGM_ERROR_MEMORY;
    for (int64_t i = 0; status == SGM_OK && i < r->count; i++)
        r->told[i] = place_of(numbers, count, r->told[i]);
    for (size_t k = 0; status == SGM_OK && k < r->class_count; k++)
        r->classes[k].number = place_of(numbers, count, r->classes[k].number);
    sgm__free(numbers);
    return status;
}

/* Whether what is told, and what the table has, are numbers of the model's outputs, or of `count` classes. */
static bool are_from_0(const eval_rows *r, int64_t count)
{
    for (int64_t i = 0; r->tells && i < r->count; i++)
        if (r->told[i] < 0 || r->told[i] >= count)
            return false;
    for (size_t k = 0; k < r->class_count; k++)
        if (r->classes[k].number < 0 || r->classes[k].number >= count)
            return false;
    return true;
}

/* --- outputs of classes --- */

/* A 1 for the class that is told, 0 for the others. */
static sgm_status replace_outputs(eval_rows *r, int64_t count)
{
    double *shares = sgm__calloc((size_t)(r->count * count), sizeof *shares);
    if (shares == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < r->count; i++)
        shares[i * count + r->told[i]] = 1;
    sgm__free(r->outputs);
    r->outputs = shares;
    r->each = count;
    return SGM_OK;
}

/* A probability of 0 for what is true, as a forest has, counts as the smallest that float32 tells from 0
 * beside 1: one such example would make the mean infinite. */
static double cross_entropy(const eval_rows *r)
{
    double sum = 0;
    for (int64_t i = 0; i < r->count; i++)
        sum -= log(fmin(1, fmax(r->outputs[i * r->each + (int64_t)r->targets[i]], FLT_EPSILON)));
    return sum / (double)r->count;
}

/* --- all of it --- */

/* *count: of the model's classes. */
static sgm_status give_numbers(eval_rows *r, int64_t *count)
{
    bool are_numbers;
    *count = count_model_names(r);
    if (*count > 0) {
        SGM_TRY(number_by_names(r, *count));
        return keep_model_names(r, *count);
    }
    SGM_TRY(number_by_texts(r, &are_numbers));
    if (!are_numbers) {
        SGM_TRY(check_names(r, count));
        return number_by_order(r);
    }
    *count = r->each;
    if (!r->tells || (*count > 1 && are_from_0(r, *count) && are_scores(r, *count)))
        return SGM_OK;
    SGM_TRY(renumber(r));
    *count = r->name_count;
    return SGM_OK;
}

static sgm_status fail_range(const eval_rows *r)
{
    for (size_t k = 0; k < r->class_count; k++)
        if (r->classes[k].number < 0 || r->classes[k].number >= r->each)
            return sgm_fail(
                SGM_ERROR_FORMAT,
                "line %lld: the target '%.60s' is class %lld of %zu different ones, and the model "
                "gives %lld numbers, for classes from 0",
                (long long)r->classes[k].line, r->classes[k].text, (long long)r->classes[k].number,
                r->class_count, (long long)r->each);
    return sgm_fail(SGM_ERROR_UNSUPPORTED, "the model gives %lld numbers, and names other classes",
                    (long long)r->each);
}

sgm_status eval_rows_find_classes(eval_rows *r, double *loss)
{
    int64_t count;
    SGM_TRY(give_numbers(r, &count));
    if (!are_from_0(r, count) || (!r->tells && r->each != count))
        return fail_range(r);
    bool is_scored = are_scores(r, count);
    if (!is_scored)
        SGM_TRY(replace_outputs(r, count));
    for (int64_t i = 0; i < r->count; i++)
        r->targets[i] = (double)r->classes[(int64_t)r->targets[i]].number;
    *loss = is_scored && are_probabilities(r) ? cross_entropy(r) : NAN;
    return SGM_OK;
}
