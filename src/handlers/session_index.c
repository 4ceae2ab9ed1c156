/* Inputs that are numbers of something, such as tokens or classes: whole, and of those that there are. Told
 * when they are fed, where the input and the place in it are known. */
#include "handlers/session.h"
#include "tensor/tensor_internal.h"
#include <stdio.h>

struct sgm__index_rule {
    int32_t input;
    char *user;
    double minimum, maximum;
};

void sgm__index_rules_free(sgm_program *program)
{
    for (size_t i = 0; i < program->rule_count; i++)
        sgm__free(program->rules[i].user);
    sgm__free(program->rules);
}

sgm_status sgm__program_expect_index(sgm_program *program, const char *input, const char *user,
                                     double minimum, double maximum)
{
    int32_t index = sgm__program_input(program, input);
    if (index < 0) /* no result depends on it */
        return SGM_OK;
    for (size_t i = 0; i < program->rule_count; i++)
        if (program->rules[i].input == index && strcmp(program->rules[i].user, user) == 0)
            return SGM_OK;
    SGM_TRY(sgm__reserve(&program->rules, &program->rule_capacity, program->rule_count + 1,
                         sizeof *program->rules));
    char *copy = sgm__strdup(user);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    program->rules[program->rule_count++] = (struct sgm__index_rule){index, copy, minimum, maximum};
    return SGM_OK;
}

/* Whether all are whole and in bounds: first without branches, as nearly always they are. */
#define ALL_GOOD(type)                                                                                       \
    static bool all_good_##type(const type *values, int64_t count, double low, double high)                  \
    {                                                                                                        \
        type minimum = (type)low, maximum = (type)high;                                                      \
        int bad = 0;                                                                                         \
        for (int64_t i = 0; i < count; i++) {                                                                \
            type inside = values[i] >= minimum && values[i] <= maximum ? values[i] : (type)0.5;              \
            bad |= inside != (type)(int32_t)inside;                                                          \
        }                                                                                                    \
        return !bad;                                                                                         \
    }
ALL_GOOD(float)
ALL_GOOD(double)

static bool is_good(double value, const struct sgm__index_rule *rule)
{
    return value >= rule->minimum && value <= rule->maximum && value == (double)(int64_t)value;
}

static sgm_status fail_first(const sgm_program *program, const struct sgm__index_rule *rule,
                             const sgm_array *array)
{
    char place[160] = "";
    int64_t count = sgm_shape_elements(&array->shape), at = 0;
    while (at < count - 1 && is_good(sgm_array_load(array, at), rule))
        at++;
    double value = sgm_array_load(array, at);
    size_t length = 0;
    for (int32_t axis = 0; axis < array->shape.rank && length < sizeof place - 32; axis++) {
        int64_t below = 1;
        for (int32_t k = axis + 1; k < array->shape.rank; k++)
            below *= array->shape.dims[k];
        length += (size_t)snprintf(place + length, sizeof place - length, "%s%lld", axis > 0 ? ", " : " at [",
                                   (long long)(at / below % array->shape.dims[axis]));
    }
    bool inside = value >= rule->minimum && value <= rule->maximum;
    sgm_fail(SGM_ERROR_ARGUMENT, "input '%s'%s%s: %.9g %s: %s takes whole numbers from %.15g to %.15g",
             sgm__plan_string(program->plan, program->plan->inputs[rule->input].name), place,
             length > 0 ? "]" : "", value, inside ? "is no whole number" : "is out of range", rule->user,
             rule->minimum, rule->maximum);
    return sgm__fail_example(array->shape.rank > 0 ? at / (count / array->shape.dims[0]) : 0);
}

sgm_status sgm__program_check_index(const sgm_program *program, int32_t input, const void *data,
                                    sgm_dtype dtype, const sgm_shape *shape)
{
    int64_t count = sgm_shape_elements(shape);
    for (size_t i = 0; i < program->rule_count; i++) {
        const struct sgm__index_rule *rule = &program->rules[i];
        if (rule->input != input || (dtype != SGM_FLOAT32 && dtype != SGM_FLOAT64))
            continue;
        bool good = dtype == SGM_FLOAT32 ? all_good_float(data, count, rule->minimum, rule->maximum)
                                         : all_good_double(data, count, rule->minimum, rule->maximum);
        const sgm_array array = {.dtype = dtype, .shape = *shape, .data = (void *)(uintptr_t)data};
        if (!good)
            return fail_first(program, rule, &array);
    }
    return SGM_OK;
}
