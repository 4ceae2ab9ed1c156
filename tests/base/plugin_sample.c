/* A plug-in to be loaded by test_plugin.c. */
#include <stdint.h>

typedef struct sample_table {
    uint32_t version;
    int (*twice)(int number);
} sample_table;

__attribute__((visibility("default"))) const sample_table *sgm_plugin_sample(void);

static int twice(int number)
{
    return 2 * number;
}

const sample_table *sgm_plugin_sample(void)
{
    static const sample_table table = {7, twice};
    return &table;
}
