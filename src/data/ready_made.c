/* Opens datasets by name: small ones from the data folder, MNIST from the web, some that are computed, and
 * text files.
 *
 * sgm_dataset_open builds for each name a chain of source, reader, extractor and preprocessors, as a program
 * would with <sigma/data.h>; the fields are "inputs" and "targets", the targets one-hot. The files are looked
 * for by read/source_datasets.c. Called by programs and by the command (cli/config/experiment.c). Data of a
 * user's own are described in the file of settings instead, which cli/config/ reads. Orders are fixed by
 * ORDER_SEED, so that results can be compared between programs and between machines. */
#include "data/dataset.h"

#include <pthread.h>
#include <stdatomic.h>

#define MNIST_URL "https://storage.googleapis.com/cvdf-datasets/mnist/"
/* The examples of "digits": the first DIGITS_TRAINING in the shuffled order are for training, the others are
 * "digits-test". */
#define DIGITS 1797
#define DIGITS_TRAINING 1500
#define TEXT_WINDOW 64 /* characters of an example of a text */
/* The seed of the shuffled orders; with another one programs would learn from other examples */
#define ORDER_SEED 1

/* As block_size: all examples in one block, so that a shuffle mixes the whole set and a split cuts the whole
 * set. */
#define ONE_BLOCK (-1)

/* A file that examples are read from. With a URL it is fetched where it is not on this machine; the checksum
 * is that of the file at the URL. */
typedef struct known_file {
    const char *name, *url, *sha256;
} known_file;

static const known_file iris_file = {.name = "iris.csv"}, wdbc_file = {.name = "wdbc.csv.gz"},
                        digits_file = {.name = "digits.csv.gz"};

static sgm_source *source_of(const known_file *file)
{
    return sgm_known_source(file->name, file->url, file->sha256);
}

/* --- tables --- */

static sgm_dataset *open_iris(const char *name)
{
    sgm_reader *reader = sgm_csv_reader(source_of(&iris_file), .skip_rows = 1);
    sgm_extractor *table = sgm_csv_extractor(reader, .fields = {{"inputs", 0, 3}, {"targets", 4, 4}});
    sgm_extractor *scaled = sgm_adaptive_per_index(table, .field = "inputs");
    sgm_extractor *encoded = sgm_one_hot(scaled, .field = "targets", .classes = 3);
    return sgm_dataset_create(name, .extractor = sgm_shuffle(encoded, .seed = ORDER_SEED),
                              .block_size = ONE_BLOCK);
}

static sgm_dataset *open_wdbc(const char *name)
{
    sgm_reader *reader = sgm_csv_reader(source_of(&wdbc_file), .skip_rows = 1);
    sgm_extractor *table = sgm_csv_extractor(reader, .fields = {{"inputs", 0, 29}, {"targets", 30, 30}});
    sgm_extractor *scaled = sgm_adaptive_per_index(table, .field = "inputs");
    sgm_extractor *encoded = sgm_one_hot(scaled, .field = "targets", .classes = 2);
    return sgm_dataset_create(name, .extractor = sgm_shuffle(encoded, .seed = ORDER_SEED),
                              .block_size = ONE_BLOCK);
}

/* The extractor function of a preprocessor: reshapes inputs from (examples, 64) to (examples, 8, 8). The
 * values are not copied. */
static sgm_status image_extract(void *self, sgm_extractor *parent, int64_t count, sgm_block **block)
{
    (void)self;
    SGM_TRY(sgm_extractor_extract(parent, count, block));
    if (!*block)
        return SGM_OK;
    sgm_field *inputs = sgm__block_find(*block, "inputs");
    sgm_shape shape = sgm_shape_of((*block)->count, 8, 8);
    sgm_tensor *images = inputs ? sgm_tensor_reshape(inputs->values, &shape) : NULL;
    if (!images)
        return sgm_last_status();
    sgm_tensor_free(inputs->values);
    inputs->values = images;
    return SGM_OK;
}

