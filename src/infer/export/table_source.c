/* The pipeline of a table as C: a struct for a row, and a function that predicts for rows.
 *
 * A row goes the way of data/table/pipeline_apply.c: NAME_read_row writes the numbers of each field, column
 * by column, or says what is wrong with a cell; NAME_predict_rows then calls NAME_predict, and brings
 * predictions back into the units of the table. See table_export.h. */
#include "infer/export/table_export.h"

#include <math.h>
#include <stdio.h>

#define LISTED_CHARACTERS 40 /* of a category, where some are named */

typedef struct writer {
    const sgm__table_program *program;
    const sgm__source_request *request;
    const sgm_pipeline *pipeline;
    char (*members)[SGM__SOURCE_NAME];  /* of parts: what their column is called in the struct */
    const char *fields[SGM_MAX_FIELDS]; /* of the pipeline: the parameter of NAME_predict; NULL: none */
    int32_t order[SGM_MAX_FIELDS];      /* fields in the order of these parameters */
    int32_t order_count;
    unsigned needed; /* functions that the code calls */
    sgm__text *text;
} writer;

/* --- names --- */

/* Words of C and C++, since the struct is for both, and macros of compilers and of headers that a program may
 * include before. */
static bool is_taken(const char *name)
{
    static const char words[] =
        " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
        "char32_t char8_t class co_await co_return co_yield compl concept const const_cast "
        "consteval constexpr constinit continue decltype default delete do double dynamic_cast "
        "else enum explicit export extern false float for friend goto if inline int long mutable "
        "namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
        "register reinterpret_cast requires restrict return short signed sizeof static "
        "static_assert static_cast struct switch template this thread_local throw true try "
        "typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile "
        "wchar_t while xor xor_eq EOF I INFINITY NAN NULL complex errno linux unix ";
    char word[SGM__SOURCE_NAME + 2];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(words, word) != NULL;
}

static bool is_used(const writer *w, const sgm__pipeline_part *part)
{
    return sgm__pipeline_is_input(part) &&
           w->fields[part->field] != NULL; /* a text's length only beside its tokens */
}

/* The number of the part whose member has this name, among the first `count`; -1: there is none. */
static int64_t find_member(const writer *w, const char *name, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(w->members[i], name) == 0)
            return (int64_t)i;
    return -1;
}

/* Names of columns become identifiers that differ from each other; those of targets are not needed. */
static void name_members(writer *w)
{
    for (size_t i = 0; i < w->pipeline->part_count; i++) {
        char name[SGM__SOURCE_NAME - 32];
        sgm__source_identifier(w->pipeline->parts[i].name, name, sizeof name);
        bool good = *name != '\0' && *name != '_' && !sgm__is_digit(*name) && !is_taken(name);
        char chosen[SGM__SOURCE_NAME];
        snprintf(chosen, sizeof chosen, "%s%s", good ? "" : "column_", name);
        for (int number = 2; find_member(w, chosen, i) >= 0; number++)
            snprintf(chosen, sizeof chosen, "%s%s_%d", good ? "" : "column_", name, number);
        memcpy(w->members[i], chosen, sizeof chosen);
    }
}

/* A text in a comment, which nothing in it may end. */
static void write_remark(sgm__text *text, const char *words)
{
    for (const char *c = words; *c != '\0'; c++)
        sgm__text_append_bytes(text, (unsigned char)*c < ' ' || *c == '*' || *c == '\\' ? "_" : c, 1);
}

/* "long, none, ...": the first categories of a part, and of each its beginning. */
static void list_categories(const sgm__pipeline_part *part, size_t most, sgm__text *text)
{
    for (size_t i = 0; i < part->category_count && i < most; i++)
        sgm__text_append(text, "%s%.*s", i > 0 ? ", " : "",
                         (int)sgm__utf8_prefix(part->categories[i], LISTED_CHARACTERS), part->categories[i]);
    sgm__text_append(text, "%s", part->category_count > most ? ", ..." : "");
}

/* --- what users see --- */

