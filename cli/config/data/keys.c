/* The keys of the section `data`, and those of one dataset in it. */
#include "config/config.h"
#include "config/config_checks.h"

/* --- names of values, for the completion of shells --- */

static const char *dataset_at(size_t index)
{
    size_t count;
    const char *const *names = sgm_dataset_names(&count);
    return index < count ? names[index] : NULL;
}

static const char *augmentation_at(size_t index)
{
    const sgm_augmentation_type *type = sgm_augmentation_at(index);
    return type != NULL ? type->name : NULL;
}

/* --- the tables --- */

/* Keys of one dataset. The three groups training, validation, test share this table. */
static const option data_rows[] = {
    OPTION_ROW(data_config, dataset, OPTION_TEXT, .check = check_dataset, .name_at = dataset_at,
               .path_after = "text:", .row.doc = "a ready-made one (see 'sigma info'), or text:PATH"),
    OPTION_ROW(data_config, csv, OPTION_PATH,
               .row.doc =
                   "a table, with `target` or `fields`; a path, or an address, https://...#sha256=DIGITS"),
    OPTION_ROW(data_config, target, OPTION_LIST,
               .row.doc = "csv: the column to predict, by its name; or several, of numbers"),
    OPTION_ROW(data_config, drop, OPTION_LIST, .row.doc = "target: columns that are not used, [id, name]"),
    OPTION_ROW(data_config, categorical, OPTION_LIST,
               .row.doc = "target: columns of numbers that are kinds and not sizes"),
    OPTION_ROW(data_config, embedding, OPTION_MAP, .check = check_embedding, .value_of_texts = "auto",
               .row.doc = "target: columns of categories that are fields of their own, for an embedding: a "
                          "list, or {town: 8} with its size"),
    OPTION_ROW(data_config, text_columns, OPTION_LIST,
               .row.doc = "target: columns of texts that are read as tokens, each a field of its own"),
    OPTION_ROW(data_config, scale, OPTION_MAP, .check = check_column_scale, .key_of_text = EVERY_COLUMN,
               .row.doc = "target: of numbers: standard (if not given), min_max, robust or none; of some "
                          "columns, {price: none, \"*\": robust}"),
    OPTION_ROW(
        data_config, impute, OPTION_MAP, .check = check_impute, .key_of_text = EVERY_COLUMN,
        .row.doc =
            "target: what a missing value becomes: mean (if not given), median, most_frequent, flag; or "
            "refuse; of some columns, {age: median, town: flag}"),
    OPTION_ROW(data_config, missing_target, OPTION_TEXT, .check = check_missing_target,
               .row.doc = "target: rows without one: refuse (if not given), an error; skip leaves them out"),
    OPTION_ROW(data_config, dates, OPTION_MAP, .check = check_dates,
               .row.doc =
                   "target: what dates become, {born: age, sold: parts}: days (if not given); age, days "
                   "until the newest one, or until another, age(2026-01-31); parts, the year, and month, "
                   "weekday and hour on circles"),
    OPTION_ROW(data_config, weights, OPTION_TEXT,
               .row.doc = "target: a column of numbers, no input then: how much the cost of a row counts"),
    OPTION_ROW(data_config, decimal, OPTION_TEXT, .check = check_decimal,
               .row.doc = "target: the sign before decimals, \".\" or \",\""),
    OPTION_ROW(data_config, inputs, OPTION_PATH, .row.doc = "an array, .npy, .npz:NAME or idx"),
    OPTION_ROW(data_config, targets, OPTION_PATH, .row.doc = "the array with the targets of these inputs"),
    OPTION_ROW(data_config, arrays, OPTION_MAP, .is_path = true,
               .row.doc = "inputs: more arrays, for a network with several inputs, by their fields, {town: "
                          "data.npz:town}"),
    OPTION_ROW(data_config, images, OPTION_PATH,
               .row.doc = "a folder of PNG and JPEG pictures, in a folder for each class"),
    OPTION_ROW(data_config, masks, OPTION_PATH,
               .row.doc =
                   "images: a folder of PNG masks of their names, whose values are the classes of pixels"),
    OPTION_ROW(
        data_config, size, OPTION_LIST, .check = check_side,
        .row.doc =
            "images: [width, height] to which all are scaled; if not given that of the network of `from`, "
            "else all must be of one size"),
    OPTION_ROW(data_config, channels, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 3,
               .row.doc = "images: 3 (if not given) for colours, 1 for grey"),
    OPTION_ROW(
        data_config, sounds, OPTION_PATH,
        .row.doc =
            "a folder of WAV and FLAC sounds, in a folder for each class; or a table with the columns file "
            "and text, of what is said"),
    OPTION_ROW(data_config, rate, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 768000,
               .row.doc =
                   "sounds: samples a second to which all are brought; if not given all must have one rate"),
    OPTION_ROW(data_config, seconds, OPTION_NUMBER, .row.minimum = 1e-6, .row.maximum = 86400,
               .row.doc = "sounds: to which all are cut, or filled with silence; the longest if not given"),
    OPTION_ROW(data_config, features, OPTION_TEXT, .check = check_features,
               .row.doc = "sounds: log_mel (if not given), a spectrogram, or waveform, the samples"),
    OPTION_ROW(data_config, mels, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 1024,
               .row.doc = "sounds: bands of a spectrogram; 64 if not given"),
    OPTION_ROW(data_config, hop, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 1 << 24,
               .row.doc = "sounds: samples from frame to frame of a spectrogram; 10 ms if not given"),
    OPTION_ROW(data_config, text, OPTION_PATH,
               .row.doc = "a text: windows of tokens; the targets are the same, one token later"),
    OPTION_ROW(data_config, chats, OPTION_PATH,
               .row.doc = "a file of JSON Lines with messages, prompt and completion, or text: answers are "
                          "learnt, by the tokenizer of `from`"),
    OPTION_ROW(data_config, packing, OPTION_FLAG, .row.default_text = "false",
               .row.doc = "chats: several short examples in one row, which do not see each other"),
    OPTION_ROW(data_config, labelled_texts, OPTION_PATH,
               .row.doc =
                   "a file of JSON Lines with text and label, of which an encoder learns classes, by the "
                   "tokenizer of `from`"),
    OPTION_ROW(data_config, text_pairs, OPTION_PATH,
               .row.doc =
                   "a file of JSON Lines with anchor, positive, and perhaps negative: vectors of texts "
                   "are learnt, by the tokenizer of `from`"),
    OPTION_ROW(data_config, text_folder, OPTION_PATH,
               .row.doc = "a folder of TXT files, in a folder for each class"),
    OPTION_ROW(data_config, tokenizer, OPTION_PATH,
               .row.doc = "text, text_columns, text_folder: a file of 'sigma tokenize'; bytes if not given; "
                          "chats, labelled_texts, text_pairs: the folder of a model"),
    OPTION_ROW(data_config, window, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 1 << 24,
               .row.doc = "text: tokens of an example, 64 if not given; chats, labelled_texts, text_pairs: "
                          "the steps of the "
                          "network if not given; "
                          "text_columns, text_folder: of a text, those of the "
                          "longest up to 512 if not given; sounds: samples of a frame, 25 ms if not given"),
    OPTION_ROW(data_config, step, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 1 << 24,
               .row.doc = "text: tokens from one example to the next; the window if not given"),
    OPTION_ROW(
        data_config, streams, OPTION_INTEGER, .row.minimum = 1, .row.maximum = 1 << 24,
        .row.doc =
            "text: number of parts whose windows continue from minibatch to minibatch; 1 if not given"),
    OPTION_ROW(data_config, skip_rows, OPTION_INTEGER, .row.minimum = 0, .row.maximum = 1e6,
               .row.doc = "csv: header rows"),
    OPTION_ROW(data_config, separator, OPTION_TEXT, .check = check_separator,
               .row.doc =
                   "csv: one character; if not given a comma, with `target` what the first line has most"),
    OPTION_ROW(data_config, missing, OPTION_TEXT,
               .row.doc = "csv: a cell with this text, or with none, is missing: it becomes 0, with `target` "
                          "what `impute` says"),
    OPTION_ROW(data_config, skip_ragged, OPTION_FLAG, .row.default_text = "false",
               .row.doc = "csv: leave out rows with another number of columns"),
    OPTION_ROW(data_config, fields, OPTION_MAP, .check = check_columns,
               .row.doc = "csv: columns, such as {inputs: 0-3, targets: 4}"),
    OPTION_ROW(data_config, class_names, OPTION_LIST,
               .row.doc =
                   "csv: texts in the targets' column, class 0 first; labelled_texts: all labels, found in "
                   "the file if not given"),
    OPTION_ROW(data_config, texts, OPTION_MAP, .check = check_texts, .joins = true,
               .row.doc = "csv: texts of other columns as numbers from 0, such as {1: [red, green, blue]}"),
    OPTION_ROW(data_config, classes, OPTION_INTEGER, .row.minimum = 2, .row.maximum = 1e6,
               .row.doc = "number of classes; targets are numbers from 0, and become one-hot"),
    OPTION_ROW(data_config, input_range, OPTION_LIST, .check = check_range_number,
               .row.doc = "[minimum, maximum] of the inputs, scaled to 0 to 1"),
    OPTION_ROW(data_config, shuffled, OPTION_FLAG, .row.default_text = "false",
               .row.doc =
                   "files: all examples in one random order (of the seed), before begin and share apply"),
    OPTION_ROW(data_config, begin, OPTION_NUMBER, .row.minimum = 0, .row.maximum = 1,
               .row.doc = "share that is left out at the beginning of each block"),
    OPTION_ROW(data_config, share, OPTION_NUMBER, .row.minimum = 1e-9, .row.maximum = 1,
               .row.doc = "share of each block that is used"),
};
const option_table data_table = OPTION_TABLE(data_rows);

