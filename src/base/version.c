/* Tells the version of the library that is loaded, which may differ from the version of the headers that a
 * program was compiled with. */
#include <sigma/base.h>

#define TEXT(x) #x
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char *sgm_version(void)
{
    return VERSION(SGM_VERSION_MAJOR, SGM_VERSION_MINOR, SGM_VERSION_PATCH);
}
