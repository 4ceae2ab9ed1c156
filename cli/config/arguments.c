/* Reads command lines: options by a subcommand's table, everything else as words in order; and prints
 * messages.
 *
 * arguments_read is called by each NAME_run of the subcommands; it also understands --help and the options
 * about logging and plug-ins that all subcommands have. Mistakes are printed at once with the nearest
 * option's name. Messages go to stderr after stdout was flushed, so that both are in order where they share a
 * file or terminal. */
#include "config/arguments.h"
#include "config/experiment.h"
#include "config/options.h"
#include "parallel/collective/launcher.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

/* The launcher's environment variables tell the number; -1 means that the process is alone. */
const char *this_process(char *text, size_t size)
{
    char host[64] = "";
    int number = sgm__launched_number();
    *text = '\0';
    gethostname(host, sizeof host - 1);
    if (number >= 0)
        snprintf(text, size, "process %d on %s: ", number, host);
    return text;
}

/* A message that could not be formatted for lack of memory is dropped: there is nobody else to tell. */
void complain(const char *format, ...)
{
    va_list list;
    sgm__text text = {0};
    va_start(list, format);
    sgm__text_vappend(&text, format, list);
    va_end(list);
    if (text.data != NULL)
        fputs(sgm__make_printable(text.data), stderr);
    sgm__text_free(&text);
}

int report_error(const char *command, int code)
{
    char who[96];
    fflush(stdout);
    complain("sigma %s: %s%s\n", command, this_process(who, sizeof who), sgm_last_error());
    return code;
}

/* stdout goes first, so that the message stands behind what was printed before it. */
int usage_error(const char *command, const char *format, ...)
{
    va_list list;
    sgm__text text = {0};
    fflush(stdout);
    va_start(list, format);
    sgm__text_vappend(&text, format, list);
    va_end(list);
    complain("sigma %s: %s; see 'sigma %s --help'\n", command, text.data != NULL ? text.data : "", command);
    sgm__text_free(&text);
    return CLI_USAGE;
}

/* Prints the message for an unknown option; tables have at most 31 rules. */
static int fail_unknown(const arguments *a, const char *command, const char *word)
{
    const char *names[35];
    size_t count = 0;
    for (; count < a->rule_count && count < 31; count++)
        names[count] = a->rules[count].name;
    names[count++] = "--log-level";
    names[count++] = "--log-file";
    names[count++] = "--plugin";
    names[count++] = "--help";
    const char *near = sgm__nearest(word, names, count);
    if (near != NULL)
        return usage_error(command, "unknown option '%s' (did you mean '%s'?)", word, near);
    /* "--epochs 3", where other programs have options and this one has keys. */
    if (strncmp(word, "--", 2) == 0 && (strcmp(command, "train") == 0 || strcmp(command, "search") == 0 ||
                                        strcmp(command, "find-rate") == 0))
        return usage_error(
            command,
            "unknown option '%s'; a key of the file is given as KEY=VALUE, without dashes: %.*s=VALUE", word,
            (int)strcspn(word + 2, "="), word + 2);
    return usage_error(command, "unknown option '%s'", word);
}

/* The rule whose name is the first `length` characters of the word. */
static const argument_rule *find_rule(const argument_rule *rules, size_t count, const char *word,
                                      size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(rules[i].name) == length && memcmp(rules[i].name, word, length) == 0)
            return &rules[i];
    return NULL;
}

/* Options of every subcommand: which messages are shown, and where they are kept; plug-ins. Static, as one
 * process reads one command line. */
static const char *log_level, *log_file;
static argument_texts plugins;
static const argument_rule common_rules[] = {
    {"--plugin", ARGUMENT_TEXTS, &plugins},
    {"--log-level", ARGUMENT_TEXT, &log_level},
    {"--log-file", ARGUMENT_TEXT, &log_file},
};

