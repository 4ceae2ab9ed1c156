/* The command `sigma`: finds the subcommand. */
#include "cli.h"

#include <stdio.h>

static const subcommand commands[] = {
    {"train", "train what a file describes", train_run},
    {"eval", "measure a trained network on data", eval_run},
    {"predict", "ask a trained network", predict_run},
    {"inspect", "show layers, parameters, memory, graph and program", inspect_run},
    {"data", "look at data", data_run},
    {"info", "show handlers, libraries and data on this machine", info_run},
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static void print_help(void)
{
    printf("sigma trains neural networks.\n\nUsage: sigma COMMAND ...\n\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-9s %s\n", commands[i].name, commands[i].summary);
    printf("\n  --help     this text; 'sigma COMMAND --help' has more\n"
           "  --version  the version\n\n"
           "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted.\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help();
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_help();
        return CLI_OK;
    }
    if (strcmp(name, "--version") == 0) {
        printf("sigma %s\n", sgm_version());
        return CLI_OK;
    }
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        names[i] = commands[i].name;
        if (strcmp(name, names[i]) == 0) {
            int code = commands[i].run(argc - 1, argv + 1);
            /* A full disk or a closed pipe is a failure too. */
            if ((fflush(stdout) != 0 || ferror(stdout)) && code == CLI_OK) {
                fprintf(stderr, "sigma %s: the output could not be written\n", name);
                code = CLI_FAILED;
            }
            return code;
        }
    }
    const char *near = sgm__nearest(name, names, COMMAND_COUNT);
    fprintf(stderr, "sigma: unknown command '%s'", name);
    if (near != NULL)
        fprintf(stderr, " (did you mean '%s'?)", near);
    fprintf(stderr, "; 'sigma --help' lists them\n");
    return CLI_USAGE;
}