static void write_member(const writer *w, const sgm__pipeline_part *part, const char *member)
{
    bool is_number = part->kind == SGM_COLUMN_NUMBER;
    sgm__text remark = {0};
    sgm__text_append(&remark, "%s%s", part->name, part->kind == SGM_COLUMN_CATEGORY ? ": " : "");
    if (part->kind == SGM_COLUMN_CATEGORY)
        list_categories(part, 6, &remark);
    sgm__text_append(&remark, "%s%s",
                     part->kind == SGM_COLUMN_DATE   ? ", a date"
                     : part->kind == SGM_COLUMN_TEXT ? ", a text of any length"
                                                     : "",
                     part->is_required ? "; a value is needed" : "");
    sgm__text_append(w->text, "    %s%s; /* ", is_number ? "double " : "const char *", member);
    write_remark(w->text, remark.data != NULL ? remark.data : "");
    sgm__text_append(w->text, " */\n");
    w->text->failed = w->text->failed || remark.failed;
    sgm__text_free(&remark);
}

static void write_struct(const writer *w)
{
    sgm__source_write_template(
        w->request,
        "/* A row of the table that the network was trained on. A number without a value "
        "is NaN; a text without one\n"
        " * is NULL, empty, or one of the table's marks, such as NA. Dates are texts like "
        "2026-11-23, 2026/11/23 or\n"
        " * 23.11.2026, with a time behind them or without one. */\n"
        "typedef struct $_row {\n",
        w->text);
    for (size_t i = 0; i < w->pipeline->part_count; i++)
        if (is_used(w, &w->pipeline->parts[i]))
            write_member(w, &w->pipeline->parts[i], w->members[i]);
    sgm__source_write_template(w->request, "} $_row;\n", w->text);
}

/* "the probability of each class of species", or "price, rent: ...". */
static void write_outputs_remark(const writer *w)
{
    bool has_classes = sgm_pipeline_classes(w->pipeline) != NULL;
    sgm__text_append(w->text, has_classes ? "for each class of " : "");
    for (size_t i = 0, targets = 0; i < w->pipeline->part_count; i++)
        if (w->pipeline->parts[i].is_target) {
            sgm__text_append(w->text, targets++ > 0 ? ", " : "");
            write_remark(w->text, w->pipeline->parts[i].name);
        }
    sgm__text_append(w->text, has_classes ? "" : " in the units of the table");
}

static void write_interface(const writer *w)
{
    char line[64];
    write_struct(w);
    snprintf(line, sizeof line, "#define ~_ROWS %lld\n", (long long)w->program->rows);
    sgm__source_write_template(w->request, line, w->text);
    sgm__source_write_template(w->request, "/* What the network predicts for ~_ROWS rows: ", w->text);
    write_outputs_remark(w);
    sgm__source_write_template(
        w->request,
        ".\n"
        " * Returns 0, or the number, from 1 on, of the first row that is refused: then nothing is given, "
        "and\n"
        " * *problem, unless problem is NULL, says what is wrong with it: a text that stays. */\n"
        "int $_predict_rows(const $_row *rows, double *outputs, const char **problem);\n",
        w->text);
    sgm__table_declare_class(w->pipeline, w->request, w->text);
    sgm__text_append(w->text, "\n");
}

/* --- lists --- */

/* The number of a category, if it is the text that numbers of this value become, which has a point whatever
 * the cells of the table have. */
static bool category_number(const char *category, double *number)
{
    static const sgm__cell_format canonical = {.decimal = '.'};
    char text[32];
    return sgm__cell_read(&canonical, category, number) == SGM__CELL_NUMBER &&
           strcmp(sgm__pipeline_number_category(*number, text, sizeof text), category) == 0;
}

static bool has_numbers(const sgm__pipeline_part *part)
{
    double number;
    for (size_t i = 0; i < part->category_count; i++)
        if (category_number(part->categories[i], &number))
            return true;
    return false;
}

/* A constant of double, which may be NaN. */
static void write_double(sgm__text *text, double value)
{
    char digits[40];
    if (value != value) {
        sgm__text_append(text, "0.0 / 0.0");
        return;
    }
    sgm__number_text(value, digits, sizeof digits);
    sgm__text_append(text, "%s%s", digits, strpbrk(digits, ".e") != NULL ? "" : ".0");
}

