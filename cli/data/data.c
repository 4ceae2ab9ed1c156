/* `sigma data`: examples, fields and numbers of a dataset, the columns of a table (data_table.c), the arrays
 * of a file (data_arrays.c), or a folder of files (data_files.c).
 *
 * Goes over all blocks of the dataset once for a summary (range, mean, classes of each field), then prints
 * the first examples: small arrays of rank 2 as pictures of characters, others as numbers. With a
 * configuration all its datasets are shown, and the training data also as `augment` changes them. Nothing
 * is trained or changed. */
#include "data/data.h"
#include "config/experiment.h"
#include "data/table/table.h"

#include <math.h>
#include <stdio.h>

/* Numbers of an example that are printed. */
#define SHOWN_NUMBERS 10
/* Longer vectors are not counted as classes. */
#define MAX_CLASSES 1000

static const char usage_text[] =
    "Usage: sigma data NAME|FILE.yaml [--count N]\n"
    "       sigma data CLASSES/ | FILE.npz | FILE.npy\n"
    "       sigma data FILE.csv [--separator S] [--decimal S] [--missing TEXT] [--header yes|no]\n"
    "                      [--skip-ragged] [--skip-missing COLUMN]\n"
    "       sigma data --clear-cache\n\n"
    "Shows a ready-made dataset ('sigma info' lists them), or all data of a configuration: examples,\n"
    "fields with their shapes and ranges, how often each class is there, the first examples, and how\n"
    "'augment' of the configuration changes them.\n\n"
    "Of a table (.csv, .tsv or .jsonl, also packed, such as .csv.gz) it shows each column: its name, whether "
    "it\n"
    "holds numbers, dates, categories or other texts, how many cells have no value, and how the values\n"
    "are distributed.\n\n"
    "Of NumPy's arrays (.npz, .npy, FILE.npz:NAME) it shows the types, shapes, ranges and how many numbers\n"
    "are not finite, and how those are distributed that are one for each example.\n\n"
    "Of a folder that has a folder of pictures (PNG, JPEG) or sounds (WAV, FLAC) for each class it shows\n"
    "the classes, how many files each has, and of which sizes they are.\n\n"
    "  --count N       so many examples are shown (default 3)\n"
    "  --separator S   the character between cells, or 'tab' (default: found in the first line)\n"
    "  --decimal S     the sign before decimals, '.' or ',' (default '.')\n"
    "  --missing TEXT  cells with this text have no value, beside empty ones and NA, NaN, null, None, ?\n"
    "  --header yes|no whether the first line names the columns (default: unless it has a number)\n"
    "  --skip-ragged   rows with another number of cells than the first are left out\n"
    "  --skip-missing COLUMN  rows without a value in this column are left out; may be given several times\n"
    "  --clear-cache   deletes what was kept of extracted files for other runs ('sigma info' says how "
    "much)\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

/* What is known of one field after the blocks so far. */
typedef struct field_summary {
    char name[32];
    sgm_shape shape; /* of one example */
    double minimum, maximum, sum;
    int64_t numbers, bad; /* finite ones, of which minimum, maximum and sum are; others */
    int64_t *classes;     /* how many examples of each class, owned; NULL: the field holds no classes */
    int64_t class_count;
} field_summary;

typedef struct summary {
    int64_t examples;
    field_summary fields[SGM_MAX_FIELDS];
    int32_t field_count;
} summary;

/* Counts an example whose vector has one 1 and otherwise 0 (one-hot). The first example that is none shows
 * that the field holds no classes, and ends the counting. */
static void count_class(field_summary *s, const double *example, int64_t size)
{
    int64_t found = -1, others = 0;
    if (s->classes == NULL)
        return;
    for (int64_t i = 0; i < size; i++)
        if (example[i] == 1 && found < 0)
            found = i;
        else
            others += example[i] != 0;
    if (found >= 0 && others == 0) {
        s->classes[found]++;
    } else {
        sgm__free(s->classes);
        s->classes = NULL;
    }
}

