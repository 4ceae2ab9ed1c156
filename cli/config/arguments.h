/* Arguments of a subcommand, and what the command prints. The exit codes of `sigma` are here.
 *
 * A subcommand gives a table of its options (argument_rule) and gets the remaining words in order
 * (arguments.c). text.c and the first functions of experiment.c have small helpers that several
 * subcommands print or decide with. */
#ifndef SGM_CLI_CONFIG_ARGUMENTS_H
#define SGM_CLI_CONFIG_ARGUMENTS_H

#include "base/base.h"
#include <sigma/sigma.h>

/* Exit codes: done, failed, wrong usage or configuration, ended by a signal (128 + SIGINT, as shells have
 * it). */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

/* --- arguments.c --- */
/* What an option's value is. Values follow as the next word or behind '=', those of ARGUMENT_MAYBE only
 * behind '='. */
typedef enum argument_kind {
    ARGUMENT_FLAG,   /* no value; bool */
    ARGUMENT_TEXT,   /* const char * */
    ARGUMENT_TEXTS,  /* argument_texts: it may be given several times */
    ARGUMENT_COUNT,  /* int64_t, at least 1 */
    ARGUMENT_PORT,   /* int64_t, 1 to 65535 */
    ARGUMENT_NUMBER, /* double, above 0 and finite */
    ARGUMENT_MAYBE   /* const char *: the text behind '=', or "" */
} argument_kind;
#define ARGUMENT_MAX_TEXTS 16
typedef struct argument_texts {
    const char *items[ARGUMENT_MAX_TEXTS]; /* texts of argv */
    size_t count;
} argument_texts;
/* An option: its name with the dashes, and the variable that gets its value, of the type that
 * argument_kind says. A variable keeps its value if the option is not given. */
typedef struct argument_rule {
    const char *name;
    argument_kind kind;
    void *target;
} argument_rule;
/* The caller fills in rules, rule_count and help (printed for --help); arguments_read fills in the rest. */
typedef struct arguments {
    const argument_rule *rules;
    size_t rule_count;
    const char *help;
    const char **words; /* everything that is no option, in order; texts of argv */
    size_t word_count;
} arguments;
/* False: the subcommand should return *code, since --help was printed, or a mistake. */
bool arguments_read(arguments *a, int argc, char **argv, int *code);
void arguments_free(arguments *a);
/* For the completion of shells: a subcommand that calls arguments_read meanwhile gives its options to `give`,
 * with their words from the help, and whether a value follows; arguments_read then returns false and CLI_OK.
 */
typedef void (*argument_taker)(void *user, const char *name, const char *doc, bool has_value);
int arguments_list(int (*run)(int argc, char **argv), const char *command, argument_taker give, void *user);
/* Whether no key has two values among the KEY=VALUE: which one counts would be a guess. False: the message is
 * printed and *code set. */
bool overrides_are_single(const char *command, const char *const *overrides, size_t count, int *code);
/* Whether the text is a port, 1 to 65535, which *port becomes. */
bool parse_port(const char *text, int64_t *port);
/* Prints to stderr. Texts may come from files, so what would steer a terminal is replaced. */
void complain(const char *format, ...) SGM_PRINTF(1, 2);
/* Prints "sigma COMMAND: MESSAGE; see 'sigma COMMAND --help'"; returns CLI_USAGE. */
int usage_error(const char *command, const char *format, ...) SGM_PRINTF(2, 3);
/* Prints "sigma COMMAND: " and the library's newest error of this thread; returns `code`. */
int report_error(const char *command, int code);
/* "process 2 on beta: " where mpirun has started several processes, since somebody may have to look there;
 * else "". Writes into `text` and returns it. */
const char *this_process(char *text, size_t size);

/* --- text.c --- */
/* Prints "NAME: loss L, accuracy A % (N examples)". */
void print_metrics(const char *name, const sgm_metrics *metrics);
/* A number of 9 digits, or null: JSON has no NaN and no infinity. */
void print_json_number(double value);
/* An element of a tensor as the shortest decimal that reads back as the same float32, or float64 (`wide`). */
void print_json_element(double value, bool wide);
/* A text in quotes, with escapes. */
void print_json_text(const char *text);
/* A name that a file gave, on one line: control characters, which could steer the terminal, become '?'. */
void print_name(const char *name);
bool ends_with(const char *text, const char *end);
/* Whether both paths, of which either may be NULL, are of one file that is there. */
bool is_same_file(const char *a, const char *b);
/* The place of the first of the largest numbers; of a NaN that stands in front of them. */
int64_t largest_of(const double *numbers, int64_t count);
/* The value of --unknown, NULL where it was not given: false, and *code that of a wrong usage, if it is
 * neither ignore nor refuse. */
bool unknown_is_ignored(const char *command, const char *value, bool *ignored, int *code);
/* The tokens in a file, a line each "ROLE TOKEN [NAME]"; sgm__free. NULL: an error says why, for instance
 * that others may read the file, or which line is none. */
char *read_tokens(const char *path);
/* Whether a path names a file of NumPy: .npy, .npz, or an array in an archive, FILE.npz:NAME. */
bool is_numpy(const char *path);
/* A reader of such a path; NULL and an error on failure. */
sgm_reader *numpy_reader(const char *path);
/* Of a file that is read as it is, or unpacked if its name says that it is packed. */
sgm_source *file_source(const char *path);
/* Where the ending of a table begins (.csv, .tsv, .jsonl), behind which that of a packed file may be; NULL:
 * it is no table. */
const char *table_ending(const char *path);

#endif
