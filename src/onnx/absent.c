/* What there is instead of ONNX when Sigma is built without protobuf-c or without ONNX's proto file.
 *
 * cmake/onnx.cmake compiles either this file or all others of src/onnx. Every function of sigma/onnx.h
 * exists here with the same signature and fails with SGM_ERROR_UNSUPPORTED and a message that names the
 * missing packages, so that programs link in either case. */
#include "base/base.h"
#include <sigma/onnx.h>

static sgm_status fail(void)
{
    return sgm_fail(
        SGM_ERROR_UNSUPPORTED,
        "this library was built without ONNX; build it again with protobuf-c and ONNX's proto file "
        "installed (Debian: libprotobuf-c-dev, protobuf-c-compiler, libonnx-dev)");
}

/* Defines a function that fails. Its arguments are not looked at (cmake/onnx.cmake turns the warning off). */
#define ABSENT(result, name, failed, ...)                                                                    \
    result name(__VA_ARGS__)                                                                                 \
    {                                                                                                        \
        fail();                                                                                              \
        return failed;                                                                                       \
    }
ABSENT(sgm_onnx *, sgm_onnx_load_with, NULL, const char *path, const sgm_onnx_options *options)
ABSENT(sgm_onnx *, sgm_onnx_parse, NULL, const void *bytes, size_t length, const sgm_onnx_options *options)
ABSENT(const char *, sgm_onnx_input_at, NULL, const sgm_onnx *model, size_t index, sgm_type *type)
ABSENT(const char *, sgm_onnx_output_at, NULL, const sgm_onnx *model, size_t index)
ABSENT(bool, sgm_onnx_output_is_class, false, const sgm_onnx *model, size_t index)
ABSENT(const char *, sgm_onnx_class_at, NULL, const sgm_onnx *model, size_t index)
ABSENT(bool, sgm_onnx_node_at, false, const sgm_onnx *model, size_t node, sgm_onnx_node_info *info)
ABSENT(const char *, sgm_onnx_node_input, NULL, const sgm_onnx *model, size_t node, size_t index)
ABSENT(const char *, sgm_onnx_node_output, NULL, const sgm_onnx *model, size_t node, size_t index)
ABSENT(bool, sgm_onnx_node_attribute, false, const sgm_onnx *model, size_t node, size_t index,
       sgm_onnx_attribute *attribute)
ABSENT(sgm_tensor *, sgm_onnx_constant, NULL, const sgm_onnx *model, const char *name)
ABSENT(const char *, sgm_onnx_metadata, NULL, const sgm_onnx *model, const char *key)
ABSENT(sgm_status, sgm_onnx_set, sgm_last_status(), sgm_onnx *model, const char *input,
       const sgm_tensor *value)
ABSENT(sgm_status, sgm_onnx_run, sgm_last_status(), sgm_onnx *model)
ABSENT(sgm_tensor *, sgm_onnx_get, NULL, sgm_onnx *model, const char *output)
ABSENT(sgm_status, sgm_onnx_import, sgm_last_status(), sgm_onnx *model, sgm_graph *graph, int64_t batch)
ABSENT(sgm_tensor *, sgm_onnx_parse_tensor, NULL, const void *bytes, size_t length)
ABSENT(sgm_status, sgm_onnx_export_with, sgm_last_status(), const char *path, const sgm_graph *graph,
       sgm_session *session, const sgm_onnx_export_options *options)

/* No model can exist, so there is nothing to free; NULL is allowed, as in the real function. */
void sgm_onnx_free(sgm_onnx *model)
{
}
