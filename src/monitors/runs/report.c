/* Writes the report: what the runs are, how well they did, their curves, in what they differ, what was done
 * to them. */
#include "monitors/runs/report.h"
#include "monitors/runs/replays.h"
#include "monitors/runs/runs_internal.h"
#include "text/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MAXIMUM_RUNS 200  /* of a report that the page asks for */
#define LARGEST_VALUE 400 /* bytes of a configuration's value */

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n<style>\n"
    /* Colours of curves are those of the page (web/styles/base.css), which the colour-blind tell apart. */
    ":root { --ground: #fff; --ink: #171c1f; --dim: #5a666e; --line: #dde2e5; --mark: #0b7a6a;\n"
    "  --c0: #0b8c79; --c1: #6a0071; --c2: #a66032; --c3: #1d618f; --c4: #aa9010; --c5: #a51d49;\n"
    "  --c6: #8c76dc; --c7: #085505; }\n"
    "@media (prefers-color-scheme: dark) { :root { --ground: #14181b; --ink: #e4e9ec; --dim: #93a0a8;\n"
    "  --line: #2c343a; --mark: #2cc4ab;\n"
    "  --c0: #2cc4ab; --c1: #a76492; --c2: #eba429; --c3: #5372d8; --c4: #f1da3a; --c5: #de5f4f;\n"
    "  --c6: #9d92e4; --c7: #caf7b8; } }\n"
    "body { margin: 0 auto; padding: 24px 16px 60px; max-width: 1100px; background: var(--ground); color: "
    "var(--ink);\n"
    "  font: 14px/1.5 system-ui, -apple-system, 'Segoe UI', 'Noto Sans', Arial, sans-serif; }\n"
    "h1 { font-size: 22px; margin: 0; } h2 { font-size: 16px; margin: 32px 0 8px; } h3 { font-size: 14px; "
    "margin: 16px 0 4px; }\n"
    "p, dd { margin: 0; } .dim { color: var(--dim); } .wide { overflow-x: auto; }\n"
    "table { border-collapse: collapse; } th, td { padding: 4px 12px 4px 0; text-align: left; "
    "vertical-align: top;\n"
    "  border-bottom: 1px solid var(--line); } th { font-weight: 600; } thead th { color: var(--dim); "
    "font-weight: 500; }\n"
    "td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }\n"
    "td.m { font-family: ui-monospace, Menlo, 'DejaVu Sans Mono', monospace; font-size: 12.5px; "
    "overflow-wrap: anywhere; }\n"
    ".other { color: var(--mark); font-weight: 600; } .note { white-space: pre-wrap; min-width: 24ch; "
    "max-width: 60ch; }\n"
    "tbody th { white-space: nowrap; } .tag { margin-right: 4px; padding: 0 6px; border: 1px solid "
    "var(--line); border-radius: 4px; font-size: 12px; white-space: "
    "nowrap; }\n"
    ".key { display: inline-block; width: 14px; height: 4px; border-radius: 2px; margin-right: 8px; "
    "vertical-align: middle; }\n"
    ".curves { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: "
    "12px 24px; }\n"
    "figure { margin: 0; overflow-x: auto; } figcaption { font-weight: 600; } svg { width: 100%; min-width: "
    "340px; height: auto; }\n"
    "td p { min-width: 24ch; }\n"
    "svg text { fill: var(--dim); font-size: 12px; } .grid { stroke: var(--line); fill: none; }\n"
    "polyline { fill: none; stroke-width: 1.75; stroke-linejoin: round; }\n";