/* Both parts are views of the same shuffled block, so no example is in both. */
static sgm_dataset *open_digits(const char *name)
{
    static const sgm_extractor_type images = {.name = "8x8 images", .extract = image_extract};
    sgm_reader *reader = sgm_csv_reader(source_of(&digits_file), .separator = ',');
    sgm_extractor *table = sgm_csv_extractor(reader, .fields = {{"inputs", 0, 63}, {"targets", 64, 64}});
    sgm_extractor *scaled = sgm_normalise(table, .field = "inputs", .input_max = 16);
    sgm_extractor *encoded = sgm_one_hot(scaled, .field = "targets", .classes = 10);
    if (!encoded)
        return NULL;
    sgm_extractor *shaped = sgm_extractor_create(&images, NULL, encoded, NULL);
    sgm_dataset *all = sgm_dataset_create(name, .extractor = sgm_shuffle(shaped, .seed = ORDER_SEED),
                                          .block_size = ONE_BLOCK);
    const double share = (double)DIGITS_TRAINING / DIGITS;
    bool test = strcmp(name, "digits") != 0;
    sgm_dataset *part =
        all ? sgm_dataset_split_examples(all, test ? share : 0, test ? 1 - share : share) : NULL;
    sgm_dataset_free(all); /* the part keeps it */
    return part;
}

/* --- MNIST --- */

