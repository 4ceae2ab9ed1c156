/* Plug-ins: parts that need a library which not everybody has are files of their own, loaded at run time.
 *
 * libsigma-NAME.so exports one function, `sgm_plugin_NAME`, which gives a table of functions and constants;
 * its first member is a uint32_t, the version of the table. A plug-in uses nothing of libsigma, so that it
 * serves a static library as well as a shared one: the header of its table stands alone.
 */
#ifndef SGM_BASE_PLUGIN_H
#define SGM_BASE_PLUGIN_H

#include "base/base.h"

/* Loads a plug-in, which then stays; once loaded, again is cheap. It is looked for in the folders of
 * SIGMA_PLUGIN_PATH (separated by colons), in "sigma" and "plugins" beside the file that this code is in, and
 * where plug-ins are installed. `package` ends the sentence of one that is not there, such as "Debian:
 * libopenmpi-dev, then build again". The table is of the wanted version. */
sgm_status sgm__plugin_open(const char *name, uint32_t version, const char *package, const void **table);
/* Of any library that dlopen gave: stores the address of a function in *function; false, and NULL, if the
 * library has none of that name. Copied as bytes, since C has no conversion from dlsym's pointer to a pointer
 * to a function. */
bool sgm__find_function(void *library, const char *name, void *function);

#endif