/* --- small parts --- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static void put_cell(sgm__text *to, const char *tag, const char *class, const char *text)
{
    sgm__text_append(to, *class != '\0' ? "<%s class=\"%s\">" : "<%s>", tag, class);
    sgm__report_text(to, text);
    sgm__text_append(to, "</%s>", tag);
}

static void put_number(sgm__text *to, const json_t *value)
{
    char text[32] = "";
    if (json_is_number(value))
        snprintf(text, sizeof text, "%.6g", json_number_value(value));
    put_cell(to, "td", "n", text);
}

/* A configuration's value as its file has it. */
static void put_value(sgm__text *to, const char *class, const json_t *value)
{
    char text[LARGEST_VALUE + 8] = "";
    char *json = value != NULL && !json_is_string(value) ? sgm__json_text(value) : NULL;
    const char *whole = json_is_string(value) ? json_string_value(value) : json != NULL ? json : "";
    size_t length = strlen(whole) < LARGEST_VALUE ? strlen(whole) : LARGEST_VALUE;
    while (length < strlen(whole) && length > 0 && ((unsigned char)whole[length] & 0xc0) == 0x80)
        length--; /* not within a letter */
    snprintf(text, sizeof text, "%.*s%s", (int)length, whole, whole[length] != '\0' ? "..." : "");
    put_cell(to, "td", class, text);
    sgm__free(json);
}

static void put_name(sgm__text *to, const json_t *run, size_t index)
{
    sgm__text_append(to, "<th scope=\"row\"><span class=\"key k%zu\"></span>", index % 8);
    sgm__report_text(to, text_of(run, "name"));
    sgm__text_append(to, "%s</th>", json_is_true(json_object_get(run, "starred")) ? " &#9733;" : "");
}

static void put_moment(sgm__text *to, const json_t *seconds)
{
    char text[32] = "";
    time_t time = (time_t)json_number_value(seconds);
    struct tm parts;
    if (json_number_value(seconds) > 0 && localtime_r(&time, &parts) != NULL)
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
    put_cell(to, "td", "n", text);
}

/* As the page writes it: "0.29 s", "1:02:03". */
static void put_duration(sgm__text *to, const json_t *seconds)
{
    char text[64] = "";
    double value = json_number_value(seconds);
    if (json_is_number(seconds))
        (value < 60 ? sgm_duration_text : sgm_clock_text)(value, text, sizeof text);
    put_cell(to, "td", "n", text);
}

/* Opens a section with a table whose columns have these headings, separated by '|'; those of numbers begin
 * with '#'. The row of headings stays open. */
static void begin_head(sgm__text *to, const char *title, const char *headings)
{
    sgm__text_append(to, "<h2>%s</h2>\n<div class=\"wide\" tabindex=\"0\"><table><thead><tr>", title);
    for (const char *at = headings; *at != '\0';) {
        size_t length = strcspn(at, "|");
        sgm__text_append(to, "<th scope=\"col\"%s>%.*s</th>", *at == '#' ? " class=\"n\"" : "",
                         (int)(length - (*at == '#')), at + (*at == '#'));
        at += length + (at[length] == '|');
    }
}

static void end_head(sgm__text *to)
{
    sgm__text_append(to, "</tr></thead><tbody>\n");
}

static void begin_table(sgm__text *to, const char *title, const char *headings)
{
    begin_head(to, title, headings);
    end_head(to);
}

static void end_table(sgm__text *to)
{
    sgm__text_append(to, "</tbody></table></div>\n");
}

/* --- sections --- */

static void put_runs(sgm__text *to, const json_t *list)
{
    size_t i, k;
    json_t *run, *tag;
    begin_table(to, "Runs", "Run|State|#Epochs|#Time|#Started|Tags|Note");
    json_array_foreach(list, i, run)
    {
        sgm__text_append(to, "<tr>");
        put_name(to, run, i);
        sgm__text_append(to, "<td>%s", text_of(run, "state"));
        if (*text_of(run, "reason") != '\0')
            put_cell(to, "p", "dim", text_of(run, "reason"));
        sgm__text_append(to, "</td>");
        put_number(to, json_object_get(run, "epochs"));
        put_duration(to, json_object_get(run, "seconds"));
        put_moment(to, json_object_get(run, "started"));
        sgm__text_append(to, "<td>");
        json_array_foreach(json_object_get(run, "tags"), k, tag)
        {
            put_cell(to, "span", "tag", json_string_value(tag));
        }
        sgm__text_append(to, "</td>");
        put_cell(to, "td", "note", text_of(run, "note"));
        sgm__text_append(to, "</tr>\n");
    }
    end_table(to);
}

