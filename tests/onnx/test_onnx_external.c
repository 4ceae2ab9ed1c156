/* Data of tensors in other files: where it may lie, and where not. */
#include "base/base.h"
#include "messages.h"
#include "test.h"
#include <sigma/sigma.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- a model whose one initialiser lies elsewhere --- */

/* What the model says about the place of its data; NULL: nothing. */
typedef struct external {
    const char *location, *offset, *length;
} external;

static void put_entry(protobuf_message *tensor, const char *key, const char *value)
{
    protobuf_message entry = {.length = 0};
    if (value == NULL)
        return;
    put_text(&entry, 1, key);
    put_text(&entry, 2, value);
    put_message(tensor, 13, &entry);
}

/* y = -w, with w of three float32. */
static protobuf_message make_model(external at)
{
    protobuf_message model = {.length = 0}, graph = {.length = 0}, node = {.length = 0},
                     tensor = {.length = 0};
    protobuf_message output = {.length = 0}, opset = {.length = 0};
    put_integer(&tensor, 1, 3); /* dims */
    put_integer(&tensor, 2, 1); /* float */
    put_text(&tensor, 8, "w");
    put_entry(&tensor, "location", at.location);
    put_entry(&tensor, "offset", at.offset);
    put_entry(&tensor, "length", at.length);
    put_integer(&tensor, 14, 1); /* EXTERNAL */
    put_text(&node, 1, "w");
    put_text(&node, 2, "y");
    put_text(&node, 4, "Neg");
    put_text(&output, 1, "y");
    put_message(&graph, 1, &node);
    put_message(&graph, 5, &tensor);
    put_message(&graph, 12, &output);
    put_integer(&opset, 2, 13);
    put_integer(&model, 1, 8); /* IR version */
    put_message(&model, 7, &graph);
    put_message(&model, 8, &opset);
    return model;
}

/* --- a folder for it --- */

static char outer[] = "/tmp/sigma-external-XXXXXX", folder[64];

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Eight float32 from 0 on, in a file of that path. */
static void write_numbers(const char *path)
{
    float numbers[8];
    for (int i = 0; i < 8; i++)
        numbers[i] = (float)i;
    CHECK_OK(sgm__file_write_atomic(path, numbers, sizeof numbers));
}

/* OUTER/secret is beside the model's folder, OUTER/model. */
static void open_folder(void)
{
    char path[128];
    sgm_clear_error();
    sgm_onnx_free(sgm_onnx_parse("", 0, NULL));
    if (sgm_last_status() == SGM_ERROR_UNSUPPORTED)
        SKIP("built without ONNX");
    CHECK(mkdtemp(outer) != NULL);
    snprintf(folder, sizeof folder, "%s/model", outer);
    CHECK(mkdir(folder, 0700) == 0 && mkdir(in_folder("below"), 0700) == 0);
    snprintf(path, sizeof path, "%s/secret", outer);
    write_numbers(path);
    write_numbers(in_folder("weights"));
    write_numbers(in_folder("below/weights"));
    CHECK(symlink("weights", in_folder("link")) == 0);
    CHECK(symlink("below", in_folder("link_to_folder")) == 0);
    CHECK(mkfifo(in_folder("pipe"), 0600) == 0);
}

static void close_folder(void)
{
    static const char *const names[] = {"below/weights",  "weights", "link",
                                        "link_to_folder", "pipe",    "model.onnx"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(in_folder(names[i]));
    rmdir(in_folder("below"));
    rmdir(folder);
    snprintf(folder, sizeof folder, "%s/secret", outer);
    unlink(folder);
    rmdir(outer);
    memcpy(outer + strlen(outer) - 6, "XXXXXX", 6);
}

static sgm_onnx *load(external at)
{
    protobuf_message model = make_model(at);
    CHECK_OK(sgm__file_write_atomic(in_folder("model.onnx"), model.bytes, model.length));
    sgm_clear_error();
    return sgm_onnx_load(in_folder("model.onnx"), .handler = "reference");
}

/* y begins with -first. */
static void check_loads(external at, double first)
{
    double y[3];
    sgm_onnx *model = load(at);
    CHECK_OK(model);
    CHECK_OK(sgm_onnx_run(model));
    sgm_tensor *output = sgm_onnx_get(model, "y");
    CHECK_OK(output);
    CHECK_OK(sgm_tensor_read(output, y, 3));
    for (int i = 0; i < 3; i++)
        CHECK(y[i] == -(first + i));
    sgm_tensor_free(output);
    sgm_onnx_free(model);
}

TEST(data_in_another_file_is_read)
{
    open_folder();
    check_loads((external){"weights", "4", "12"}, 1);
    check_loads((external){"weights", NULL, "12"}, 0);
    check_loads((external){"weights", "20", NULL}, 5);
    check_loads((external){"below/weights", "8", "12"}, 2);
    close_folder();
}

TEST(data_is_read_beside_the_model_only)
{
    open_folder();
    char absolute[128];
    snprintf(absolute, sizeof absolute, "%s/weights", folder);
    const char *const outside[] = {"../secret", "below/../../secret", "./weights", "",
                                   absolute,    "below//weights"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        CHECK_ERROR(load((external){outside[i], "0", "12"}),
                    "only files in the model's folder or below are read");
    CHECK_ERROR(load((external){"link", "0", "12"}), "a symbolic link");
    CHECK_ERROR(load((external){"link_to_folder/weights", "0", "12"}), "a symbolic link");
    CHECK_ERROR(load((external){"pipe", "0", "12"}), "no ordinary file");
    CHECK_ERROR(load((external){"below", "0", "12"}), "no ordinary file");
    CHECK_ERROR(load((external){"absent", "0", "12"}), "'absent' beside the model, which cannot be opened");
    CHECK_ERROR(load((external){NULL, "0", "12"}), "no 'location'");
    close_folder();
}

TEST(places_beyond_the_file_are_errors)
{
    open_folder();
    CHECK_ERROR(load((external){"weights", "24", "12"}), "from byte 24 on, 12 bytes; the file has 32");
    CHECK_ERROR(load((external){"weights", "33", NULL}), "the file has 32");
    CHECK_ERROR(load((external){"weights", "9223372036854775807", "12"}), "the file has 32");
    CHECK_ERROR(load((external){"weights", "4", "9223372036854775807"}), "the file has 32");
    CHECK_ERROR(load((external){"weights", "9223372036854775808", "12"}), "the 'offset' of its data");
    CHECK_ERROR(load((external){"weights", "-4", "12"}), "the 'offset' of its data in another file is '-4'");
    CHECK_ERROR(load((external){"weights", "0", "12 "}), "the 'length' of its data");
    CHECK_ERROR(load((external){"weights", "0", "16"}), "its shape (3,) wants 3 elements, but there are 4");
    CHECK(strstr(sgm_last_error(), "tensor 'w'") != NULL);
    close_folder();
}

TEST(a_model_in_memory_has_no_other_files)
{
    protobuf_message model = make_model((external){"weights", "0", "12"});
    open_folder();
    CHECK_ERROR(sgm_onnx_parse(model.bytes, model.length, NULL), "load it by its path");
    close_folder();
}
