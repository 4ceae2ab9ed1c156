/* Who counts as a person, and values of changes as JSON: numbers as they are, a tensor as its shape, its
 * norm and its first eight elements. */
#include "base/base.h"
#include "journal/change_record.h"
#include "journal/changes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SAMPLE 8 /* elements of a tensor */

static const char *const persons[] = {"ctl", "monitor", "terminal"};

bool sgm__is_person(const char *who)
{
    for (size_t i = 0; i < sizeof persons / sizeof *persons; i++)
        if (strcmp(who, persons[i]) == 0)
            return true;
    return false;
}

/* Persons and the program: what they set is repeated by a resume, while hooks set their values again by
 * themselves. */
bool sgm__is_request(const char *who)
{
    return sgm__is_person(who) || strcmp(who, "program") == 0;
}

static json_t *number_json(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%g", value);
    return isfinite(value) ? json_real(value) : json_string(text);
}

/* {"shape", "norm", "sample"}: enough to see what was set, without the file growing by whole tensors. */
static json_t *tensor_json(const sgm_tensor *tensor)
{
    const sgm_shape *shape = sgm_tensor_shape(tensor);
    int64_t count = sgm_shape_elements(shape);
    double *values = sgm__calloc((size_t)count + 1, sizeof *values), squares = 0;
    json_t *dims = json_array(), *sample = json_array();
    if (values != NULL && sgm_tensor_read(tensor, values, count) != SGM_OK)
        count = 0;
    for (int32_t i = 0; i < shape->rank; i++)
        json_array_append_new(dims, json_integer(shape->dims[i]));
    for (int64_t i = 0; values != NULL && i < count; i++) {
        squares += values[i] * values[i];
        if (i < SAMPLE)
            json_array_append_new(sample, number_json(values[i]));
    }
    sgm__free(values);
    return json_pack("{s:o, s:o, s:o}", "shape", dims, "norm", number_json(sqrt(squares)), "sample", sample);
}

json_t *sgm__content_change_json(const sgm_content *content)
{
    switch (content->kind) {
    case SGM_KIND_BOOLEAN:
        return json_boolean(content->as.boolean);
    case SGM_KIND_INTEGER:
        return json_integer(content->as.integer);
    case SGM_KIND_NUMBER:
        return number_json(content->as.number);
    case SGM_KIND_TEXT:
        return json_string(content->as.text);
    case SGM_KIND_TENSOR:
        return tensor_json(content->as.tensor);
    case SGM_KIND_NOTHING:
    case SGM_KIND_REGISTRY:
        break;
    }
    return json_null();
}

/* The shortest text that reads back as the same number; jansson alone would write 17 digits. */
char *sgm__change_value_text(const json_t *value)
{
    int digits = json_is_real(value) ? 15 : 6;
    for (;; digits++) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_PRESERVE_ORDER |
                                           JSON_REAL_PRECISION(digits));
        if (text == NULL || !json_is_real(value) || digits == 17 ||
            strtod(text, NULL) == json_real_value(value))
            return text;
        free(text);
    }
}

char *sgm__change_line(const json_t *head, const json_t *before, const json_t *after, int64_t branch)
{
    char *start = json_dumps(head, JSON_COMPACT | JSON_PRESERVE_ORDER);
    char *old = sgm__change_value_text(before), *new = sgm__change_value_text(after), *line = NULL;
    if (start != NULL && old != NULL && new != NULL)
        line = sgm__format("%.*s,\"old\":%s,\"new\":%s,\"branch\":%lld}", (int)strlen(start) - 1, start, old,
                           new, (long long)branch);
    else
        sgm__fail_memory(256);
    free(start);
    free(old);
    free(new);
    return line;
}