/* Starts the summary of a field with its first block. Vectors of 2 to MAX_CLASSES entries may be classes. */
static sgm_status begin_field(field_summary *s, const sgm_field *field)
{
    const sgm_shape *shape = sgm_tensor_shape(field->values);
    snprintf(s->name, sizeof s->name, "%s", field->name);
    s->shape = sgm_shape_create(shape->rank - 1, shape->dims + 1);
    s->minimum = INFINITY;
    s->maximum = -INFINITY;
    if (s->shape.rank == 1 && s->shape.dims[0] >= 2 && s->shape.dims[0] <= MAX_CLASSES) {
        s->class_count = s->shape.dims[0];
        s->classes = sgm__calloc((size_t)s->class_count, sizeof *s->classes);
        return s->classes != NULL ? SGM_OK : sgm_last_status();
    }
    return SGM_OK;
}

/* Adds the examples of a block to the summary of one field; values (examples, ...). */
static sgm_status add_field(field_summary *s, sgm_tensor *values)
{
    int64_t count = sgm_shape_elements(sgm_tensor_shape(values));
    int64_t size = sgm_shape_elements(&s->shape);
    double *numbers = sgm__calloc((size_t)count, sizeof *numbers);
    if (numbers == NULL)
        return sgm_last_status();
    sgm_status status = sgm_tensor_read(values, numbers, (size_t)count);
    for (int64_t i = 0; i < count && status == SGM_OK; i++) {
        if (!isfinite(numbers[i])) {
            s->bad++;
            continue;
        }
        s->minimum = fmin(s->minimum, numbers[i]);
        s->maximum = fmax(s->maximum, numbers[i]);
        s->sum += numbers[i];
        s->numbers++;
    }
    for (int64_t i = 0; i + size <= count && size > 0 && status == SGM_OK; i += size)
        count_class(s, numbers + i, size);
    sgm__free(numbers);
    return status;
}

/* All blocks have the same fields in the same order, so the first block names them. */
static sgm_status add_block(summary *all, const sgm_block *block)
{
    for (int32_t i = 0; i < block->field_count; i++) {
        if (i == all->field_count) {
            SGM_TRY(begin_field(&all->fields[i], &block->fields[i]));
            all->field_count++;
        }
        SGM_TRY(add_field(&all->fields[i], block->fields[i].values));
    }
    all->examples += block->count;
    return SGM_OK;
}

/* One line for each field: name, shape of an example, range and mean of its finite numbers. A field of
 * classes has a second line with how often each occurs, of which the first 20 are shown. */
static void print_summary(const summary *all)
{
    char number[64], shape[128];
    printf("  %s examples\n", sgm_count_text(all->examples, number, sizeof number));
    for (int32_t i = 0; i < all->field_count; i++) {
        const field_summary *s = &all->fields[i];
        printf("  %-10s %-14s", s->name, sgm_shape_text(&s->shape, shape, sizeof shape));
        if (s->numbers > 0)
            printf(" from %.4g to %.4g, mean %.4g", s->minimum, s->maximum, s->sum / (double)s->numbers);
        if (s->bad > 0)
            printf(", %s not finite", sgm_count_text(s->bad, number, sizeof number));
        printf("\n");
        if (s->classes == NULL)
            continue;
        printf("    classes");
        for (int64_t k = 0; k < s->class_count && k < 20; k++)
            printf(" %lld: %s%s", (long long)k, sgm_count_text(s->classes[k], number, sizeof number),
                   k + 1 < s->class_count ? "," : "");
        printf("%s\n", s->class_count > 20 ? " ..." : "");
    }
}

/* --- the first examples --- */

/* Draws an array (rows, columns) with ten shades from the field's smallest number to its largest, each
 * pixel two characters wide, since characters are about twice as high as wide. */