/* Applies those about logging. The sink of the log file is never closed: it lasts as long as the process. */
static bool begin_logging(const char *command, int *code)
{
    sgm_log_level level;
    if (log_level != NULL) {
        if (sgm_log_level_parse(log_level, &level) != SGM_OK) {
            *code = usage_error(command, "--log-level: %s", sgm_last_error());
            return false;
        }
        sgm_log_set_level(NULL, level);
    }
    if (log_file != NULL && sgm_log_add_file(log_file) == NULL) {
        *code = report_error(command, CLI_FAILED);
        return false;
    }
    return true;
}

/* Loads the plug-ins in the order of the command line. A failure is a wrong argument. */
static bool load_plugins(const char *command, int *code)
{
    for (size_t i = 0; i < plugins.count; i++)
        if (plugins_load(plugins.items[i]) != SGM_OK) {
            *code = report_error(command, CLI_USAGE);
            return false;
        }
    return true;
}

/* A word that begins with '-'. "-" alone is a file (standard input), and a number such as -0.5 is a value,
 * for `sigma ctl RUN set`. */
static bool looks_like_option(const char *word)
{
    double number;
    return word[0] == '-' && word[1] != '\0' && !sgm__parse_double(word, &number);
}

/* A whole number from 1 to `maximum`. */
static bool parse_count(const char *text, int64_t maximum, int64_t *count)
{
    return sgm__parse_int64(text, count) && *count >= 1 && *count <= maximum;
}

bool overrides_are_single(const char *command, const char *const *overrides, size_t count, int *code)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(overrides[i], "=");
        for (size_t k = 0; k < i; k++) {
            if (strncmp(overrides[i], overrides[k], length + 1) != 0)
                continue;
            *code = usage_error(command, "%.*s is given twice: '%.100s' and '%.100s'", (int)length,
                                overrides[i], overrides[k], overrides[i]);
            return false;
        }
    }
    return true;
}

bool parse_port(const char *text, int64_t *port)
{
    return parse_count(text, UINT16_MAX, port);
}

/* Reads the option at argv[*index] into its target; *index moves on if the value is the next word. A value
 * that looks like an option is refused unless it is given behind '=': it is more likely that the value was
 * forgotten. False: the message is printed and *code set. */
static bool read_option(const arguments *a, int argc, char **argv, int *index, int *code)
{
    const char *word = argv[*index], *equals = strchr(word, '=');
    size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);
    const argument_rule *rule = find_rule(a->rules, a->rule_count, word, length);
    if (rule == NULL)
        rule = find_rule(common_rules, sizeof common_rules / sizeof *common_rules, word, length);
    if (rule == NULL) {
        *code = fail_unknown(a, argv[0], word);
        return false;
    }
    /* Options without a value, and with one that may be missing: they never take the next word. */
    if (rule->kind == ARGUMENT_FLAG) {
        if (equals != NULL) {
            *code = usage_error(argv[0], "%s takes no value", rule->name);
            return false;
        }
        *(bool *)rule->target = true;
        return true;
    }
    if (rule->kind == ARGUMENT_MAYBE) {
        *(const char **)rule->target = equals != NULL ? equals + 1 : "";
        return true;
    }
    /* Options with a value: behind '=', else the next word. */
    const char *value = equals != NULL ? equals + 1 : *index + 1 < argc ? argv[++*index] : NULL;
    if (value == NULL) {
        *code = usage_error(argv[0], "%s expects a value", rule->name);
        return false;
    }
    if (equals == NULL && looks_like_option(value)) {
        *code = usage_error(
            argv[0], "%s expects a value, got the option '%s'; a value that begins so is given as %s=%s",
            rule->name, value, rule->name, value);
        return false;
    }
    if (rule->kind == ARGUMENT_TEXT) {
        *(const char **)rule->target = value;
        return true;
    }
    if (rule->kind == ARGUMENT_TEXTS) {
        argument_texts *texts = rule->target;
        if (texts->count == ARGUMENT_MAX_TEXTS)
            *code = usage_error(argv[0], "%s is given more than %d times", rule->name, ARGUMENT_MAX_TEXTS);
        else
            texts->items[texts->count++] = value;
        return texts->items[texts->count - 1] == value;
    }
    if (rule->kind == ARGUMENT_NUMBER) {
        double *number = rule->target;
        bool is_good = sgm__parse_double(value, number) && *number > 0 && isfinite(*number);
        if (!is_good)
            *code = usage_error(argv[0], "%s: expected a number above 0, got '%s'", rule->name, value);
        return is_good;
    }
    /* Whole numbers. A target that is wrong is set as well; the caller stops anyway. */
    const bool is_port = rule->kind == ARGUMENT_PORT;
    if (!parse_count(value, is_port ? UINT16_MAX : INT64_MAX, rule->target)) {
        *code = usage_error(argv[0], "%s: expected a whole number %s, got '%s'", rule->name,
                            is_port ? "from 1 to 65535" : "of at least 1", value);
        return false;
    }
    return true;
}

