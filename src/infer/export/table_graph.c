/* The pipeline of a table as operations in front of a prediction and behind it, for runtimes that run graphs.
 *
 * The new graph takes a column each, (examples, 1), under the column's name: numbers as float64, dates as
 * days since 1970-01-01 in float64, NaN where there is no value; categories as int64, their numbers in the
 * pipeline's lists, -1 where there is no value. A graph cannot fail with a message: what the pipeline refuses
 * (a number beyond float32, a category that is none, a missing value that is needed) makes the predictions of
 * its example NaN. See table_export.h. */
#include "graph/rebuild.h"
#include "infer/export/table_export.h"

#include <math.h>

/* What the columns of a graph have become. */
typedef struct reading {
    sgm_graph *graph;
    const sgm_pipeline *pipeline;
    int64_t examples;
    sgm_value refused; /* (examples, 1): what the pipeline refuses */
} reading;

/* --- columns --- */

static void refuse(reading *r, sgm_value where)
{
    r->refused = sgm_value_exists(r->refused) ? sgm_logical_or(r->graph, r->refused, where) : where;
}

static sgm_value column(reading *r, const sgm__pipeline_part *part, sgm_dtype dtype)
{
    sgm_shape shape = sgm_shape_of(r->examples, 1);
    return sgm_input_value(r->graph, part->name, dtype, &shape);
}

/* A number in the type of `like`, which keeps it from becoming float32. */
static sgm_value number(reading *r, sgm_value like, double value)
{
    return sgm_filled_like(r->graph, like, value);
}

/* (x - offset) / factor in float64, then float32, as the pipeline computes it. */
static sgm_value read_number(reading *r, const sgm__pipeline_part *part, sgm_value *missing)
{
    sgm_value x = column(r, part, SGM_FLOAT64);
    *missing = sgm_is_nan(r->graph, x);
    x = sgm_select(r->graph, *missing, number(r, x, part->fill), x);
    x = sgm_subtract(r->graph, x, number(r, x, part->offset));
    x = sgm_divide(r->graph, x, number(r, x, part->factor));
    x = sgm_cast(r->graph, x, SGM_FLOAT32);
    refuse(r, sgm_logical_not(r->graph, sgm_is_finite(r->graph, x)));
    return x;
}

/* One-hot numbers, all 0 for -1; or the index of an embedding, where the last one is that of missing
 * categories. */
static sgm_value read_category(reading *r, const sgm__pipeline_part *part, sgm_value *missing)
{
    int64_t count = (int64_t)part->category_count;
    sgm_shape line = sgm_shape_of(count);
    sgm_value x = column(r, part, SGM_INT64);
    sgm_value is_outside = sgm_logical_or(r->graph, sgm_less(r->graph, x, number(r, x, -1)),
                                          sgm_greater_equal(r->graph, x, number(r, x, (double)count)));
    *missing = sgm_equal(r->graph, x, number(r, x, -1));
    refuse(r, is_outside);
    if (r->pipeline->fields[part->field].is_index) {
        sgm_value none = sgm_logical_or(r->graph, *missing, is_outside);
        double fill = part->fill >= 0 ? part->fill : (double)count;
        return sgm_cast(r->graph, sgm_select(r->graph, none, number(r, x, fill), x), SGM_FLOAT32);
    }
    x = sgm_select(r->graph, *missing, number(r, x, part->fill), x);
    sgm_value numbers = sgm_iota(r->graph, SGM_INT64, &line, 0);
    return sgm_cast(r->graph, sgm_equal(r->graph, x, numbers), SGM_FLOAT32);
}

/* A field of the prediction: its columns beside each other, in the type of the input. */
static sgm_value read_field(reading *r, int32_t field, sgm_dtype dtype)
{
    sgm_value *values = sgm__calloc(2 * r->pipeline->part_count, sizeof *values);
    int32_t count = 0;
    if (values == NULL)
        return sgm_graph_fail(r->graph, SGM_ERROR_MEMORY, "out of memory for %zu columns",
                              r->pipeline->part_count);
    for (size_t i = 0; i < r->pipeline->part_count; i++) {
        const sgm__pipeline_part *part = &r->pipeline->parts[i];
        sgm_value missing;
        if (part->field != field)
            continue;
        bool is_category = part->kind == SGM_COLUMN_CATEGORY;
        values[count++] = is_category ? read_category(r, part, &missing) : read_number(r, part, &missing);
        if (part->is_required)
            refuse(r, missing);
        if (part->has_flag)
            values[count++] = sgm_cast(r->graph, missing, SGM_FLOAT32);
    }
    sgm_value all = count > 1 ? sgm_concatenate(r->graph, values, count, 1) : values[0];
    sgm__free(values);
    return sgm_cast(r->graph, all, dtype);
}

