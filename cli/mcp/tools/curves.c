/* Tools about curves: which metrics there are, and how they went. */
#include "mcp/tools.h"
#include "mcp/tools/curve.h"
#include "mcp/tools/summary.h"

#include <math.h>

#define MAXIMUM_METRICS 20 /* in one answer */
#define RECENT 0.1         /* share of the points that "recent" is the mean of */

static const char *const axes[] = {"iteration", "epoch", "seconds", NULL};
static const mcp_parameter curve_parameters[] = {
    {"metrics", "names or patterns ('validation.*'); get_run lists the names under 'newest'", MCP_TEXTS,
     .default_json = "[\"loss\", \"validation.loss\"]"},
    {"by", "what the points are over: iterations, epochs, or seconds of training", MCP_TEXT, .choices = axes,
     .default_json = "\"iteration\""},
    {"points", "how many at most of each curve; peaks stay", MCP_INTEGER, .minimum = 2, .maximum = 5000,
     .default_json = "60"},
    {"smoothing", "share of the moving average that stays at each point; 0: the values as they are",
     MCP_NUMBER, .minimum = 0, .maximum = 0.999, .default_json = "0"},
    {"from", "only points from here on", .kind = MCP_NUMBER},
    {"to", "only points up to here", .kind = MCP_NUMBER},
    {0}};

static const char curve_output[] =
    "{\"type\": \"object\", \"properties\": {\"run\": {\"type\": \"string\"}, \"by\": {\"type\": "
    "\"string\"}, "
    "\"curves\": {\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": {"
    "\"metric\": {\"type\": \"string\"}, \"x\": {\"type\": \"array\", \"items\": {\"type\": \"number\"}}, "
    "\"y\": {\"type\": \"array\", \"items\": {\"type\": \"number\"}}, "
    "\"branch\": {\"type\": \"array\", \"items\": {\"type\": \"number\"}}, \"of\": {\"type\": \"integer\"}, "
    "\"minimum\": {\"type\": \"array\"}, \"maximum\": {\"type\": \"array\"}, \"recent\": {\"type\": "
    "\"number\"}}, "
    "\"required\": [\"metric\", \"x\", \"y\", \"of\"]}}, \"metrics\": {\"type\": \"array\", \"items\": "
    "{\"type\": \"string\"}}}, \"required\": [\"run\", \"by\", \"curves\"]}";

/* What is known of all points, before some are left out: extremes with their places, and the mean of the
 * newest. */
static void add_figures(json_t *item, const mcp_curve *curve)
{
    size_t low = 0, high = 0, recent = (size_t)ceil((double)curve->count * RECENT);
    double sum = 0;
    json_object_set_new(item, "of", json_integer((json_int_t)curve->count));
    for (size_t i = 0; i < curve->count; i++) {
        low = curve->points[i].y < curve->points[low].y ? i : low;
        high = curve->points[i].y > curve->points[high].y ? i : high;
        sum += i + recent >= curve->count ? curve->points[i].y : 0;
    }
    if (curve->count == 0)
        return;
    json_object_set_new(item, "minimum", json_pack("[f, f]", curve->points[low].x, curve->points[low].y));
    json_object_set_new(item, "maximum", json_pack("[f, f]", curve->points[high].x, curve->points[high].y));
    json_object_set_new(item, "recent", json_real(sum / (double)recent));
}

static void add_points(json_t *item, const mcp_curve *curve)
{
    json_t *x = json_array(), *y = json_array(), *branch = json_array();
    bool several = false;
    for (size_t i = 0; i < curve->count; i++) {
        json_array_append_new(x, json_real(curve->points[i].x));
        json_array_append_new(y, json_real(curve->points[i].y));
        json_array_append_new(branch, json_integer((json_int_t)curve->points[i].branch));
        several |= curve->points[i].branch != curve->points[0].branch;
    }
    json_object_set_new(item, "x", x);
    json_object_set_new(item, "y", y);
    if (several)
        json_object_set(item, "branch", branch);
    json_decref(branch);
}

static sgm_status add_curve(mcp_call *call, const json_t *columns, const char *metric, json_t *list)
{
    double from = mcp_has(call, "from") ? mcp_number(call, "from") : -HUGE_VAL,
           to = mcp_has(call, "to") ? mcp_number(call, "to") : HUGE_VAL;
    mcp_curve curve;
    sgm_status status = mcp_curve_read(columns, metric, mcp_text(call, "by"), from, to, &curve);
    if (status == SGM_OK) {
        json_t *item = json_pack("{s:s}", "metric", metric);
        add_figures(item, &curve);
        mcp_curve_smooth(&curve, mcp_number(call, "smoothing"));
        mcp_curve_thin(&curve, (size_t)mcp_integer(call, "points"));
        add_points(item, &curve);
        json_array_append_new(list, item);
    }
    mcp_curve_free(&curve);
    return status;
}

static bool is_axis(const char *name)
{
    return strcmp(name, "branch") == 0 || strcmp(name, axes[0]) == 0 || strcmp(name, axes[1]) == 0 ||
           strcmp(name, axes[2]) == 0;
}

/* If no metric matches, the answer still tells which there are. */
static sgm_status add_curves(mcp_call *call, json_t *columns)
{
    json_t *list = json_array(), *all = json_array(), *column;
    const char *key;
    json_object_set_new(call->answer, "curves", list);
    json_object_set_new(call->answer, "metrics", all);
    json_object_foreach(columns, key, column)
    {
        if (is_axis(key))
            continue;
        json_array_append_new(all, mcp_json_text(key));
        if (mcp_matches_any(key, mcp_list(call, "metrics")) && json_array_size(list) < MAXIMUM_METRICS)
            SGM_TRY(add_curve(call, columns, key, list));
    }
    return SGM_OK;
}

static sgm_status get_curves(mcp_call *call)
{
    mcp_run run;
    json_t *columns = NULL;
    sgm_status status = mcp_call_run(call, &run);
    if (status == SGM_OK)
        status = sgm__run_all_metrics(run.run, run.descriptor, &columns);
    if (status == SGM_OK) {
        json_object_set_new(call->answer, "run", json_string(run.run->name));
        json_object_set_new(call->answer, "by", json_string(mcp_text(call, "by")));
        status = add_curves(call, columns);
    }
    json_decref(columns);
    mcp_run_close(&run);
    return status;
}

const mcp_tool mcp_curve_tools[] = {
    {"get_curves", "Curves of metrics",
     "How metrics of a run went, of running and of finished ones: points (x, y) over iterations, epochs or "
     "seconds, thinned so that peaks stay, smoothed if asked for. Of all points, before thinning and "
     "smoothing: how many ('of'), 'minimum' and 'maximum' as [x, y], and 'recent', the mean of the newest "
     "tenth. 'branch' says to which branch each point belongs where the run was reset or restored. 'metrics' "
     "has the names of all.",
     get_curves, curve_parameters, .of_run = true, .output = curve_output},
    {0}};
