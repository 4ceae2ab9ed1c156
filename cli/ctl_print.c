/* What `sigma ctl` prints of an answer: members line by line, lists as tables. */
#include "ctl_print.h"

#include <jansson.h>
#include <sigma/rules.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A member as text; "" if it is missing or no text. */
static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

/* The width of the first column of a list: the longest text under `key`. */
static int widest(const json_t *list, const char *key)
{
    size_t width = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        size_t length = strlen(text_of(json_array_get(list, i), key));
        width = length > width ? length : width;
    }
    return (int)width;
}

/* A line of `list`: an entry of the registry with its kind, "set" if it may be set, its meaning, unit,
 * bounds and choices. Members that an entry does not have are left out of the answer, hence the tests. */
static void print_entry(const json_t *entry, int width)
{
    const json_t *minimum = json_object_get(entry, "minimum"), *maximum = json_object_get(entry, "maximum"),
                 *choices = json_object_get(entry, "choices");
    printf("%-*s %-8s %-4s %s", width, text_of(entry, "identifier"), text_of(entry, "kind"),
           json_is_true(json_object_get(entry, "settable")) ? "set" : "", text_of(entry, "doc"));
    if (json_object_get(entry, "unit") != NULL)
        printf(", %s", text_of(entry, "unit"));
    if (json_is_number(minimum) && json_is_number(maximum))
        printf(" (%.10g to %.10g)", json_number_value(minimum), json_number_value(maximum));
    for (size_t i = 0; i < json_array_size(choices); i++)
        printf("%s%s", i > 0 ? ", " : ": ", json_string_value(json_array_get(choices, i)));
    putchar('\n');
}

/* A line of `hooks`: how often it ran, how long a run takes on average, and when it runs. */
static void print_hook(const json_t *hook, int width)
{
    const char *text = text_of(hook, "text"), *condition = text_of(hook, "condition");
    char took[32];
    sgm_duration_text(json_number_value(json_object_get(hook, "seconds")), took, sizeof took);
    printf("%-*s %8lld runs %10s  %s%s%s%s", width, text_of(hook, "name"),
           (long long)json_integer_value(json_object_get(hook, "runs")), took, text_of(hook, "when"),
           *condition != '\0' ? " if " : "", condition,
           json_is_true(json_object_get(hook, "background")) ? ", in the background" : "");
    printf("%s%s\n", *text != '\0' ? ": " : "", text);
}

/* A value of any kind as JSON with 6 digits; free(). */
static char *shown_value(const json_t *value)
{
    return json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
}

/* A line of `changes`: a number, when, what, from which value to which, by whom and why. */
static void print_change(const json_t *change, int width)
{
    char *before = shown_value(json_object_get(change, "before")),
         *after = shown_value(json_object_get(change, "after"));
    const char *reason = text_of(change, "reason");
    printf("%5lld  epoch %lld, iteration %-8lld %-*s %s -> %s, by %s%s%s\n",
           (long long)json_integer_value(json_object_get(change, "number")),
           (long long)json_integer_value(json_object_get(change, "epoch")),
           (long long)json_integer_value(json_object_get(change, "iteration")), width,
           text_of(change, "identifier"), before != NULL ? before : "", after != NULL ? after : "",
           text_of(change, "who"), *reason != '\0' ? ": " : "", reason);
    free(before);
    free(after);
}

static void print_value(const json_t *value, int width)
{
    (void)width;
    printf("%s = %s\n", text_of(value, "identifier"), text_of(value, "text"));
}

/* A line of a dry run: what would be another value, and when that would count. */
static void print_would(const json_t *item, int width)
{
    char *old = shown_value(json_object_get(item, "old")), *new = shown_value(json_object_get(item, "new"));
    printf("%-*s %s -> %s, %s\n", width, text_of(item, "identifier"), old != NULL ? old : "",
           new != NULL ? new : "", text_of(item, "effect"));
    free(old);
    free(new);
}

