/* Checks inputs whose elements are indices (tokens, classes): whole numbers within a range.
 *
 * Data arrives as floating point numbers, as all examples do. Layers that use an input as an index say so
 * when a network is recorded (src/network/indices.c, which calls sgm__program_expect_index); sessions then
 * check what is fed. Checking here, on the host, gives a message with the input, the position and the
 * example, for every handler alike. Indices that are computed within a graph are checked by the operations
 * themselves.
 */
#include "handlers/session.h"
#include "tensor/tensor_internal.h"
#include <stdio.h>

/* One layer's demand on one input. `user` is owned. */
struct sgm__index_rule {
    int32_t input; /* its number in the plan */
    char *user;
    double minimum, maximum;
    const char *remedy; /* of a number below the minimum; NULL: none is known */
};

void sgm__index_rules_free(sgm_program *program)
{
    for (size_t i = 0; i < program->rule_count; i++)
        sgm__free(program->rules[i].user);
    sgm__free(program->rules);
}

/* The same demand twice is kept once: a network tells all of them whenever a program is prepared. */
sgm_status sgm__program_expect_index(sgm_program *program, const char *input, const char *user,
                                     double minimum, double maximum, const char *remedy)
{
    int32_t index = sgm__program_input(program, input);
    if (index < 0) /* the plan has dropped an input that no result depends on */
        return SGM_OK;
    for (size_t i = 0; i < program->rule_count; i++)
        if (program->rules[i].input == index && strcmp(program->rules[i].user, user) == 0)
            return SGM_OK;
    SGM_TRY(sgm__reserve(&program->rules, &program->rule_capacity, program->rule_count + 1,
                         sizeof *program->rules));
    char *copy = sgm__strdup(user);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    program->rules[program->rule_count++] = (struct sgm__index_rule){index, copy, minimum, maximum, remedy};
    return SGM_OK;
}

/* Whether all values are whole and within bounds, without a branch in the loop, so that the compiler makes
 * vectors of it: nearly always they are. A value out of range, or NaN, is replaced by 0.5, which is not
 * whole; what remains has at most 24 bits, so the conversion to int32_t is defined. */
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

/* The same for one value. */
static bool is_good(double value, const struct sgm__index_rule *rule)
{
    return value >= rule->minimum && value <= rule->maximum && value == (double)(int64_t)value;
}

/* The number of the first wrong element, or that of all elements. */
static int64_t first_wrong(const struct sgm__index_rule *rule, const sgm_array *array, int64_t count)
{
    int64_t at = 0;
    while (at < count && is_good(sgm_array_load(array, at), rule))
        at++;
    return at;
}

/* Fails with the position of the element number `at`, "at [3, 0]", and tells its example, the first
 * coordinate. */
static sgm_status fail_at(const sgm_program *program, const struct sgm__index_rule *rule,
                          const sgm_array *array, int64_t at)
{
    char place[160] = "";
    double value = sgm_array_load(array, at);
    int64_t count = sgm_shape_elements(&array->shape);
    size_t length = 0;
    for (int32_t axis = 0; axis < array->shape.rank && length < sizeof place - 32; axis++) {
        int64_t below = 1;
        for (int32_t k = axis + 1; k < array->shape.rank; k++)
            below *= array->shape.dims[k];
        length += (size_t)snprintf(place + length, sizeof place - length, "%s%lld", axis > 0 ? ", " : " at [",
                                   (long long)(at / below % array->shape.dims[axis]));
    }
    bool has_remedy = rule->remedy != NULL && value < rule->minimum;
    bool inside = value >= rule->minimum && value <= rule->maximum;
    sgm_fail(SGM_ERROR_ARGUMENT, "input '%s'%s%s: %.9g %s: %s takes whole numbers from %.15g to %.15g%s%s",
             sgm__plan_string(program->plan, program->plan->inputs[rule->input].name), place,
             length > 0 ? "]" : "", value, inside ? "is no whole number" : "is out of range", rule->user,
             rule->minimum, rule->maximum, has_remedy ? "; " : "", has_remedy ? rule->remedy : "");
    return sgm__fail_example(array->shape.rank > 0 ? at / (count / array->shape.dims[0]) : 0);
}

/* A rule of this input is kept. Values of the usual types are first looked at by the fast loops, as nearly
 * always nothing is wrong. */
static sgm_status check_rule(const sgm_program *program, const struct sgm__index_rule *rule, const void *data)
{
    const sgm_type *type = &program->plan->inputs[rule->input].type;
    int64_t count = sgm_shape_elements(&type->shape);
    if ((type->dtype == SGM_FLOAT32 && all_good_float(data, count, rule->minimum, rule->maximum)) ||
        (type->dtype == SGM_FLOAT64 && all_good_double(data, count, rule->minimum, rule->maximum)))
        return SGM_OK;
    const sgm_array array = {.dtype = type->dtype, .shape = type->shape, .data = (void *)(uintptr_t)data};
    int64_t at = first_wrong(rule, &array, count);
    return at < count ? fail_at(program, rule, &array, at) : SGM_OK;
}

sgm_status sgm__program_check_index(const sgm_program *program, int32_t input, const void *data)
{
    for (size_t i = 0; i < program->rule_count; i++)
        if (program->rules[i].input == input)
            SGM_TRY(check_rule(program, &program->rules[i], data));
    return SGM_OK;
}
