/* What a pipeline consists of. Internal to src/data/table.
 *
 * pipeline.c holds one together, pipeline_fit.c fits one to a table by options that pipeline_options.c
 * checks, pipeline_json.c writes and reads it, pipeline_apply.c turns cells into numbers by it,
 * pipeline_extractor.c does so with the rows of a file; pipeline_texts.c has what concerns columns of texts.
 * Pipelines of files (pipeline_files.c), such as pictures, are fitted and applied by src/data/files. Once
 * made, a pipeline is never changed, so that several threads and extractors can share it. */
#ifndef SGM_DATA_TABLE_PIPELINE_H
#define SGM_DATA_TABLE_PIPELINE_H

#include "data/block/block.h"
#include "data/cache/key.h"
#include "data/kinds/kind.h"
#include "data/table/table.h"
#include "data/tokens/tokenizer.h"
#include <stdatomic.h>

#define SGM__LARGEST_EMBEDDING 10000

/* What is done with the cells of one column. */
typedef struct sgm__pipeline_part {
    char *name;                /* of the column, owned */
    bool is_target, is_weight; /* neither: it is an input */
    sgm_column_kind kind;      /* number, date, category or text */
    int32_t field;             /* of the pipeline; of a text that of its tokens, its length is behind */
    int32_t first, width;      /* its numbers among those of the field's examples */
    /* Missing values: an error, or `fill` (of a category its number, -1: none of them). With `has_flag` the
     * last of the numbers says whether the value is missing. */
    bool is_required, has_flag;
    bool skips_missing; /* of a target: rows without it are left out */
    double fill;
    double offset, factor;  /* numbers and dates: (sgm__pipeline_number - offset) / factor */
    sgm_date_form form;     /* of dates */
    double reference;       /* SGM_DATE_AGE: days since 1970-01-01 */
    bool has_time;          /* SGM_DATE_PARTS: the hour is among the numbers */
    int32_t embedding_size; /* that is proposed; 0: it follows from the number of categories */
    char **categories;      /* owned, in the order of their numbers, NULL at the end */
    size_t category_count;
    sgm__text_index index; /* of the categories */
} sgm__pipeline_part;

typedef struct sgm__pipeline_field {
    char name[SGM__FIELD_NAME];
    int32_t width;  /* numbers of an example */
    bool is_input;  /* else targets or weights */
    bool is_index;  /* category numbers, for an embedding */
    bool is_length; /* of the sequence in the field before, in steps */
} sgm__pipeline_field;

struct sgm_pipeline {
    atomic_int references;
    const sgm__file_kind *kind; /* NULL: the pipeline is of a table */
    void *form;                 /* of the kind, owned */
    int32_t labels; /* of a transcript, at most: the categories of the target are its characters; else 0 */
    sgm__cell_format format; /* `missing` is owned */
    bool has_header;
    sgm_tokenizer *tokenizer; /* of all texts, owned; NULL, or unused: there are no texts */
    /* Inputs first, in the order of the table, then targets, then weights; of files the target alone. */
    sgm__pipeline_part *parts;
    size_t part_count;
    sgm__pipeline_field fields[SGM_MAX_FIELDS]; /* those of inputs first */
    int32_t field_count;
};

/* --- pipeline_options.c --- */
/* The item with this name in a list of `room` items of `size` bytes, which begin with a column's name, NULL
 * behind the last one; NULL: it is not there. */
const void *sgm__pipeline_listed(const void *list, size_t room, size_t size, const char *name);
#define SGM__LISTED(list, name)                                                                              \
    sgm__pipeline_listed(list, sizeof(list) / sizeof *(list), sizeof *(list), name)
/* Fails for options that contradict each other, or name no column of the table. */
sgm_status sgm__pipeline_check_options(const sgm_table *table, const sgm_pipeline_options *options);

/* --- pipeline_dates.c --- */
typedef struct sgm__date_parts {
    double year;
    int month, weekday, hour; /* from 0; the week begins with Monday */
} sgm__date_parts;
/* Of days since 1970-01-01, of the years 0 to 9999. */
sgm__date_parts sgm__date_split(double days);
bool sgm__date_can_split(double days);
/* What turns by `step` of `steps`: sine and cosine, as the pipeline writes them. */
void sgm__date_turn(int step, int steps, float *sine_and_cosine);
/* The number that is scaled: of a date its age or year, else the value itself. */
double sgm__pipeline_number(const sgm__pipeline_part *part, double value);
/* How many numbers a date becomes, and those behind the first one. */
int32_t sgm__pipeline_date_width(const sgm__pipeline_part *part);
void sgm__pipeline_write_date(const sgm__pipeline_part *part, double days, float *numbers);

/* --- pipeline.c --- */
/* Empty; NULL without memory. */
sgm_pipeline *sgm__pipeline_create(size_t parts);
/* Sets the width of a part and puts it behind those of its field, which is made if it is new. */
sgm_status sgm__pipeline_place(sgm_pipeline *pipeline, sgm__pipeline_part *part, const char *field);
/* A field that is new; fails if there are as many as can be, or if the name is too long or there already. */
sgm__pipeline_field *sgm__pipeline_add_field(sgm_pipeline *pipeline, const char *name);
/* NULL: there is none of this name. */
sgm__pipeline_field *sgm__pipeline_find_field(sgm_pipeline *pipeline, const char *name);
void sgm__pipeline_free_categories(char **categories, size_t count);
/* Takes the list of categories, also on failure: they must differ. */
sgm_status sgm__pipeline_set_categories(sgm__pipeline_part *part, char **categories, size_t count);

