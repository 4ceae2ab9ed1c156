/* The command `sigma`: prints help and the version, and finds the subcommand.
 *
 * main puts the process into the state that all subcommands rely on (standard streams open, SIGXFSZ
 * ignored), calls the subcommand's function from the table (commands.c) with its own arguments, and turns an
 * output that could not be written into a failure. Options common to all subcommands are read in
 * config/arguments.c. */
#include "cli.h"
#include "monitors/task_lines.h"
#include "text/names.h"
#include "texts/sample.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define MAXIMUM_COMMANDS 32

/* The list of subcommands, and the options that arguments.c reads for each of them. */
static void print_help(void)
{
    printf("sigma trains neural networks.\n\nUsage: sigma COMMAND ...\n\n");
    const subcommand *command;
    for (size_t i = 0; (command = subcommand_at(i)) != NULL; i++)
        printf("  %-10s %s\n", command->name, command->summary);
    printf(
        "\n  --help      this text; 'sigma COMMAND --help' has more\n"
        "  --version   the version\n\n"
        "Every command also takes\n"
        "  --log-level LEVEL  messages to show on stderr: debug, info, warning (default), error, off;\n"
        "                     the variable SIGMA_LOG sets the default\n"
        "  --log-file FILE    append all messages to FILE, of which 5 old ones of 15 MB are kept\n"
        "  --plugin FILE      load layers, hooks and so on of your own from a shared library; may be given\n"
        "                     several times. It is code: load only what you trust\n\n"
        "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted.\n");
}

/* Opens /dev/null until the descriptors 0 to 2 are taken. If one of them were closed, the next file that
 * is opened would get its number, and messages would be written into a checkpoint. /dev/null is opened for
 * reading only, so that writing to a stream that was closed still fails. */
static void keep_standard_streams(void)
{
    int descriptor;
    do
        descriptor = open("/dev/null", O_RDONLY);
    while (descriptor >= 0 && descriptor <= STDERR_FILENO);
    if (descriptor >= 0)
        close(descriptor);
}

/* Runs argv[1]. `help COMMAND` is `COMMAND --help`. An unknown name is answered with the nearest one. */
static int run_command(int argc, char **argv)
{
    const char *name = argv[1], *names[MAXIMUM_COMMANDS];
    const subcommand *command;
    size_t count = 0;
    if (strcmp(name, "help") == 0 && argc > 2 && strcmp(argv[2], "help") != 0) {
        char argument[] = "--help";
        return run_command(3, (char *[]){argv[0], argv[2], argument, NULL});
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_help();
        return CLI_OK;
    }
    if (strcmp(name, "--version") == 0) {
        printf("sigma %s\n", sgm_version());
        return CLI_OK;
    }
    for (; count < MAXIMUM_COMMANDS && (command = subcommand_at(count)) != NULL; count++) {
        names[count] = command->name;
        if (strcmp(name, names[count]) == 0)
            return command->run(argc - 1, argv + 1);
    }
    char hint[SGM__NAME_HINT];
    complain("sigma: unknown command '%s'%s; 'sigma --help' lists them\n", name,
             sgm__name_hint(SGM__NAME_COMMAND, name, names, count, hint));
    return CLI_USAGE;
}

/* SIGXFSZ is ignored so that a file beyond the size limit is an error of write, like a full disk, and not
 * the end of the process. From sgm__task_lines_begin on, work that takes long has a line on the terminal. */
int main(int argc, char **argv)
{
    keep_standard_streams();
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error like a full disk */
    if (argc < 2) {
        print_help();
        return CLI_USAGE;
    }
    sgm__task_lines_begin();
    sample_register();
    int code = run_command(argc, argv);
    /* A full disk or a closed pipe is a failure too. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == CLI_OK) {
        complain("sigma %s: the output could not be written\n", argv[1]);
        code = CLI_FAILED;
    }
    return code;
}
