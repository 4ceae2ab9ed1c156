/* The inputs of single files, by a pipeline. */
#include "data/files/files.h"

static sgm_status read_all(const sgm_pipeline *pipeline, const sgm_file *files, size_t count,
                           sgm__builder *builder)
{
    sgm__bytes memory = {0};
    sgm_shape shape = pipeline->kind->shape(pipeline->form);
    SGM_TRY(sgm__builder_add_field(builder, "inputs", &shape));
    SGM_TRY(sgm__builder_reserve(builder, (int64_t)count));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < count && status == SGM_OK; i++) {
        status = pipeline->kind->read(pipeline->form, &files[i], &memory, sgm__builder_end(builder, 0));
        builder->count++;
    }
    sgm__bytes_free(&memory);
    return status;
}

sgm_block *sgm_pipeline_files(const sgm_pipeline *pipeline, const sgm_file *files, size_t count)
{
    sgm__builder builder = {0};
    if (pipeline == NULL || files == NULL || count == 0 || pipeline->kind == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "sgm_pipeline_files: a pipeline of files and at least one file were expected");
        return NULL;
    }
    if (read_all(pipeline, files, count, &builder) == SGM_OK)
        return sgm__builder_take(&builder);
    sgm__builder_free(&builder);
    return NULL;
}