/* A line of `pending`: who asks for what, and how it stands. */
static void print_request(const json_t *item, int width)
{
    const json_t *request = json_object_get(item, "request");
    const char *reason = text_of(item, "reason"), *by = text_of(item, "by"),
               *because = text_of(item, "because"), *error = text_of(item, "error");
    (void)width;
    printf("%5lld  %-8s %s: %s", (long long)json_integer_value(json_object_get(item, "number")),
           text_of(item, "state"), text_of(item, "who"), text_of(item, "command"));
    static const char *const fields[] = {"identifier", "value", "name", "hook", "iterations", "number"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (text_of(request, fields[i])[0] != '\0')
            printf(" %s", text_of(request, fields[i]));
    if (json_object_size(json_object_get(request, "set")) > 0) { /* of a branch */
        char *values = shown_value(json_object_get(request, "set"));
        printf(" %s", values != NULL ? values : "");
        free(values);
    }
    printf("%s%s%s%s", reason[0] != '\0' ? ": " : "", reason, by[0] != '\0' ? ", by " : "", by);
    printf("%s%s%s%s\n", because[0] != '\0' ? ": " : "", because, error[0] != '\0' ? ": " : "", error);
}

/* A line of `describe`: a command, the role that it needs, and what it does. */
static void print_command(const json_t *command, int width)
{
    printf("%-*s %-6s %s\n", width, text_of(command, "name"), text_of(command, "role"),
           text_of(command, "doc"));
}

/* A field that every request may have. */
static void print_term(const json_t *term, int width)
{
    printf("%-*s %-6s %s\n", width, text_of(term, "name"), text_of(term, "kind"), text_of(term, "doc"));
}

/* How each list of an answer is printed. An unknown list is printed as the last form. */
static const struct list_form {
    const char *key, *widest;
    void (*print)(const json_t *item, int width);
} list_forms[] = {
    {"values", "identifier", print_value},   {"hooks", "name", print_hook},
    {"changes", "identifier", print_change}, {"would_change", "identifier", print_would},
    {"commands", "name", print_command},     {"requests", "who", print_request},
    {"terms", "name", print_term},           {"entries", "identifier", print_entry},
};

/* Answers name their lists by what is in them: values, hooks, changes, entries and so on. */
static void print_list(const char *key, const json_t *list)
{
    size_t i, form = 0;
    const json_t *item;
    while (form + 1 < sizeof list_forms / sizeof *list_forms && strcmp(list_forms[form].key, key) != 0)
        form++;
    int width = widest(list, list_forms[form].widest);
    json_array_foreach(list, i, item)
    {
        list_forms[form].print(item, width);
    }
}

/* A member that is no list on a line of its own, the value behind its name. Members that are objects, and
 * "ok" (a truth value), are not printed. */
static void print_member(const char *key, const json_t *value)
{
    if (json_is_array(value)) {
        print_list(key, value);
    } else if (strcmp(key, "expires") == 0) {
        time_t seconds = (time_t)json_number_value(value);
        struct tm local;
        char text[32] = "";
        if (localtime_r(&seconds, &local) != NULL)
            strftime(text, sizeof text, "%H:%M:%S", &local);
        printf("%-14s %s, if nobody approves it before: 'sigma ctl FOLDER pending' tells\n", key, text);
    } else if (json_is_string(value)) {
        printf("%-14s %s\n", key, json_string_value(value));
    } else if (json_is_integer(value)) {
        printf("%-14s %lld\n", key, (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        printf("%-14s %.6g\n", key, json_real_value(value));
    }
}

int ctl_print_answer(const sgm__text *line, bool as_json)
{
    json_t *answer = json_loadb(line->data != NULL ? line->data : "", line->length, 0, NULL);
    int code = json_is_true(json_object_get(answer, "ok")) ? CLI_OK : CLI_FAILED;
    if (as_json && json_is_object(answer)) {
        printf("%s\n", line->data);
    } else if (code == CLI_OK) {
        for (void *at = json_object_iter(answer); at != NULL; at = json_object_iter_next(answer, at))
            print_member(json_object_iter_key(at), json_object_iter_value(at));
    } else {
        const char *error = text_of(answer, "error");
        bool unknown = strstr(error, "nothing matches") != NULL && strstr(error, "did you mean") == NULL;
        complain("sigma ctl: %s%s\n", *error != '\0' ? error : "the answer is not what a run answers",
                 unknown ? "; 'sigma ctl FOLDER list' prints what there is" : "");
    }
    json_decref(answer);
    return code;
}
