/* Data of ONNX's tensors in other files. The bytes begin with lines, up to an empty one:
 *
 *     tensor TYPE DIM DIM ...     begins a tensor of ONNX's type of that number
 *     KEY VALUE                   is an entry about the place of its data (location, offset, length)
 *
 * What follows the empty line is what lies in the files beside the model. A model that is loaded is run too:
 * what a tensor holds must be part of these files, so that nothing was read elsewhere. */
#include "../onnx/messages.h"
#include "fuzz.h"

#include <sys/stat.h>

#define MAXIMUM_TENSORS 64

/* What one input of the fuzzer says. */
typedef struct description {
    protobuf_message tensors[MAXIMUM_TENSORS];
    int types[MAXIMUM_TENSORS];
    int count;
    const uint8_t *rest; /* behind the empty line */
    size_t rest_length;
} description;

/* --- the folder --- */

/* SECRET is beside the model's folder; the links lead to it. */
static void prepare_folder(void)
{
    static const char secret[] = "What no tensor of a model must ever hold, as it lies outside.";
    static bool prepared;
    if (prepared)
        return;
    fuzz_write("secret", (const uint8_t *)secret, sizeof secret);
    fuzz_expect(mkdir(fuzz_path("model"), 0700) == 0, "mkdir");
    fuzz_expect(mkdir(fuzz_path("model/below"), 0700) == 0, "mkdir");
    fuzz_expect(symlink("../secret", fuzz_path("model/link")) == 0, "symlink");
    fuzz_expect(symlink("..", fuzz_path("model/up")) == 0, "symlink");
    fuzz_expect(mkfifo(fuzz_path("model/pipe"), 0600) == 0, "mkfifo");
    prepared = true;
}

/* --- the model --- */

/* "tensor TYPE DIM DIM ..." */
static void begin_tensor(description *d, const char *text)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    if (d->count == MAXIMUM_TENSORS)
        return;
    protobuf_message *tensor = &d->tensors[d->count];
    tensor->length = 0;
    tensor->full = false;
    d->types[d->count++] = (int)number;
    put_integer(tensor, 2, number); /* data_type */
    for (const char *at = end; number = strtoll(at, &end, 10), end != at; at = end)
        put_integer(tensor, 1, number); /* dims */
    put_integer(tensor, 14, 1);         /* data_location: EXTERNAL */
}

static void put_entry(description *d, const char *key, const char *value)
{
    protobuf_message entry = {.length = 0};
    put_text(&entry, 1, key);
    put_text(&entry, 2, value);
    if (d->count > 0)
        put_message(&d->tensors[d->count - 1], 13, &entry); /* external_data */
}

static void read_description(description *d, const uint8_t *data, size_t size)
{
    char line[512];
    d->count = 0;
    while (size > 0 && *data != '\n') {
        const uint8_t *end = memchr(data, '\n', size);
        size_t length = end != NULL ? (size_t)(end - data) : size;
        snprintf(line, sizeof line, "%.*s", (int)length, (const char *)data);
        char *value = strchr(line, ' ');
        if (strncmp(line, "tensor ", 7) == 0)
            begin_tensor(d, line + 7);
        else if (value != NULL) {
            *value = '\0';
            put_entry(d, line, value + 1);
        }
        data += length + (end != NULL);
        size -= length + (end != NULL);
    }
    d->rest_length = size > 0 ? size - 1 : 0;
    d->rest = d->rest_length > 0 ? data + 1 : data;
}

static void name_of(char name[8], char letter, int index)
{
    snprintf(name, 8, "%c%d", letter, index);
}

/* y0 = w0, y1 = w1 and so on. Every second w is a node's attribute: those are read when the model runs. */
static void put_tensor(protobuf_message *graph, protobuf_message *tensor, int index)
{
    char given[8], made[8];
    static protobuf_message node, attribute, output;
    node.length = attribute.length = output.length = 0;
    node.full = attribute.full = output.full = false;
    name_of(given, 'w', index);
    name_of(made, 'y', index);
    put_text(tensor, 8, given);
    put_text(&node, 2, made);
    put_text(&node, 4, index % 2 == 0 ? "Identity" : "Constant");
    if (index % 2 == 0) {
        put_text(&node, 1, given);
        put_message(graph, 5, tensor); /* initializer */
    } else {
        put_text(&attribute, 1, "value");
        put_message(&attribute, 5, tensor);
        put_integer(&attribute, 20, 4); /* type: TENSOR */
        put_message(&node, 5, &attribute);
    }
    put_message(graph, 1, &node);
    put_text(&output, 1, made);
    put_message(graph, 12, &output);
}

static bool make_model(description *d, protobuf_message *model)
{
    static protobuf_message graph, opset;
    graph.length = opset.length = model->length = 0;
    graph.full = opset.full = model->full = false;
    for (int i = 0; i < d->count; i++)
        put_tensor(&graph, &d->tensors[i], i);
    put_integer(&opset, 2, 13);
    put_integer(model, 1, 8); /* IR version */
    put_message(model, 7, &graph);
    put_message(model, 8, &opset);
    return !model->full;
}

/* --- what was read --- */

/* Whether tensors have ONNX's type as it lies in a file. */
static bool is_kept(int type)
{
    return type == 1 || type == 2 || type == 6 || type == 7 || type == 11 || type == 16;
}

static void check_outputs(const description *d, sgm_onnx *model)
{
    for (int i = 0; i < d->count; i++) {
        char name[8];
        name_of(name, 'y', i);
        sgm_tensor *output = sgm_onnx_get(model, name);
        fuzz_expect(output != NULL, "a model ran, but has no output");
        size_t size =
            (size_t)sgm_shape_elements(sgm_tensor_shape(output)) * sgm_dtype_size(sgm_tensor_dtype(output));
        fuzz_expect(!is_kept(d->types[i]) || size == 0 ||
                        memmem(d->rest, d->rest_length, sgm_tensor_const_data(output), size) != NULL,
                    "a tensor holds what is in no file of the model");
        sgm_tensor_free(output);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static description d;
    static protobuf_message bytes;
    prepare_folder();
    read_description(&d, data, size);
    if (!make_model(&d, &bytes))
        return 0;
    fuzz_write("model/weights", d.rest, d.rest_length);
    fuzz_write("model/below/weights", d.rest, d.rest_length);
    sgm_onnx *model =
        sgm_onnx_load(fuzz_write("model/model.onnx", bytes.bytes, bytes.length), .handler = "reference");
    if (model != NULL && d.count > 0 && sgm_onnx_run(model) == SGM_OK)
        check_outputs(&d, model);
    sgm_onnx_free(model);
    return 0;
}
