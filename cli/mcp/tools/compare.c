/* The tool that compares runs: where their configurations differ, and what came of it. */
#include "mcp/tools.h"
#include "mcp/tools/summary.h"

#include <stdlib.h>

#define MAXIMUM_RUNS 100 /* in one answer */

static const mcp_parameter compare_parameters[] = {
    {"runs", "names or patterns of the runs to compare ('digits-*')", MCP_TEXTS, .required = true},
    {"metrics", "which to compare, by name or pattern", MCP_TEXTS,
     .default_json = "[\"loss\", \"accuracy\", \"validation.*\"]"},
    {"sort", "a metric: the runs are ordered by its best value, those without it last", .kind = MCP_TEXT},
    {"largest", "sort: the largest value is the best, else the smallest", MCP_FLAG, .default_json = "false"},
    {0}};

/* One of the runs to be compared. */
typedef struct entry {
    const sgm__run *run;
    double rank; /* by which they are sorted, ascending */
    bool ranked;
} entry;

static int compare_entries(const void *a, const void *b)
{
    const entry *left = a, *right = b;
    if (left->ranked != right->ranked)
        return left->ranked ? -1 : 1;
    return left->rank < right->rank ? -1 : left->rank > right->rank;
}

/* The runs that match, in order; freed with sgm__free. NULL with an error. */
static entry *choose(const mcp_call *call, size_t *count)
{
    const sgm__runs *runs = call->server->folder.runs;
    const char *sort = mcp_text(call, "sort");
    bool largest = mcp_flag(call, "largest");
    entry *entries = sgm__calloc(runs->count + 1, sizeof *entries);
    *count = 0;
    for (size_t i = 0; entries != NULL && i < runs->count; i++) {
        const sgm__run *run = runs->runs[i];
        const sgm__run_column *best = sort != NULL ? sgm__run_column_named(&run->metrics, sort) : NULL;
        double rank = best == NULL ? 0 : largest ? -best->maximum : best->minimum;
        if (mcp_matches_any(run->name, mcp_list(call, "runs")))
            entries[(*count)++] = (entry){run, rank, best != NULL};
    }
    if (entries != NULL && sort != NULL)
        qsort(entries, *count, sizeof *entries, compare_entries);
    return entries;
}

/* --- configurations --- */

/* A key that differs from run to run anyway. */
#define FOLDER "folder"

/* The keys that any of the configurations has, as members of an object. */
static json_t *keys_of(json_t *const *configurations, size_t count)
{
    json_t *keys = json_object(), *value;
    const char *key;
    for (size_t i = 0; i < count; i++)
        json_object_foreach(configurations[i], key, value)
        {
            if (strcmp(key, FOLDER) != 0)
                json_object_set_new(keys, key, json_null());
        }
    return keys;
}

/* {RUN: VALUE} of a key, null for a run that does not have it; NULL: all are the same. */
static json_t *values_of(const char *key, const entry *entries, json_t *const *configurations, size_t count)
{
    json_t *values = json_object();
    const json_t *first = json_object_get(configurations[0], key);
    bool differ = false;
    for (size_t i = 0; i < count; i++) {
        json_t *value = json_object_get(configurations[i], key);
        json_object_set_new(values, entries[i].run->name, value != NULL ? json_incref(value) : json_null());
        differ |= (value == NULL) != (first == NULL) || (value != NULL && !json_equal(value, first));
    }
    if (!differ) {
        json_decref(values);
        values = NULL;
    }
    return values;
}

/* {KEY: {RUN: VALUE}} of the keys in which the runs differ; branches have the values that they began with.
 * NULL: no memory. */
static json_t *differences_of(const entry *entries, size_t count)
{
    json_t **configurations = sgm__calloc(count, sizeof(json_t *)), *none;
    const char *key;
    if (configurations == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        configurations[i] = sgm__run_configuration(entries[i].run);
    json_t *keys = keys_of(configurations, count), *differences = json_object();
    json_object_foreach(keys, key, none)
    {
        json_t *values = values_of(key, entries, configurations, count);
        if (values != NULL)
            json_object_set_new(differences, key, values);
    }
    json_decref(keys);
    for (size_t i = 0; i < count; i++)
        json_decref(configurations[i]);
    sgm__free(configurations);
    return differences;
}

/* --- results --- */

/* {METRIC: {"newest", "minimum", "maximum"}}. */
static json_t *metrics_of(const sgm__run *run, const json_t *patterns)
{
    static const char *const names[] = {"newest", "minimum", "maximum"};
    json_t *metrics = json_object(), *value;
    const char *key;
    for (int i = 0; i < 3; i++) {
        json_t *numbers = mcp_numbers(run, (mcp_figure)i, patterns);
        json_object_foreach(numbers, key, value)
        {
            if (i == 0)
                json_object_set_new(metrics, key, json_object());
            json_object_set(json_object_get(metrics, key), names[i], value);
        }
        json_decref(numbers);
    }
    return metrics;
}

static json_t *row_of(const sgm__run *run, const json_t *patterns)
{
    json_t *row = mcp_summary(run);
    json_object_set_new(row, "metrics", metrics_of(run, patterns));
    return row;
}

static sgm_status compare_runs(mcp_call *call)
{
    size_t count;
    SGM_TRY(mcp_folder_look(&call->server->folder));
    entry *entries = choose(call, &count);
    if (entries == NULL)
        return sgm__last_failure();
    if (count < 1 || count > MAXIMUM_RUNS) {
        sgm__free(entries);
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%zu runs match; compare_runs takes 1 to %d (list_runs has the names)", count,
                        MAXIMUM_RUNS);
    }
    json_t *rows = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(rows, row_of(entries[i].run, mcp_list(call, "metrics")));
    json_object_set_new(call->answer, "runs", rows);
    json_t *differences = differences_of(entries, count);
    json_object_set_new(call->answer, "differences", differences);
    sgm__free(entries);
    return differences != NULL ? SGM_OK : sgm__last_failure();
}

const mcp_tool mcp_compare_tools[] = {
    {"compare_runs", "Compare runs",
     "Puts runs side by side: 'differences' has only the keys of their configurations that are not the same "
     "in all, 'runs' the newest, lowest and highest value of each metric, ordered by one of them if asked "
     "for.",
     compare_runs, compare_parameters,
     .output =
         "{\"type\": \"object\", \"properties\": {\"runs\": {\"type\": \"array\", \"items\": {\"type\": "
         "\"object\", \"properties\": {\"run\": {\"type\": \"string\"}, \"state\": {\"type\": \"string\"}, "
         "\"metrics\": {\"type\": \"object\"}}, \"required\": [\"run\", \"state\", \"metrics\"]}}, "
         "\"differences\": {\"type\": \"object\", \"additionalProperties\": {\"type\": \"object\"}}}, "
         "\"required\": [\"runs\", \"differences\"]}"},
    {0}};
