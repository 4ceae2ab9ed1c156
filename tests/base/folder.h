/* A temporary folder: one at a time. */
#ifndef SIGMA_TEST_FOLDER_H
#define SIGMA_TEST_FOLDER_H

#include "test.h"

#include <stdlib.h>

static char folder[64]; /* absolute, of the one that is open */

static const char *open_folder(void)
{
    strcpy(folder, "/tmp/sigma-test-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    return folder;
}

/* Removes it with all that is in it. */
static void close_folder(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_INT(system(command), 0);
}

/* Valid until the next call. */
__attribute__((unused)) static const char *in_folder(const char *name)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

#endif