/* For the help: "; there are crop, flip, ...", all augmentations of the library. */
static void list_augmentations(const option *o, sgm__text *out)
{
    (void)o;
    for (size_t i = 0; sgm_augmentation_at(i) != NULL; i++)
        sgm__text_append(out, "%s%s", i > 0 ? ", " : "; there are ", sgm_augmentation_at(i)->name);
}

/* Keys below data.split. The first one, share, is what a single value stands for: `split: 0.8`. */
static const option split_rows[] = {
    OPTION_ROW(split_config, share, OPTION_LIST, .check = check_share,
               .row.doc =
                   "of training, the rest validates; or of training, validation and test, [0.7, 0.15, 0.15]"),
    OPTION_ROW(
        split_config, by, OPTION_TEXT, .check = check_split_by,
        .row.doc =
            "stratified, each part with its share of each class (if not given, for classes), or random"),
    OPTION_ROW(split_config, group, OPTION_TEXT,
               .row.doc = "a column, no input then: rows of one value are in one part"),
    OPTION_ROW(split_config, time, OPTION_TEXT,
               .row.doc = "a column: the earliest rows train, the latest ones are measured"),
    OPTION_ROW(split_config, folds, OPTION_INTEGER, .row.minimum = 2, .row.maximum = SGM_MAX_PARTS,
               .row.doc =
                   "in place of share: one training for each of so many equal parts, which validates it"),
    OPTION_ROW(split_config, fold, OPTION_INTEGER, .row.minimum = 0, .row.maximum = SGM_MAX_PARTS - 1,
               .row.doc = "folds: only the training that this one validates, from 0"),
};
static const option_table split_table = OPTION_TABLE(split_rows);

