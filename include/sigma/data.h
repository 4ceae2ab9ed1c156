/* Data: source -> reader -> extractor (and preprocessors) -> dataset -> iterator.
 *
 *     sgm_dataset *iris = sgm_dataset_create("iris",
 *         .extractor = sgm_shuffle(sgm_one_hot(
 *             sgm_csv_extractor(sgm_csv_reader(sgm_file_source("iris.csv"), .skip_rows = 1),
 *                 .fields = {{"inputs", 0, 3}, {"targets", 4, 4}}),
 *             .field = "targets", .classes = 3)));
 *     sgm_iterator *batches = sgm_minibatches(iris, .size = 10);
 *
 * A part that is given to another part belongs to it from then on, also when the call fails; so calls nest,
 * and NULL (a failed part) is passed on. Datasets and iterators belong to the caller. Options are structs
 * behind macros: zero means default.
 */
#ifndef SIGMA_DATA_H
#define SIGMA_DATA_H

#include <sigma/registry.h>
#include <sigma/text.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most fields that a block can have. */
#define SGM_MAX_FIELDS 8

/* --- sources: named streams of bytes --- */
/* A named stream of bytes that can be read from its beginning again and again: a file, memory, a download. */
typedef struct sgm_source sgm_source;
/* A source that is being read. */
typedef struct sgm_stream sgm_stream;

/* Told about long work: `done` of `total` bytes (total 0: unknown). Returning false cancels it. */
typedef bool (*sgm_progress)(void *user, const char *task, uint64_t done, uint64_t total);

/* A file, as it is. NULL: out of memory; that it is not there is found when it is prepared or opened. */
SGM_API sgm_source *sgm_file_source(const char *path);
/* Bytes in memory, which are copied; `name` is for messages. */
SGM_API sgm_source *sgm_memory_source(const char *name, const void *bytes, size_t length);
typedef struct sgm_url_options {
    size_t struct_size;
    const char *path;      /* where the file is kept; default: its name in the cache folder */
    const char *sha256;    /* hexadecimal; checked before the file is put in place */
    const char *proxy;     /* default: the environment's http_proxy and friends */
    int retries;           /* default 2; -1: none */
    int timeout;           /* seconds without a byte, default 16 */
    sgm_progress progress; /* told of the download; NULL: nobody */
    void *user;            /* passed to `progress` */
} SGM_BY_NAME sgm_url_options;
/* Downloads to PATH.download, checks, then renames; a file that is there already is used as it is. */
#define sgm_url_source(...) SGM_WITH_OPTIONS(sgm_url_source_with, sgm_url_options, __VA_ARGS__)
SGM_API sgm_source *sgm_url_source_with(const char *url, const sgm_url_options *options);
/* gz, bz2, xz, zst streams and zip, tar archives (by content). `member` names a file in an archive, NULL: the
 * first. */
SGM_API sgm_source *sgm_compressed_source(sgm_source *source, const char *member);
/* The first of `count` sources that exists when it is prepared. */
SGM_API sgm_source *sgm_first_source_with(sgm_source *const *sources, size_t count);
/* The first of the sources that are listed which exists when it is prepared: sgm_first_source(a, b). */
#define sgm_first_source(...)                                                                                \
    sgm_first_source_with((sgm_source *const[]){__VA_ARGS__},                                                \
                          sizeof((sgm_source *const[]){__VA_ARGS__}) / sizeof(sgm_source *))
/* A file of a known dataset: looked for in SGM_FOLDER_DATA (also in its folders), the cache, data/, then
 * `url` (may be NULL); decompressed if it ends in .gz and the like. */
SGM_API sgm_source *sgm_known_source(const char *file, const char *url, const char *sha256);