/* The names of all metrics, in order; those that count are left out. */
static json_t *metrics_of(const json_t *list)
{
    static const char *const counted[] = {"epoch", "iteration", "seconds", "branch"};
    json_t *names = json_object(), *run, *value;
    const char *name;
    size_t i;
    json_array_foreach(list, i, run)
    {
        json_object_foreach(json_object_get(run, "metrics"), name, value)
        {
            json_object_set_new(names, name, json_true());
        }
    }
    for (i = 0; i < sizeof counted / sizeof *counted; i++)
        json_object_del(names, counted[i]);
    return names;
}

static void put_results(sgm__text *to, const json_t *list, json_t *metrics)
{
    static const char *const parts[] = {"metrics", "minimum", "maximum"};
    const char *name;
    json_t *value, *run;
    size_t i;
    begin_table(to, "Results", "Metric|Run|#Newest|#Minimum|#Maximum");
    json_object_foreach(metrics, name, value)
    {
        size_t rows = 0;
        json_array_foreach(list, i, run)
        {
            rows += json_object_get(json_object_get(run, "metrics"), name) != NULL;
        }
        bool is_first = true;
        json_array_foreach(list, i, run)
        {
            if (json_object_get(json_object_get(run, "metrics"), name) == NULL)
                continue;
            sgm__text_append(to, "<tr>");
            if (is_first)
                sgm__text_append(to, "<th scope=\"rowgroup\" rowspan=\"%zu\">", rows);
            if (is_first)
                put_cell(to, "span", "", name);
            sgm__text_append(to, "%s", is_first ? "</th>" : "");
            is_first = false;
            put_name(to, run, i);
            for (size_t part = 0; part < 3; part++)
                put_number(to, json_object_get(json_object_get(run, parts[part]), name));
            sgm__text_append(to, "</tr>\n");
        }
    }
    end_table(to);
}

static void put_curves(sgm__text *to, const json_t *list, json_t *metrics)
{
    const char *name;
    json_t *value;
    sgm__text_append(to, "<h2>Curves</h2>\n<div class=\"curves\">\n");
    json_object_foreach(metrics, name, value)
    {
        sgm__text chart = {0};
        if (sgm__report_chart(&chart, name, list)) {
            sgm__text_append(to, "<figure>");
            put_cell(to, "figcaption", "", name);
            sgm__text_append_bytes(to, chart.data, chart.length);
            sgm__text_append(to, "</figure>\n");
        }
        sgm__text_free(&chart);
    }
    sgm__text_append(to, "</div>\n");
}

/* --- configurations --- */

/* All keys of all configurations; true for those in which runs differ. */
static json_t *keys_of(const json_t *list)
{
    json_t *keys = json_object(), *run, *value;
    const char *key;
    size_t i;
    json_array_foreach(list, i, run)
    {
        json_object_foreach(json_object_get(run, "configuration"), key, value)
        {
            json_object_set_new(keys, key, json_false());
        }
    }
    json_object_foreach(keys, key, value)
    {
        const json_t *first = json_object_get(json_object_get(json_array_get(list, 0), "configuration"), key);
        bool differs = false;
        json_array_foreach(list, i, run)
        {
            const json_t *own = json_object_get(json_object_get(run, "configuration"), key);
            differs |= own != first && !json_equal(own, first);
        }
        if (differs)
            json_object_set_new(keys, key, json_true());
    }
    return keys;
}

