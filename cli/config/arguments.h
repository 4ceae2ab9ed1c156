/* Arguments of a subcommand, and what the command prints. */
#ifndef SGM_CLI_CONFIG_ARGUMENTS_H
#define SGM_CLI_CONFIG_ARGUMENTS_H

#include "base/base.h"
#include <sigma/sigma.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

/* --- arguments.c --- */
typedef enum argument_kind {
    ARGUMENT_FLAG,
    ARGUMENT_TEXT,
    ARGUMENT_COUNT,
    ARGUMENT_PORT,
    ARGUMENT_MAYBE /* a text behind '=', or "" */
} argument_kind;
typedef struct argument_rule {
    const char *name; /* "--folder" */
    argument_kind kind;
    void *target; /* bool, const char *, int64_t (at least 1; of a port at most 65535), const char * */
} argument_rule;
typedef struct arguments {
    const argument_rule *rules;
    size_t rule_count;
    const char *help;
    const char **words; /* what is no option, in order; as many as argc at most */
    size_t word_count;
} arguments;
/* False: stop with *code (--help was printed, or the mistake was). */
bool arguments_read(arguments *a, int argc, char **argv, int *code);
void arguments_free(arguments *a);
/* Prints to stderr; whatever the texts are, they do not steer a terminal. */
void complain(const char *format, ...) SGM_PRINTF(1, 2);
/* "sigma COMMAND: MESSAGE" and where help is; returns CLI_USAGE. */
int usage_error(const char *command, const char *format, ...) SGM_PRINTF(2, 3);
/* "sigma COMMAND: the newest error"; returns `code`. */
int report_error(const char *command, int code);
/* "process 2 on beta: ", as somebody may have to look there; empty where there are not several. Returns
 * `text`. */
const char *this_process(char *text, size_t size);

/* --- text.c --- */
void print_metrics(const char *name, const sgm_metrics *metrics);
void print_json_number(double value);
/* Of a tensor of float32, or float64 (wide): the shortest that reads back as the same. */
void print_json_element(double value, bool wide);
void print_json_text(const char *text);
bool ends_with(const char *text, const char *end);
/* A name of .npy or .npz, or of an array in an .npz: FILE.npz:NAME. */
bool is_numpy(const char *path);
sgm_reader *numpy_reader(const char *path);
/* Of a file that is read as it is, or unpacked if its name says that it is packed. */
sgm_source *file_source(const char *path);

#endif