static void write_texts(const writer *w, const char *member, const sgm__pipeline_part *part)
{
    sgm__text_append(w->text, "static const char *const %s_%s_texts[] = {\n", w->request->name, member);
    for (size_t i = 0; i < part->category_count; i++) {
        sgm__text_append(w->text, "    ");
        sgm__table_quote(part->categories[i], w->text);
        sgm__text_append(w->text, ",\n");
    }
    sgm__text_append(w->text, "};\n\n");
}

/* Beside each category its number: 5.0 and 5 are the same one. NaN is equal to no number. */
static void write_numbers(const writer *w, const char *member, const sgm__pipeline_part *part)
{
    sgm__text_append(w->text, "static const double %s_%s_numbers[] = {", w->request->name, member);
    for (size_t i = 0; i < part->category_count; i++) {
        double number;
        sgm__text_append(w->text, i > 0 ? ", " : "");
        write_double(w->text, category_number(part->categories[i], &number) ? number : NAN);
    }
    sgm__text_append(w->text, "};\n\n");
}

static unsigned needed_of_date(const sgm__pipeline_part *part)
{
    if (part->kind != SGM_COLUMN_DATE)
        return 0;
    return SGM__TABLE_DATES | (part->form == SGM_DATE_PARTS ? (unsigned)SGM__TABLE_PARTS : 0U) |
           (part->has_time ? (unsigned)SGM__TABLE_HOURS : 0U);
}

static void write_lists(writer *w)
{
    for (size_t i = 0; i < w->pipeline->part_count; i++) {
        const sgm__pipeline_part *part = &w->pipeline->parts[i];
        w->needed |= is_used(w, part) ? needed_of_date(part) : 0U;
        w->needed |= is_used(w, part) && part->kind == SGM_COLUMN_TEXT ? SGM__TABLE_TOKENS : 0U;
        if (part->kind != SGM_COLUMN_CATEGORY || !is_used(w, part))
            continue;
        write_texts(w, w->members[i], part);
        w->needed |= SGM__TABLE_TEXTS;
        if (!has_numbers(part))
            continue;
        write_numbers(w, w->members[i], part);
        w->needed |= SGM__TABLE_NUMBERS;
    }
}

/* --- a row --- */

/* A line that returns the reason why a column is refused. */
static void write_refusal(const writer *w, const char *condition, const sgm__pipeline_part *part,
                          const char *reason)
{
    sgm__text message = {0};
    sgm__text_append(&message, "column '%s': %s", part->name, reason);
    sgm__text_append(w->text, "    if (%s)\n        return ", condition);
    sgm__table_quote(message.data != NULL ? message.data : "", w->text);
    sgm__text_append(w->text, ";\n");
    w->text->failed = w->text->failed || message.failed;
    sgm__text_free(&message);
}

/* Sets `missing`. */
static void write_missing(const writer *w, const sgm__pipeline_part *part, const char *member)
{
    if (part->kind == SGM_COLUMN_NUMBER)
        sgm__text_append(w->text, "    missing = row->%s != row->%s;\n", member, member);
    else
        sgm__text_append(w->text, "    missing = %s_is_missing(row->%s);\n", w->request->name, member);
    if (part->is_required)
        write_refusal(w, "missing", part, "the value is missing, which 'impute' refuses");
}

/* Days become days until the reference. */
static void write_age(const writer *w, const sgm__pipeline_part *part)
{
    sgm__text_append(w->text, "    value = ");
    write_double(w->text, part->reference);
    sgm__text_append(w->text, " - value;\n");
}

/* One of the parts of a date that go round: two numbers of a list. */
static void write_turn(const writer *w, const sgm__pipeline_part *part, int32_t behind, const char *list,
                       const char *name)
{
    for (int32_t i = 0; i < 2; i++) {
        sgm__source_write_template(w->request, "    field_", w->text);
        sgm__text_append(w->text, "%s[%d] = %s_%s[%s][%d];\n", w->fields[part->field],
                         (int)(part->first + behind + i), w->request->name, list, name, (int)i);
    }
}