/* Its path, address or name, for messages; the source's. */
SGM_API const char *sgm_source_name(const sgm_source *source);
/* Whether it is there now, without a download. */
SGM_API bool sgm_source_exists(sgm_source *source);
/* Makes the bytes available, by a download or by unpacking if needed; idempotent. */
SGM_API sgm_status sgm_source_prepare(sgm_source *source);
/* A stream at its beginning, which sgm_stream_close ends; NULL on failure. Prepares it. */
SGM_API sgm_stream *sgm_source_open(sgm_source *source);
SGM_API void sgm_source_free(sgm_source *source);
/* Reads up to `size` bytes, fewer only at the end. */
SGM_API sgm_status sgm_stream_read(sgm_stream *stream, void *buffer, size_t size, size_t *got);
/* Goes on behind so many bytes; fewer are an error. */
SGM_API sgm_status sgm_stream_skip(sgm_stream *stream, uint64_t bytes);
/* Ends reading and frees the stream; NULL: nothing happens. */
SGM_API void sgm_stream_close(sgm_stream *stream);

/* --- readers: streams into examples --- */

/* A run of examples as read: either `values` (first dimension: examples) or text cells (rows x columns). */
typedef struct sgm_examples {
    int64_t count;            /* examples, or rows; 0: at the end */
    sgm_tensor *values;       /* NULL for text */
    int32_t columns;          /* of text */
    const char *const *cells; /* count * columns, row by row; NULL entry: missing value */
    int64_t first_line;       /* line in the file of the first row, for messages */
    const int64_t *lines;     /* the same of every row; NULL: they follow one another */
} sgm_examples;

/* What a reader written outside the library fills in. All functions run on one thread at a time. */
typedef struct sgm_reader_type {
    const char *name;                  /* for messages */
    sgm_status (*prepare)(void *self); /* idempotent; NULL: nothing to do */
    /* Up to `count` examples from the current position on; fewer only at the end, then 0. They belong to the
     * reader and stay valid until its next call. */
    sgm_status (*read)(void *self, int64_t count, sgm_examples *examples);
    sgm_status (*rewind)(void *self); /* back to the first example */
    void (*free)(void *self);         /* frees `self`, once, also when sgm_reader_create fails */
} sgm_reader_type;
/* Something that makes examples of a stream of bytes. */
typedef struct sgm_reader sgm_reader;
/* A reader of your own; the type is copied, `self` taken over. `source_name` is for messages. NULL on
 * failure. */
SGM_API sgm_reader *sgm_reader_create(const sgm_reader_type *type, void *self, const char *source_name);
/* Makes sure that the source is there; idempotent. */
SGM_API sgm_status sgm_reader_prepare(sgm_reader *reader);
/* The next examples, as sgm_reader_type.read gives them. */
SGM_API sgm_status sgm_reader_read(sgm_reader *reader, int64_t count, sgm_examples *examples);
/* Back to the first example. */
SGM_API sgm_status sgm_reader_rewind(sgm_reader *reader);
/* The name of its source, for messages. */
SGM_API const char *sgm_reader_name(const sgm_reader *reader);
SGM_API void sgm_reader_free(sgm_reader *reader);

/* Examples of a fixed size after a header that is skipped: uint8 (count, example_size). A part of an example
 * at the end is an error. */
SGM_API sgm_reader *sgm_byte_reader(sgm_source *source, int64_t header_size, int64_t example_size);
/* Windows of `length` characters as uint8 codes (count, length); each starts `stride` after the one before
 * (0: length). */
SGM_API sgm_reader *sgm_character_reader(sgm_source *source, int64_t length, int64_t stride);
/* idx files as MNIST has them: every element type, examples along the first dimension. */
SGM_API sgm_reader *sgm_idx_reader(sgm_source *source);
/* .npy, or one array of an .npz (`array` NULL: it must have only one). Object arrays are refused. */
SGM_API sgm_reader *sgm_npy_reader(sgm_source *source, const char *array);
typedef struct sgm_csv_options {
    size_t struct_size;
    char separator;      /* default ','; ' ' also takes runs of spaces and tabs */
    int skip_rows;       /* header rows */
    const char *missing; /* a cell with this text is missing, beside empty ones; e.g. "?" */
    bool skip_ragged;    /* rows with another number of columns: skipped and logged, instead of an error */
} SGM_BY_NAME sgm_csv_options;
/* RFC 4180 quoting; cells are trimmed. */
#define sgm_csv_reader(...) SGM_WITH_OPTIONS(sgm_csv_reader_with, sgm_csv_options, __VA_ARGS__)
SGM_API sgm_reader *sgm_csv_reader_with(sgm_source *source, const sgm_csv_options *options);
/* JSON Lines: an object on each line. The first row are the names of the first object's members; then each
 * object is a row of their values, as text. A member that is missing, null or "" is a missing cell; one that
 * the first object has not is an error. */