/* For training and for test: the images and the labels, two files with the same order. */
static const known_file mnist_files[2][2] = {
    {{"train-images-idx3-ubyte.gz", MNIST_URL "train-images-idx3-ubyte.gz",
      "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
     {"train-labels-idx1-ubyte.gz", MNIST_URL "train-labels-idx1-ubyte.gz",
      "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"}},
    {{"t10k-images-idx3-ubyte.gz", MNIST_URL "t10k-images-idx3-ubyte.gz",
      "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
     {"t10k-labels-idx1-ubyte.gz", MNIST_URL "t10k-labels-idx1-ubyte.gz",
      "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}}};

/* sgm_merge_extractor joins images and labels into examples. */
static sgm_dataset *open_mnist(const char *name)
{
    const known_file *images = mnist_files[strcmp(name, "mnist") != 0], *labels = images + 1;
    sgm_extractor *pixels =
        sgm_array_extractor(sgm_idx_reader(source_of(images)), .regions = {{.field = "inputs"}});
    sgm_extractor *classes =
        sgm_array_extractor(sgm_idx_reader(source_of(labels)), .regions = {{.field = "targets"}});
    sgm_extractor *scaled = sgm_normalise(pixels, .field = "inputs", .input_max = 255);
    sgm_extractor *encoded = sgm_one_hot(classes, .field = "targets", .classes = 10);
    return sgm_dataset_create(name, .extractor = sgm_merge_extractor(scaled, encoded),
                              .block_size = ONE_BLOCK);
}

/* --- made here --- */

/* A dataset of (examples, inputs) and (examples, targets) numbers, which are copied. */
static sgm_dataset *from_values(const char *name, int64_t examples, int64_t inputs, int64_t targets,
                                const float *input_values, const float *target_values)
{
    static const char *const fields[] = {"inputs", "targets"};
    sgm_shape input_shape = sgm_shape_of(examples, inputs), target_shape = sgm_shape_of(examples, targets);
    sgm_tensor *tensors[] = {sgm_tensor_create_from(SGM_FLOAT32, &input_shape, input_values),
                             sgm_tensor_create_from(SGM_FLOAT32, &target_shape, target_values)};
    sgm_dataset *made = tensors[0] && tensors[1] ? sgm_dataset_create_from(name, fields, tensors, 2) : NULL;
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    return made;
}

/* A logical function of two bits; targets are one-hot in the order false, true. */
static sgm_dataset *open_gate(const char *name)
{
    static const float inputs[] = {0, 0, 0, 1, 1, 0, 1, 1};
    static const float exclusive[] = {1, 0, 0, 1, 0, 1, 1, 0}; /* false, true */
    static const float both[] = {1, 0, 1, 0, 1, 0, 0, 1};
    return from_values(name, 4, 2, 2, inputs, strcmp(name, "xor") == 0 ? exclusive : both);
}

/* Tic-tac-toe: all 958 boards with which a game that x began can end, in a shuffled order. Inputs are the 9
 * fields, x as 1, o as -1, empty as 0; targets are one-hot in the order won by x, won by o, drawn. */
#define BOARD 9
#define BOARDS 958
#define BOARD_CODES 19683 /* 3^9: a board as a number in base 3 */

/* The boards found so far. order[i] is where the i-th board found goes. */
typedef struct boards {
    bool seen[BOARD_CODES];
    int64_t count, order[BOARDS];
    float inputs[BOARDS * BOARD], targets[BOARDS * 3];
} boards;

static bool has_line(const int board[BOARD], int player)
{
    static const int lines[8][3] = {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {0, 3, 6},
                                    {1, 4, 7}, {2, 5, 8}, {0, 4, 8}, {2, 4, 6}};
    for (int i = 0; i < 8; i++)
        if (board[lines[i][0]] == player && board[lines[i][1]] == player && board[lines[i][2]] == player)
            return true;
    return false;
}

/* Goes through all games from a board on and adds the boards at which they end. `player` moves next, `moves`
 * were made. A board that was seen is left out, as different orders of moves lead to it. */
static void play(boards *all, int board[BOARD], int player, int moves)
{
    int code = 0;
    for (int i = 0; i < BOARD; i++)
        code = code * 3 + board[i] + 1;
    if (all->seen[code])
        return;
    all->seen[code] = true;
    bool won = has_line(board, -player); /* by the player who moved last */
    if (won || moves == BOARD) {
        for (int i = 0; i < BOARD; i++)
            all->inputs[all->order[all->count] * BOARD + i] = (float)board[i];
        all->targets[all->order[all->count] * 3 + (!won ? 2 : player == 1)] = 1;
        all->count++;
        return;
    }
    for (int i = 0; i < BOARD; i++) {
        if (board[i] == 0) {
            board[i] = player;
            play(all, board, -player, moves + 1);
            board[i] = 0;
        }
    }
}

static sgm_dataset *open_tictactoe(const char *name)
{
    boards *all = sgm__calloc(1, sizeof *all);
    if (!all)
        return NULL;
    int board[BOARD] = {0};
    sgm__random random = sgm__random_make(ORDER_SEED, 0);
    sgm__permutation(&random, all->order, BOARDS);
    play(all, board, 1, 0);
    sgm_dataset *made = from_values(name, all->count, BOARD, 3, all->inputs, all->targets);
    sgm__free(all);
    return made;
}

/* Windows of a text as inputs, and the same windows one character on as targets, both one-hot over the 256
 * bytes: (examples, window, 256). The reader gives windows of one character more, of which each field takes a
 * region. */
static sgm_dataset *open_text(const char *name, const char *path)
{
    sgm_source *source = sgm_file_source(path);
    if (source && !sgm_source_exists(source)) { /* tested here so that opening fails, not the first reading */
        sgm_fail(SGM_ERROR_FILE, "dataset \"%s\": there is no file %s", name, path);
        sgm_source_free(source);
        return NULL;
    }
    sgm_reader *reader = sgm_character_reader(source, TEXT_WINDOW + 1, TEXT_WINDOW);
    sgm_extractor *windows = sgm_array_extractor(
        reader, .regions = {{"inputs", sgm_shape_of(0), sgm_shape_of(TEXT_WINDOW), {0}, 0},
                            {"targets", sgm_shape_of(1), sgm_shape_of(TEXT_WINDOW + 1), {0}, 0}});
    return sgm_dataset_create(name, .extractor = sgm_one_hot(windows, .classes = 256));
}

/* --- by name --- */

/* A name, the function that opens the dataset of this name, the file that it is read from (of two the first;
 * NULL: it is computed), and the names of its classes where numbers are not their names. */
typedef struct ready_made {
    const char *name;
    sgm_dataset *(*open)(const char *name);
    const known_file *file;
    const char *classes[4];
} ready_made;

static const ready_made ready[] = {
    {"iris", open_iris, &iris_file, {"setosa", "versicolor", "virginica"}},
    {"digits", open_digits, &digits_file, {NULL}},
    {"digits-test", open_digits, &digits_file, {NULL}},
    {"mnist", open_mnist, mnist_files[0], {NULL}},
    {"mnist-test", open_mnist, mnist_files[1], {NULL}},
    {"xor", open_gate, NULL, {"false", "true"}},
    {"and", open_gate, NULL, {"false", "true"}},
    {"wdbc", open_wdbc, &wdbc_file, {"malignant", "benign"}},
    {"tictactoe", open_tictactoe, NULL, {"won by x", "won by o", "drawn"}},
};

/* Names the classes, if there are names. Takes over the dataset: it is freed on failure, and NULL is passed
 * on. */
static sgm_dataset *with_names(sgm_dataset *made, const char *const *names)
{
    if (!made || !names[0] || sgm_dataset_set_class_names(made, names) == SGM_OK)
        return made;
    sgm_dataset_free(made);
    return NULL;
}

#define READY (sizeof ready / sizeof *ready)

const char *sgm__dataset_file(const char *name, bool *is_fetched)
{
    for (size_t i = 0; i < READY; i++)
        if (strcmp(ready[i].name, name) == 0 && ready[i].file) {
            *is_fetched = ready[i].file->url != NULL;
            return ready[i].file->name;
        }
    return NULL;
}

/* The names of the library's, then of those that programs have added, which only grow: whoever has read the
 * count may read as many without the lock. */
#define MAXIMUM_ADDED 32
static const char *names[READY + MAXIMUM_ADDED] = {"iris", "digits", "digits-test", "mnist",    "mnist-test",
                                                   "xor",  "and",    "wdbc",        "tictactoe"};
static const sgm_dataset_type *added[MAXIMUM_ADDED];
static _Atomic size_t name_count = READY;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char *const *sgm_dataset_names(size_t *count)
{
    if (count)
        *count = name_count;
    return names;
}

/* Adding a type again does nothing. The caller holds the lock. */
static sgm_status append(const sgm_dataset_type *type)
{
    size_t count = name_count;
    for (size_t i = 0; i < count; i++) {
        if (i >= READY && added[i - READY] == type)
            return SGM_OK;
        if (strcmp(names[i], type->name) == 0)
            return sgm_fail(SGM_ERROR_ARGUMENT, "there is a dataset '%s' already", type->name);
    }
    if (count == READY + MAXIMUM_ADDED)
        return sgm_fail(SGM_ERROR_STATE, "%d datasets are registered, which is all there is room for",
                        MAXIMUM_ADDED);
    added[count - READY] = type;
    names[count] = type->name;
    name_count = count + 1;
    return SGM_OK;
}

sgm_status sgm_register_dataset(const sgm_dataset_type *type)
{
    if (!type || type->api != SGM_DATASET_API || !type->name || !type->open)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a dataset wants .api = SGM_DATASET_API, a name and an open");
    if (strcmp(type->name, "text") == 0 || strpbrk(type->name, ":./"))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "a dataset cannot be called '%s': 'text' is a file's, and a name has "
                        "no colon, dot or slash",
                        type->name);
    pthread_mutex_lock(&lock);
    sgm_status status = append(type);
    pthread_mutex_unlock(&lock);
    return status;
}

/* The added type whose name stands in front of a colon, or alone; NULL: there is none. */
static const sgm_dataset_type *find_added(const char *name)
{
    size_t length = strcspn(name, ":"), count = name_count;
    for (size_t i = READY; i < count; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return added[i - READY];
    return NULL;
}

/* True for names that look like paths: whoever gives one probably wants a file of their own, which this
 * function cannot open. */
static bool looks_like_file(const char *name)
{
    return strpbrk(name, "./") != NULL;
}

static sgm_dataset *open_named(const char *name)
{
    if (strncmp(name, "text:", 5) == 0)
        return open_text(name, name + 5);
    for (size_t i = 0; i < READY; i++)
        if (strcmp(ready[i].name, name) == 0)
            return with_names(ready[i].open(name), ready[i].classes);
    const sgm_dataset_type *type = find_added(name);
    if (type)
        return type->open(name[strlen(type->name)] == ':' ? name + strlen(type->name) + 1 : NULL);
    const char *nearest = sgm__nearest(name, names, name_count);
    sgm_fail(SGM_ERROR_NOT_FOUND,
             "there is no dataset \"%s\"%s%s%s; the names are iris, digits, digits-test, mnist, "
             "mnist-test, xor, and, wdbc, tictactoe, text:PATH%s",
             name, nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "",
             looks_like_file(name)
                 ? "; a table or array of yours is described: 'csv:' or 'inputs:' in a file "
                   "for sigma train, a reader in C"
                 : "");
    return NULL;
}

/* The parts of a chain take a NULL for the result of an earlier failure and keep that failure's message
 * (sgm__missing_part), so an old error of this thread would be reported as the reason. It is cleared, and
 * restored if opening succeeds. */
sgm_dataset *sgm_dataset_open(const char *name)
{
    if (!name) {
        sgm__missing_part("sgm_dataset_open: a name");
        return NULL;
    }
    sgm_status before = sgm_last_status();
    char *message = before != SGM_OK ? sgm__strdup(sgm_last_error()) : NULL;
    sgm_clear_error();
    sgm_dataset *dataset = open_named(name);
    if (dataset != NULL && message != NULL)
        sgm_fail(before, "%s", message);
    sgm__free(message);
    return dataset;
}