/* Days become the year. */
static void write_parts(const writer *w, const sgm__pipeline_part *part)
{
    sgm__source_write_template(w->request, "    value = $_split_date(value, &month, &weekday, &hour);\n",
                               w->text);
    write_turn(w, part, 1, "months", "month");
    write_turn(w, part, 3, "weekdays", "weekday");
    if (part->has_time)
        write_turn(w, part, 5, "hours", "hour");
}

static void write_number(const writer *w, const sgm__pipeline_part *part, const char *member)
{
    sgm__text_append(w->text, "    value = ");
    write_double(w->text, part->fill);
    sgm__text_append(w->text, ";\n");
    if (part->kind == SGM_COLUMN_DATE) {
        char condition[2 * SGM__SOURCE_NAME];
        snprintf(condition, sizeof condition, "!missing && !%s_read_date(row->%s, &value)", w->request->name,
                 member);
        write_refusal(w, condition, part, "the text is no date; correct it, or leave it empty");
    } else {
        sgm__text_append(w->text, "    if (!missing)\n        value = row->%s;\n", member);
    }
    if (part->form == SGM_DATE_AGE)
        write_age(w, part);
    else if (part->form == SGM_DATE_PARTS)
        write_parts(w, part);
    sgm__text_append(w->text, "    value = (value %s ", part->offset < 0 ? "+" : "-");
    write_double(w->text, fabs(part->offset));
    sgm__text_append(w->text, ") / ");
    write_double(w->text, part->factor);
    sgm__text_append(w->text, ";\n");
    write_refusal(w, "!(value >= -3.4028234663852886e+38 && value <= 3.4028234663852886e+38)", part,
                  "the number is too large");
    sgm__source_write_template(w->request, "    field_", w->text);
    sgm__text_append(w->text, "%s[%d] = ", w->fields[part->field], (int)part->first);
    sgm__source_write_template(w->request, "(@)(float)value;\n", w->text);
}

/* The lines that set `place` to that of the category, -1 for a missing one. */
static void write_search(const writer *w, const sgm__pipeline_part *part, const char *member)
{
    const char *name = w->request->name;
    sgm__text reason = {0};
    sgm__text_append(w->text, "    place = missing ? %d : %s_find(row->%s, %s_%s_texts, %zu);\n",
                     (int)part->fill, name, member, name, member, part->category_count);
    if (has_numbers(part))
        sgm__text_append(w->text,
                         "    if (!missing && place < 0)\n"
                         "        place = %s_find_number(row->%s, %s_%s_numbers, %zu);\n",
                         name, member, name, member, part->category_count);
    sgm__text_append(&reason, "the text is none of the %zu categories that the network knows (",
                     part->category_count);
    list_categories(part, 2, &reason);
    sgm__text_append(&reason, "); correct it, or leave it empty");
    write_refusal(w, "!missing && place < 0", part, reason.data != NULL ? reason.data : "");
    w->text->failed = w->text->failed || reason.failed;
    sgm__text_free(&reason);
}

static void write_category(const writer *w, const sgm__pipeline_part *part, const char *member)
{
    const char *field = w->fields[part->field];
    write_search(w, part, member);
    if (w->pipeline->fields[part->field].is_index)
        sgm__text_append(w->text, "    field_%s[%d] = (float)(place >= 0 ? place : %zu);\n", field,
                         (int)part->first, part->category_count);
    else
        sgm__text_append(w->text, "    if (place >= 0)\n        field_%s[%d + place] = 1;\n", field,
                         (int)part->first);
}

/* The length is left out where the network does not take it. */
static void write_text(const writer *w, const sgm__pipeline_part *part, const char *member)
{
    const char *length = w->fields[part->field + 1];
    sgm__text_append(w->text, "    ");
    if (length != NULL) {
        sgm__text_append(w->text, "field_%s[0] = ", length);
        sgm__source_write_template(w->request, "(@)", w->text);
    }
    sgm__text_append(w->text, "%s_read_text(missing ? \"\" : row->%s, field_%s, %d);\n", w->request->name,
                     member, w->fields[part->field], (int)part->width);
}