static void print_picture(const double *pixels, const sgm_shape *shape, double minimum, double maximum)
{
    static const char shades[] = " .:-=+*#%@";
    for (int64_t y = 0; y < shape->dims[0]; y++) {
        printf("      |");
        for (int64_t x = 0; x < shape->dims[1]; x++) {
            double share =
                (pixels[y * shape->dims[1] + x] - minimum) / (maximum > minimum ? maximum - minimum : 1);
            int shade = isfinite(share) ? (int)(share * 9 + 0.5) : 0;
            shade = shade < 0 ? 0 : shade > 9 ? 9 : shade;
            putchar(shades[shade]);
            putchar(shades[shade]);
        }
        printf("|\n");
    }
}

/* Prints one field of one example. Arrays of rank 2 up to 64 x 64 are drawn; the shades are those of the
 * whole field, so that examples can be compared. Longer vectors are cut after SHOWN_NUMBERS numbers. */
static sgm_status print_field(const field_summary *s, sgm_tensor *values, int64_t example)
{
    sgm_tensor *one = sgm_tensor_slice(values, 0, example, example + 1, 1);
    int64_t size = sgm_shape_elements(&s->shape);
    double *numbers = one != NULL ? sgm__calloc((size_t)size, sizeof *numbers) : NULL;
    sgm_status status = numbers != NULL ? sgm_tensor_read(one, numbers, (size_t)size) : sgm__last_failure();
    if (status == SGM_OK && numbers != NULL) {
        printf("    %s:", s->name);
        if (s->shape.rank == 2 && s->shape.dims[0] <= 64 && s->shape.dims[1] <= 64) {
            printf("\n");
            print_picture(numbers, &s->shape, s->minimum, s->maximum);
        } else {
            for (int64_t i = 0; i < size && i < SHOWN_NUMBERS; i++)
                printf(" %.4g", numbers[i]);
            printf("%s\n", size > SHOWN_NUMBERS ? " ..." : "");
        }
    }
    sgm__free(numbers);
    sgm_tensor_free(one);
    return status;
}

static sgm_status print_example(const summary *all, const sgm_block *block, int64_t index, int64_t number)
{
    printf("  example %lld\n", (long long)number);
    for (int32_t k = 0; k < block->field_count; k++)
        SGM_TRY(print_field(&all->fields[k], block->fields[k].values, index));
    return SGM_OK;
}

/* Blocks are fetched again and released one after the other; a dataset keeps what fits into its memory
 * limit. */
