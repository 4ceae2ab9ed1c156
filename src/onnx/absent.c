/* What there is instead of ONNX when Sigma is built without protobuf-c or without ONNX's proto file.
 *
 * cmake/onnx.cmake compiles either this file or all others of src/onnx. Every function of sigma/onnx.h
 * exists here with the same signature and fails with SGM_ERROR_UNSUPPORTED and a message that names the
 * missing packages, so that programs link in either case. */
#include "base/base.h"
#include <sigma/onnx.h>

/* Arguments are not looked at: no call can succeed. */
static sgm_status fail(void)
{
    return sgm_fail(
        SGM_ERROR_UNSUPPORTED,
        "this library was built without ONNX; build it again with protobuf-c and ONNX's proto file "
        "installed (Debian: libprotobuf-c-dev, protobuf-c-compiler, libonnx-dev)");
}

sgm_onnx *sgm_onnx_load_options(const char *path, const sgm_onnx_options *options)
{
    (void)path, (void)options;
    fail();
    return NULL;
}

sgm_onnx *sgm_onnx_parse(const void *bytes, size_t length, const sgm_onnx_options *options)
{
    (void)bytes, (void)length, (void)options;
    fail();
    return NULL;
}

/* No model can exist, so there is nothing to free; NULL is allowed, as in the real function. */
void sgm_onnx_free(sgm_onnx *model)
{
    (void)model;
}

const char *sgm_onnx_input_at(const sgm_onnx *model, size_t index, sgm_type *type)
{
    (void)model, (void)index, (void)type;
    fail();
    return NULL;
}

const char *sgm_onnx_output_at(const sgm_onnx *model, size_t index)
{
    (void)model, (void)index;
    fail();
    return NULL;
}

sgm_status sgm_onnx_set(sgm_onnx *model, const char *input, const sgm_tensor *value)
{
    (void)model, (void)input, (void)value;
    return fail();
}

sgm_status sgm_onnx_run(sgm_onnx *model)
{
    (void)model;
    return fail();
}

sgm_tensor *sgm_onnx_get(sgm_onnx *model, const char *output)
{
    (void)model, (void)output;
    fail();
    return NULL;
}

sgm_status sgm_onnx_import(sgm_onnx *model, sgm_graph *graph, int64_t batch)
{
    (void)model, (void)graph, (void)batch;
    return fail();
}

sgm_tensor *sgm_onnx_parse_tensor(const void *bytes, size_t length)
{
    (void)bytes, (void)length;
    fail();
    return NULL;
}

sgm_status sgm_onnx_export_file(const char *path, const sgm_graph *graph, sgm_session *session,
                                const sgm_onnx_export_options *options)
{
    (void)path, (void)graph, (void)session, (void)options;
    return fail();
}
