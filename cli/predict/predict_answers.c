/* `sigma predict --output answers.csv`: a table of answers with a header.
 *
 *     id,prediction,probability_cat,probability_dog
 *     17,cat,0.97313,0.02687
 *
 * First the columns of --id, copied from the input, or of pictures and the like the name of the file, then
 * what the network predicts: the class and the probability of each class; the classes of the steps, or
 * labels, of a sequence; or each number, in the units of the table, with the ends of its interval where the
 * network gives them, or behind the class that an ONNX model names. The text is kept until all examples are
 * predicted, and written at once, so that no reader finds a part of it. Cells are quoted as in RFC 4180. */
#include "data/table/pipeline.h"
#include "predict/predict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#define MAX_ID_COLUMNS 16
/* Bytes that are compressed at once. */
#define PACKED_PART ((size_t)1 << 30)

struct answers {
    sgm__text text;
    bool has_header;
    const char *file; /* that the next answer is for; NULL: answers are not for files */
    sgm_reader *ids;  /* the input once more, for the columns of --id; NULL: there are none */
    char *id_names[MAX_ID_COLUMNS];
    int32_t id_columns[MAX_ID_COLUMNS];
    size_t id_count;
};

sgm_status predict_answers_begin(prediction *p)
{
    p->answers = sgm__calloc(1, sizeof *p->answers);
    return p->answers != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

void predict_answers_free(prediction *p)
{
    answers *a = p->answers;
    if (a == NULL)
        return;
    for (size_t i = 0; i < a->id_count; i++)
        sgm__free(a->id_names[i]);
    sgm_reader_free(a->ids);
    sgm__text_free(&a->text);
    sgm__free(a);
    p->answers = NULL;
}

/* --- columns of --id --- */

/* The list of names, which commas separate. */
static sgm_status split_names(answers *a, const char *list)
{
    for (const char *name = list; name != NULL;) {
        const char *comma = strchr(name, ',');
        size_t length = comma != NULL ? (size_t)(comma - name) : strlen(name);
        if (a->id_count == MAX_ID_COLUMNS)
            return sgm_fail(SGM_ERROR_ARGUMENT, "--id: at most %d columns are copied", MAX_ID_COLUMNS);
        char *copy = sgm__format("%.*s", (int)length, name);
        if (copy == NULL)
            return SGM_ERROR_MEMORY;
        a->id_names[a->id_count++] = copy;
        name = comma != NULL ? comma + 1 : NULL;
    }
    return SGM_OK;
}

static sgm_status fail_unknown_id(const answers *a, const sgm_examples *header, const char *name)
{
    const char *near = header->count > 0 ? sgm__nearest(name, header->cells, (size_t)header->columns) : NULL;
    if (near != NULL)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "--id: %s has no column '%s'; did you mean '%s'?",
                        sgm_reader_name(a->ids), name, near);
    return sgm_fail(SGM_ERROR_NOT_FOUND, "--id: %s has no column '%s'; %s", sgm_reader_name(a->ids), name,
                    header->count > 0 ? "its first line names the columns"
                                      : "columns without a header are called by their numbers");
}

/* Where the columns are: in the header, or in a table without one at the number that is their name. */
static sgm_status find_columns(answers *a, const sgm_pipeline *pipeline)
{
    sgm_examples header = {0};
    if (pipeline->has_header)
        SGM_TRY(sgm_reader_read(a->ids, 1, &header));
    for (size_t i = 0; i < a->id_count; i++) {
        const char *name = a->id_names[i];
        char *end;
        long number = strtol(name, &end, 10);
        a->id_columns[i] = -1;
        if (!pipeline->has_header && end != name && *end == '\0' && number >= 0 && number < INT32_MAX)
            a->id_columns[i] = (int32_t)number;
        for (int32_t k = 0; k < header.columns && header.count > 0 && a->id_columns[i] < 0; k++)
            if (header.cells[k] != NULL && strcmp(header.cells[k], name) == 0)
                a->id_columns[i] = k;
        if (a->id_columns[i] < 0)
            return fail_unknown_id(a, &header, name);
    }
    return SGM_OK;
}

sgm_status predict_answers_identify(prediction *p, sgm_source *source, char separator)
{
    answers *a = p->answers;
    a->ids = source != NULL ? sgm__table_reader(source, &separator, false) : NULL;
    if (a->ids == NULL)
        return sgm__last_failure();
    SGM_TRY(split_names(a, p->id));
    SGM_TRY(sgm_reader_prepare(a->ids));
    return find_columns(a, p->pipeline);
}

/* --- cells --- */

