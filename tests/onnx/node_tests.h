/* ONNX's own tests of operators, as Debian's package libonnx-testdata has them: a folder for each, with a
 * model and folders of inputs and the outputs that they must give. */
#ifndef SIGMA_TEST_NODE_TESTS_H
#define SIGMA_TEST_NODE_TESTS_H

#include "base/base.h"
#include "test.h"
#include <ctype.h>
#include <dirent.h>
#include <sigma/sigma.h>

#define TEST_DATA "/usr/share/libonnx-testdata/data"

/* Folders of tests there; what a test is called in them begins with "test_". */
static const char *const test_groups[] = {"node", "pytorch-operator", "pytorch-converted", "simple"};
#define GROUP_COUNT (sizeof test_groups / sizeof test_groups[0])

static int only_tests(const struct dirent *entry)
{
    return strncmp(entry->d_name, "test_", 5) == 0;
}

/* Ends the test where the library or the machine lacks what it needs. */
static int list_node_tests(const char *group, struct dirent ***list)
{
    char path[256];
    sgm_onnx *model = sgm_onnx_parse("", 0, NULL);
    sgm_onnx_free(model);
    if (sgm_last_status() == SGM_ERROR_UNSUPPORTED)
        SKIP("built without ONNX");
    snprintf(path, sizeof path, TEST_DATA "/%s", group);
    int count = scandir(path, list, only_tests, alphasort);
    if (count <= 0)
        SKIP("there is no " TEST_DATA " (Debian: libonnx-testdata)");
    return count;
}

static void free_node_tests(struct dirent **list, int count)
{
    for (int i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

/* `test`: "node/test_add" */
static sgm_tensor *read_tensor(const char *test, const char *kind, size_t number)
{
    char path[512];
    char *bytes;
    size_t length;
    snprintf(path, sizeof path, TEST_DATA "/%s/test_data_set_0/%s_%zu.pb", test, kind, number);
    if (sgm__file_read(path, 1 << 26, &bytes, &length) != SGM_OK)
        return NULL;
    sgm_tensor *tensor = sgm_onnx_parse_tensor(bytes, length);
    sgm__free(bytes);
    return tensor;
}

#endif
