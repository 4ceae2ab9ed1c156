/* Plug-ins: shared libraries with layers, operations, optimisers, metrics, hooks, datasets, monitors and
 * panels of your own, which a program loads by sgm_plugin_load, and the command by --plugin FILE or `plugins:
 * [FILE]`.
 *
 * A plug-in defines one constant, `sigma_plugin`, whose init() registers what it brings:
 *
 *     static sgm_status init(void)
 *     {
 *         return sgm_register_layer(&standardised);
 *     }
 *     SGM_API const sgm_plugin sigma_plugin = {.api = SGM_PLUGIN_API, .name = "standardised", .init = init};
 *
 * It is compiled by `cc -shared -fPIC $(pkg-config --cflags sigma) -o mine.so mine.c` and links no library of
 * Sigma's: its calls are those of the program that loads it. That program links libsigma.so, as the command
 * does in effect. A plug-in is code with all rights of the process: load none that you do not trust.
 */
#ifndef SIGMA_PLUGIN_H
#define SIGMA_PLUGIN_H

#include <sigma/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of sgm_plugin. The tables that a plug-in registers have numbers of their own: SGM_LAYER_API and
 * so on. */
#define SGM_PLUGIN_API 1

/* What a plug-in says of itself: its constant `sigma_plugin`. */
typedef struct sgm_plugin {
    uint32_t api;     /* SGM_PLUGIN_API */
    const char *name; /* no other plug-in of the process has it */
    const char *doc;  /* one line, for lists; may be NULL */
    /* Registers what the plug-in brings. It is called once. On failure it says why by sgm_fail; what it
     * registered before stays. */
    sgm_status (*init)(void);
} sgm_plugin;

/* Loads the plug-in of a file, which then stays until the process ends. The same file again does nothing.
 * Refused, with the file's name and a remedy: a file that is not there or no library, one without
 * `sigma_plugin`, another API number, the name of a plug-in from another file, an init() that fails. Code of
 * the file that runs while it is loaded (constructors) runs before these checks. Any thread. */
SGM_API sgm_status sgm_plugin_load(const char *path);
/* The plug-ins that were loaded, in order; NULL: past the last. *path, unless NULL, becomes the absolute path
 * of its file, without links. Both stay. */
SGM_API const sgm_plugin *sgm_plugin_at(size_t index, const char **path);

#ifdef __cplusplus
}
#endif

#endif
