/* What several files of the part `inspect` need: the notation of a network, numbers of a query, and numbers
 * and shapes in an answer. */
#include "monitors/web/inspect/inspect.h"

#include <math.h>

/* NULL networks occur: a trainer may be looked at before its network is set. */
sgm_status sgm__inspect_notation(const sgm__web_trainer *watched, char **notation)
{
    if (sgm__trainer_look(watched->trainer).network == NULL)
        return sgm_fail(SGM_ERROR_STATE, "trainer '%s' has no network yet", watched->name);
    *notation = sgm_network_text(sgm__trainer_look(watched->trainer).network);
    return *notation != NULL ? SGM_OK : sgm__last_failure();
}

/* Parsed as a double, so that "1e3" is a number too; limits keep it where doubles are exact. */
sgm_status sgm__inspect_count(const sgm__http_request *request, const char *name, int64_t default_value,
                              int64_t minimum, int64_t maximum, int64_t *value)
{
    const char *text = sgm__http_query(request, name, 0);
    double number = (double)default_value;
    if (text != NULL && (!sgm__parse_double(text, &number) || number != rint(number) ||
                         !(number >= (double)minimum && number <= (double)maximum)))
        return sgm_fail(SGM_ERROR_ARGUMENT, "'%s' must be a whole number from %lld to %lld, not '%.50s'",
                        name, (long long)minimum, (long long)maximum, text);
    *value = (int64_t)number;
    return SGM_OK;
}

void sgm__inspect_append_shape(sgm__text *text, const sgm_shape *shape, int32_t first)
{
    sgm__text_append(text, "[");
    for (int32_t i = first; i < shape->rank; i++)
        sgm__text_append(text, i > first ? ",%lld" : "%lld", (long long)shape->dims[i]);
    sgm__text_append(text, "]");
}

/* Rounds to a multiple of 10^(e - 3), where 10^e is the magnitude. A magnitude so small that this unit is
 * 0 becomes 0. */
void sgm__inspect_append_short(sgm__text *text, double value)
{
    double size = fabs(value);
    if (size > 0 && isfinite(size)) {
        double unit = pow(10, floor(log10(size)) - 3);
        value = unit > 0 ? rint(value / unit) * unit : 0;
    }
    sgm__web_append_number(text, value);
}