static void write_part(const writer *w, const sgm__pipeline_part *part, const char *member)
{
    sgm__text_append(w->text, "    /* ");
    write_remark(w->text, part->name);
    sgm__text_append(w->text, " */\n");
    write_missing(w, part, member);
    if (part->kind == SGM_COLUMN_CATEGORY)
        write_category(w, part, member);
    else if (part->kind == SGM_COLUMN_TEXT)
        write_text(w, part, member);
    else
        write_number(w, part, member);
    if (part->has_flag)
        sgm__text_append(w->text, "    field_%s[%d] = missing;\n", w->fields[part->field],
                         (int)(part->first + part->width - 1));
}

static bool has_kind(const writer *w, sgm_column_kind kind)
{
    for (size_t i = 0; i < w->pipeline->part_count; i++)
        if (is_used(w, &w->pipeline->parts[i]) && w->pipeline->parts[i].kind == kind)
            return true;
    return false;
}

static void write_read_row(const writer *w)
{
    sgm__source_write_template(
        w->request,
        "/* Writes the numbers of a row; what is wrong with it is returned, 0: nothing. */\n"
        "static const char *$_read_row(const $_row *row",
        w->text);
    for (int32_t i = 0; i < w->order_count; i++) {
        sgm__source_write_template(w->request, ", @ *field_", w->text);
        sgm__text_append(w->text, "%s", w->fields[w->order[i]]);
    }
    sgm__text_append(w->text, ")\n{\n    int missing;\n");
    bool has_value = has_kind(w, SGM_COLUMN_NUMBER) || has_kind(w, SGM_COLUMN_DATE);
    sgm__text_append(w->text, "%s%s", has_value ? "    double value;\n" : "",
                     has_kind(w, SGM_COLUMN_CATEGORY) ? "    long place;\n" : "");
    sgm__text_append(w->text, "%s",
                     (w->needed & SGM__TABLE_PARTS) != 0 ? "    int month, weekday, hour;\n" : "");
    for (int32_t i = 0; i < w->order_count; i++)
        sgm__text_append(w->text, "    for (int i = 0; i < %d; i++)\n        field_%s[i] = 0;\n",
                         (int)w->pipeline->fields[w->order[i]].width, w->fields[w->order[i]]);
    for (size_t i = 0; i < w->pipeline->part_count; i++)
        if (is_used(w, &w->pipeline->parts[i]))
            write_part(w, &w->pipeline->parts[i], w->members[i]);
    sgm__text_append(w->text, "    return 0;\n}\n\n");
}

/* --- rows --- */

/* The numbers of all fields for all rows lie in arrays of the function. */
static void write_arrays(const writer *w)
{
    for (int32_t i = 0; i < w->order_count; i++) {
        sgm__source_write_template(w->request, "    static @ field_", w->text);
        sgm__text_append(w->text, "%s[%lld];\n", w->fields[w->order[i]],
                         (long long)(w->pipeline->fields[w->order[i]].width * w->program->rows));
    }
    sgm__source_write_template(w->request, "    static @ predictions[~_PREDICT_OUTPUTS];\n", w->text);
}

static void write_reading(const writer *w)
{
    sgm__source_write_template(w->request,
                               "    for (int i = 0; i < ~_ROWS; i++) {\n"
                               "        const char *found = $_read_row(rows + i",
                               w->text);
    for (int32_t i = 0; i < w->order_count; i++)
        sgm__text_append(w->text, ", field_%s + i * %d", w->fields[w->order[i]],
                         (int)w->pipeline->fields[w->order[i]].width);
    sgm__text_append(w->text, ");\n"
                              "        if (found != 0) {\n"
                              "            if (problem != 0)\n"
                              "                *problem = found;\n"
                              "            return i + 1;\n"
                              "        }\n"
                              "    }\n");
}

/* Indices are in range here, but another table of the network may be smaller. */
static void write_call(const writer *w)
{
    sgm__source_write_template(w->request, "    if ($_predict(", w->text);
    for (int32_t i = 0; i < w->order_count; i++)
        sgm__text_append(w->text, "field_%s, ", w->fields[w->order[i]]);
    sgm__text_append(w->text, "predictions) != 0) {\n"
                              "        if (problem != 0)\n"
                              "            *problem = \"a category is no index of the network's table\";\n"
                              "        return 1;\n"
                              "    }\n");
}