SGM_API sgm_reader *sgm_jsonl_reader(sgm_source *source);
typedef struct sgm_image_options {
    size_t struct_size;
    int width, height; /* every image is scaled (area average) to this size; default: of the first image */
    bool grey;         /* one channel instead of three */
} SGM_BY_NAME sgm_image_options;
/* PNG and JPEG files of FOLDER/CLASS/: text classes in alphabetical order; gives uint8 examples
 * (height * width * channels + 1), the class index (at most 256 classes) last. */
#define sgm_image_reader(...) SGM_WITH_OPTIONS(sgm_image_reader_with, sgm_image_options, __VA_ARGS__)
SGM_API sgm_reader *sgm_image_reader_with(const char *folder, const sgm_image_options *options);
/* Size of the images that an image reader gives: {height, width, channels}. Prepares it. */
SGM_API sgm_status sgm_image_reader_shape(sgm_reader *reader, sgm_shape *shape);

/* --- blocks: named fields of tensors, examples first --- */
/* A tensor of a block, under a name. */
typedef struct sgm_field {
    char name[32];      /* "inputs", "targets", ... */
    sgm_tensor *values; /* (examples, ...) float32 */
} sgm_field;
/* Some examples of a dataset: the same ones in each field. */
typedef struct sgm_block {
    int64_t count;                    /* examples */
    int32_t field_count;              /* how many of `fields` there are */
    sgm_field fields[SGM_MAX_FIELDS]; /* in the order in which they were added */
} sgm_block;
/* For extractors written outside the library; every block is made here. */
SGM_API sgm_block *sgm_block_create(int64_t count);
/* Takes the tensor, also on failure: float32, `count` examples, of this block only, as preprocessors change
 * it. */
SGM_API sgm_status sgm_block_add(sgm_block *block, const char *name, sgm_tensor *values);
/* The tensor of a field, which stays the block's; NULL and an error if there is none. */
SGM_API sgm_tensor *sgm_block_field(const sgm_block *block, const char *name);
SGM_API void sgm_block_free(sgm_block *block);

/* --- extractors: examples into blocks; preprocessors are extractors around another one --- */
/* Something that makes blocks of a reader's examples, or of another extractor's blocks. */
typedef struct sgm_extractor sgm_extractor;
/* What an extractor or a preprocessor written outside the library fills in; NULL functions are not there. */
typedef struct sgm_extractor_type {
    const char *name; /* for messages */
    /* A block of up to `count` examples, NULL in *block at the end. */
    sgm_status (*extract)(void *self, sgm_extractor *parent, int64_t count, sgm_block **block);
    /* Adaptive preprocessors: learn from one block of the whole set (called for all blocks before the first
     * extract). */
    sgm_status (*fit)(void *self, const sgm_block *block);
    /* What was learnt, as numbers, so that a checkpoint can keep it. `numbers` NULL: only *count; else *count
     * is the room on entry. Setting it replaces `fit`. */
    sgm_status (*get_state)(void *self, double *numbers, size_t *count);
    sgm_status (*set_state)(void *self, const double *numbers,
                            size_t count); /* takes what get_state gave, in place of learning */
    void (*free)(void *self);              /* frees `self`, once */
} sgm_extractor_type;
/* Copies the type. `parent` NULL: the extractor reads by itself, and `rewind` restarts it; with a parent,
 * which is rewound too, `rewind` may be NULL. On failure `free` has been called. */
SGM_API sgm_extractor *sgm_extractor_create(const sgm_extractor_type *type, void *self, sgm_extractor *parent,
                                            sgm_status (*rewind)(void *self));
/* A block of up to `count` examples, which the caller frees; NULL in *block at the end. */
SGM_API sgm_status sgm_extractor_extract(sgm_extractor *extractor, int64_t count, sgm_block **block);
/* Back to the first example, with what stands before it. */
SGM_API sgm_status sgm_extractor_rewind(sgm_extractor *extractor);
SGM_API void sgm_extractor_free(sgm_extractor *extractor);

