/* The inputs of single files, by a pipeline. */
#include "data/files/files.h"

static sgm_status read_all(const sgm_pipeline *pipeline, const sgm_file *files, size_t count,
                           sgm__builder *builder)
{
    sgm__bytes memory = {0};
    SGM_TRY(sgm__pipeline_begin(pipeline, true, builder));
    SGM_TRY(sgm__builder_reserve(builder, (int64_t)count));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < count && status == SGM_OK; i++) {
        status = sgm__pipeline_read_file(pipeline, &files[i], &memory, builder);
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
