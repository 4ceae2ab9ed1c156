/* CSV tables as the configuration describes them: which columns are which field, texts that stand for
 * numbers, missing cells.
 *
 * experiment.c makes datasets of tables with table_extractor; predict.c reads cells of other tables by the
 * same rules (table_input_number), so that a network is asked in the terms it was trained in. Columns
 * count from 0. */
#include "config/arguments.h"
#include "config/experiment.h"

#include <stdlib.h>

/* Mappings from texts to numbers that the library's extractor takes. */
#define MAXIMUM_MAPPINGS                                                                                     \
    (sizeof((sgm_csv_extractor_options){.struct_size = 0}.mappings) / sizeof(sgm_value_mapping))

/* The columns "0-3" or "4", which config_checks.c has checked. */
static sgm_columns columns_of(const char *field, const char *text)
{
    char *end;
    int32_t first = (int32_t)strtol(text, &end, 10), last = first;
    if (*end == '-')
        last = (int32_t)strtol(end + 1, NULL, 10);
    return (sgm_columns){.field = field, .first = first, .last = last};
}

/* Also used by experiment.c, to name the classes of a dataset. */
const char **table_class_names(const data_config *data)
{
    const char **names = sgm__calloc(data->class_names.count + 1, sizeof *names);
    for (size_t i = 0; names != NULL && i < data->class_names.count; i++)
        names[i] = data->class_names.items[i];
    return names;
}

/* Lists of texts that stand for their numbers, from 0: names of classes in the targets' column, and texts
 * of other columns. Only the lists are owned, the mappings point to them. */
typedef struct mapped_texts {
    const char **classes;
    char **lists[MAXIMUM_MAPPINGS];
} mapped_texts;

/* Fills `mappings`, which is zeroed; *texts keeps what they point to, also on failure. */
static sgm_status map_texts(const data_config *data, mapped_texts *texts, sgm_value_mapping *mappings)
{
    size_t count = 0;
    const char *targets = text_map_get(&data->fields, "targets");
    if (data->class_names.count > 0 && targets != NULL) {
        sgm_columns columns = columns_of("targets", targets);
        texts->classes = table_class_names(data);
        if (texts->classes == NULL)
            return sgm__last_failure();
        mappings[count++] = (sgm_value_mapping){columns.first, columns.last, texts->classes, NULL};
    }
    for (size_t i = 0; i < data->texts.count && count < MAXIMUM_MAPPINGS; i++) {
        sgm_columns columns = columns_of("", data->texts.keys[i]);
        texts->lists[i] = options_split(data->texts.values[i]);
        if (texts->lists[i] == NULL)
            return sgm__last_failure();
        mappings[count++] =
            (sgm_value_mapping){columns.first, columns.last, (const char *const *)texts->lists[i], NULL};
    }
    return SGM_OK;
}

/* The extractor copies its options, so the lists are freed. A missing cell is 0, if a text for missing
 * cells is given. */
sgm_extractor *table_extractor(const data_config *data)
{
    sgm_csv_extractor_options options = {
        .struct_size = sizeof options, .has_missing = data->missing != NULL, .missing = 0};
    mapped_texts texts = {0};
    for (size_t i = 0; i < data->fields.count; i++)
        options.fields[i] = columns_of(data->fields.keys[i], data->fields.values[i]);
    sgm_extractor *extractor = NULL;
    if (map_texts(data, &texts, options.mappings) == SGM_OK) {
        sgm_reader *reader = sgm_csv_reader(
            file_source(data->csv), .separator = data->separator != NULL ? data->separator[0] : ',',
            .skip_rows = data->skip_rows != OPTION_UNSET ? (int)data->skip_rows : 0, .missing = data->missing,
            .skip_ragged = data->skip_ragged);
        extractor = sgm_csv_extractor_with(reader, &options);
    }
    for (size_t i = 0; i < MAXIMUM_MAPPINGS; i++)
        sgm__free(texts.lists[i]);
    sgm__free(texts.classes);
    return extractor;
}

/* Finds the entry of `texts` whose columns contain this column of the inputs. */
const char *table_input_texts(const data_config *data, int64_t element)
{
    const char *inputs = data != NULL ? text_map_get(&data->fields, "inputs") : NULL;
    for (size_t i = 0; inputs != NULL && i < data->texts.count; i++) {
        sgm_columns columns = columns_of("", data->texts.keys[i]);
        int64_t column = columns_of("inputs", inputs).first + element;
        if (column >= columns.first && column <= columns.last)
            return data->texts.values[i];
    }
    return NULL;
}

/* The number of a text is its place in the list. A missing cell is 0 if the table may have missing cells. */
bool table_input_number(const data_config *data, int64_t element, const char *cell, double *number)
{
    const char *texts = table_input_texts(data, element);
    *number = 0;
    if (cell == NULL)
        return data != NULL && data->missing != NULL;
    if (texts == NULL)
        return sgm__parse_double(cell, number);
    char **words = options_split(texts);
    size_t at = 0;
    while (words != NULL && words[at] != NULL && strcmp(words[at], cell) != 0)
        at++;
    bool found = words != NULL && words[at] != NULL;
    *number = (double)at;
    sgm__free(words);
    return found;
}

/* Endings of tables, without those of packed ones. */
static const char *const table_endings[] = {".csv", ".tsv", ".jsonl"};

const char *table_ending(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < sizeof table_endings / sizeof *table_endings; i++)
        for (const char *at = name; (at = strstr(at, table_endings[i])) != NULL; at++) {
            const char *behind = at + strlen(table_endings[i]);
            if (*behind == '\0' || (*behind == '.' && strchr(behind + 1, '.') == NULL))
                return at;
        }
    return NULL;
}