/* Text columns first..last (inclusive) become a field (examples, last - first + 1). */
typedef struct sgm_columns {
    const char *field;   /* name of the field */
    int32_t first, last; /* columns, from 0; both are included */
} sgm_columns;
/* What texts in columns first_column to last_column (inclusive, from 0) become. */
typedef struct sgm_value_mapping {
    int32_t first_column, last_column; /* from 0 */
    const char *const *values; /* NULL-terminated: text i becomes i, or numbers[i] where `numbers` is given */
    const double *numbers;     /* as many as values; NULL: 0, 1, 2, ... */
} sgm_value_mapping;
typedef struct sgm_csv_extractor_options {
    size_t struct_size;
    sgm_columns fields[16];        /* a field named twice is joined in order */
    sgm_value_mapping mappings[8]; /* of columns that hold texts */
    double missing;                /* what a missing cell becomes; default: an error. Set has_missing too. */
    bool has_missing;              /* `missing` counts, also if it is 0 */
    int32_t threads; /* that split and convert rows of a csv reader; default: one per processor, at most 16.
                      * The numbers are the same for all. */
} SGM_BY_NAME sgm_csv_extractor_options;
/* Rows of text as fields of numbers; a text without a mapping that is no number is an error with line and
 * column. Takes the reader. */
#define sgm_csv_extractor(...)                                                                               \
    SGM_WITH_OPTIONS(sgm_csv_extractor_with, sgm_csv_extractor_options, __VA_ARGS__)
SGM_API sgm_extractor *sgm_csv_extractor_with(sgm_reader *reader, const sgm_csv_extractor_options *options);

/* A region of an array example: begin (inclusive) to end (exclusive) of its dimensions; rank 0: the whole
 * example. Regions of the same field are joined flat, in order. */
typedef struct sgm_region {
    const char *field;    /* name of the field */
    sgm_shape begin, end; /* of each dimension of an example */
    sgm_shape shape;      /* of one example in the field; rank 0: as the region is, (1) of one number */
    int64_t offset;       /* takes the region from the example this many further on (next-character targets);
                           * examples at the end of the source that have none are left out */
} sgm_region;
typedef struct sgm_array_extractor_options {
    size_t struct_size;
    /* The first one without a field ends them; none: all of an example as "inputs". */
    sgm_region regions[SGM_MAX_FIELDS];
} SGM_BY_NAME sgm_array_extractor_options;
/* Examples that are arrays as fields, region by region. Takes the reader. */
#define sgm_array_extractor(...)                                                                             \
    SGM_WITH_OPTIONS(sgm_array_extractor_with, sgm_array_extractor_options, __VA_ARGS__)
SGM_API sgm_extractor *sgm_array_extractor_with(sgm_reader *reader,
                                                const sgm_array_extractor_options *options);
/* Fields of several extractors side by side (images and labels); a name twice is an error. */
SGM_API sgm_extractor *sgm_merge_extractor(sgm_extractor *first, sgm_extractor *second);

typedef struct sgm_preprocess_options {
    size_t struct_size;
    const char *field;             /* default: all fields */
    double input_min, input_max;   /* normalise */
    double output_min, output_max; /* normalise; both 0: 0 to 1 */
    int32_t classes;               /* one-hot: values 0 .. classes-1 */
    const double *values;          /* one-hot: these `classes` values instead */
    int32_t axes[SGM_MAX_RANK];    /* permute: of an example, without the batch; `axis_count` entries */
    int32_t axis_count;            /* entries of `axes` */
    uint64_t seed;                 /* shuffle */
    bool per_block; /* adaptive: learn for each block by itself instead of over the whole set */
} SGM_BY_NAME sgm_preprocess_options;
#define sgm_normalise(...) SGM_WITH_OPTIONS(sgm_normalise_with, sgm_preprocess_options, __VA_ARGS__)
#define sgm_one_hot(...) SGM_WITH_OPTIONS(sgm_one_hot_with, sgm_preprocess_options, __VA_ARGS__)
/* The dimensions of each example in another order: dimension i is what `axes`[i] was. */
#define sgm_permute_field(...) SGM_WITH_OPTIONS(sgm_permute_field_with, sgm_preprocess_options, __VA_ARGS__)
#define sgm_shuffle(...) SGM_WITH_OPTIONS(sgm_shuffle_with, sgm_preprocess_options, __VA_ARGS__)
#define sgm_adaptive_normalise(...)                                                                          \
    SGM_WITH_OPTIONS(sgm_adaptive_normalise_with, sgm_preprocess_options, __VA_ARGS__)
