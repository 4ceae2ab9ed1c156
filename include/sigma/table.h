/* Tables: what the columns of a file hold, by their names.
 *
 *     sgm_table *pets = sgm_table_open("pets.csv");
 *     for (size_t i = 0; i < sgm_table_columns(pets); i++)
 *         printf("%s: %s\n", sgm_table_column_at(pets, i)->name,
 *                sgm_column_kind_name(sgm_table_column_at(pets, i)->kind));
 *     sgm_table_free(pets);
 *
 * Opening reads the whole file once, piece by piece, and keeps what describes it, not the rows: memory is
 * bounded by the number of columns and of threads. Nothing is guessed that the cells do not say: a column
 * holds numbers if all its cells that have a value are numbers. */
#ifndef SIGMA_TABLE_H
#define SIGMA_TABLE_H

#include <sigma/split.h>
#include <sigma/text.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Different values that are counted in a column; one with more of them has no categories. */
#define SGM_MAX_CATEGORIES 1000

/* The most columns that can be predicted together. */
#define SGM_MAX_TARGETS 8

/* What a column holds. */
typedef enum sgm_column_kind {
    SGM_COLUMN_EMPTY,  /* no cell has a value */
    SGM_COLUMN_NUMBER, /* all values are finite numbers */
    SGM_COLUMN_DATE, /* all values are dates: 2026-11-23, 2026/11/23, 23.11.2026, each with a time or without
                      */
    SGM_COLUMN_CATEGORY, /* texts of which there are few: at most 20 different ones, or no more than half as
                          * many as values, up to SGM_MAX_CATEGORIES */
    SGM_COLUMN_TEXT      /* other texts */
} sgm_column_kind;
/* "number" and so on. */
SGM_API const char *sgm_column_kind_name(sgm_column_kind kind);

/* A text of a column, and how many cells have it. */
typedef struct sgm_category {
    const char *text; /* as it stands in the cells */
    int64_t count;    /* cells that have it */
} sgm_category;

/* What a table knows of a column; the table's. */
typedef struct sgm_table_column {
    const char *name;     /* of the header; its number from 0 where there is none */
    sgm_column_kind kind; /* what it holds */
    int64_t missing;      /* cells without a value */
    /* Of the values of a number column, and of a date column as days since 1970-01-01; NaN for other kinds.
     * The standard deviation divides by the number of values, as preprocessing has it. */
    double minimum, maximum, mean, standard_deviation;
    int64_t longest; /* bytes of the longest text that is neither a number nor a date; 0: there is none */
    /* The different values, the most frequent first, then by their bytes, of every kind of column. None where
     * there are more than SGM_MAX_CATEGORIES. */
    const sgm_category *categories;
    size_t category_count; /* how many */
    /* The first text in a column that otherwise holds numbers, or dates: in at least nine of ten values.
     * NULL: none. */
    const char *exception;
    int64_t exception_line; /* in the file */
    const char *first_text; /* the first cell that is neither a number nor a date; NULL: there is none */
} sgm_table_column;

/* Whether the first line names the columns. */
typedef enum sgm_header {
    SGM_HEADER_FOUND,     /* it does unless one of its cells is a number or a date */
    SGM_HEADER_NONE,      /* it is a row like the others, and columns are called by their numbers from 0 */
    SGM_HEADER_FIRST_LINE /* it does */
} sgm_header;

typedef struct sgm_table_options {
    size_t struct_size;
    char separator; /* default: a tab for .tsv, else that of , ; tab and | which the first line has most */
    char decimal;   /* in numbers: '.', the default, or ',' */
    const char *missing; /* a cell with this text has no value, beside empty ones and those with one of
                          * NA N/A n/a #N/A <NA> NaN nan NULL null None ? */
    sgm_header header;   /* default: found */
    bool skip_ragged;    /* rows with another number of cells are left out and logged, instead of an error */
    /* Rows without a value in one of these columns are left out and counted: there are no such rows for all
     * that is made of the table. A pipeline whose targets they are leaves them out of other files, too. */
    const char *skip_missing[SGM_MAX_TARGETS];
    /* Minimum, maximum, mean, standard deviation, histogram, and what a pipeline learns of them, are of one
     * part of the rows, or with `other_parts` of all others: a network that is measured on the rest has then
     * learnt nothing of it. Kinds, categories and missing values are those of all rows. NULL: of all. */
    const sgm_split *split;
    int32_t part;     /* of the split, from 0 */
    bool other_parts; /* all but that part */
    int32_t threads;  /* that read a file of text; default: one per processor, at most 16. What is found is
                       * the same, to the bit, for any number. */
} SGM_BY_NAME sgm_table_options;

