/* Writes and reads members of JSON objects; see json_members.h. */
#include "text/json_members.h"

/* --- writing --- */

void sgm__json_put(json_t *object, const char *member, json_t *value, bool *failed)
{
    *failed |= json_object_set_new(object, member, value) != 0;
}

void sgm__json_put_numbers(json_t *object, const char *member, const double *numbers, size_t count,
                           bool *failed)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        *failed |= json_array_append_new(list, json_real(numbers[i])) != 0;
    sgm__json_put(object, member, list, failed);
}

void sgm__json_put_texts(json_t *object, const char *member, const char *const *texts, size_t count,
                         bool *failed)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        *failed |= json_array_append_new(list, json_string(texts[i])) != 0;
    sgm__json_put(object, member, list, failed);
}

/* --- reading --- */

static bool is_among(const char *const *known, const char *member)
{
    for (; known != NULL && *known != NULL; known++)
        if (strcmp(*known, member) == 0)
            return true;
    return false;
}

sgm_status sgm__json_check_members(json_t *object, const char *const *known, const char *const *more)
{
    const char *member;
    json_t *value;
    json_object_foreach(object, member, value)
    {
        if (!is_among(known, member) && !is_among(more, member))
            return sgm_fail(SGM_ERROR_FORMAT, "'%.40s' is no member of it", member);
    }
    return SGM_OK;
}

sgm_status sgm__json_fail_member(const char *member, const char *expected)
{
    return sgm_fail(SGM_ERROR_FORMAT, "'%s': %s was expected", member, expected);
}

sgm_status sgm__json_take_flag(const json_t *object, const char *member, bool *flag)
{
    const json_t *value = json_object_get(object, member);
    if (value != NULL && !json_is_boolean(value))
        return sgm__json_fail_member(member, "true or false");
    *flag = json_is_true(value);
    return SGM_OK;
}

sgm_status sgm__json_take_number(const json_t *object, const char *member, double *number)
{
    const json_t *value = json_object_get(object, member);
    if (!json_is_number(value))
        return sgm__json_fail_member(member, "a number");
    *number = json_number_value(value);
    return SGM_OK;
}

sgm_status sgm__json_take_size(const json_t *object, const char *member, int32_t *size)
{
    const json_t *value = json_object_get(object, member);
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 1 || number > INT32_MAX)
        return sgm__json_fail_member(member, "a whole number above 0");
    *size = (int32_t)number;
    return SGM_OK;
}

sgm_status sgm__json_take_numbers(const json_t *object, const char *member, size_t count,
                                  const char *expected, double *numbers)
{
    const json_t *list = json_object_get(object, member);
    bool good = json_array_size(list) == count;
    for (size_t i = 0; i < count && good; i++) {
        const json_t *number = json_array_get(list, i);
        good = json_is_number(number);
        numbers[i] = json_number_value(number);
    }
    return good ? SGM_OK : sgm__json_fail_member(member, expected);
}

/* Copies the texts of a list into `texts`, which has room for them. */
static sgm_status copy_texts(const json_t *list, const char *member, char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        texts[i] = sgm__strdup(text);
        if (texts[i] == NULL)
            return text == NULL ? sgm__json_fail_member(member, "a list of texts") : SGM_ERROR_MEMORY;
    }
    return SGM_OK;
}

sgm_status sgm__json_take_texts(const json_t *object, const char *member, size_t most, char ***texts,
                                size_t *count)
{
    const json_t *list = json_object_get(object, member);
    char expected[64], number[32];
    *count = json_array_size(list);
    if (*count == 0 || *count > most) {
        snprintf(expected, sizeof expected, "a list of 1 to %s texts",
                 sgm_count_text((int64_t)most, number, sizeof number));
        return sgm__json_fail_member(member, expected);
    }
    *texts = sgm__calloc(*count + 1, sizeof **texts);
    if (*texts == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = copy_texts(list, member, *texts, *count);
    if (status == SGM_OK)
        return SGM_OK;
    for (size_t i = 0; i < *count; i++)
        sgm__free((*texts)[i]);
    sgm__free(*texts);
    *texts = NULL;
    return status;
}
