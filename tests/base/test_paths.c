/* The user's folders, by the variables that name them. */
#include "test.h"

#include <sigma/base.h>
#include <sigma/tensor.h>

static const char *path_of(sgm_folder folder)
{
    static char *path;
    sgm_string_free(path);
    path = sgm_folder_path(folder);
    return path;
}

TEST(folders_follow_the_variables)
{
    static const struct {
        const char *own, *xdg, *home, *data, *cache;
    } cases[] = {
        {NULL, NULL, "/home/ada", "/home/ada/.local/share/sigma", "/home/ada/.cache/sigma"},
        {"", "", "/home/ada", "/home/ada/.local/share/sigma", "/home/ada/.cache/sigma"},
        {NULL, "/xdg", "/home/ada", "/xdg/sigma", "/xdg/sigma"},
        {NULL, "relative/xdg", "/home/ada", "/home/ada/.local/share/sigma", "/home/ada/.cache/sigma"},
        {"/own", "/xdg", "/home/ada", "/own", "/own"},
        {"own/relative", "/xdg", NULL, "own/relative", "own/relative"},
        {NULL, "/xdg", "home", "/xdg/sigma", "/xdg/sigma"},
        {NULL, "xdg", "home", NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static const char *const variables[2][2] = {{"SIGMA_DATA_DIR", "XDG_DATA_HOME"},
                                                {"SIGMA_CACHE_DIR", "XDG_CACHE_HOME"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int folder = 0; folder < 2; folder++) {
            cases[i].own != NULL ? setenv(variables[folder][0], cases[i].own, 1)
                                 : unsetenv(variables[folder][0]);
            cases[i].xdg != NULL ? setenv(variables[folder][1], cases[i].xdg, 1)
                                 : unsetenv(variables[folder][1]);
        }
        cases[i].home != NULL ? setenv("HOME", cases[i].home, 1) : unsetenv("HOME");
        CHECK_STR(path_of(SGM_FOLDER_DATA), cases[i].data);
        CHECK_STR(path_of(SGM_FOLDER_CACHE), cases[i].cache);
    }
    CHECK_ERROR(sgm_folder_path(SGM_FOLDER_CACHE),
                "SIGMA_CACHE_DIR is not set, and neither XDG_CACHE_HOME nor HOME");
    CHECK_ERROR(sgm_folder_path((sgm_folder)7), "there is no folder 7");
}
