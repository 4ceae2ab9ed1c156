/* `sigma ctl`: commands to a training of another process.
 *
 * The words of the command line become one line of JSON, runs/ctl_ask.c sends it through the socket in the
 * run's folder, and the answer is printed as text, or as it came (--json). What the commands mean is
 * decided by the training (src/control/control_command.c): this file knows their names and how many words
 * they take, nothing else. */
#include "cli.h"
#include "runs/ctl_ask.h"

#include <jansson.h>
#include <sigma/rules.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Default of --timeout: an iteration may take long, and commands act between iterations. */
#define USUAL_SECONDS 60

static const char usage_text[] =
    "Usage: sigma ctl FOLDER COMMAND ... [--json] [--timeout SECONDS]\n\n"
    "Watches and steers the training that runs in a folder. Commands act after the iteration that is "
    "running.\n\n"
    "  status                what it does, and where it stands\n"
    "  pause                 stop the clock and wait\n"
    "  resume                go on\n"
    "  step [N]              N iterations (default 1), then a pause\n"
    "  stop [REASON]         end the run, with a checkpoint\n"
    "  reset                 back to before the first iteration; what is left becomes a branch\n"
    "  save [NAME [replace]] write NAME.safetensors into the folder (default iteration-N); one that is\n"
    "                        there stays, unless it is to be replaced\n"
    "  restore NAME          back to NAME.safetensors; what is left becomes a branch (journal.jsonl)\n"
    "  get IDENTIFIER ...    print values: optimiser.learning_rate, 'network.layers.*.weights'\n"
    "  get IDENTIFIER FILE.npy\n"
    "                        write a tensor to a file\n"
    "  set IDENTIFIER VALUE|FILE.npy\n"
    "                        change values, from the next iteration on; journal.jsonl tells of it. Tensors\n"
    "                        are lists, '[0, 1, 2]', or come from a file\n"
    "  undo [NUMBER]         take back what a person set last, or that change; not what rules set\n"
    "  changes               print what was changed since the program began, and by whom\n"
    "  list [IDENTIFIER]     print what may be read and set\n"
    "  attach HOOK           run a hook, 'every 2 epochs value_reporter(training.loss)'; see 'sigma info\n"
    "                        --hooks'\n"
    "  detach NAME           take a hook off, by the name that hooks prints\n"
    "  press NAME            press a button: rules with 'external \"NAME\"' see it at their next check\n"
    "  hooks                 print what is attached: name, how often it ran and how long that took on\n"
    "                        average, when, condition\n\n"
    "  --json                print the answer as it came, a JSON object\n"
    "  --timeout SECONDS     how long to wait for an iteration that takes long (default 60); then nothing "
    "is\n"
    "                        done\n"
    "  --                    what follows is no option: set IDENTIFIER -- -1\n\n"
    "Exit codes: 0 done, 1 failed, nothing runs there or it refused, 2 wrong usage or configuration.\n";

/* How the words behind a command become members of the question. */
typedef struct command_words {
    const char *name;
    const char *fields[2];     /* names of the members, in the order of the words; NULL: no such word */
    size_t needed;             /* words that must be given */
    const char *default_value; /* of the first word if it is not given */
} command_words;

static const command_words commands[] = {
    {"status", {NULL, NULL}, 0, NULL},        {"pause", {NULL, NULL}, 0, NULL},
    {"resume", {NULL, NULL}, 0, NULL},        {"step", {"iterations", NULL}, 0, "1"},
    {"stop", {"reason", NULL}, 0, NULL},      {"reset", {NULL, NULL}, 0, NULL},
    {"save", {"name", "replace"}, 0, NULL},   {"restore", {"name", NULL}, 1, NULL},
    {"get", {"identifier", "file"}, 1, NULL}, {"set", {"identifier", "value"}, 2, NULL},
    {"list", {"identifier", NULL}, 0, NULL},  {"attach", {"hook", NULL}, 1, NULL},
    {"detach", {"name", NULL}, 1, NULL},      {"hooks", {NULL, NULL}, 0, NULL},
    {"undo", {"number", NULL}, 0, NULL},      {"changes", {NULL, NULL}, 0, NULL},
    {"press", {"name", NULL}, 1, NULL},
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

const char *ctl_command_at(size_t index)
{
    return index < COMMAND_COUNT ? commands[index].name : NULL;
}

/* --- the question --- */

/* NULL: unknown; the message is printed and *code set. */
static const command_words *find_command(const char *name, int *code)
{
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        names[i] = commands[i].name;
        if (strcmp(name, names[i]) == 0)
            return &commands[i];
    }
    const char *near = sgm__nearest(name, names, COMMAND_COUNT);
    *code = near != NULL ? usage_error("ctl", "unknown command '%s' (did you mean '%s'?)", name, near)
                         : usage_error("ctl", "unknown command '%s'", name);
    return NULL;
}