/* As sgm_adaptive_normalise, with a range for each element of an example. */
#define sgm_adaptive_per_index(...)                                                                          \
    SGM_WITH_OPTIONS(sgm_adaptive_per_index_with, sgm_preprocess_options, __VA_ARGS__)
/* input_min..input_max to output_min..output_max, linear. */
SGM_API sgm_extractor *sgm_normalise_with(sgm_extractor *extractor, const sgm_preprocess_options *options);
/* (examples, 1) or (examples) to (examples, classes), (examples, n) to (examples, n, classes); an unknown
 * value is an error that names it. */
SGM_API sgm_extractor *sgm_one_hot_with(sgm_extractor *extractor, const sgm_preprocess_options *options);
SGM_API sgm_extractor *sgm_permute_field_with(sgm_extractor *extractor,
                                              const sgm_preprocess_options *options);
/* Mixes the examples of a block; all fields keep their alignment. */
SGM_API sgm_extractor *sgm_shuffle_with(sgm_extractor *extractor, const sgm_preprocess_options *options);
/* Like normalise, with the range learnt from the data; per index: one range for each element of an example.
 */
SGM_API sgm_extractor *sgm_adaptive_normalise_with(sgm_extractor *extractor,
                                                   const sgm_preprocess_options *options);
SGM_API sgm_extractor *sgm_adaptive_per_index_with(sgm_extractor *extractor,
                                                   const sgm_preprocess_options *options);
/* Own range for chosen indices of an example: `ranges` are `count` triples index, minimum, maximum. */
SGM_API sgm_extractor *sgm_per_index_normalise(sgm_extractor *extractor, const char *field,
                                               const double *ranges, size_t count, double output_min,
                                               double output_max);

/* --- datasets: blocks by index, larger than memory --- */
/* Blocks by index, extracted when they are wanted; any thread may fetch them. */
typedef struct sgm_dataset sgm_dataset;
typedef struct sgm_dataset_options {
    size_t struct_size;
    sgm_extractor *extractor; /* taken over; required */
    int64_t block_size;       /* examples; default: what fits in 32 MB, 65536 at most; -1: all in one block */
    int64_t memory_limit;     /* bytes of blocks kept; default: a quarter of free memory, 128 MB at most */
    /* Folder for extracted blocks, so that going back needs no second extraction; NULL: none. What is read in
     * a shuffled order and does not fit in memory_limit wants one: without it the source is read again and
     * again. The file in it has no name, and goes with the dataset. */
    const char *cache;
    /* The file in the cache folder, or where that is NULL in "data" of SIGMA_CACHE_DIR, has a name and stays
     * for other runs, which read neither the source nor decode it again. It is found by all that the examples
     * depend on: the state of each file, the options of all parts, the version of Sigma. Damaged or
     * incomplete files are never used. Nothing is kept of programs' own readers and extractors, which do not
     * say what they depend on, and of those that learn from the data. */
    bool keep;
    int64_t keep_limit; /* bytes of all files in that folder, the oldest go; default 4 GB */
} SGM_BY_NAME sgm_dataset_options;
/* A dataset of an extractor; nothing is read yet. NULL on failure. The caller frees it. */
#define sgm_dataset_create(...) SGM_WITH_OPTIONS(sgm_dataset_create_with, sgm_dataset_options, __VA_ARGS__)
SGM_API sgm_dataset *sgm_dataset_create_with(const char *name, const sgm_dataset_options *options);
/* Counts the files and bytes that were kept in a folder; NULL: in the usual one. */
SGM_API sgm_status sgm_kept_data_measure(const char *folder, int64_t *files, int64_t *bytes);
/* Deletes what was kept in a folder; NULL: in the usual one. Runs that use it go on. */
SGM_API sgm_status sgm_kept_data_clear(const char *folder);
/* From memory: `count` fields of equal example count; the tensors are copied as float32. */
SGM_API sgm_dataset *sgm_dataset_create_from(const char *name, const char *const *fields,
                                             sgm_tensor *const *tensors, size_t count);
