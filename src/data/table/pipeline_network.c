/* The network that is proposed for a pipeline, in the notation of src/network/notation.c.
 *
 *     inputs = input(14); town = input(1, name=town) + embedding(9, 5) + flatten;
 *     concatenate(inputs, town) + dense(64, relu) + dense(64, relu) + dense(3) + softmax_cross_entropy
 *
 * and for files what their kind (src/data/kinds) proposes, with such an end. */
#include "data/table/pipeline.h"

#define HIDDEN "dense(64, relu) + dense(64, relu)"
#define WIDEST_EMBEDDING 50

/* "input(1, name=town) + embedding(9, 5) + flatten": there is one category more than the part has, for
 * missing and unknown ones. */
static void append_embedding(sgm__text *text, const sgm_pipeline *pipeline, int32_t field)
{
    const sgm__pipeline_part *part = pipeline->parts;
    while (part->field != field)
        part++;
    int64_t count = (int64_t)part->category_count + 1, size = (count + 1) / 2;
    size = size < WIDEST_EMBEDDING ? size : WIDEST_EMBEDDING;
    sgm__text_append(text, "input(1, name=\"%s\") + embedding(%lld, %lld) + flatten",
                     pipeline->fields[field].name, (long long)count,
                     (long long)(part->embedding_size > 0 ? part->embedding_size : size));
}

/* A branch for each field of inputs; their names, with commas between, are appended to `names`. */
static void append_branches(sgm__text *text, sgm__text *names, const sgm_pipeline *pipeline)
{
    for (int32_t i = 0; i < pipeline->field_count; i++) {
        const sgm__pipeline_field *field = &pipeline->fields[i];
        if (!field->is_input)
            continue;
        sgm__text_append(names, "%sbranch%d", names->length > 0 ? ", " : "", (int)i);
        sgm__text_append(text, "branch%d = ", (int)i);
        if (field->is_index)
            append_embedding(text, pipeline, i);
        else
            sgm__text_append(text, "input(%d)", (int)field->width);
        sgm__text_append(text, "; ");
    }
}

static char *network_of_files(const sgm_pipeline *pipeline)
{
    sgm__text text = {0};
    pipeline->kind->network(pipeline->form, &text);
    if (pipeline->labels > 0) /* and the blank */
        sgm__text_append(&text, " + dense(%zu, time_distributed) + ctc(%d)",
                         pipeline->parts[0].category_count + 1, (int)pipeline->labels);
    else if (pipeline->kind->target_shape != NULL)
        sgm__text_append(&text, " + softmax_cross_entropy");
    else
        sgm__text_append(&text, " + dense(%lld) + softmax_cross_entropy",
                         (long long)sgm_pipeline_width(pipeline, "targets"));
    return sgm__text_take(&text);
}

char *sgm_pipeline_network(const sgm_pipeline *pipeline)
{
    if (pipeline->kind != NULL)
        return network_of_files(pipeline);
    sgm__text text = {0}, names = {0};
    int64_t targets = sgm_pipeline_width(pipeline, "targets"),
            inputs = sgm_pipeline_width(pipeline, "inputs");
    int32_t fields = 0;
    for (int32_t i = 0; i < pipeline->field_count; i++)
        fields += pipeline->fields[i].is_input;
    bool is_simple = fields == 1 && inputs > 0;
    if (!is_simple)
        append_branches(&text, &names, pipeline);
    if (is_simple)
        sgm__text_append(&text, "input(%lld)", (long long)inputs);
    else if (fields == 1)
        sgm__text_append(&text, "%s", names.data != NULL ? names.data : "");
    else
        sgm__text_append(&text, "concatenate(%s)", names.data != NULL ? names.data : "");
    sgm__text_append(&text, " + " HIDDEN " + dense(%lld) + %s", (long long)targets,
                     sgm_pipeline_classes(pipeline) != NULL ? "softmax_cross_entropy" : "mean_squared");
    if (sgm_pipeline_width(pipeline, "weights") > 0)
        sgm__text_append(&text, "(weights=weights)");
    text.failed |= names.failed;
    sgm__text_free(&names);
    return sgm__text_take(&text);
}