bool sgm__pipeline_is_input(const sgm__pipeline_part *part);
/* What sgm_pipeline_restore does with output number `index`: times a factor, plus an offset. */
void sgm__pipeline_units(const sgm_pipeline *pipeline, size_t index, double *factor, double *offset);
/* The part of target number `index`; NULL past the last one. */
const sgm__pipeline_part *sgm__pipeline_target(const sgm_pipeline *pipeline, size_t index);

/* Adds all that it consists of. */
void sgm__pipeline_describe(const sgm_pipeline *pipeline, sgm__key *key);

/* --- pipeline_texts.c --- */
/* Of a text: what the options say, else as long as the longest text, as far as learning is quick. */
int64_t sgm__pipeline_window_of(const sgm_table_column *column, const sgm_pipeline_options *options);
/* Keeps the tokenizer of texts, so that the pipeline is all that reading a text needs. */
sgm_status sgm__pipeline_keep_tokenizer(sgm_pipeline *pipeline, const sgm_pipeline_options *options);
/* Fails since no column is an input, and proposes to read the first one of texts. */
sgm_status sgm__pipeline_fail_without_inputs(const sgm_table *table, const sgm_pipeline_options *options);
/* The field of a text's length is called as that of its tokens, with this behind. */
#define SGM__LENGTH_OF "_length"
/* Gives a part of texts its two fields, of `window` tokens and of their length. */
sgm_status sgm__pipeline_place_text(sgm_pipeline *pipeline, sgm__pipeline_part *part, const char *field,
                                    int64_t window);
/* What is said of a missing value that is required. */
#define SGM__MISSING_INPUT "the value is missing, which 'impute' refuses; leave the row out"
/* The tokens and the length of the text in a cell; a missing one has none. */
sgm_status sgm__pipeline_write_text(const sgm_pipeline *pipeline, const sgm__pipeline_part *part,
                                    const char *cell, float *tokens, float *length);

/* --- pipeline_files.c --- */
/* Fails for a pipeline of files. */
sgm_status sgm__pipeline_expect_table(const sgm_pipeline *pipeline);
/* A pipeline of files, whose classes are to be named then. What the form owns is taken also on failure; the
 * form itself is copied. */
sgm_pipeline *sgm__pipeline_of_files(const sgm__file_kind *kind, void *form);
/* `classes` are taken also on failure, and as sgm__pipeline_set_categories has them. */
sgm_status sgm__pipeline_set_classes(sgm_pipeline *pipeline, char **classes, size_t count);
/* The same with characters, of which a transcript has `labels` at most; the form must be of sequences. */
sgm_status sgm__pipeline_set_characters(sgm_pipeline *pipeline, char **characters, size_t count,
                                        int32_t labels);
/* Writes the inputs of a file, and how many of their steps count where that is a field. */
sgm_status sgm__pipeline_read_file(const sgm_pipeline *pipeline, const sgm_file *file, sgm__bytes *memory,
                                   sgm__builder *builder);
/* The shape of an example of field number `index`. */
sgm_shape sgm__pipeline_field_shape(const sgm_pipeline *pipeline, int32_t index);

/* --- pipeline_extractor.c --- */
/* As sgm_pipeline_extractor, of a source, which is taken also on failure; NULL passes a failure on. */
sgm_extractor *sgm__pipeline_extractor_of(sgm_pipeline *pipeline, sgm_source *source,
                                          const sgm_pipeline_extractor_options *options);

/* How a number is written as a category; returns `text`. */
char *sgm__pipeline_number_category(double number, char *text, size_t size);

/* --- pipeline_apply.c --- */
/* Whether a cell is one of the part's categories, as it stands or as the same number; *at becomes its place.
 */
bool sgm__pipeline_find_category(const sgm__cell_format *format, const sgm__pipeline_part *part,
                                 const char *cell, size_t length, size_t *at);
/* Where the parts' cells are in a row: columns[i] belongs to part i. Fails if a column is missing; `name` is
 * the file's. With `inputs_only` columns of targets may be missing. */
sgm_status sgm__pipeline_find(const sgm_pipeline *pipeline, const char *name, const char *const *names,
                              size_t count, bool inputs_only, int32_t *columns);
/* How rows are treated. */
typedef struct sgm__pipeline_rows {
    const int32_t *columns; /* from sgm__pipeline_find */
    bool inputs_only, ignore_unknown;
    bool are_numbered; /* "row 3" in messages in place of "FILE: line 3" */
    const char *name;  /* of the file, for messages */
} sgm__pipeline_rows;
/* Adds a field for each of the pipeline's (with inputs_only: of inputs alone) to an empty builder. */
sgm_status sgm__pipeline_begin(const sgm_pipeline *pipeline, bool inputs_only, sgm__builder *builder);
/* Appends rows to the builder. */
sgm_status sgm__pipeline_append(const sgm_pipeline *pipeline, const sgm__pipeline_rows *how,
                                const sgm__csv_rows *rows, sgm__builder *builder);
/* As sgm_pipeline_apply. With `ignore_unknown` categories that were in no row that was fitted are missing. */
sgm_block *sgm__pipeline_apply(const sgm_pipeline *pipeline, const char *const *names, size_t count,
                               const char *const *cells, int64_t rows, bool ignore_unknown);

#endif
