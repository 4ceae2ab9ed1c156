/* The network that is proposed for a pipeline, in the notation of src/network/notation.c.
 *
 *     inputs = input(14); town = input(1, name=town) + embedding(9, 5) + flatten;
 *     concatenate(inputs, town) + dense(64, relu) + dense(64, relu) + dense(3) + softmax_cross_entropy
 *
 * of a text, beside such columns,
 *
 *     story = input(200, name=story) + embedding(257, 16) + permute(2, 1)
 *         + convolution_1d(128, 7, relu, same) + global_max_pooling + dropout(0.5);
 *     others = concatenate(inputs, town) + dense(64, relu) + dense(64, relu);
 *     concatenate(story, others) + dense(3) + softmax_cross_entropy
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

/* Whether the next field is the length of this one. */
static bool is_text(const sgm_pipeline *pipeline, int32_t field)
{
    return field + 1 < pipeline->field_count && pipeline->fields[field + 1].is_length;
}

/* The layers that read one field of inputs. */
static void append_branch(sgm__text *text, const sgm_pipeline *pipeline, int32_t index)
{
    const sgm__pipeline_field *field = &pipeline->fields[index];
    if (is_text(pipeline, index)) {
        sgm__token_window_network(pipeline->tokenizer, field->width, field->name, text);
    } else if (field->is_index) {
        append_embedding(text, pipeline, index);
    } else {
        sgm__text_append(text, "input(%d)", (int)field->width);
    }
}

/* A branch for each field of inputs but lengths; their names, with commas between, are appended to `texts`
 * and, of all but texts, to `others`. */
static void append_branches(sgm__text *text, const sgm_pipeline *pipeline, sgm__text *texts,
                            sgm__text *others)
{
    for (int32_t i = 0; i < pipeline->field_count; i++) {
        if (!pipeline->fields[i].is_input || pipeline->fields[i].is_length)
            continue;
        sgm__text *names = is_text(pipeline, i) ? texts : others;
        sgm__text_append(names, "%sbranch%d", names->length > 0 ? ", " : "", (int)i);
        sgm__text_append(text, "branch%d = ", (int)i);
        append_branch(text, pipeline, i);
        sgm__text_append(text, "; ");
    }
}

/* One branch by its name, or several. */
static void append_joined(sgm__text *text, const char *names)
{
    sgm__text_append(text, strchr(names, ',') == NULL ? "%s" : "concatenate(%s)", names);
}

/* The branches as one value: texts as they are, all other columns through layers of their own, which the
 * features of texts do not need. */
static void append_inputs(sgm__text *text, const sgm_pipeline *pipeline)
{
    sgm__text texts = {0}, others = {0};
    append_branches(text, pipeline, &texts, &others);
    if (texts.length > 0 && others.length > 0) {
        sgm__text_append(text, "others = ");
        append_joined(text, others.data);
        sgm__text_append(text, " + " HIDDEN "; concatenate(%s, others)", texts.data);
    } else if (texts.length > 0) {
        append_joined(text, texts.data);
    } else if (others.length > 0) {
        append_joined(text, others.data);
        sgm__text_append(text, " + " HIDDEN);
    }
    text->failed |= texts.failed || others.failed;
    sgm__text_free(&texts);
    sgm__text_free(&others);
}

static char *network_of_files(const sgm_pipeline *pipeline)
{
    sgm__text text = {0};
    if (pipeline->part_count == 0) {
        sgm_fail(SGM_ERROR_ARGUMENT, "the pipeline has no classes, for which a network could be proposed");
        return NULL;
    }
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
    sgm__text text = {0};
    int64_t inputs = sgm_pipeline_width(pipeline, "inputs");
    int32_t fields = 0;
    for (int32_t i = 0; i < pipeline->field_count; i++)
        fields += pipeline->fields[i].is_input;
    if (fields == 1 && inputs > 0)
        sgm__text_append(&text, "input(%lld) + " HIDDEN, (long long)inputs);
    else
        append_inputs(&text, pipeline);
    sgm__text_append(&text, " + dense(%lld) + %s", (long long)sgm_pipeline_width(pipeline, "targets"),
                     sgm_pipeline_classes(pipeline) != NULL ? "softmax_cross_entropy" : "mean_squared");
    if (sgm_pipeline_width(pipeline, "weights") > 0)
        sgm__text_append(&text, "(weights=weights)");
    return sgm__text_take(&text);
}