/* Appends `count` fields of equal example count to a dataset from memory: those that it has, in any order;
 * the tensors are copied as float32. Any thread, also while iterators read it: an epoch that has begun goes
 * on with the examples that it began with, the next one has all that are there when it begins (of a trainer,
 * when the epoch before has ended, before its hooks run). A checkpoint says how many its epoch has, so that a
 * resume is exact if the program has given the dataset as many by then. Not a dataset with views, whose parts
 * would become others, and not one that ranks share. */
SGM_API sgm_status sgm_dataset_append(sgm_dataset *dataset, const char *const *fields,
                                      sgm_tensor *const *tensors, size_t count);
/* Views: examples [begin, begin + share) of each block as fractions of it, or every `interval`-th block from
 * `begin` on before `end` (-1: all). A view keeps its base alive. */
SGM_API sgm_dataset *sgm_dataset_split_examples(sgm_dataset *dataset, double begin, double share);
/* A view of every `interval`-th block from `begin` on before `end` (-1: all). */
SGM_API sgm_dataset *sgm_dataset_split_blocks(sgm_dataset *dataset, int64_t begin, int64_t end,
                                              int64_t interval);
/* The most examples that can belong together. */
#define SGM_MAX_GROUP 1000
/* `group` examples in a row belong together, as a text and one like it do: iterators that shuffle keep them
 * in a row, views begin and end between groups, and minibatches have a multiple of `group` examples. Once,
 * before others use the dataset; views of it are made later. */
SGM_API sgm_status sgm_dataset_set_group(sgm_dataset *dataset, int64_t group);
/* How many examples in a row belong together; 1: each is for itself. */
SGM_API int64_t sgm_dataset_get_group(const sgm_dataset *dataset);
SGM_API sgm_dataset *sgm_dataset_retain(sgm_dataset *dataset);
SGM_API void sgm_dataset_free(sgm_dataset *dataset);
/* The name that it was created with; the dataset's. */
SGM_API const char *sgm_dataset_name(const sgm_dataset *dataset);
/* What the classes of its targets are called, class 0 first, NULL at the end; copied. Once, before others use
 * the dataset; monitors show it. */
SGM_API sgm_status sgm_dataset_set_class_names(sgm_dataset *dataset, const char *const *names);
/* The dataset's, or a view's base's, NULL at the end; NULL: they have none. */
SGM_API const char *const *sgm_dataset_get_class_names(const sgm_dataset *dataset);
/* NULL in *block past the last one. Any thread. The block is shared:
 * sgm_dataset_release_block gives it back. */
SGM_API sgm_status sgm_dataset_fetch_block(sgm_dataset *dataset, int64_t index, const sgm_block **block);
/* What is known of a dataset without reading; of a view, of the dataset below it. */
typedef struct sgm_dataset_status {
    int64_t blocks, examples;                /* that were read so far; of the whole if `complete` */
    bool complete;                           /* the end was seen */
    bool grows;                              /* sgm_dataset_append would take examples */
    int64_t blocks_in_memory, blocks_in_use; /* the ones in use are held by iterators and programs */
    int64_t bytes, memory_limit;             /* of blocks in memory; 0: all stay */
} sgm_dataset_status;
/* Any thread; does not wait for a block that is being read. */
SGM_API sgm_status sgm_dataset_get_status(sgm_dataset *dataset, sgm_dataset_status *status);
/* What is known of a block without reading. */
typedef struct sgm_block_status {
    int64_t examples; /* -1: it was not read so far */
    int64_t bytes;    /* that it takes in memory */
    bool in_memory;   /* fetching it waits for nothing */
    bool on_disk;     /* the cache file has it */
    int32_t users;    /* that have fetched and not released it */
} sgm_block_status;
/* Of a dataset that is no view. Any thread; whoever wants no waiting asks before it fetches. */
SGM_API sgm_status sgm_dataset_get_block_status(sgm_dataset *dataset, int64_t index,
                                                sgm_block_status *status);