/* Keys below `data`. The first one, training, is what a single value stands for: `data: iris`. */
static const option group_rows[] = {
    OPTION_GROUP_ROW(data_group, training, data_table,
                     .row.doc = "the data to train on; a name or the keys below"),
    OPTION_GROUP_ROW(data_group, validation, data_table,
                     .row.doc = "measured after each epoch; the same keys"),
    OPTION_GROUP_ROW(data_group, test, data_table, .row.doc = "measured at the end; the same keys"),
    OPTION_GROUP_ROW(data_group, split, split_table,
                     .row.doc =
                         "takes validation and test data from the training data; a share or the keys below"),
    OPTION_ROW(data_group, batch, OPTION_SETTING, .settings = sgm_iterator_settings,
               .setting = "minibatch_size"),
    OPTION_SETTING_ROW(data_group, shuffle, sgm_iterator_settings),
    OPTION_SETTING_ROW(data_group, drop_last, sgm_iterator_settings),
    OPTION_ROW(data_group, augment, OPTION_SETTING, .settings = sgm_iterator_settings,
               .check = sgm_augmentation_check, .name_at = augmentation_at, .more = list_augmentations),
    OPTION_SETTING_ROW(data_group, prefetch_threads, sgm_iterator_settings),
    OPTION_ROW(data_group, cache, OPTION_TEXT, .check = check_cache,
               .row.doc = "whether files, once extracted, are kept for other runs; if not given: images are"),
    OPTION_ROW(data_group, cache_folder, OPTION_PATH,
               .row.doc = "where they are kept; if not given: data in $SIGMA_CACHE_DIR or ~/.cache/sigma"),
};
const option_table data_group_table = OPTION_TABLE(group_rows);

char *config_data_text(const data_config *data)
{
    sgm__text out = {0};
    options_write(&data_table, data, &out);
    return sgm__text_take(&out);
}