static void put_setting(sgm__text *to, const json_t *list, const char *key, bool differs)
{
    const json_t *first = json_object_get(json_object_get(json_array_get(list, 0), "configuration"), key);
    size_t i;
    json_t *run;
    sgm__text_append(to, "<tr>");
    put_cell(to, "td", "", key);
    json_array_foreach(list, i, run)
    {
        const json_t *own = json_object_get(json_object_get(run, "configuration"), key);
        bool is_other = own != first && !json_equal(own, first);
        if (differs || i == 0)
            put_value(to, is_other ? "m other" : "m", own);
    }
    sgm__text_append(to, "</tr>\n");
}

/* A row for each key in which runs differ, with a column for each run; or for each other key, with one value.
 */
static void put_settings(sgm__text *to, const json_t *list, json_t *keys, bool differing)
{
    const char *key;
    json_t *differs, *run;
    size_t i;
    if (differing)
        begin_head(to, "Differences of configuration", "Setting");
    else
        begin_head(to, "Common configuration", "Setting|Value");
    json_array_foreach(list, i, run)
    {
        if (!differing)
            break;
        sgm__text_append(to, "<th scope=\"col\"><span class=\"key k%zu\"></span>", i % 8);
        sgm__report_text(to, text_of(run, "name"));
        sgm__text_append(to, "</th>");
    }
    end_head(to);
    json_object_foreach(keys, key, differs)
    {
        if (json_is_true(differs) == differing)
            put_setting(to, list, key, differing);
    }
    end_table(to);
}

static size_t count_of(json_t *keys, bool differing)
{
    const char *key;
    json_t *differs;
    size_t count = 0;
    json_object_foreach(keys, key, differs)
    {
        count += json_is_true(differs) == differing;
    }
    return count;
}

/* --- what was done --- */

static void put_interventions(sgm__text *to, const json_t *list)
{
    size_t i, k, count = 0;
    json_t *run, *one;
    json_array_foreach(list, i, run)
    {
        count +=
            json_array_size(json_object_get(run, "interventions")) + (*text_of(run, "journal_error") != '\0');
    }
    if (count == 0)
        return;
    begin_table(to, "Interventions", "Run|#Epoch|#Iteration|By|What");
    json_array_foreach(list, i, run)
    {
        json_array_foreach(json_object_get(run, "interventions"), k, one)
        {
            sgm__text_append(to, "<tr>");
            put_name(to, run, i);
            put_number(to, json_object_get(one, "epoch"));
            put_number(to, json_object_get(one, "iteration"));
            put_cell(to, "td", "", text_of(one, "who"));
            put_cell(to, "td", "m", text_of(one, "text"));
            sgm__text_append(to, "</tr>\n");
        }
        if (*text_of(run, "journal_error") != '\0') {
            sgm__text_append(to, "<tr>");
            put_name(to, run, i);
            sgm__text_append(to, "<td></td><td></td><td></td>");
            put_cell(to, "td", "", text_of(run, "journal_error"));
            sgm__text_append(to, "</tr>\n");
        }
    }
    end_table(to);
}

static void put_head(sgm__text *to, const char *title, size_t count)
{
    char made[32] = "";
    time_t now = time(NULL);
    struct tm parts;
    if (localtime_r(&now, &parts) != NULL)
        strftime(made, sizeof made, "%Y-%m-%d %H:%M", &parts);
    sgm__text_append(to, "%s", head);
    for (int i = 0; i < 8; i++)
        sgm__text_append(to, ".s%d { stroke: var(--c%d); } .k%d { background: var(--c%d); }\n", i, i, i, i);
    sgm__text_append(to, "</style>\n<title>");
    sgm__report_text(to, title);
    sgm__text_append(to, "</title>\n</head>\n<body>\n<main>\n");
    put_cell(to, "h1", "", title);
    sgm__text_append(to, "<p class=\"dim\">%zu %s; Sigma %s, %s</p>\n", count, count == 1 ? "run" : "runs",
                     sgm_version(), made);
}