static bool is_utf8(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0';) {
        size_t length = *c < 0x80 ? 1 : sgm__utf8_length(c);
        if (length == 0)
            return false;
        c += length;
    }
    return true;
}

/* A path as the run can open it: its process may have another working directory. */
static json_t *absolute(const char *path)
{
    char here[4096];
    if (path[0] == '/' || getcwd(here, sizeof here) == NULL)
        return json_string(path);
    char *whole = sgm__format("%s/%s", here, path);
    json_t *text = json_string(whole);
    sgm__free(whole);
    return text;
}

/* A word that names a file (of get, or a value of set that ends in .npy) becomes the member "file". False
 * if the word is not UTF-8, which JSON demands, or memory is short. */
static bool add_word(json_t *line, const char *field, const char *word)
{
    if (strcmp(field, "file") == 0 || (strcmp(field, "value") == 0 && ends_with(word, ".npy")))
        return json_object_set_new(line, "file", absolute(word)) == 0;
    return json_object_set_new(line, field, json_string(word)) == 0;
}

/* The question as a line of JSON, to be freed with free(), since jansson allocates it:
 *
 *     sigma ctl RUN set optimiser.learning_rate 0.01
 *     {"command":"set","within":60,"identifier":"optimiser.learning_rate","value":"0.01"}
 *
 * `within` is how many seconds the training may let us wait. Values are sent as texts: the training knows
 * their kinds. words[0] is the command, which has at most as many further words as its row has fields.
 * NULL: the message is printed and *code set. */
static char *question(const char *const *words, size_t count, int64_t seconds, int *code)
{
    const command_words *c = find_command(words[0], code);
    if (c == NULL)
        return NULL;
    size_t maximum = c->fields[0] == NULL ? 0 : c->fields[1] == NULL ? 1 : 2;
    if (count - 1 < c->needed || count - 1 > maximum) {
        bool few = count - 1 < c->needed;
        size_t bound = few ? c->needed : maximum;
        *code = usage_error("ctl", "%s takes %s%zu word%s, got %zu", c->name,
                            c->needed == maximum ? ""
                            : few                ? "at least "
                                                 : "at most ",
                            bound, bound == 1 ? "" : "s", count - 1);
        return NULL;
    }
    json_t *line = json_object();
    json_object_set_new(line, "command", json_string(c->name));
    json_object_set_new(line, "within", json_integer(seconds));
    if (count == 1 && c->default_value != NULL)
        json_object_set_new(line, c->fields[0], json_string(c->default_value));
    bool is_whole = true, is_text = true;
    for (size_t i = 1; i < count; i++) {
        is_whole &= add_word(line, c->fields[i - 1], words[i]);
        is_text &= is_utf8(words[i]);
    }
    char *text = is_whole ? json_dumps(line, JSON_COMPACT) : NULL;
    json_decref(line);
    if (text == NULL && !is_text) {
        *code = usage_error("ctl", "what is sent must be UTF-8");
    } else if (text == NULL) {
        sgm__fail_memory(0);
        *code = report_error("ctl", CLI_FAILED);
    }
    return text;
}

/* --- the answer --- */

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

