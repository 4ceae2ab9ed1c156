/* Turns values of a registry into JSON, for answers to commands (control_command.c, control_values.c).
 *
 * JSON has neither NaN nor infinity, and its texts are UTF-8, while a trainer has both: everything that
 * goes into an answer passes through here, so that an answer is always valid JSON. All functions return
 * new references, which json_object_set_new and json_array_append_new take over; NULL, for want of memory,
 * they ignore. The record of changes has its own form of values (src/journal/change_record.c). */
#include "control/control_answer.h"
#include "base/base.h"
#include "journal/changes.h"

#include <math.h>

#define SHOWN_ELEMENTS 128 /* an answer leaves out the elements of larger tensors */

/* json_string refuses what is no UTF-8; then each byte beyond ASCII becomes '?'. */
json_t *sgm__answer_text(const char *text)
{
    json_t *value = json_string(text);
    char *plain = value == NULL ? sgm__strdup(text) : NULL;
    if (plain != NULL) {
        for (char *c = plain; *c != '\0'; c++)
            if ((unsigned char)*c >= 0x80)
                *c = '?';
        value = json_string(plain);
        sgm__free(plain);
    }
    return value;
}

json_t *sgm__answer_number(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

json_t *sgm__answer_shape(const sgm_shape *shape, int32_t first)
{
    json_t *list = json_array();
    for (int32_t i = first; i < shape->rank; i++)
        json_array_append_new(list, json_integer(shape->dims[i]));
    return list;
}

/* Numbers and texts as above; booleans, integers and registries as the record of changes has them. */
json_t *sgm__answer_content(const sgm_content *content)
{
    if (content->kind == SGM_KIND_NUMBER)
        return sgm__answer_number(content->as.number);
    if (content->kind == SGM_KIND_TEXT)
        return sgm__answer_text(content->as.text);
    return content->kind == SGM_KIND_TENSOR ? json_null() : sgm__content_change_json(content);
}

/* "float32 [3], -0.5 to 2, mean 0.25", and the elements on the next line if there are few; free with
 * sgm__free. NULL: the tensor has no elements, or cannot be read. Minimum and maximum leave NaN out (fmin,
 * fmax), the mean does not. */
static char *tensor_text(const sgm_tensor *tensor, const char *type)
{
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(tensor));
    double *values = sgm__calloc(count + 1, sizeof *values), minimum = INFINITY, maximum = -INFINITY, sum = 0;
    if (values == NULL || count == 0 || sgm_tensor_read(tensor, values, count) != SGM_OK) {
        sgm__free(values);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        minimum = fmin(minimum, values[i]);
        maximum = fmax(maximum, values[i]);
        sum += values[i];
    }
    sgm__free(values);
    char *elements = count <= SHOWN_ELEMENTS ? sgm_tensor_text(tensor, SHOWN_ELEMENTS) : NULL;
    char *text = sgm__format("%s, %.6g to %.6g, mean %.6g%s%s", type, minimum, maximum, sum / (double)count,
                             elements != NULL ? "\n" : "", elements != NULL ? elements : "");
    sgm_string_free(elements);
    return text;
}

/* `value` is what a program reads; `text` is for people, and the only place where a tensor's numbers are. */
void sgm__answer_add(json_t *list, const char *identifier, const sgm_content *content)
{
    char *text = sgm_content_describe(content);
    char *more =
        content->kind == SGM_KIND_TENSOR && text != NULL ? tensor_text(content->as.tensor, text) : NULL;
    json_t *item = json_object();
    json_object_set_new(item, "identifier", sgm__answer_text(identifier));
    json_object_set_new(item, "kind", json_string(sgm_kind_name(content->kind)));
    json_object_set_new(item, "value", sgm__answer_content(content));
    json_object_set_new(item, "text", sgm__answer_text(more != NULL ? more : text != NULL ? text : ""));
    sgm__free(more);
    json_array_append_new(list, item);
    sgm_string_free(text);
}

/* --- rows of options --- */

/* The default of an option, a new reference; NULL: none is shown. A numeric default of 0 is not: it often
 * stands for another value that depends on something else. */
static json_t *default_of(const sgm_option *option)
{
    if (option->kind == SGM_KIND_BOOLEAN)
        return json_boolean(option->default_value != 0);
    if (option->kind == SGM_KIND_TEXT && option->default_text != NULL)
        return sgm__answer_text(option->default_text);
    if (option->kind == SGM_KIND_INTEGER && option->default_value != 0)
        return isnan(option->default_value) ? NULL : json_integer((json_int_t)option->default_value);
    return option->kind == SGM_KIND_NUMBER && option->default_value != 0
               ? sgm__answer_number(option->default_value)
               : NULL;
}

void sgm__answer_option(json_t *item, const sgm_option *option, bool with_default)
{
    if (option->unit != NULL)
        json_object_set_new(item, "unit", sgm__answer_text(option->unit));
    if (option->minimum != option->maximum) {
        json_object_set_new(item, "minimum", sgm__answer_number(option->minimum));
        json_object_set_new(item, "maximum", sgm__answer_number(option->maximum));
    }
    if (option->choices != NULL) {
        json_t *choices = json_array();
        for (size_t i = 0; option->choices[i] != NULL; i++)
            json_array_append_new(choices, sgm__answer_text(option->choices[i]));
        json_object_set_new(item, "choices", choices);
    }
    if (option->doc != NULL)
        json_object_set_new(item, "doc", sgm__answer_text(option->doc));
    json_t *default_value = with_default ? default_of(option) : NULL;
    if (default_value != NULL)
        json_object_set_new(item, "default", default_value);
}