/* What describes a file of rows. */
typedef struct sgm_table sgm_table;
/* Reads a file of text: .csv, .tsv and the like, or .jsonl (sgm_jsonl_reader), unpacked if its name says that
 * it is packed (.csv.gz). The path may be an address, https://example.org/pets.csv#sha256=DIGITS, which is
 * fetched once into the cache; the checksum may be missing. The caller frees it; NULL on failure: a row with
 * another number of cells than the first, a quote that is not closed, two columns of one name. */
#define sgm_table_open(...) SGM_WITH_OPTIONS(sgm_table_open_with, sgm_table_options, __VA_ARGS__)
SGM_API sgm_table *sgm_table_open_with(const char *path, const sgm_table_options *options);
SGM_API void sgm_table_free(sgm_table *table);
/* How many rows there are, without the header. */
SGM_API int64_t sgm_table_rows(const sgm_table *table);
/* How many rows `skip_missing` has left out, which are not among the others. */
SGM_API int64_t sgm_table_skipped(const sgm_table *table);
/* Whether the first line names the columns. */
SGM_API bool sgm_table_has_header(const sgm_table *table);
/* The character between cells; 0: an object a line. */
SGM_API char sgm_table_separator(const sgm_table *table);
/* How many columns there are. */
SGM_API size_t sgm_table_columns(const sgm_table *table);
/* Lives as long as the table; NULL past the last column. */
SGM_API const sgm_table_column *sgm_table_column_at(const sgm_table *table, size_t index);
/* The number of the column with this name; -1 and an error with the nearest name if there is none. */
SGM_API int64_t sgm_table_find_column(const sgm_table *table, const char *name);
/* How many values of a number or date column lie in each of `count` parts of equal width from minimum to
 * maximum. Of more than 65,536 values evenly spaced rows are counted, so that counts tell the shape, not the
 * sum. Other kinds of columns are errors. */
SGM_API sgm_status sgm_table_histogram(const sgm_table *table, size_t column, int64_t *counts, size_t count);

/* Splits the rows of the table's file, which is read again, by one of its columns. Numbers and dates are keys
 * as they are, texts one key for each different one. A cell without a value is an error that names its line;
 * of a stratified split it is a key of its own. `column` may be NULL for a random split. */
#define sgm_table_split(...) SGM_WITH_OPTIONS_2(sgm_table_split_with, sgm_split_options, __VA_ARGS__)
SGM_API sgm_split *sgm_table_split_with(const sgm_table *table, const char *column,
                                        const sgm_split_options *options);

/* --- pipelines: from the cells of a row to the numbers that a network takes, and back ---
 *
 *     sgm_pipeline *pipeline = sgm_pipeline_fit(pets, .targets = {"species"}, .drop = {"id", "name"});
 *     sgm_dataset *data = sgm_dataset_create("pets", .extractor = sgm_pipeline_extractor(pipeline,
 * "pets.csv"));
 *
 * A pipeline is fitted to a table once and then applied to each row alike, of that table or of another one:
 * columns are found by their names, in any order, and those that it does not know are passed over. Its fields
 * are "inputs", "targets", "weights" if a column is named so, and one for each column of `embedding`. In
 * "inputs", columns stand in the table's order:
 *
 *     number, date    one number: (value - offset) / factor, by which `scale` brings columns to one size; of
 *                     a date, `dates` may want its age or its parts
 *     category        as many numbers as there are categories, one of which is 1 (one-hot), in the order of
 *                     their bytes, those of `categorical` in the order of their numbers
 *     text, empty     left out, with a warning; texts of `text_columns` are fields of their own, see there
 *
 * A single category is a target as one-hot classes; numbers are targets scaled as inputs are, and
 * sgm_pipeline_restore turns predictions back. Pipelines of pictures are made by sigma/picture.h. */

/* The most columns in a list of options. */
#define SGM_MAX_LISTED 64 /* columns in a list of options */
/* The most columns of texts, each of which has two fields. */
#define SGM_MAX_TEXTS 3