/* --- listing --- */

static struct {
    argument_taker give; /* NULL: arguments are read */
    void *user;
} listing;

/* The words behind an option at the beginning of a line of the help; sgm__free. NULL: it has none. */
static char *words_of(const char *help, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = help; (line = strstr(line, "\n  ")) != NULL; line++) {
        char behind = line[3 + length];
        if (strncmp(line + 3, name, length) != 0 || (behind != ' ' && behind != '=' && behind != '['))
            continue;
        const char *words = strstr(line + 3, "  "), *end = strchr(line + 3, '\n');
        if (words == NULL || end == NULL || words > end)
            return NULL;
        words += strspn(words, " ");
        return sgm__strndup(words, strcspn(words, "\n"));
    }
    return NULL;
}

static void list_rule(const argument_rule *rule, const char *help)
{
    char *words = words_of(help, rule->name);
    bool has_value = rule->kind != ARGUMENT_FLAG && rule->kind != ARGUMENT_MAYBE;
    listing.give(listing.user, rule->name, words != NULL ? words : "", has_value);
    sgm__free(words);
}

static void list_rules(const arguments *a)
{
    static const char common[] =
        "\n  --log-level LEVEL  messages to show\n  --log-file FILE  append all messages to FILE\n"
        "  --plugin FILE  load layers, hooks and so on of your own\n";
    for (size_t i = 0; i < a->rule_count; i++)
        list_rule(&a->rules[i], a->help);
    for (size_t i = 0; i < sizeof common_rules / sizeof *common_rules; i++)
        list_rule(&common_rules[i], common);
    listing.give(listing.user, "--help", "how it is used", false);
}

int arguments_list(int (*run)(int argc, char **argv), const char *command, argument_taker give, void *user)
{
    char *name = sgm__strdup(command);
    listing.give = give;
    listing.user = user;
    int code = name != NULL ? run(1, (char *[]){name, NULL}) : CLI_FAILED;
    listing.give = NULL;
    sgm__free(name);
    return code;
}

/* Behind "--" everything is a word. */
bool arguments_read(arguments *a, int argc, char **argv, int *code)
{
    bool options = true;
    if (listing.give != NULL) {
        list_rules(a);
        *code = CLI_OK;
        return false;
    }
    a->words = sgm__calloc((size_t)argc, sizeof *a->words);
    if (a->words == NULL) {
        *code = report_error(argv[0], CLI_FAILED);
        return false;
    }
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            fputs(a->help, stdout);
            *code = CLI_OK;
            return false;
        } else if (options && looks_like_option(word)) {
            if (!read_option(a, argc, argv, &i, code))
                return false;
        } else {
            a->words[a->word_count++] = word;
        }
    }
    return begin_logging(argv[0], code) && load_plugins(argv[0], code);
}

void arguments_free(arguments *a)
{
    sgm__free(a->words);
    a->words = NULL;
}
