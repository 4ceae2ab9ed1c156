/* `sigma data`, which shows what data hold: data.c finds out of what kind they are, and the other files show
 * tables, arrays and folders of files. */
#ifndef SGM_CLI_DATA_DATA_H
#define SGM_CLI_DATA_DATA_H

#include "config/arguments.h"
#include <sigma/table.h>

int data_run(int argc, char **argv);
/* For `sigma data FILE.csv` (data_table.c): prints what the columns of a table hold. Returns the exit code.
 */
int data_show_table(const char *path, const sgm_table_options *options);
/* For `sigma data FILE.npz` (data_arrays.c): prints what the arrays hold. Returns an exit code. */
int data_show_arrays(const char *path);
/* For `sigma data FOLDER/` (data_files.c): prints the classes of a folder of files, how many files each has
 * and their sizes. Returns an exit code. */
int data_show_files(const char *path);
/* The kind of which a folder of classes has the most files, as sgm_files_open takes it (data_files.c); NULL
 * and an error: it has no such files. */
const char *data_kind_of_files(const char *path);

#endif
