/* A network that was trained on columns of texts, as an ONNX model: it takes tokens, what fills up among
 * them, and predicts what the trainer predicts for the texts. (tests/cli/test_labelled_texts.sh compares the
 * exported C.) */
#include "base/base.h"
#include "data/data_test.h"
#include <sigma/sigma.h>

#include <math.h>

#define ROWS 40
#define WINDOW 9
static const char *const names[] = {"word", "age"};

/* Words of different lengths, some of them missing, and ages. */
static void make_cells(char texts[ROWS][2][16], const char **cells)
{
    static const char *const words[] = {"red", "green", "", "a longer one", "\xc3\xa9", "violet"};
    for (int i = 0; i < ROWS; i++) {
        snprintf(texts[i][0], sizeof texts[i][0], "%s", words[i % 6]);
        snprintf(texts[i][1], sizeof texts[i][1], "%d", 3 + i * 7 % 11);
        cells[2 * i] = texts[i][0];
        cells[2 * i + 1] = texts[i][1];
    }
}

static sgm_pipeline *make_pipeline(const char *const *cells)
{
    sgm__text rows = {0};
    sgm__text_append(&rows, "word,age,class\n");
    for (int i = 0; i < ROWS; i++)
        sgm__text_append(&rows, "%s,%s,%s\n", cells[2 * i], cells[2 * i + 1], i % 6 < 2 ? "warm" : "cold");
    CHECK_OK(sgm__file_write_atomic(data_path("words.csv"), rows.data, rows.length));
    sgm__text_free(&rows);
    sgm_table *table = sgm_table_open(data_path("words.csv"));
    sgm_pipeline *pipeline =
        sgm_pipeline_fit(table, .targets = {"class"}, .text_columns = {"word"}, .window = WINDOW);
    sgm_table_free(table);
    CHECK_OK(pipeline);
    return pipeline;
}

static sgm_trainer *train(sgm_env *env, sgm_pipeline *pipeline, const char *network)
{
    sgm_dataset *data =
        sgm_dataset_create("words", .extractor = sgm_pipeline_extractor(pipeline, data_path("words.csv")));
    CHECK_OK(sgm_dataset_set_pipeline(data, pipeline));
    sgm_trainer *trainer = sgm_trainer_create(env, "words");
    CHECK_OK(sgm_trainer_set_network(trainer, network));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.01)));
    CHECK_OK(sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = 10)));
    CHECK_OK(sgm_env_run(env, .epochs = 3));
    sgm_dataset_free(data);
    return trainer;
}

static void set(sgm_onnx *model, const char *name, sgm_dtype dtype, int64_t width, const double *numbers)
{
    sgm_shape shape = sgm_shape_of(ROWS, width);
    sgm_tensor *tensor = sgm_tensor_create(dtype, &shape);
    CHECK_OK(sgm_tensor_write(tensor, numbers, (size_t)(ROWS * width)));
    CHECK_OK(sgm_onnx_set(model, name, tensor));
    sgm_tensor_free(tensor);
}

/* Bytes and 256 behind them; the last text gets `last` as its first token. */
static void run(sgm_onnx *model, const char *const *cells, double last, double *numbers)
{
    double tokens[ROWS * WINDOW], ages[ROWS];
    for (int i = 0; i < ROWS; i++) {
        size_t length = strlen(cells[2 * i]);
        for (size_t k = 0; k < WINDOW; k++)
            tokens[(size_t)i * WINDOW + k] = k < length ? (unsigned char)cells[2 * i][k] : 256;
        ages[i] = atof(cells[2 * i + 1]);
    }
    if (!isnan(last))
        tokens[(ROWS - 1) * WINDOW] = last;
    set(model, "word", SGM_INT64, WINDOW, tokens);
    set(model, "age", SGM_FLOAT64, 1, ages);
    CHECK_OK(sgm_onnx_run(model));
    sgm_tensor *outputs = sgm_onnx_get(model, sgm_onnx_output_at(model, 0));
    CHECK_OK(outputs);
    CHECK_OK(sgm_tensor_read(outputs, numbers, 2 * ROWS));
    sgm_tensor_free(outputs);
}

/* The trainer predicts by way of the pipeline, from texts. */
static void reference(sgm_trainer *trainer, const sgm_pipeline *pipeline, const char *const *cells,
                      double *wanted)
{
    sgm_block *block = sgm_pipeline_apply(pipeline, names, 2, cells, ROWS);
    sgm_tensor *outputs = block != NULL ? sgm_trainer_predict_block(trainer, block, NULL) : NULL;
    CHECK_OK(outputs);
    CHECK_OK(sgm_tensor_read(outputs, wanted, 2 * ROWS));
    sgm_tensor_free(outputs);
    sgm_block_free(block);
}

static void check(const char *network)
{
    static char texts[ROWS][2][16];
    const char *cells[2 * ROWS];
    double wanted[2 * ROWS], numbers[2 * ROWS];
    make_cells(texts, cells);
    sgm_pipeline *pipeline = make_pipeline(cells);
    sgm_env *env = sgm_env_create("words", .seed = 2);
    sgm_trainer *trainer = train(env, pipeline, network);
    reference(trainer, pipeline, cells, wanted);
    sgm_status status = sgm_trainer_export_onnx(trainer, data_path("words.onnx"));
    bool has_onnx = status != SGM_ERROR_UNSUPPORTED || strstr(sgm_last_error(), "built without ONNX") == NULL;
    sgm_onnx *model = has_onnx ? sgm_onnx_load(data_path("words.onnx"), .handler = "cpu") : NULL;
    if (has_onnx) {
        CHECK_OK(status);
        CHECK_OK(model);
        run(model, cells, NAN, numbers);
        for (int i = 0; i < 2 * ROWS; i++)
            CHECK_NEAR(numbers[i], wanted[i], 1e-6);
        for (int wrong = -1; wrong <= 257; wrong += 258) { /* no byte, and not what fills up */
            run(model, cells, wrong, numbers);
            CHECK_NEAR(numbers[0], wanted[0], 1e-6);
            CHECK(isnan(numbers[2 * ROWS - 1]));
        }
    }
    sgm_onnx_free(model);
    sgm_env_free(env);
    sgm_pipeline_free(pipeline);
}

TEST(tokens_alone)
{
    check("w = input(9, name=word) + embedding(257, 4) + permute(2, 1) + convolution_1d(6, 3, relu, same)"
          " + global_max_pooling; a = input(1); concatenate(w, a) + dense(2) + softmax_cross_entropy");
}

TEST(tokens_with_lengths)
{
    check("w = input(9, name=word, lengths=word_length) + embedding(257, 4) + gru(5, bidirectional)"
          " + global_average_pooling(steps); a = input(1); concatenate(w, a) + dense(2) + "
          "softmax_cross_entropy");
}
