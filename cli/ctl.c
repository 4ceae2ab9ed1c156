/* `sigma ctl`: commands to a training of another process.
 *
 * The words of the command line become one line of JSON, runs/ctl_ask.c sends it through the socket in the
 * run's folder, and the answer is printed as text, or as it came (--json), by ctl_print.c. The commands
 * are those of the library's table (src/control/command_table.h), with their words and their help. */
#include "cli.h"
#include "control/command_table.h"
#include "ctl_print.h"
#include "runs/ctl_ask.h"

#include <jansson.h>
#include <sigma/rules.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Default of --timeout: an iteration may take long, and commands act between iterations. */
#define DEFAULT_SECONDS 60

/* --- help --- */

#define HELP_WIDTH 100
#define HELP_MARGIN 24 /* columns before what a command does */

static const char help_start[] =
    "Usage: sigma ctl FOLDER COMMAND ... [--reason TEXT] [--by NAME] [--dry-run] [--role ROLE] [--json]\n"
    "                 [--timeout SECONDS] [--paused]\n\n"
    "Watches and steers the training that runs in a folder. Commands act after the iteration that is "
    "running.\n\n";

static const char help_end[] =
    "\n"
    "  --reason TEXT         why: journal.jsonl keeps it, and 'changes' tells it\n"
    "  --by NAME             who asks: the journal has ctl:NAME\n"
    "  --dry-run             tell what would change, and change nothing\n"
    "  --role ROLE           ask with no more than this role: look, steer or admin (default)\n"
    "  --paused              of branch: the new training waits for a command\n"
    "  --json                print the answer as it came, a JSON object\n"
    "  --timeout SECONDS     how long to wait for an iteration that takes long (default 60); then nothing "
    "is\n"
    "                        done\n"
    "  --                    what follows is no option: set IDENTIFIER -- -1\n\n"
    "Exit codes: 0 done, 1 failed, nothing runs there or it refused, 2 wrong usage or configuration.\n";

/* Appends words with line ends between them, so that no line is longer than HELP_WIDTH. `column`: where the
 * first word stands. */
static void append_wrapped(sgm__text *text, const char *words, size_t column)
{
    while (*words != '\0') {
        size_t length = strcspn(words, " ");
        if (column > HELP_MARGIN && column + 1 + length > HELP_WIDTH) {
            sgm__text_append(text, "\n%*s", HELP_MARGIN, "");
            column = HELP_MARGIN;
        } else if (column > HELP_MARGIN) {
            sgm__text_append(text, " ");
            column++;
        }
        sgm__text_append(text, "%.*s", (int)length, words);
        column += length;
        words += length + strspn(words + length, " ");
    }
    sgm__text_append(text, "\n");
}

/* A command whose words are too long for the margin has its doc on the next line. */
static void append_command(sgm__text *text, const sgm__command_row *row)
{
    bool has_words = row->words[0] != '\0';
    size_t before = text->length;
    sgm__text_append(text, "  %s%s%s", row->name, has_words ? " " : "", row->words);
    size_t used = text->length - before;
    if (used + 1 < HELP_MARGIN)
        sgm__text_append(text, "%*s", (int)(HELP_MARGIN - used), "");
    else
        sgm__text_append(text, "\n%*s", HELP_MARGIN, "");
    append_wrapped(text, row->doc, HELP_MARGIN);
}

/* The help, of which the commands are the library's table; sgm__free. */
static char *make_help(void)
{
    sgm__text text = {0};
    const sgm__command_row *row;
    sgm__text_append(&text, "%s", help_start);
    for (size_t i = 0; (row = sgm__command_at(i)) != NULL; i++)
        append_command(&text, row);
    sgm__text_append(&text, "%s", help_end);
    return sgm__text_take(&text);
}

const char *ctl_command_at(size_t index)
{
    const sgm__command_row *row = sgm__command_at(index);
    return row != NULL ? row->name : NULL;
}

/* --- the question --- */

/* NULL: unknown; the message is printed and *code set. */
static const sgm__command_row *find_command(const char *name, int *code)
{
    const sgm__command_row *row;
    if (sgm__command_find(name, &row) == SGM_OK)
        return row;
    *code = usage_error("ctl", "%s", sgm_last_error());
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

/* What all questions of one call have in common. */
typedef struct talk {
    const char *folder;
    int64_t seconds;
    const char *reason, *by, *role; /* NULL: not given */
    bool dry, paused, as_json;
} talk;

static void add_given(json_t *line, const char *key, const char *text)
{
    if (text != NULL)
        json_object_set_new(line, key, json_string(text));
}

/* What every request may have. `within` is how many seconds the training may let us wait. */
static void add_terms(json_t *line, const talk *t)
{
    json_object_set_new(line, "within", json_integer(t->seconds));
    add_given(line, "reason", t->reason);
    add_given(line, "by", t->by);
    add_given(line, "role", t->role);
    if (t->dry)
        json_object_set_new(line, "dry_run", json_true());
    if (t->paused) /* a field of branch, which all other commands refuse */
        json_object_set_new(line, "paused", json_true());
}

static bool terms_are_utf8(const talk *t)
{
    const char *const texts[] = {t->reason, t->by, t->role};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i] != NULL && !is_utf8(texts[i]))
            return false;
    return true;
}