static sgm_status print_examples(const summary *all, sgm_dataset *dataset, int64_t count)
{
    int64_t shown = 0;
    for (int64_t index = 0; shown < count; index++) {
        const sgm_block *block;
        SGM_TRY(sgm_dataset_fetch_block(dataset, index, &block));
        if (block == NULL)
            break;
        sgm_status status = SGM_OK;
        for (int64_t i = 0; i < block->count && shown < count && status == SGM_OK; i++, shown++)
            status = print_example(all, block, i, shown);
        sgm_dataset_release_block(dataset, block);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* Reads all blocks; NULL ends them. */
static sgm_status summarise(summary *all, sgm_dataset *dataset)
{
    for (int64_t index = 0;; index++) {
        const sgm_block *block;
        SGM_TRY(sgm_dataset_fetch_block(dataset, index, &block));
        if (block == NULL)
            return SGM_OK;
        sgm_status status = add_block(all, block);
        sgm_dataset_release_block(dataset, block);
        SGM_TRY(status);
    }
}

/* The first examples as training would see them in its first epoch, if it took them in their order: with
 * the same seed, by which augmentations draw, and the same minibatch size, as some mix examples of a
 * minibatch. */
static sgm_status print_augmented(const summary *all, sgm_dataset *dataset, int64_t count, const config *c)
{
    const sgm_block *block = NULL;
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = c->data.batch, .seed = (uint64_t)c->seed,
                                             .no_shuffle = true, .augment = c->data.augment);
    sgm_status status = iterator != NULL ? sgm_iterator_next(iterator, &block) : sgm_last_status();
    if (status == SGM_OK)
        printf("training, augmented: %s\n", c->data.augment);
    for (int64_t i = 0; block != NULL && i < block->count && i < count && status == SGM_OK; i++)
        status = print_example(all, block, i, i);
    sgm_iterator_free(iterator);
    return status;
}

/* Prints everything of one dataset, and frees it. `augmenting` is the configuration whose training data
 * these are; NULL: other data, which training does not augment. `dataset` NULL: opening failed. */
static sgm_status show(const char *title, sgm_dataset *dataset, int64_t count, const config *augmenting)
{
    summary all = {0};
    if (dataset == NULL)
        return sgm_last_status();
    sgm_status status = summarise(&all, dataset);
    if (status == SGM_OK) {
        printf("%s\n", title);
        print_summary(&all);
        status = print_examples(&all, dataset, count);
    }
    if (status == SGM_OK && augmenting != NULL && augmenting->data.augment != NULL && count > 0)
        status = print_augmented(&all, dataset, count, augmenting);
    for (int32_t i = 0; i < all.field_count; i++)
        sgm__free(all.fields[i].classes);
    sgm_dataset_free(dataset);
    return status;
}

/* Shows each dataset that a configuration names. */
static int show_file(const char *path, int64_t count)
{
    config c;
    if (config_load(&c, path, NULL, 0) != SGM_OK)
        return report_error("data", CLI_USAGE);
    const data_config *parts[] = {&c.data.training, &c.data.validation, &c.data.test};
    static const char *const names[] = {"training", "validation", "test"};
    int code = CLI_OK, shown = 0;
    for (int i = 0; i < 3 && code == CLI_OK; i++) {
        if (!data_group_has(&c.data, parts[i]))
            continue;
        shown++;
        sgm_dataset *dataset = experiment_prepare(&c, NULL) == SGM_OK
                                   ? experiment_dataset(&c.data, parts[i], names[i], (uint64_t)c.seed)
                                   : NULL;
        if (show(names[i], dataset, count, i == 0 ? &c : NULL) != SGM_OK)
            code = report_error("data", CLI_FAILED);
    }
    config_free(&c);
    return shown > 0 ? code : usage_error("data", "%s names no data", path);
}

/* Files of other programs that hold tables. */
static bool is_foreign_table(const char *name)
{
    static const char *const endings[] = {".xlsx",    ".xls",   ".ods",   ".parquet",
                                          ".feather", ".arrow", ".sqlite"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ends_with(name, endings[i]))
            return true;
    return false;
}

/* Shows a ready-made dataset. A name that is a file gets a hint, as its ending does not say what it is. */
static int show_named(const char *name, int64_t count)
{
    sgm_dataset *dataset = sgm_dataset_open(name);
    if (dataset == NULL && is_foreign_table(name))
        return usage_error("data", "%s is a table of another program: save it as CSV", name);
    if (dataset == NULL && sgm_last_status() == SGM_ERROR_NOT_FOUND && sgm__file_exists(name))
        return usage_error(
            "data",
            "%s is a file: text:%s shows its characters, a name that ends in .csv, .tsv or .jsonl a table, "
            "a FILE.yaml says what else it is",
            name, name);
    if (dataset == NULL)
        return report_error("data", sgm_last_status() == SGM_ERROR_NOT_FOUND ? CLI_USAGE : CLI_FAILED);
    return show(name, dataset, count, NULL) == SGM_OK ? CLI_OK : report_error("data", CLI_FAILED);
}

/* --- which of them --- */

/* What was given beside the name. */
typedef struct data_arguments {
    int64_t count;
    const char *separator, *decimal, *missing, *header;
    bool skip_ragged, clear_cache;
    argument_texts skip_missing;
} data_arguments;

/* A single character, or the word "tab". */
static bool parse_character(const char *text, char *character)
{
    if (text == NULL)
        return true;
    *character = strcmp(text, "tab") == 0 || strcmp(text, "\\t") == 0 ? '\t' : text[0];
    return *character == '\t' || (strlen(text) == 1 && (unsigned char)*character < 128);
}

static int show_table(const char *path, const data_arguments *given)
{
    sgm_table_options options = {
        .struct_size = sizeof options, .missing = given->missing, .skip_ragged = given->skip_ragged};
    if (given->skip_missing.count > SGM_MAX_TARGETS)
        return usage_error("data", "--skip-missing can be given %d times", SGM_MAX_TARGETS);
    for (size_t i = 0; i < given->skip_missing.count; i++)
        options.skip_missing[i] = given->skip_missing.items[i];
    if (!parse_character(given->separator, &options.separator))
        return usage_error("data", "--separator expects one character or 'tab', got '%s'", given->separator);
    if (!parse_character(given->decimal, &options.decimal) ||
        (given->decimal != NULL && strchr(".,", options.decimal) == NULL))
        return usage_error("data", "--decimal expects '.' or ',', got '%s'", given->decimal);
    bool header = given->header != NULL && strcmp(given->header, "yes") == 0;
    if (given->header != NULL && !header && strcmp(given->header, "no") != 0)
        return usage_error("data", "--header expects yes or no, got '%s'", given->header);
    if (given->header != NULL)
        options.header = header ? SGM_HEADER_FIRST_LINE : SGM_HEADER_NONE;
    return data_show_table(path, &options);
}

/* What the ending of the name says, unless it is a text of that name (text:FILE.yaml). */
static int show_word(const char *name, const data_arguments *given)
{
    bool is_text = sgm__begins_with(name, "text:");
    if (!is_text && sgm__table_is_name(name))
        return show_table(name, given);
    if (given->separator != NULL || given->decimal != NULL || given->missing != NULL ||
        given->header != NULL || given->skip_ragged || given->skip_missing.count > 0)
        return usage_error(
            "data",
            "--separator, --decimal, --missing, --header, --skip-ragged and --skip-missing are for tables, "
            ".csv, .tsv or .jsonl; %s is none",
            name);
    if (!is_text && is_numpy(name))
        return data_show_arrays(name);
    if (!is_text && (ends_with(name, ".yaml") || ends_with(name, ".yml")))
        return show_file(name, given->count);
    return !is_text && sgm__is_folder(name) ? data_show_files(name) : show_named(name, given->count);
}

static int clear_cache(void)
{
    int64_t files, bytes, left, bytes_left;
    char size[32];
    if (sgm_kept_data_measure(NULL, &files, &bytes) != SGM_OK || sgm_kept_data_clear(NULL) != SGM_OK ||
        sgm_kept_data_measure(NULL, &left, &bytes_left) != SGM_OK)
        return report_error("data", CLI_FAILED);
    printf("%lld file%s deleted, %s\n", (long long)(files - left), files - left == 1 ? "" : "s",
           sgm_bytes_text((double)(bytes - bytes_left), size, sizeof size));
    return CLI_OK;
}

int data_run(int argc, char **argv)
{
    data_arguments given = {.count = 3};
    const argument_rule rules[] = {{"--count", ARGUMENT_COUNT, &given.count},
                                   {"--separator", ARGUMENT_TEXT, &given.separator},
                                   {"--decimal", ARGUMENT_TEXT, &given.decimal},
                                   {"--missing", ARGUMENT_TEXT, &given.missing},
                                   {"--header", ARGUMENT_TEXT, &given.header},
                                   {"--skip-ragged", ARGUMENT_FLAG, &given.skip_ragged},
                                   {"--skip-missing", ARGUMENT_TEXTS, &given.skip_missing},
                                   {"--clear-cache", ARGUMENT_FLAG, &given.clear_cache}};
    arguments a = {.rules = rules, .rule_count = sizeof rules / sizeof *rules, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code)) {
        if (given.clear_cache && a.word_count == 0)
            code = clear_cache();
        else if (a.word_count != 1 || given.clear_cache)
            code = usage_error("data", "expected one dataset or file, got %zu", a.word_count);
        else
            code = show_word(a.words[0], &given);
    }
    arguments_free(&a);
    return code;
}