/* A line of `changes`: a number, when, what, from which value to which, and by whom. */
static void print_change(const json_t *change, int width)
{
    char *before = shown_value(json_object_get(change, "before")),
         *after = shown_value(json_object_get(change, "after"));
    printf("%5lld  epoch %lld, iteration %-8lld %-*s %s -> %s, by %s\n",
           (long long)json_integer_value(json_object_get(change, "number")),
           (long long)json_integer_value(json_object_get(change, "epoch")),
           (long long)json_integer_value(json_object_get(change, "iteration")), width,
           text_of(change, "identifier"), before != NULL ? before : "", after != NULL ? after : "",
           text_of(change, "who"));
    free(before);
    free(after);
}

static void print_value(const json_t *value, int width)
{
    (void)width;
    printf("%s = %s\n", text_of(value, "identifier"), text_of(value, "text"));
}

/* How each list of an answer is printed. An unknown list is printed as the last form. */
static const struct list_form {
    const char *key, *widest;
    void (*print)(const json_t *item, int width);
} list_forms[] = {
    {"values", "identifier", print_value},
    {"hooks", "name", print_hook},
    {"changes", "identifier", print_change},
    {"entries", "identifier", print_entry},
};

/* Answers name their lists by what is in them: values, hooks, changes, entries. */
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
    } else if (json_is_string(value)) {
        printf("%-14s %s\n", key, json_string_value(value));
    } else if (json_is_integer(value)) {
        printf("%-14s %lld\n", key, (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        printf("%-14s %.6g\n", key, json_real_value(value));
    }
}

/* Prints an answer: its members line by line, or an error to stderr. Returns the exit code that its "ok"
 * means. */
static int print_answer(const sgm__text *line, bool as_json)
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

/* What all questions of one call have in common. */
typedef struct talk {
    const char *folder;
    int64_t seconds;
    bool as_json;
} talk;

/* Asks one question and prints the answer. */
static int control(const talk *t, const char *const *words, size_t count)
{
    sgm__text line = {0};
    int code = CLI_FAILED;
    char *text = question(words, count, t->seconds, &code);
    if (text == NULL)
        return code;
    const ctl_question asked = {
        .folder = t->folder, .text = text, .seconds = (double)t->seconds, .limit = "--timeout"};
    code =
        ctl_ask(&asked, &line) == SGM_OK ? print_answer(&line, t->as_json) : report_error("ctl", CLI_FAILED);
    free(text);
    sgm__text_free(&line);
    return code;
}

/* Whether `get` has several identifiers. With two words the second may be a file to write a tensor to. */
static bool gets_several(const char *const *words, size_t count)
{
    return strcmp(words[0], "get") == 0 && count > 2 && !ends_with(words[count - 1], ".npy");
}

/* One question for each identifier, up to the first that fails. */
static int get_each(const talk *t, const char *const *words, size_t count)
{
    int code = CLI_OK;
    for (size_t i = 1; i < count && code == CLI_OK; i++) {
        const char *const one[] = {words[0], words[i]};
        code = control(t, one, 2);
    }
    return code;
}

static int do_command(const talk *t, const char *const *words, size_t count)
{
    return gets_several(words, count) ? get_each(t, words, count) : control(t, words, count);
}

/* Checks the arguments that all commands share. A day is more than any iteration takes. */
static int talk_to(const arguments *a, int64_t seconds, bool as_json)
{
    if (a->word_count < 2)
        return usage_error("ctl", "expected the folder of a run and a command, got %zu %s", a->word_count,
                           a->word_count == 1 ? "word" : "words");
    if (seconds < 1 || seconds > 86400)
        return usage_error("ctl", "--timeout takes 1 to 86400 seconds, got %lld", (long long)seconds);
    const talk t = {.folder = a->words[0], .seconds = seconds, .as_json = as_json};
    return do_command(&t, a->words + 1, a->word_count - 1);
}

/* --timeout is a number of seconds from 1 on; its upper bound is checked in talk_to. */
int ctl_run(int argc, char **argv)
{
    bool as_json = false;
    int64_t seconds = USUAL_SECONDS;
    const argument_rule rules[] = {{"--json", ARGUMENT_FLAG, &as_json},
                                   {"--timeout", ARGUMENT_COUNT, &seconds}};
    arguments a = {.rules = rules, .rule_count = 2, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code))
        code = talk_to(&a, seconds, as_json);
    arguments_free(&a);
    return code;
}
