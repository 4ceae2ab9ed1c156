/* The predictions of a request as JSON. Numbers are written directly as text, not through jansson, since a
 * response may have millions of them. */
#include "monitors/serve/predictions.h"
#include "control/control_answer.h"
#include "text/json_text.h"

#include <math.h>

/* Writes the numbers of a shape from `axis` on as nested lists, advancing *numbers. A float32 is written
 * with as many digits as it needs to be read back, not as the double that it was widened to. */
static void append_nested(sgm__text *text, bool wide, const sgm_shape *shape, int32_t axis,
                          const double **numbers)
{
    char digits[64];
    if (axis == shape->rank) {
        double number = *(*numbers)++;
        const char *written = !isfinite(number) ? "null"
                              : wide            ? sgm__number_text(number, digits, sizeof digits)
                                                : sgm__float_text((float)number, digits, sizeof digits);
        sgm__text_append_bytes(text, written, strlen(written));
        return;
    }
    sgm__text_append_bytes(text, "[", 1);
    for (int64_t i = 0; i < shape->dims[axis]; i++) {
        if (i > 0)
            sgm__text_append_bytes(text, ",", 1);
        append_nested(text, wide, shape, axis + 1, numbers);
    }
    sgm__text_append_bytes(text, "]", 1);
}

/* The index of the largest share; with a single output, whether it is above a half. -1: a share is NaN. */
static int64_t class_of(const double *shares, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(shares[i]))
            return -1;
        best = shares[i] > shares[best] ? i : best;
    }
    return count == 1 ? shares[0] > 0.5 : best;
}

/* A class as its number or (`named`) its name; null for none, and for a class without a name. */
static json_t *class_json(const sgm__serve_predictions *a, int64_t class, bool named)
{
    size_t known = 0;
    while (a->classes != NULL && a->classes[known] != NULL)
        known++;
    if (class < 0)
        return json_null();
    if (!named)
        return json_integer(class);
    return (size_t) class < known ? sgm__answer_text(a->classes[class]) : json_null();
}

/* Classes of each example: one of them, or for sequences a list, over the steps that count. The output of
 * an example is (..., shares): the last dimension has the shares of the classes. */
static json_t *classes_of(const sgm__serve_predictions *a, bool named)
{
    const sgm_shape *output = &a->signature->output;
    int64_t elements = sgm_shape_elements(output);
    int64_t shares = output->rank > 0 ? output->dims[output->rank - 1] : 1;
    json_t *list = json_array();
    for (int64_t i = 0; i < a->examples; i++) {
        const double *own = a->numbers + i * elements;
        json_t *steps = shares < elements ? json_array() : NULL;
        int64_t count = steps != NULL ? sgm__signature_steps(a->lengths, i, elements / shares) : 0;
        for (int64_t k = 0; k < count; k++)
            json_array_append_new(steps, class_json(a, class_of(own + k * shares, shares), named));
        json_array_append_new(list, steps != NULL ? steps : class_json(a, class_of(own, shares), named));
    }
    return list;
}

/* The classes that a model tells itself. */
static json_t *told_classes(const sgm__serve_predictions *a, bool named)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < a->examples; i++)
        json_array_append_new(list, named ? class_json(a, a->told[i], true) : json_integer(a->told[i]));
    return list;
}

/* The labels that ctc reads out of the steps of each example; a row ends at the first negative label. */
static json_t *labels_of(const sgm__serve_predictions *a, bool named)
{
    int64_t maximum = sgm_tensor_shape(a->labels)->dims[1];
    const int64_t *labels = sgm_tensor_const_data(a->labels);
    json_t *list = json_array();
    for (int64_t i = 0; i < a->examples; i++) {
        json_t *own = json_array();
        for (int64_t k = 0; k < maximum && labels[i * maximum + k] >= 0; k++)
            json_array_append_new(own, class_json(a, labels[i * maximum + k], named));
        json_array_append_new(list, own);
    }
    return list;
}

/* Classes of each example, of whichever kind they are, where there are some. */
static json_t *any_classes(const sgm__serve_predictions *a, bool named)
{
    return a->labels != NULL ? labels_of(a, named)
           : a->told != NULL ? told_classes(a, named)
                             : classes_of(a, named);
}

/* Takes `value`; NULL makes the text fail. */
static void append_member(sgm__text *text, const char *name, json_t *value)
{
    sgm__text_append(text, ",\"%s\":", name);
    if (value == NULL)
        text->failed = true;
    else
        sgm__json_append(text, value);
    json_decref(value);
}

/* The lower or upper ends of the intervals of each example's targets. */
static json_t *ends_of(const sgm__serve_predictions *a, bool upper)
{
    int64_t elements = sgm_shape_elements(&a->signature->output), targets = elements / 2;
    json_t *list = json_array();
    for (int64_t i = 0; i < a->examples; i++) {
        const double *own = a->numbers + i * elements;
        json_t *row = json_array();
        for (int64_t k = 0; k < targets; k++) {
            double ends[2];
            sgm__signature_interval(own[k], own[targets + k], &ends[0], &ends[1]);
            json_array_append_new(row, isfinite(ends[upper]) ? json_real(ends[upper]) : json_null());
        }
        json_array_append_new(list, row);
    }
    return list;
}

/* {"output": ..., "class" or "labels": ..., "label": names of these; "lower" and "upper" of intervals}. */
static void append_predictions(sgm__text *text, const sgm__serve_predictions *a)
{
    const sgm_shape *output = &a->signature->output;
    sgm_shape batch = {.rank = output->rank + 1, .dims = {a->examples}};
    memcpy(batch.dims + 1, output->dims, (size_t)output->rank * sizeof *batch.dims);
    const double *next = a->numbers;
    bool has_classes = a->labels != NULL || a->told != NULL || a->signature->classifies;
    sgm__text_append(text, "{\"output\":");
    append_nested(text, a->wide, &batch, 0, &next);
    if (has_classes)
        append_member(text, a->labels != NULL ? "labels" : "class", any_classes(a, false));
    if (a->signature->deviates) {
        append_member(text, "lower", ends_of(a, false));
        append_member(text, "upper", ends_of(a, true));
    }
    if (a->classes != NULL && has_classes)
        append_member(text, "label", any_classes(a, true));
    sgm__text_append(text, "}");
}

sgm_status sgm__serve_write(const sgm__serve_predictions *a, sgm__http_answer *answer)
{
    sgm__text text = {0};
    append_predictions(&text, a);
    size_t length = text.length;
    answer->body = sgm__text_take(&text);
    answer->length = length;
    return answer->body != NULL ? SGM_OK : sgm_fail(SGM_ERROR_MEMORY, "out of memory for a response");
}