/* Gives back a block that was fetched; NULL: nothing happens. */
SGM_API void sgm_dataset_release_block(sgm_dataset *dataset, const sgm_block *block);
/* Number of examples in all; reads the whole set once if it must. */
SGM_API sgm_status sgm_dataset_examples(sgm_dataset *dataset, int64_t *examples);
/* Shape of one example of a field. */
SGM_API sgm_status sgm_dataset_field_shape(sgm_dataset *dataset, const char *field, sgm_shape *shape);
/* State of adaptive preprocessors (see sgm_extractor_type), learnt now if it was not yet. `numbers` NULL:
 * only *count; else *count is the room on entry. Setting it drops the blocks that were extracted with another
 * one. */
SGM_API sgm_status sgm_dataset_get_state(sgm_dataset *dataset, double *numbers, size_t *count);
/* Sets the state of adaptive preprocessors, so that they learn nothing. */
SGM_API sgm_status sgm_dataset_set_state(sgm_dataset *dataset, const double *numbers, size_t count);

/* Ready-made, fields "inputs" and "targets" (one-hot). Names: iris, digits, digits-test, mnist, mnist-test,
 * xor, and, wdbc, tictactoe, or text:PATH (windows of characters, one-hot over 256, and the next ones).
 * digits: the first 1,500 of the examples in a fixed shuffled order are for training, 297 are the test.
 * Unknown names: an error with the nearest. */
SGM_API sgm_dataset *sgm_dataset_open(const char *name);
/* Names of ready-made and registered datasets, *count of them; they stay. */
SGM_API const char *const *sgm_dataset_names(size_t *count);

/* The version of sgm_dataset_type. */
#define SGM_DATASET_API 1
/* A dataset of your own by a name, so that files and sgm_dataset_open find it: mostly a reader and what
 * follows it. A static table. */
typedef struct sgm_dataset_type {
    uint32_t api;           /* SGM_DATASET_API */
    const char *name, *doc; /* before the colon; what it is, in a line */
    /* Gets what follows the colon of "NAME:ARGUMENT", such as a path; NULL: the name stands alone. Returns
     * NULL after sgm_fail on failure. */
    sgm_dataset *(*open)(const char *argument);
} sgm_dataset_type;
/* Makes a dataset known by its name. `type` must stay; any thread. */
SGM_API sgm_status sgm_register_dataset(const sgm_dataset_type *type);

/* The tokens of a text in windows: fields "inputs" and "targets", (window) each, the targets one token on.
 */
typedef struct sgm_token_options {
    size_t struct_size;
    int64_t window;  /* tokens of an example; default 64 */
    int64_t step;    /* tokens from one example's beginning to the next's; default: the window */
    int64_t streams; /* the text in so many parts of equal length, whose first examples come first, then their
                      * second ones, ...: minibatches of so many examples, not shuffled, go on with each
                      * other; default 1 */
} SGM_BY_NAME sgm_token_options;
/* Options for sgm_token_dataset: SGM_TOKENS(.window = 32). */
#define SGM_TOKENS(...) SGM_OPTIONS(sgm_token_options, __VA_ARGS__)
/* Takes nothing, and keeps the tokens in memory. Options: SGM_TOKENS(.window = 32), or NULL. */
SGM_API sgm_dataset *sgm_token_dataset(const char *name, const sgm_tokenizer *tokenizer, const void *text,
                                       size_t size, const sgm_token_options *options);

/* --- iterators --- */
/* What gives a dataset's examples batch by batch, epoch after epoch; one thread at a time. */
typedef struct sgm_iterator sgm_iterator;
typedef struct sgm_iterator_options {
    size_t struct_size;
    int64_t size;     /* minibatch: examples, default 32; the last of an epoch may be smaller */
    uint64_t seed;    /* of the order; the order is a function of seed and epoch only */
    bool no_shuffle;  /* minibatch: in the order of the dataset */
    bool drop_last;   /* minibatch: leave a smaller last one out */
    bool no_prefetch; /* do not read the next block, nor augment, on threads of their own */
    /* Changes of the examples, "rotate(10) + shift(2) + mixup(0.2)": see below. For training data. */
    const char *augment;
    int64_t prefetch_threads; /* that augment the next minibatches, default 1, at most 64 */
} SGM_BY_NAME sgm_iterator_options;
/* Minibatches: a shuffled order of blocks, and of examples in a block. */
#define sgm_minibatches(...) SGM_WITH_OPTIONS(sgm_minibatches_with, sgm_iterator_options, __VA_ARGS__)
SGM_API sgm_iterator *sgm_minibatches_with(sgm_dataset *dataset,
                                           const sgm_iterator_options *options); /* retains it */
