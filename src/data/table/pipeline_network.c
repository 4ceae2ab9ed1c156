/* The network that is proposed for a pipeline, in the notation of src/network/notation.c.
 *
 *     inputs = input(14); town = input(1, name=town) + embedding(9, 5) + flatten;
 *     concatenate(inputs, town) + dense(64, relu) + dense(64, relu) + dense(3) + softmax_cross_entropy
 *
 * and for files what their kind (src/data/kinds) proposes, with such an end. */
#include "data/table/pipeline.h"

#define HIDDEN "dense(64, relu) + dense(64, relu)"
#define WIDEST_EMBEDDING 50

/* The categories of the field, and one more for missing and unknown ones. */
static int64_t embedded_of(const sgm_pipeline *pipeline, int32_t field)
{
    for (size_t i = 0; i < pipeline->part_count; i++)
        if (pipeline->parts[i].field == field)
            return (int64_t)pipeline->parts[i].category_count + 1;
    return 0;
}

/* A branch for each field of inputs; their names, with commas between, are appended to `names`. */
static void append_branches(sgm__text *text, sgm__text *names, const sgm_pipeline *pipeline)
{
    for (int32_t i = 0; i < pipeline->field_count; i++) {
        const sgm__pipeline_field *field = &pipeline->fields[i];
        if (field->is_target)
            continue;
        int64_t count = embedded_of(pipeline, i), width = (count + 1) / 2;
        sgm__text_append(names, "%sbranch%d", names->length > 0 ? ", " : "", (int)i);
        if (field->is_index)
            sgm__text_append(text, "branch%d = input(1, name=\"%s\") + embedding(%lld, %lld) + flatten; ",
                             (int)i, field->name, (long long)count,
                             (long long)(width < WIDEST_EMBEDDING ? width : WIDEST_EMBEDDING));
        else
            sgm__text_append(text, "branch%d = input(%d); ", (int)i, (int)field->width);
    }
}

static char *network_of_files(const sgm_pipeline *pipeline)
{
    sgm__text text = {0};
    pipeline->kind->network(pipeline->form, &text);
    if (pipeline->labels > 0) /* and the blank */
        sgm__text_append(&text, " + dense(%zu, time_distributed) + ctc(%d)",
                         pipeline->parts[0].category_count + 1, (int)pipeline->labels);
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
    bool is_simple = pipeline->field_count == 2 && inputs > 0;
    if (!is_simple)
        append_branches(&text, &names, pipeline);
    if (is_simple)
        sgm__text_append(&text, "input(%lld)", (long long)inputs);
    else if (pipeline->field_count == 2)
        sgm__text_append(&text, "%s", names.data != NULL ? names.data : "");
    else
        sgm__text_append(&text, "concatenate(%s)", names.data != NULL ? names.data : "");
    sgm__text_append(&text, " + " HIDDEN " + dense(%lld) + %s", (long long)targets,
                     sgm_pipeline_classes(pipeline) != NULL ? "softmax_cross_entropy" : "mean_squared");
    text.failed |= names.failed;
    sgm__text_free(&names);
    return sgm__text_take(&text);
}
