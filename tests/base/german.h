/* A locale in which numbers have a decimal comma, names are sorted as in a dictionary and characters are
 * those of ISO 8859-1. It is made for the test, so that it does not matter which ones the computer has. */
#ifndef SIGMA_TEST_GERMAN_H
#define SIGMA_TEST_GERMAN_H

#include "test.h"

#include <locale.h>

/* Makes it the program's; false if it cannot be made here. speak_c takes it back. */
static bool speak_german(void)
{
    char folder[] = "/tmp/sigma-locale-XXXXXX", command[160];
    if (mkdtemp(folder) == NULL)
        return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f ISO-8859-1 %s/de_DE >%s/log 2>&1", folder,
             folder);
    setenv("LOCPATH", folder, 1);
    bool made = system(command) == 0 && setlocale(LC_ALL, "de_DE") != NULL;
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 && made;
}

static void speak_c(void)
{
    setlocale(LC_ALL, "C");
}

#endif