/* An iterator over whole blocks in their order; it retains the dataset. NULL on failure. */
SGM_API sgm_iterator *sgm_by_block(sgm_dataset *dataset);
/* An iterator that joins all blocks to one batch, once an epoch; it retains the dataset. */
SGM_API sgm_iterator *sgm_full_batch(sgm_dataset *dataset);
/* The next batch of the epoch; NULL in *batch ends the epoch, and the call after that begins the next one.
 * The batch belongs to the iterator and is valid until its next call. After the first epoch no memory is
 * allocated for batches of known size. */
SGM_API sgm_status sgm_iterator_next(sgm_iterator *iterator, const sgm_block **batch);
/* Where it stands: enough to go on exactly from here in another process. */
typedef struct sgm_iterator_state {
    int64_t epoch;   /* epochs ended */
    int64_t batches; /* given in the current epoch */
    /* Of minibatches in the current epoch, if another one was set for the next: what was set counts
     * otherwise, as it does with a size of 0. */
    int64_t size;
    bool no_shuffle, drop_last; /* as in sgm_iterator_options */
    int64_t examples;           /* of the current epoch, of a dataset that grows; 0: all that are there */
} sgm_iterator_state;
/* Writes down where the iterator stands. */
SGM_API void sgm_iterator_get_state(const sgm_iterator *iterator, sgm_iterator_state *state);
/* Goes to a place that sgm_iterator_get_state wrote down, of the same dataset and options. */
SGM_API sgm_status sgm_iterator_set_state(sgm_iterator *iterator, const sgm_iterator_state *state);
/* The dataset that it reads; the iterator's. */
SGM_API sgm_dataset *sgm_iterator_dataset(sgm_iterator *iterator);
/* How many batches the epoch at hand has. */
SGM_API sgm_status sgm_iterator_batches(sgm_iterator *iterator, int64_t *batches);
SGM_API void sgm_iterator_free(sgm_iterator *iterator);
/* The members of sgm_iterator_options as rows, *count of them. */
SGM_API const sgm_setting *sgm_iterator_settings(size_t *count);
/* "minibatch_size", "shuffle" or "drop_last" of minibatches (others are read only): what is set counts from
 * the next epoch on, so that an epoch has each example once; before its first batch, from this one on.
 * sgm_iterator_get gives what was set last, sgm_iterator_batches the number of the epoch at hand. */
SGM_API sgm_status sgm_iterator_set(sgm_iterator *iterator, const char *name, const sgm_content *content);
/* The value that was set last, or that of the options. */
SGM_API sgm_status sgm_iterator_get(const sgm_iterator *iterator, const char *name, sgm_content *content);

/* --- augmentation: examples of training data, changed a little and differently in each epoch ---
 *
 * "rotate(10) + shift(2) + mixup(0.2)": the steps are done in the order in which they stand, on the field
 * "inputs" of each minibatch, before it is given; mixup also mixes the other fields. None changes a shape.
 * What is drawn is a function of the iterator's seed, the epoch, the example's place in its order, and the
 * step's place in the text, and of nothing else: not of threads, and not of where a run was interrupted. */
#define SGM_MAX_AUGMENTATIONS 16 /* steps in a text */
/* What a step can be: a row of the library's table. */
typedef struct sgm_augmentation_type {
    const char *name, *doc; /* as it is written; what it does, in a line */
    bool pictures;          /* wants examples of the shape (height, width) or (channels, height, width) */
    const sgm_option *arguments; /* numbers, in the order in which they may stand without their names */
    size_t argument_count;       /* rows of `arguments` */
} sgm_augmentation_type;
/* The types of steps by index from 0; NULL past the last one. */
SGM_API const sgm_augmentation_type *sgm_augmentation_at(size_t index);
/* Whether sgm_minibatches would take the text: its names, arguments and bounds. */
SGM_API sgm_status sgm_augmentation_check(const char *text);

#ifdef __cplusplus
}
#endif
#endif