/* What offset and factor of a column of numbers are. */
typedef enum sgm_scale {
    SGM_SCALE_STANDARD, /* mean and standard deviation */
    SGM_SCALE_MIN_MAX,  /* minimum and range, which gives 0 to 1 */
    SGM_SCALE_ROBUST,   /* median and distance of the quartiles, which outliers do not move */
    SGM_SCALE_NONE      /* the numbers as they are */
} sgm_scale;
/* What a cell without a value becomes. */
typedef enum sgm_impute {
    SGM_IMPUTE_MEAN,          /* the mean of the column; no category: all its numbers are 0 */
    SGM_IMPUTE_MEDIAN,        /* the median likewise */
    SGM_IMPUTE_MOST_FREQUENT, /* the most frequent value or category */
    SGM_IMPUTE_FLAG,          /* the mean, or no category, and one more number behind, which is 1 then */
    SGM_IMPUTE_REFUSE         /* an error with line and column */
} sgm_impute;

/* What a date becomes. Where dates are inputs only as distances, days are enough: scaled, they differ from
 * ages by their sign alone, and need no day that they count from. So days are the default. */
typedef enum sgm_date_form {
    SGM_DATE_DAYS, /* one number, days since 1970-01-01 */
    SGM_DATE_AGE,  /* one number, days until a reference date, which the pipeline keeps */
    SGM_DATE_PARTS /* the year, which is scaled, and sine and cosine of month and weekday, as both go round;
                    * of the hour, too, where a row has a time */
} sgm_date_form;

/* How the numbers of one column are scaled. */
typedef struct sgm_column_scale {
    const char *column; /* by its name */
    sgm_scale scale;    /* instead of that of all columns */
} sgm_column_scale;
/* What cells of one column without a value become. */
typedef struct sgm_column_impute {
    const char *column; /* by its name */
    sgm_impute impute;  /* instead of that of all columns */
} sgm_column_impute;
/* What the dates of one column become. */
typedef struct sgm_column_dates {
    const char *column; /* by its name */
    sgm_date_form form; /* days, an age or parts */
    const char *until; /* of an age: the reference date, as a table has it; NULL: the newest of the column, in
                        * the rows that are measured (sgm_table_options) */
} sgm_column_dates;
/* A column of categories that is a field of its own. */
typedef struct sgm_column_embedding {
    const char *column; /* by its name */
    int32_t size; /* numbers of the embedding that sgm_pipeline_network proposes; 0: half as many as there are
                   * categories, up to 50 */
} sgm_column_embedding;

/* Lists are of columns' names, or begin with them. Values of medians and quartiles, and those of years, are
 * of at most 65,536 evenly spaced rows. */
typedef struct sgm_pipeline_options {
    size_t struct_size;
    const char *targets[SGM_MAX_TARGETS]; /* what is predicted: one category, or numbers; required */
    const char *drop[SGM_MAX_LISTED];     /* what is not used */
    /* A column of numbers that is a field of its own, "weights": how much the cost of each row counts. They
     * are divided by their mean in the rows that are measured. NULL: all rows count alike. */
    const char *weights;
    const char *categorical[SGM_MAX_LISTED]; /* numbers that are kinds and not sizes, such as a postal code */
    /* Categories that are fields of their own, called as their column, for an embedding: their numbers from
     * 0, and one more for missing and unknown ones. What is no ASCII letter, digit, '_' or '-' in the name
     * becomes '_' in that of the field, as input layers are named after fields. */
    sgm_column_embedding embedding[SGM_MAX_FIELDS - 2];
    /* Columns that are read as texts, whatever they hold. Each becomes two fields: one of the column's name
     * as with `embedding`, of `window` numbers, the tokens of the text and behind them the number of tokens
     * of the tokenizer (256 for bytes); and NAME_length, how many of them are the text's. What is longer than
     * the window is cut; a text that is missing has the length 0. */
    const char *text_columns[SGM_MAX_TEXTS];
    const sgm_tokenizer *tokenizer; /* of all texts; the pipeline keeps a copy. NULL: each byte is a token */
    int64_t window;                 /* default: bytes of the longest text of the column, at most 512 */
    sgm_scale scale;                /* of numbers and dates that `scales` does not name; default: standard */
    sgm_impute impute;              /* of inputs that `imputes` does not name; default: the mean */
    sgm_column_scale scales[SGM_MAX_LISTED];   /* of single columns */
    sgm_column_impute imputes[SGM_MAX_LISTED]; /* of single columns */
    sgm_column_dates dates[SGM_MAX_LISTED];    /* of single columns; days of the others */
} SGM_BY_NAME sgm_pipeline_options;

