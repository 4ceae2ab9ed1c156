/* An ONNX model here: how long loading and the first run take, and each run after that. bench/infer.py calls
 * it in turns with ONNX Runtime.
 *
 *   infer MODEL.onnx THREADS SECONDS OUTPUT.npy INPUT.pb ...        (THREADS such as "1,int8": in int8)
 *
 * Inputs are tensors as in ONNX's test data, in the order of the model's. A run sets them and gets the first
 * output, which goes to OUTPUT.npy. Prints milliseconds of loading with the first run, microseconds of a run
 * (median and minimum of as many as fit the seconds), and the process's largest memory in MB.
 */
#include "measure.h"
#include <sigma/sigma.h>

#include <stdbool.h>

#define MAXIMUM_INPUTS 8
#define MAXIMUM_RUNS 100000

static void check(bool good)
{
    if (good)
        return;
    fprintf(stderr, "infer: %s\n", sgm_last_error());
    exit(1);
}

static sgm_tensor *read_tensor(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size = file != NULL && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *bytes = size >= 0 ? malloc((size_t)size + 1) : NULL;
    if (bytes == NULL || fseek(file, 0, SEEK_SET) != 0 ||
        fread(bytes, 1, (size_t)size, file) != (size_t)size) {
        fprintf(stderr, "infer: '%s' cannot be read\n", path);
        exit(1);
    }
    fclose(file);
    sgm_tensor *tensor = sgm_onnx_parse_tensor(bytes, (size_t)size);
    free(bytes);
    check(tensor != NULL);
    return tensor;
}

static sgm_tensor *run(sgm_onnx *model, sgm_tensor *const *inputs, int count)
{
    for (int i = 0; i < count; i++)
        check(sgm_onnx_set(model, sgm_onnx_input_at(model, (size_t)i, NULL), inputs[i]) == SGM_OK);
    check(sgm_onnx_run(model) == SGM_OK);
    sgm_tensor *output = sgm_onnx_get(model, sgm_onnx_output_at(model, 0));
    check(output != NULL);
    return output;
}

int main(int argc, char **argv)
{
    static double times[MAXIMUM_RUNS];
    sgm_tensor *inputs[MAXIMUM_INPUTS];
    size_t runs = 0;
    if (argc < 6 || argc > 5 + MAXIMUM_INPUTS) {
        fprintf(stderr, "usage: infer MODEL.onnx THREADS SECONDS OUTPUT.npy INPUT.pb ...\n");
        return 2;
    }
    for (int i = 5; i < argc; i++)
        inputs[i - 5] = read_tensor(argv[i]);
    double begin = now();
    sgm_onnx *model = sgm_onnx_load(argv[1], .threads = (int)strtol(argv[2], NULL, 10),
                                    .quantize = strstr(argv[2], "int8"));
    check(model != NULL);
    sgm_tensor *output = run(model, inputs, argc - 5);
    double first = now() - begin, end = now() + strtod(argv[3], NULL);
    check(sgm_npy_save(argv[4], output) == SGM_OK);
    while (runs == 0 || (now() < end && runs < MAXIMUM_RUNS)) {
        sgm_tensor_free(output);
        begin = now();
        output = run(model, inputs, argc - 5);
        times[runs++] = now() - begin;
    }
    double middle = median(times, runs); /* sorts them */
    printf("%.2f %.2f %.2f %.1f\n", first * 1e3, middle * 1e6, times[0] * 1e6, peak_megabytes());
    sgm_tensor_free(output);
    for (int i = 5; i < argc; i++)
        sgm_tensor_free(inputs[i - 5]);
    sgm_onnx_free(model);
    return 0;
}