/* Whether a command takes so many words; else the message is printed. */
static bool takes_words(const sgm__command_row *row, size_t count)
{
    bool few = count < row->minimum_words;
    size_t bound = few ? row->minimum_words : row->maximum_words;
    if (!few && count <= row->maximum_words)
        return true;
    usage_error("ctl", "%s takes %s%zu word%s, got %zu", row->name,
                row->minimum_words == row->maximum_words ? ""
                : few                                    ? "at least "
                                                         : "at most ",
                bound, bound == 1 ? "" : "s", count);
    return false;
}

/* The first field if no word gives it but it must be there: step takes 1 iteration. */
static void add_default(json_t *line, const sgm__command_row *row)
{
    if (row->maximum_words > 0 && row->fields[0].required && row->minimum_words == 0)
        json_object_set_new(line, row->fields[0].name,
                            json_integer((json_int_t)row->fields[0].default_value));
}

/* The question as a line of JSON, to be freed with free(), since jansson allocates it:
 *
 *     sigma ctl RUN set optimiser.learning_rate 0.01
 *     {"command":"set","within":60,"identifier":"optimiser.learning_rate","value":"0.01"}
 *
 * Values are sent as texts: the training knows their kinds. words[0] is the command; its further words are
 * the first of its row's fields. NULL: the message is printed and *code set. */
static char *question(const talk *t, const char *const *words, size_t count, int *code)
{
    const sgm__command_row *row = find_command(words[0], code);
    *code = CLI_USAGE;
    if (row == NULL || !takes_words(row, count - 1))
        return NULL;
    json_t *line = json_object();
    json_object_set_new(line, "command", json_string(row->name));
    add_terms(line, t);
    if (count == 1)
        add_default(line, row);
    bool is_whole = true, is_text = terms_are_utf8(t);
    for (size_t i = 1; i < count; i++) {
        is_whole &= add_word(line, row->fields[i - 1].name, words[i]);
        is_text &= is_utf8(words[i]);
    }
    char *text = is_whole && is_text ? json_dumps(line, JSON_COMPACT) : NULL;
    json_decref(line);
    if (text == NULL && !is_text) {
        *code = usage_error("ctl", "what is sent must be UTF-8");
    } else if (text == NULL) {
        sgm__fail_memory(0);
        *code = report_error("ctl", CLI_FAILED);
    }
    return text;
}

/* Asks one question and prints the answer. */
static int control(const talk *t, const char *const *words, size_t count)
{
    sgm__text line = {0};
    int code = CLI_FAILED;
    char *text = question(t, words, count, &code);
    if (text == NULL)
        return code;
    const ctl_question asked = {
        .folder = t->folder, .text = text, .seconds = (double)t->seconds, .limit = "--timeout"};
    code = ctl_ask(&asked, &line) == SGM_OK ? ctl_print_answer(&line, t->as_json)
                                            : report_error("ctl", CLI_FAILED);
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
static int talk_to(const arguments *a, talk *t)
{
    if (a->word_count < 2)
        return usage_error("ctl", "expected the folder of a run and a command, got %zu %s", a->word_count,
                           a->word_count == 1 ? "word" : "words");
    if (t->seconds < 1 || t->seconds > 86400)
        return usage_error("ctl", "--timeout takes 1 to 86400 seconds, got %lld", (long long)t->seconds);
    t->folder = a->words[0];
    return do_command(t, a->words + 1, a->word_count - 1);
}

/* --timeout is a number of seconds from 1 on; its upper bound is checked in talk_to. */
int ctl_run(int argc, char **argv)
{
    talk t = {.seconds = DEFAULT_SECONDS};
    const argument_rule rules[] = {
        {"--json", ARGUMENT_FLAG, &t.as_json},  {"--timeout", ARGUMENT_COUNT, &t.seconds},
        {"--reason", ARGUMENT_TEXT, &t.reason}, {"--by", ARGUMENT_TEXT, &t.by},
        {"--dry-run", ARGUMENT_FLAG, &t.dry},   {"--role", ARGUMENT_TEXT, &t.role},
        {"--paused", ARGUMENT_FLAG, &t.paused},
    };
    char *help = make_help();
    arguments a = {
        .rules = rules, .rule_count = sizeof rules / sizeof *rules, .help = help != NULL ? help : help_end};
    int code;
    if (arguments_read(&a, argc, argv, &code))
        code = talk_to(&a, &t);
    arguments_free(&a);
    sgm__free(help);
    return code;
}