/* A list of what sgm_pipeline_restore does with each output of a row: times a factor, plus an offset. */
static void write_units(const writer *w, const char *name, int64_t outputs, bool offsets)
{
    sgm__text_append(w->text, "    static const double %s[] = {", name);
    for (int64_t i = 0; i < outputs; i++) {
        double factor, offset;
        sgm__pipeline_units(w->pipeline, (size_t)i, &factor, &offset);
        sgm__text_append(w->text, i > 0 ? ", " : "");
        write_double(w->text, offsets ? offset : factor);
    }
    sgm__text_append(w->text, "};\n");
}

static void write_predict_rows(const writer *w)
{
    const sgm__plan *plan = w->program->plan;
    int64_t outputs = sgm_shape_elements(&plan->outputs[0].type.shape) / w->program->rows;
    bool has_classes = sgm_pipeline_classes(w->pipeline) != NULL;
    sgm__source_write_template(
        w->request, "int $_predict_rows(const $_row *rows, double *outputs, const char **problem)\n{\n",
        w->text);
    if (!has_classes) {
        write_units(w, "factors", outputs, false);
        write_units(w, "offsets", outputs, true);
    }
    write_arrays(w);
    write_reading(w);
    write_call(w);
    sgm__source_write_template(w->request, "    for (int i = 0; i < ~_PREDICT_OUTPUTS; i++)\n", w->text);
    if (has_classes)
        sgm__text_append(w->text, "        outputs[i] = predictions[i];\n");
    else
        sgm__text_append(w->text,
                         "        outputs[i] = predictions[i] * factors[i %% %lld] + offsets[i %% %lld];\n",
                         (long long)outputs, (long long)outputs);
    sgm__text_append(w->text, "    return 0;\n}\n\n");
}

void sgm__table_declare_class(const sgm_pipeline *pipeline, const sgm__source_request *request,
                              sgm__text *text)
{
    if (sgm_pipeline_classes(pipeline) != NULL)
        sgm__source_write_template(
            request,
            "/* What output number `index` of an example, from 0 on, is the class of; NULL: "
            "there are no more. */\n"
            "const char *$_class(int index);\n",
            text);
}

void sgm__table_write_class(const sgm_pipeline *pipeline, const sgm__source_request *request, sgm__text *text)
{
    const char *const *classes = sgm_pipeline_classes(pipeline);
    size_t count = 0;
    if (classes == NULL)
        return;
    sgm__source_write_template(request,
                               "const char *$_class(int index)\n"
                               "{\n"
                               "    static const char *const names[] = {\n",
                               text);
    for (; classes[count] != NULL; count++) {
        sgm__text_append(text, "        ");
        sgm__table_quote(classes[count], text);
        sgm__text_append(text, ",\n");
    }
    sgm__text_append(text, "    };\n    return index >= 0 && index < %zu ? names[index] : 0;\n}\n\n", count);
}

/* --- all of it --- */

sgm_status sgm__table_write_source(const sgm__table_program *program, const sgm__source_request *request,
                                   sgm__text *interface, sgm__text *code)
{
    writer w = {.program = program, .request = request, .pipeline = program->pipeline, .text = interface};
    w.members = sgm__calloc(w.pipeline->part_count, sizeof *w.members);
    if (w.members == NULL)
        return SGM_ERROR_MEMORY;
    for (int32_t i = 0; i < program->plan->input_count; i++) {
        int32_t field = sgm__table_field_of_input(program, i);
        w.fields[field] = program->inputs[i].name;
        w.order[w.order_count++] = field;
    }
    name_members(&w);
    write_interface(&w);
    sgm__text lists = {0};
    w.text = &lists;
    write_lists(&w);
    w.text = code;
    sgm__table_write_functions(request, w.pipeline, w.needed, code);
    sgm__text_append(code, "%s", lists.data != NULL ? lists.data : "");
    write_read_row(&w);
    write_predict_rows(&w);
    sgm__table_write_class(w.pipeline, request, code);
    bool failed = lists.failed || interface->failed || code->failed;
    sgm__text_free(&lists);
    sgm__free(w.members);
    return failed ? SGM_ERROR_MEMORY : SGM_OK;
}