/* --- predictions --- */

/* For each number of an example what sgm_pipeline_restore does with it: a factor, or an offset. */
static sgm_value units(reading *r, const sgm_shape *example, bool offsets)
{
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT64, example);
    double *values = tensor != NULL ? sgm_tensor_data(tensor) : NULL;
    for (int64_t i = 0; values != NULL && i < sgm_shape_elements(example); i++) {
        const sgm__pipeline_part *target = sgm__pipeline_target(r->pipeline, (size_t)i);
        values[i] = target == NULL ? !offsets : offsets ? target->offset : target->factor;
    }
    sgm_value value = tensor != NULL ? sgm_constant(r->graph, tensor) : (sgm_value){-1};
    sgm_tensor_free(tensor);
    return value;
}

/* The prediction in the units of the table, in float64 for numbers, and NaN where a column was refused. */
static sgm_value restore(reading *r, sgm_value prediction)
{
    if (sgm_graph_status(r->graph) != SGM_OK)
        return prediction;
    sgm_shape batch = sgm_value_type(r->graph, prediction).shape, rows = {.rank = batch.rank};
    sgm_shape example = sgm_shape_create(batch.rank - 1, batch.dims + 1);
    if (sgm_pipeline_classes(r->pipeline) == NULL) {
        prediction = sgm_cast(r->graph, prediction, SGM_FLOAT64);
        prediction = sgm_multiply(r->graph, prediction, units(r, &example, false));
        prediction = sgm_add(r->graph, prediction, units(r, &example, true));
    }
    for (int32_t i = 0; i < rows.rank; i++)
        rows.dims[i] = i == 0 ? r->examples : 1;
    return sgm_select(r->graph, sgm_reshape(r->graph, r->refused, &rows), number(r, prediction, NAN),
                      prediction);
}

/* --- the graph --- */

/* ONNX has one set of names for inputs, states and outputs. */
static sgm_status check_names(const sgm_graph *graph, const sgm_pipeline *pipeline)
{
    for (size_t i = 0; i < pipeline->part_count; i++)
        for (size_t k = 0; k < graph->output_count; k++) {
            const char *name = pipeline->parts[i].name;
            if (!pipeline->parts[i].is_target &&
                strcmp(sgm__graph_string(graph, graph->outputs[k].name), name) == 0)
                return sgm_fail(SGM_ERROR_ARGUMENT,
                                "the table's column '%s' is called as an output of the network is; name the "
                                "layer of that output otherwise",
                                name);
        }
    return SGM_OK;
}

sgm_graph *sgm__table_graph(const sgm_graph *prediction, const sgm_pipeline *pipeline)
{
    sgm__rebuild work;
    if (check_names(prediction, pipeline) != SGM_OK || !sgm__rebuild_begin(&work, prediction))
        return NULL;
    reading r = {.graph = work.graph, .pipeline = pipeline, .refused = {-1}};
    for (int32_t i = 0; i < (int32_t)prediction->count; i++) {
        const sgm__instruction *instruction = &prediction->instructions[i];
        int32_t field = sgm__table_field_of_instruction(prediction, instruction, pipeline);
        if (field >= 0) {
            r.examples = instruction->type.shape.dims[0];
            work.map[i] = read_field(&r, field, instruction->type.dtype);
            continue;
        }
        sgm__rebuild_map(&work, instruction);
        work.map[i] = sgm__rebuild_transcribe(&work, instruction);
    }
    sgm_value *output = &work.map[prediction->outputs[0].value.index];
    *output = restore(&r, *output);
    sgm_graph *made = sgm__rebuild_finish(&work);
    return made;
}