static void append_cell(sgm__text *text, const char *cell)
{
    if (cell[strcspn(cell, ",\"\r\n")] == '\0') {
        sgm__text_append(text, "%s", cell);
        return;
    }
    sgm__text_append_bytes(text, "\"", 1);
    for (const char *c = cell; *c != '\0'; c++)
        sgm__text_append_bytes(text, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
    sgm__text_append_bytes(text, "\"", 1);
}

/* Of float32 as many digits as are needed to read the number back. A number that is none is "nan". */
static void append_number(sgm__text *text, const prediction *p, double value)
{
    char digits[64];
    sgm__text_append(text, "%s",
                     isnan(value) ? "nan"
                     : p->wide    ? sgm__number_text(value, digits, sizeof digits)
                                  : sgm__float_text((float)value, digits, sizeof digits));
}

/* The name of the target that an output of numbers predicts; NULL: it is not known. */
static const char *target_name(const prediction *p, int64_t output)
{
    for (size_t i = 0; p->pipeline != NULL && i < p->pipeline->part_count; i++)
        if (p->pipeline->parts[i].is_target && output-- == 0)
            return p->pipeline->parts[i].name;
    return NULL;
}

/* One more cell of the header: "WHAT_NAME", with the number where there is no name. */
static void append_title(sgm__text *text, const char *what, const char *name, int64_t number)
{
    char *cell =
        name != NULL ? sgm__format("%s_%s", what, name) : sgm__format("%s_%lld", what, (long long)number);
    sgm__text_append(text, "%s", text->length > 0 ? "," : "");
    if (cell != NULL)
        append_cell(text, cell);
    else
        text->failed = true;
    sgm__free(cell);
}

/* Whether the answer to an example is one class, with the probabilities of all. */
static bool has_one_class(const prediction *p, const output_row *row)
{
    return p->signature.classifies && row->labels == NULL && !predict_has_steps(p, row);
}

/* "prediction,lower,upper", of several targets with their names. */
static void append_interval_titles(const prediction *p, const output_row *row)
{
    static const char *const words[] = {"prediction", "lower", "upper"};
    sgm__text *text = &p->answers->text;
    for (int64_t i = 0; i < 3 * (row->count / 2); i++) {
        if (row->count > 2)
            append_title(text, words[i % 3], target_name(p, i / 3), i / 3);
        else
            sgm__text_append(text, "%s%s", text->length > 0 ? "," : "", words[i % 3]);
    }
}

static void append_intervals(const prediction *p, const output_row *row)
{
    sgm__text *text = &p->answers->text;
    for (int64_t i = 0; i < row->count / 2; i++) {
        double lower, upper;
        predict_interval(p, row, i, &lower, &upper);
        sgm__text_append(text, "%s", i > 0 ? "," : "");
        append_number(text, p, predict_in_units(p, i, row->outputs[i]));
        sgm__text_append(text, ",");
        append_number(text, p, lower);
        sgm__text_append(text, ",");
        append_number(text, p, upper);
    }
}

static void append_header(const prediction *p, const output_row *row)
{
    answers *a = p->answers;
    sgm__text_append(&a->text, "%s", a->file != NULL ? "file" : "");
    for (size_t i = 0; i < a->id_count; i++) {
        sgm__text_append(&a->text, "%s", i > 0 ? "," : "");
        append_cell(&a->text, a->id_names[i]);
    }
    bool is_numbers = !p->signature.classifies && row->labels == NULL;
    if (row->told) /* an ONNX model, whose answers have no columns before */
        sgm__text_append(&a->text, "class");
    if ((!is_numbers || row->count == 1) && !p->has_labels)
        sgm__text_append(&a->text, "%sprediction", a->text.length > 0 ? "," : "");
    if (has_one_class(p, row))
        for (int64_t i = 0; i < (row->count == 1 && !p->has_labels ? 2 : row->count); i++)
            append_title(&a->text, "probability", predict_class_name(p, i), i);
    if (is_numbers && p->signature.deviates)
        append_interval_titles(p, row);
    else
        for (int64_t i = 0; is_numbers && row->count > 1 && i < row->count; i++)
            append_title(&a->text, "prediction", target_name(p, i), i);
    sgm__text_append(&a->text, "\n");
    a->has_header = true;
}

/* The name of the file, or cells of the columns of --id in the next row of the input. */
static sgm_status append_ids(answers *a)
{
    sgm_examples row;
    if (a->file != NULL) {
        append_cell(&a->text, a->file);
        sgm__text_append(&a->text, ",");
    }
    if (a->ids == NULL)
        return SGM_OK;
    SGM_TRY(sgm_reader_read(a->ids, 1, &row));
    for (size_t i = 0; i < a->id_count; i++) {
        if (row.count == 0 || a->id_columns[i] >= row.columns)
            return sgm_fail(SGM_ERROR_FORMAT, "--id: %s has no column '%s' in every row",
                            sgm_reader_name(a->ids), a->id_names[i]);
        const char *cell = row.cells[a->id_columns[i]];
        append_cell(&a->text, cell != NULL ? cell : "");
        sgm__text_append(&a->text, ",");
    }
    return SGM_OK;
}

/* The class, empty for NaN, and of one output, which is that of class 1, the probability of the other one. */
static void append_class(const prediction *p, const output_row *row)
{
    sgm__text *text = &p->answers->text;
    double probability;
    int64_t class = predict_class(row->outputs, row->count, &probability);
    const char *name = predict_class_name(p, class);
    if (name != NULL)
        append_cell(text, name);
    else if (class >= 0)
        sgm__text_append(text, "%lld", (long long)class);
    sgm__text_append(text, ",");
    if (row->count == 1) {
        append_number(text, p, 1 - row->outputs[0]);
        sgm__text_append(text, ",");
    }
}

static void append_probabilities(const prediction *p, const output_row *row)
{
    for (int64_t i = 0; i < row->count; i++) {
        sgm__text_append(&p->answers->text, "%s", i > 0 ? "," : "");
        append_number(&p->answers->text, p, row->outputs[i]);
    }
}

/* Classes of the steps, or labels, in one cell with blanks between them. */
static void append_sequence(const prediction *p, const output_row *row)
{
    sgm__text *text = &p->answers->text;
    double probability;
    int64_t count = row->labels != NULL ? row->count / p->classes : row->steps;
    for (int64_t i = 0; i < count && (row->labels == NULL || row->labels[i] >= 0); i++) {
        int64_t class = row->labels != NULL
                            ? row->labels[i]
                            : predict_class(row->outputs + i * p->classes, p->classes, &probability);
        sgm__text_append(text, class >= 0 ? "%s%lld" : "%s?", i > 0 ? " " : "", (long long)class);
    }
}

sgm_status predict_answers_add(prediction *p, const output_row *row)
{
    answers *a = p->answers;
    if (!a->has_header)
        append_header(p, row);
    SGM_TRY(append_ids(a));
    if (row->class_name != NULL)
        append_cell(&a->text, row->class_name);
    else if (row->told)
        sgm__text_append(&a->text, "%lld", (long long)row->class_told);
    if (row->told)
        sgm__text_append(&a->text, ",");
    if (has_one_class(p, row)) {
        if (!p->has_labels)
            append_class(p, row);
        append_probabilities(p, row);
    } else if (p->signature.classifies || row->labels != NULL) {
        append_sequence(p, row);
    } else if (p->signature.deviates) {
        append_intervals(p, row);
    } else {
        for (int64_t i = 0; i < row->count; i++) {
            sgm__text_append(&a->text, "%s", i > 0 ? "," : "");
            append_number(&a->text, p, predict_in_units(p, i, row->outputs[i]));
        }
    }
    sgm__text_append(&a->text, "\n");
    return a->text.failed ? sgm__fail_memory(a->text.length) : SGM_OK;
}

sgm_status predict_answers_add_file(prediction *p, const char *file, const output_row *row)
{
    p->answers->file = file;
    p->done++;
    return predict_answers_add(p, row);
}

sgm_status predict_answers_add_text(prediction *p, const char *file, const char *text)
{
    answers *a = p->answers;
    if (!a->has_header)
        sgm__text_append(&a->text, "file,prediction\n");
    a->has_header = true;
    p->done++;
    append_cell(&a->text, file);
    sgm__text_append(&a->text, ",");
    append_cell(&a->text, text);
    sgm__text_append(&a->text, "\n");
    return a->text.failed ? sgm__fail_memory(a->text.length) : SGM_OK;
}

/* --- the file --- */

/* Appends the text as gzip. */
static sgm_status pack(const sgm__text *text, sgm__text *packed)
{
    z_stream stream = {0};
    unsigned char out[65536];
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return sgm__fail_memory(text->length);
    size_t done = 0;
    int result = Z_OK;
    while (result == Z_OK || result == Z_BUF_ERROR) {
        if (stream.avail_in == 0 && done < text->length) {
            size_t part = text->length - done < PACKED_PART ? text->length - done : PACKED_PART;
            stream.next_in = (unsigned char *)(uintptr_t)text->data + done;
            stream.avail_in = (uInt)part;
            done += part;
        }
        stream.next_out = out;
        stream.avail_out = sizeof out;
        result = deflate(&stream, done == text->length ? Z_FINISH : Z_NO_FLUSH);
        sgm__text_append_bytes(packed, (const char *)out, sizeof out - stream.avail_out);
    }
    deflateEnd(&stream);
    return packed->failed || result != Z_STREAM_END ? sgm__fail_memory(packed->length) : SGM_OK;
}

sgm_status predict_answers_write(prediction *p)
{
    const sgm__text *text = &p->answers->text;
    sgm__text packed = {0};
    char examples[32];
    sgm_status status = SGM_OK;
    bool is_packed = ends_with(p->output, ".gz");
    if (is_packed)
        status = pack(text, &packed);
    const sgm__text *written = is_packed ? &packed : text;
    if (status == SGM_OK)
        status = sgm__file_write_atomic(p->output, written->data, written->length);
    sgm__text_free(&packed);
    if (status == SGM_OK)
        printf("%s: %s prediction%s\n", p->output, sgm_count_text(p->done, examples, sizeof examples),
               p->done == 1 ? "" : "s");
    return status == SGM_OK ? SGM_OK : sgm__fail_within("--output");
}
