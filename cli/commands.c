/* The table of subcommands. */
#include "cli.h"
#include "data/data.h"
#include "eval/eval.h"
#include "generate/generate.h"
#include "inspect/inspect.h"
#include "mcp/mcp.h"
#include "predict/predict.h"

/* In the order in which the help lists them. */
static const subcommand commands[] = {
    {"train", "train what a file describes", train_run},
    {"search", "train with different values, and tell which are best", search_run},
    {"find-rate", "propose a learning rate to begin with", find_rate_run},
    {"ctl", "watch and steer a training that runs", ctl_run},
    {"replay", "train again as a run was trained, with all that was done to it", replay_run},
    {"monitor", "show the runs of a folder in the browser, and compare them", monitor_run},
    {"report", "write what runs did into one HTML file", report_run},
    {"mcp", "serve runs to an agent, by the Model Context Protocol", mcp_run_command},
    {"eval", "measure a trained network on data", eval_run},
    {"predict", "predict with a trained network", predict_run},
    {"import", "make a run of a model of others", import_run},
    {"finetune", "train a model of others on chats, texts with classes, or pairs", finetune_run},
    {"export", "write a trained network for other programs", export_run},
    {"serve", "serve predictions of a trained network over HTTP", serve_run},
    {"generate", "generate text, token by token", generate_run},
    {"tokenize", "train a tokenizer on a text", tokenize_run},
    {"inspect", "show layers, parameters, memory, graph and program", inspect_run},
    {"data", "look at data", data_run},
    {"info", "show what there is on this machine, and explain a name", info_run},
    {"completion", "print a script by which a shell completes command lines", completion_run},
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

const subcommand *subcommand_at(size_t index)
{
    return index < COMMAND_COUNT ? &commands[index] : NULL;
}