char *sgm__report_html(const char *title, const json_t *list)
{
    sgm__text text = {0};
    json_t *metrics = metrics_of(list), *keys = keys_of(list);
    put_head(&text, title, json_array_size(list));
    put_runs(&text, list);
    put_curves(&text, list, metrics);
    put_results(&text, list, metrics);
    if (count_of(keys, true) > 0)
        put_settings(&text, list, keys, true);
    put_interventions(&text, list);
    if (count_of(keys, false) > 0)
        put_settings(&text, list, keys, false);
    sgm__text_append(&text, "</main>\n</body>\n</html>\n");
    json_decref(metrics);
    json_decref(keys);
    return sgm__text_take(&text);
}

/* --- what goes into it --- */

/* A long file of metrics is read in parts, one in each scan. */
static int open_read(sgm__runs *runs, const char *name, const sgm__run **run)
{
    int folder = sgm__runs_open_run(runs, name, run);
    while (folder >= 0 && (*run)->reading) {
        close(folder);
        folder = sgm__runs_open_run(runs, name, run);
    }
    return folder;
}

sgm_status sgm__report_add(sgm__runs *runs, const char *name, json_t *list)
{
    const sgm__run *run;
    json_t *columns = NULL, *interventions = NULL;
    int folder = open_read(runs, name, &run);
    if (folder < 0)
        return sgm__last_failure();
    sgm_status status = sgm__run_all_metrics(run, folder, &columns);
    if (status != SGM_OK) {
        close(folder);
        return status;
    }
    json_t *object = sgm__run_describe(run);
    json_object_set_new(object, "columns", columns);
    if (sgm__run_interventions(folder, &interventions) != SGM_OK)
        json_object_set_new(object, "journal_error", json_string(sgm_last_error()));
    json_object_set_new(object, "interventions", interventions);
    close(folder);
    return json_array_append_new(list, object) == 0 ? SGM_OK : sgm__fail_memory(64);
}

sgm_status sgm__report_add_folder(const char *folder, sgm__runs_configuration configuration, json_t *list)
{
    char *path = realpath(folder, NULL); /* "." and "runs/digits/" have a name, too */
    char *slash = path != NULL ? strrchr(path, '/') : NULL;
    if (slash == NULL || slash[1] == '\0') {
        free(path);
        return sgm_fail(SGM_ERROR_NOT_FOUND, "there is no folder '%.200s'", folder);
    }
    *slash = '\0';
    sgm__runs *runs = sgm__runs_open(slash == path ? "/" : path, configuration);
    if (runs != NULL)
        runs->only = slash + 1;
    sgm_status status = runs != NULL ? sgm__report_add(runs, slash + 1, list) : sgm__last_failure();
    if (status == SGM_ERROR_NOT_FOUND)
        status = sgm_fail(SGM_ERROR_NOT_FOUND,
                          "'%.200s' is no folder of a run: it has neither metrics, configuration nor "
                          "checkpoint; of a folder "
                          "of runs give each run, '%.200s'/*",
                          folder, folder);
    sgm__runs_close(runs);
    free(path);
    return status;
}

sgm_status sgm__runs_report(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__runs *runs = user;
    json_t *list = json_array();
    const char *name;
    sgm_status status = SGM_OK;
    for (size_t i = 0; status == SGM_OK && (name = sgm__http_query(request, "run", i)) != NULL; i++)
        status = i < MAXIMUM_RUNS
                     ? sgm__report_add(runs, name, list)
                     : sgm_fail(SGM_ERROR_ARGUMENT, "a report has %d runs at most", MAXIMUM_RUNS);
    if (status == SGM_OK && json_array_size(list) == 0)
        status = sgm_fail(SGM_ERROR_ARGUMENT, "which runs? expected ?run=NAME");
    char *html = status == SGM_OK ? sgm__report_html("Report of runs", list) : NULL;
    json_decref(list);
    SGM_TRY(status);
    if (html == NULL)
        return sgm__fail_memory(1 << 16);
    *answer = (sgm__http_answer){.type = "text/html; charset=utf-8", .body = html, .length = strlen(html)};
    snprintf(answer->file_name, sizeof answer->file_name, "report.html");
    return SGM_OK;
}
