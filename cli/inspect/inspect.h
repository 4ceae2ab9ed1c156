/* What the files of `sigma inspect` share.
 *
 * inspect.c reads the command line and shows networks, inspect_onnx.c shows ONNX models. */
#ifndef SGM_CLI_INSPECT_INSPECT_H
#define SGM_CLI_INSPECT_INSPECT_H

#include "config/arguments.h"
#include "config/experiment.h"
#include "config/saved.h"

/* The subcommand, for main.c's table (cli.h). */
int inspect_run(int argc, char **argv);
/* For `sigma info PATH`: prints into how many threads a training step is divided, and why. Returns the
 * exit code. `overrides`: KEY=VALUE for a configuration. */
int inspect_threads(const char *path, const char *const *overrides, size_t override_count);
/* --- inspect_onnx.c --- */
/* Shows an ONNX model, and the graph that it becomes for `batch` examples (below 0: one); its instructions
 * too where there is a `listing`. */
sgm_status inspect_onnx(const char *path, int64_t batch, bool listing);

#endif
