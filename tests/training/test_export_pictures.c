/* A network that was trained on pictures, exported: the C and the ONNX model predict of bytes what the
 * trainer predicts of the files. */
#include "compiled.h"
#include "data/data_test.h"
#include "data/image_files.h"
#include <sigma/sigma.h>

#include <sys/stat.h>

#define SIDE 8
#define EACH 6
#define COUNT (2 * EACH)
#define TOLERANCE 1e-6

static unsigned char pixels[COUNT][SIDE * SIDE * 3]; /* of the pictures in the order of the list */

/* Noise, redder in one class than in the other; the quote has to be written in C as one. */
static sgm_files *make_pictures(int channels)
{
    static const char *const classes[] = {"a \"red\" one", "blue"};
    uint64_t state = 5;
    mkdir(data_path("pets"), 0755);
    for (int k = 0; k < COUNT; k++) {
        char folder[256], path[320];
        snprintf(folder, sizeof folder, "%s/%s", data_path("pets"), classes[k % 2]);
        mkdir(folder, 0755);
        snprintf(path, sizeof path, "%s/%02d.png", folder, k);
        for (int i = 0; i < SIDE * SIDE * channels; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            pixels[k][i] = (unsigned char)((state >> 56) / 2 + (i % channels == 0 && k % 2 == 0 ? 100 : 0));
        }
        image_write_png(path, SIDE, SIDE, channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, 8,
                        PNG_INTERLACE_NONE, pixels[k]);
    }
    return sgm_files_open(data_path("pets"), "pictures");
}

typedef struct trained {
    sgm_env *env;
    sgm_trainer *trainer;
    double wanted[COUNT * 2]; /* what it predicts of the files */
} trained;

static trained train(int channels)
{
    trained t = {.env = sgm_env_create("pets", .seed = 2)};
    sgm_files *files = make_pictures(channels);
    sgm_pipeline *pipeline = files != NULL ? sgm_picture_pipeline(files, .channels = channels) : NULL;
    sgm_dataset *data =
        sgm_dataset_create("pets", .extractor = sgm_files_extractor(pipeline, data_path("pets")));
    CHECK_OK(sgm_dataset_set_pipeline(data, pipeline));
    char *network = sgm_pipeline_network(pipeline);
    t.trainer = sgm_trainer_create(t.env, "pets");
    CHECK_OK(sgm_trainer_set_network(t.trainer, network));
    CHECK_OK(sgm_trainer_set_optimiser(t.trainer, sgm_adam(.learning_rate = 0.001)));
    CHECK_OK(sgm_trainer_set_data(t.trainer, sgm_minibatches(data, .size = 4)));
    CHECK_OK(sgm_env_run(t.env, .epochs = 2));

    sgm_file list[COUNT];
    for (int i = 0; i < COUNT; i++)
        list[i] = (sgm_file){.name = sgm_files_path(files, i)};
    sgm_block *block = sgm_pipeline_files(pipeline, list, COUNT);
    sgm_tensor *outputs = sgm_trainer_predict_block(t.trainer, block, NULL);
    CHECK_OK(outputs);
    CHECK_OK(sgm_tensor_read(outputs, t.wanted, COUNT * 2));
    sgm_tensor_free(outputs);
    sgm_block_free(block);
    sgm_string_free(network);
    sgm_dataset_free(data);
    sgm_pipeline_free(pipeline);
    sgm_files_free(files);
    return t;
}

static void compare(const char *way, const double *actual, const double *wanted, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(actual[i] - wanted[i]) <= TOLERANCE))
            TEST_FAIL("%s: output %d: %.12g, expected %.12g", way, (int)i, actual[i], wanted[i]);
}

static void compare_c(const trained *t)
{
    int (*predict_pixels)(const unsigned char *pixels, float *outputs);
    const char *(*class_of)(int index);
    const char *source = data_path("pets.c");
    CHECK_OK(sgm_trainer_export_c(t->trainer, source, .name = "pets", .batch = 2));
    void *library = load_c_file(source, "", data_path("pets.so"));
    find_c(library, "pets_predict_pixels", &predict_pixels);
    find_c(library, "pets_class", &class_of);
    CHECK_STR(class_of(0), "a \"red\" one");
    CHECK_STR(class_of(1), "blue");
    CHECK(class_of(2) == NULL);
    for (int k = 0; k < COUNT; k += 2) {
        unsigned char two[2 * sizeof *pixels];
        size_t size = sizeof *pixels;
        sgm_shape shape;
        CHECK_OK(sgm_pipeline_shape(sgm_trainer_get_pipeline(t->trainer), "inputs", &shape));
        size = (size_t)sgm_shape_elements(&shape);
        memcpy(two, pixels[k], size);
        memcpy(two + size, pixels[k + 1], size);
        float outputs[4];
        CHECK_INT(predict_pixels(two, outputs), 0);
        double numbers[4] = {outputs[0], outputs[1], outputs[2], outputs[3]};
        compare("C", numbers, t->wanted + 2 * k, 4);
    }
    dlclose(library);
}

/* (pictures, channels, height, width), as models of other programs have them. */
static sgm_tensor *planes(int channels)
{
    sgm_shape shape = sgm_shape_of(COUNT, channels, SIDE, SIDE);
    sgm_tensor *tensor = sgm_tensor_create(SGM_UINT8, &shape);
    unsigned char *to = sgm_tensor_data(tensor);
    for (int k = 0; k < COUNT; k++)
        for (int c = 0; c < channels; c++)
            for (int i = 0; i < SIDE * SIDE; i++)
                *to++ = pixels[k][i * channels + c];
    return tensor;
}

static void compare_onnx(const trained *t, int channels)
{
    const char *path = data_path("pets.onnx");
    sgm_status status = sgm_trainer_export_onnx(t->trainer, path);
    if (status == SGM_ERROR_UNSUPPORTED)
        return; /* built without ONNX; tests of it say so */
    CHECK_OK(status);
    sgm_onnx *model = sgm_onnx_load(path, .handler = "cpu");
    CHECK_OK(model);
    sgm_tensor *inputs = planes(channels);
    CHECK_OK(sgm_onnx_set(model, "inputs", inputs));
    CHECK_OK(sgm_onnx_run(model));
    sgm_tensor *outputs = sgm_onnx_get(model, sgm_onnx_output_at(model, 0));
    double numbers[COUNT * 2];
    CHECK_OK(sgm_tensor_read(outputs, numbers, COUNT * 2));
    compare("ONNX", numbers, t->wanted, COUNT * 2);
    sgm_tensor_free(outputs);
    sgm_tensor_free(inputs);
    sgm_onnx_free(model);
}

static void predict_everywhere(int channels)
{
    trained t = train(channels);
    CHECK(fabs(t.wanted[0] - t.wanted[2]) > 1e-3); /* classes differ, so that a wrong order would show */
    compare_c(&t);
    compare_onnx(&t, channels);
    sgm_env_free(t.env);
}

TEST(exported_networks_take_the_bytes_of_pictures)
{
    predict_everywhere(3);
}

TEST(exported_networks_take_the_bytes_of_grey_pictures)
{
    predict_everywhere(1);
}
