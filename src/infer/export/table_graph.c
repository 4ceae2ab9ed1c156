/* The pipeline of a table as operations in front of a prediction and behind it, for runtimes that run graphs.
 *
 * The new graph takes a column each, (examples, 1), under the column's name: numbers as float64, dates as
 * days since 1970-01-01 in float64, NaN where there is no value; categories as int64, their numbers in the
 * pipeline's lists, -1 where there is no value. Of a text, (examples, window), int64, it takes the tokens,
 * and behind them the number that no token has, which fills up the window. A graph cannot fail with a
 * message: what the pipeline refuses (a number beyond float32, a category that is none, a missing value that
 * is needed) makes the predictions of its example NaN. See table_export.h. */
#include "graph/rebuild.h"
#include "infer/export/table_export.h"

#include <math.h>

/* Numbers that a column can become, without a flag: those of a date with its hour. */
#define MAXIMUM_OF_PART 7

/* What the columns of a graph have become. */
typedef struct reading {
    sgm_graph *graph;
    const sgm_pipeline *pipeline;
    int64_t examples;
    sgm_value refused; /* (examples, 1): what the pipeline refuses */
    /* of texts, by the field of their tokens: (examples, window); below 0: not there yet */
    sgm_value texts[SGM_MAX_FIELDS];
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
static sgm_value scaled(reading *r, const sgm__pipeline_part *part, sgm_value x)
{
    x = sgm_subtract(r->graph, x, number(r, x, part->offset));
    x = sgm_divide(r->graph, x, number(r, x, part->factor));
    x = sgm_cast(r->graph, x, SGM_FLOAT32);
    refuse(r, sgm_logical_not(r->graph, sgm_is_finite(r->graph, x)));
    return x;
}

/* floor(x / y) in float64. */
static sgm_value parts_of(reading *r, sgm_value x, double y)
{
    return sgm_floor(r->graph, sgm_divide(r->graph, x, number(r, x, y)));
}

/* a - b, or a + b, of whole numbers in float64. */
static sgm_value minus(reading *r, sgm_value a, sgm_value b)
{
    return sgm_subtract(r->graph, a, b);
}

static sgm_value plus(reading *r, sgm_value a, sgm_value b)
{
    return sgm_add(r->graph, a, b);
}

static sgm_value times(reading *r, sgm_value x, double y)
{
    return sgm_multiply(r->graph, x, number(r, x, y));
}

/* Sine and cosine of a place on a circle of `steps`, as float32. */
static void read_turn(reading *r, sgm_value step, double steps, sgm_value *values)
{
    sgm_value turn = times(r, minus(r, step, times(r, parts_of(r, step, steps), steps)),
                           2 * 3.14159265358979323846 / steps);
    turn = sgm_cast(r->graph, turn, SGM_FLOAT32);
    values[0] = sgm_sin(r->graph, turn);
    values[1] = sgm_cos(r->graph, turn);
}

/* The arithmetic of data/table/pipeline_dates.c, in float64, where all these numbers are exact. `x` is days.
 */
static int32_t read_parts(reading *r, const sgm__pipeline_part *part, sgm_value x, sgm_value *values)
{
    sgm_value days = sgm_floor(r->graph, x), shifted = plus(r, days, number(r, days, 719468));
    sgm_value era = parts_of(r, shifted, 146097), of_era = minus(r, shifted, times(r, era, 146097));
    sgm_value leaps =
        minus(r, plus(r, minus(r, of_era, parts_of(r, of_era, 1460)), parts_of(r, of_era, 36524)),
              parts_of(r, of_era, 146096));
    sgm_value year = parts_of(r, leaps, 365);
    sgm_value of_year = minus(
        r, of_era, plus(r, times(r, year, 365), minus(r, parts_of(r, year, 4), parts_of(r, year, 100))));
    sgm_value march = parts_of(r, plus(r, times(r, of_year, 5), number(r, of_year, 2)), 153);
    sgm_value next =
        sgm_cast(r->graph, sgm_greater_equal(r->graph, march, number(r, march, 10)), SGM_FLOAT64);
    values[0] = scaled(r, part, plus(r, plus(r, times(r, era, 400), year), next));
    read_turn(r, plus(r, march, number(r, march, 2)), 12, values + 1);
    read_turn(r, plus(r, days, number(r, days, 3)), 7, values + 3);
    if (!part->has_time)
        return 5;
    sgm_value hour = times(r, minus(r, x, days), 24);
    read_turn(r, sgm_floor(r->graph, plus(r, hour, number(r, hour, 1e-7))), 24, values + 5);
    return MAXIMUM_OF_PART;
}

/* A number, or those of a date; returns how many. */
static int32_t read_number(reading *r, const sgm__pipeline_part *part, sgm_value *missing, sgm_value *values)
{
    sgm_value x = column(r, part, SGM_FLOAT64);
    *missing = sgm_is_nan(r->graph, x);
    x = sgm_select(r->graph, *missing, number(r, x, part->fill), x);
    if (part->form == SGM_DATE_PARTS)
        return read_parts(r, part, x, values);
    if (part->form == SGM_DATE_AGE)
        x = sgm_subtract(r->graph, number(r, x, part->reference), x);
    values[0] = scaled(r, part, x);
    return 1;
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

/* The tokens of the text in a field, or their number. Tokens that are none are refused, and become the one
 * that fills up. */
static sgm_value read_text(reading *r, const sgm__pipeline_part *part, bool is_length)
{
    sgm_value *text = &r->texts[part->field];
    sgm_shape shape = sgm_shape_of(r->examples, part->width);
    double vocabulary = (double)sgm_tokenizer_vocabulary(r->pipeline->tokenizer);
    bool is_new = !sgm_value_exists(*text);
    if (is_new)
        *text = sgm_input_value(r->graph, part->name, SGM_INT64, &shape);
    sgm_value x = *text, below = sgm_less(r->graph, x, number(r, x, 0)),
              is_token = sgm_less(r->graph, x, number(r, x, vocabulary));
    sgm_value length =
        sgm_reduce_sum(r->graph, sgm_cast(r->graph, is_token, SGM_FLOAT32), (const int32_t[]){1}, 1, true);
    if (is_new) {
        sgm_value above = sgm_greater_equal(r->graph, x, number(r, x, vocabulary + 1));
        sgm_value wrong = sgm_cast(r->graph, sgm_logical_or(r->graph, below, above), SGM_FLOAT32);
        wrong = sgm_reduce_sum(r->graph, wrong, (const int32_t[]){1}, 1, true);
        refuse(r, sgm_greater(r->graph, wrong, number(r, wrong, 0)));
    }
    if (is_new && part->is_required)
        refuse(r, sgm_equal(r->graph, length, number(r, length, 0)));
    sgm_value good = sgm_logical_and(r->graph, is_token, sgm_logical_not(r->graph, below));
    return is_length
               ? length
               : sgm_cast(r->graph, sgm_select(r->graph, good, x, number(r, x, vocabulary)), SGM_FLOAT32);
}

/* The text that a field is of; NULL: none. */
static const sgm__pipeline_part *text_of(const sgm_pipeline *pipeline, int32_t field)
{
    for (size_t i = 0; i < pipeline->part_count; i++)
        if (pipeline->parts[i].kind == SGM_COLUMN_TEXT &&
            pipeline->parts[i].field == field - pipeline->fields[field].is_length)
            return &pipeline->parts[i];
    return NULL;
}

/* A field of the prediction: its columns beside each other, in the type of the input. */
static sgm_value read_field(reading *r, int32_t field, sgm_dtype dtype)
{
    sgm_value *values = sgm__calloc((MAXIMUM_OF_PART + 1) * r->pipeline->part_count, sizeof *values);
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
        if (is_category)
            values[count++] = read_category(r, part, &missing);
        else
            count += read_number(r, part, &missing, values + count);
        if (part->is_required)
            refuse(r, missing);
        if (part->has_flag)
            values[count++] = sgm_cast(r->graph, missing, SGM_FLOAT32);
    }
    sgm_value all = count > 1 ? sgm_concatenate(r->graph, values, count, 1) : values[0];
    sgm__free(values);
    return sgm_cast(r->graph, all, dtype);
}

/* The same of any field; the length of a text has the shape of the input, too. */
static sgm_value read_any_field(reading *r, int32_t field, const sgm_type *type)
{
    const sgm__pipeline_part *text = text_of(r->pipeline, field);
    if (text == NULL)
        return read_field(r, field, type->dtype);
    sgm_value x = read_text(r, text, r->pipeline->fields[field].is_length);
    return sgm_cast(r->graph, sgm_reshape(r->graph, x, &type->shape), type->dtype);
}

/* --- predictions --- */

/* For each number of an example what sgm_pipeline_restore does with it: a factor, or an offset. */
static sgm_value units(reading *r, const sgm_shape *example, bool offsets)
{
    sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT64, example);
    double *values = tensor != NULL ? sgm_tensor_data(tensor) : NULL;
    for (int64_t i = 0; values != NULL && i < sgm_shape_elements(example); i++) {
        double factor, offset;
        sgm__pipeline_units(r->pipeline, (size_t)i, &factor, &offset);
        values[i] = offsets ? offset : factor;
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
            if (sgm__pipeline_is_input(&pipeline->parts[i]) &&
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
    for (int32_t i = 0; i < SGM_MAX_FIELDS; i++)
        r.texts[i] = (sgm_value){-1};
    for (int32_t i = 0; i < (int32_t)prediction->count; i++) {
        const sgm__instruction *instruction = &prediction->instructions[i];
        int32_t field = sgm__table_field_of_instruction(prediction, instruction, pipeline);
        if (field >= 0) {
            r.examples = instruction->type.shape.dims[0];
            work.map[i] = read_any_field(&r, field, &instruction->type);
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