/* What was learnt of a table's columns, or of pictures; reference-counted. Any thread. */
typedef struct sgm_pipeline sgm_pipeline;
/* The caller frees the pipeline, which does not need the table any more. */
#define sgm_pipeline_fit(...) SGM_WITH_OPTIONS(sgm_pipeline_fit_with, sgm_pipeline_options, __VA_ARGS__)
SGM_API sgm_pipeline *sgm_pipeline_fit_with(const sgm_table *table, const sgm_pipeline_options *options);
/* One more reference, which sgm_pipeline_free gives back; extractors and datasets keep references. */
SGM_API sgm_pipeline *sgm_pipeline_retain(sgm_pipeline *pipeline);
SGM_API void sgm_pipeline_free(sgm_pipeline *pipeline);
/* All that was fitted, as JSON that can be read and kept; sgm_string_free. NULL and an error for names and
 * categories that are not UTF-8. */
SGM_API char *sgm_pipeline_json(const sgm_pipeline *pipeline);
/* NULL and an error that names the member if the text is none that sgm_pipeline_json made. */
SGM_API sgm_pipeline *sgm_pipeline_parse(const char *json);
/* How many numbers of a field an example has; 0: there is no such field. */
SGM_API int64_t sgm_pipeline_width(const sgm_pipeline *pipeline, const char *field);
/* A network for the pipeline, to begin with: two dense layers of relu, an embedding for each field of its
 * own, convolutions for texts, and the cost that suits the targets; of pictures convolutions and one dense
 * layer. sgm_string_free. */
SGM_API char *sgm_pipeline_network(const sgm_pipeline *pipeline);
/* The names of the target's classes, NULL at the end; NULL: the targets are numbers, or there
 * are none. */
SGM_API const char *const *sgm_pipeline_classes(const sgm_pipeline *pipeline);
/* The columns that are read, inputs in the order of their numbers, then targets, then weights; NULL past the
 * last one. Of
 * pictures "class" alone. */
SGM_API const char *sgm_pipeline_column(const sgm_pipeline *pipeline, size_t index);
/* A prediction of the target number `index`, in the units of the table. Classes stay as they are. Behind the
 * targets `index` goes on with standard deviations of theirs (gaussian_nll), which have no offset. */
SGM_API double sgm_pipeline_restore(const sgm_pipeline *pipeline, size_t index, double prediction);

typedef struct sgm_pipeline_extractor_options {
    size_t struct_size;
    bool inputs_only;    /* no fields "targets" and "weights": the file need not have the columns */
    bool ignore_unknown; /* categories that were in no row that was fitted are treated as missing; default: an
                            error */
    char separator;      /* default: found as sgm_table_open does */
    bool skip_ragged;    /* as in sgm_table_options */
    int32_t threads;     /* as in sgm_table_options */
} SGM_BY_NAME sgm_pipeline_extractor_options;
/* Reads the rows of a file. Has the table a header, so must the file. */
#define sgm_pipeline_extractor(...)                                                                          \
    SGM_WITH_OPTIONS_2(sgm_pipeline_extractor_with, sgm_pipeline_extractor_options, __VA_ARGS__)
SGM_API sgm_extractor *sgm_pipeline_extractor_with(sgm_pipeline *pipeline, const char *path,
                                                   const sgm_pipeline_extractor_options *options);
/* Gives a dataset of extractors above the pipeline that its rows went through: its classes get their names,
 * and checkpoints of trainers that train on it keep the pipeline with the network. Once, before others use
 * the dataset; the pipeline stays alive as long as the dataset. */
SGM_API sgm_status sgm_dataset_set_pipeline(sgm_dataset *dataset, sgm_pipeline *pipeline);
/* The dataset's, or a view's base's; it stays the dataset's. NULL: there is none. */
SGM_API sgm_pipeline *sgm_dataset_get_pipeline(const sgm_dataset *dataset);
/* The inputs of `rows` rows that are in memory: `count` names, and as many cells for each row, NULL where
 * there is no value. The caller frees the block. Names of columns that are not read are passed over. */
SGM_API sgm_block *sgm_pipeline_apply(const sgm_pipeline *pipeline, const char *const *names, size_t count,
                                      const char *const *cells, int64_t rows);

#ifdef __cplusplus
}
#endif
#endif
