/* What several tools say of a run. */
#include "mcp/tools/summary.h"
#include "mcp/tools.h"

#include <math.h>
#include <time.h>

/* --- names --- */

/* Goes back to the newest '*' when the rest does not match. */
bool mcp_matches(const char *name, const char *pattern)
{
    const char *star = NULL, *from = NULL;
    while (*name != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            from = name;
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star != NULL) {
            pattern = star;
            name = ++from;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

bool mcp_matches_any(const char *name, const json_t *patterns)
{
    for (size_t i = 0; i < json_array_size(patterns); i++)
        if (mcp_matches(name, json_string_value(json_array_get(patterns, i))))
            return true;
    return false;
}

/* --- a run --- */

/* Whole numbers as integers: epochs and iterations are some. */
static json_t *number_of(double value)
{
    return value == floor(value) && fabs(value) < 0x1p53 ? json_integer((json_int_t)value) : json_real(value);
}

json_t *mcp_numbers(const sgm__run *run, mcp_figure figure, const json_t *patterns)
{
    json_t *numbers = json_object();
    for (size_t i = 0; i < run->metrics.count; i++) {
        const sgm__run_column *column = &run->metrics.columns[i];
        const double values[] = {column->newest, column->minimum, column->maximum};
        if (patterns == NULL || mcp_matches_any(column->name, patterns))
            json_object_set_new(numbers, column->name, number_of(values[figure]));
    }
    return numbers;
}

static json_t *time_text(double seconds)
{
    time_t whole = (time_t)seconds;
    struct tm parts;
    char text[32];
    if (seconds < 0 || gmtime_r(&whole, &parts) == NULL ||
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        return json_null();
    return json_string(text);
}

json_t *mcp_summary(const sgm__run *run)
{
    static const char *const figures[] = {"epoch", "iteration", "seconds"};
    json_t *item = json_object();
    json_object_set_new(item, "run", json_string(run->name));
    json_object_set_new(item, "state", json_string(mcp_run_state(run)));
    if (run->reason != NULL)
        json_object_set_new(item, "reason", mcp_json_text(run->reason));
    json_object_set_new(item, "started", time_text(run->started));
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        const sgm__run_column *column = sgm__run_column_named(&run->metrics, figures[i]);
        if (column != NULL)
            json_object_set_new(item, figures[i], number_of(column->newest));
    }
    sgm__run_describe_notes(run, item);
    if (run->version_error != NULL)
        json_object_set_new(item, "error", mcp_json_text(run->version_error));
    return item;
}
