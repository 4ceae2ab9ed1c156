/* `sigma export`: writes a trained network for other programs, as C, as an ONNX model, or as a file of
 * weights.
 *
 * The writers are the library's (src/infer/export, src/handlers/source, sgm_trainer_save_parts); this file
 * opens the checkpoint, checks which options go together, and chooses names and numbers of examples. Each
 * format is a row of `formats`; one format is written per call. */
#include "cli.h"
#include <sigma/models.h>

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage_text[] =
    "Usage: sigma export --c FILE.c CHECKPOINT|FOLDER [--train] [--batch N] [--name NAME]\n"
    "       sigma export --onnx FILE.onnx CHECKPOINT|FOLDER [--batch N] [--name NAME] [--int8]\n"
    "       sigma export --weights FILE CHECKPOINT|FOLDER [--names NAMES]\n"
    "       sigma export --hf DIR FOLDER\n"
    "       sigma export --gguf FILE.gguf FOLDER [--type TYPE]\n"
    "       sigma export --peft DIR FOLDER\n\n"
    "Writes a trained network for other programs. Adapters become part of the weights, but with --peft.\n\n"
    "  --c FILE.c        one file of C99 that needs no library and takes no memory: the weights, and the\n"
    "                    function NAME_predict; the file says at its top how it is used\n"
    "  --onnx FILE.onnx  an ONNX model of opset 17, for other runtimes: parameters keep their names\n"
    "  --weights FILE    the parameters, FILE.npz for NumPy or FILE.safetensors\n"
    "  --hf DIR          a folder as the library transformers keeps a model, of a run that 'sigma import' "
    "made,\n"
    "                    or that was trained from one\n"
    "  --gguf FILE.gguf  such a model as a file for llama.cpp, with settings and tokenizer\n"
    "  --peft DIR        the adapters of such a run alone, as the library PEFT keeps them, and "
    "classes.json,\n"
    "                    names of classes that 'sigma import --peft' reads\n"
    "  --train           C: also NAME_train_step, which goes on training as the run did\n"
    "  --batch N         examples that one call takes (default: C: 1 for predict, the run's for\n"
    "                    train_step; ONNX: any number)\n"
    "  --name NAME       C: what all names in the file begin with; ONNX: of the graph (default: the\n"
    "                    file's name)\n"
    "  --int8            ONNX: weights of dense and recurrent layers and of attention in 8 bits, a quarter "
    "of the\n"
    "                    file, by DynamicQuantizeLinear and MatMulInteger; a line says how many products\n"
    "                    and bytes that were, 'sigma eval --int8' about what it costs in accuracy\n"
    "  --type TYPE       GGUF: of the matrices, f32, f16, bf16 or q8_0 (default: as the model had them)\n"
    "  --names NAMES     weights: 'torch', or 'torch(LAYER=MODULE, ...)': under PyTorch's names and in\n"
    "                    its layouts\n\n"
    "Of a network that was trained on a table by its columns' names, C and ONNX take raw columns and give\n"
    "numbers in the table's units: C has NAME_predict_rows, ONNX an input for each column.\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.\n";

/* What was asked for; texts are argv's. `path` is the file of the chosen format. */
typedef struct export_options {
    const char *path, *name, *names, *type;
    const char *run; /* the folder or the checkpoint */
    bool train, int8;
    /* Examples that one call takes; -1: not given, so each format has its default. */
    int64_t batch;
} export_options;

/* The file's name without folder and ending, made an identifier of C: other characters become '_', and a
 * digit in front gets one. Free with sgm__free; NULL: out of memory. */
static char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    const char *dot = strchr(base, '.');
    char *name = sgm__format("%s%.*s", sgm__is_digit(*base) ? "_" : "",
                             (int)(dot != NULL ? dot - base : (ptrdiff_t)strlen(base)), base);
    for (char *c = name; c != NULL && *c != '\0'; c++) {
        bool good = sgm__is_alphanumeric(*c);
        *c = good ? *c : '_';
    }
    return name;
}

/* C has a number in about so many bytes, which makes a file of a large network many times its checkpoint. */
#define BYTES_OF_A_NUMBER 16
#define MUCH_C 1e7 /* bytes, a second of writing */

/* Says how large a file becomes that takes a while, and a compiler minutes. */
static void tell_size(const saved *s)
{
    size_t count;
    double numbers = 0;
    char size[32];
    const sgm_parameter *parameters = sgm_trainer_parameters(s->trainer, &count);
    for (size_t i = 0; i < count; i++)
        numbers += (double)sgm_shape_elements(&parameters[i].type.shape);
    if (BYTES_OF_A_NUMBER * numbers > MUCH_C)
        complain("note: %.4g million parameters become about %s of C\n", numbers / 1e6,
                 sgm_bytes_text(BYTES_OF_A_NUMBER * numbers, size, sizeof size));
}

/* Two numbers of examples: predictions default to 1 for each call, training steps to the minibatch of the
 * run. */
static sgm_status export_c(const saved *s, const export_options *w)
{
    char *name = w->name != NULL ? sgm__strdup(w->name) : name_of(w->path);
    tell_size(s);
    int64_t trains = w->batch > 0 ? w->batch : s->c.data.batch;
    sgm_status status = SGM_ERROR_MEMORY;
    if (name != NULL)
        status = sgm_trainer_export_c(s->trainer, w->path, .name = *name != '\0' ? name : "model",
                                      .batch = w->batch > 0 ? w->batch : 1, .train = w->train ? trains : 0);
    sgm__free(name);
    return status;
}

/* "int8: 2 of 3 matrix products became products of integers; their weights took 266.2 kB and take 67.6 kB" */
static void print_quantized(const sgm_quantized *quantized)
{
    char before[32], after[32];
    printf("int8: %lld of %lld matrix products became products of integers; their weights took %s and take "
           "%s\n",
           (long long)quantized->products, (long long)(quantized->products + quantized->others),
           sgm_bytes_text((double)quantized->bytes_before, before, sizeof before),
           sgm_bytes_text((double)quantized->bytes_after, after, sizeof after));
}

/* Without --batch the model takes any number of examples (0). */
static sgm_status export_onnx(const saved *s, const export_options *w)
{
    sgm_quantized quantized = {0};
    char *name = w->name != NULL ? sgm__strdup(w->name) : name_of(w->path);
    sgm_status status = SGM_ERROR_MEMORY;
    if (name != NULL)
        status =
            sgm_trainer_export_onnx(s->trainer, w->path, .name = name, .batch = w->batch > 0 ? w->batch : 0,
                                    .quantize = w->int8 ? "int8" : NULL, .quantized = &quantized);
    sgm__free(name);
    if (status == SGM_OK && w->int8)
        print_quantized(&quantized);
    return status;
}

/* The ending chooses the format; the library writes it. */
static sgm_status export_weights(const saved *s, const export_options *w)
{
    if (!ends_with(w->path, ".npz") && !ends_with(w->path, ".safetensors"))
        return sgm_fail(SGM_ERROR_ARGUMENT, "'%s' must end in .npz or .safetensors", w->path);
    return sgm_trainer_save_parts(s->trainer, w->path, .parts = SGM_PART_PARAMETERS, .names = w->names);
}

/* Writes the model of others that was opened, or whose description is kept in the run's folder. */
static sgm_status export_model(const saved *s, const export_options *w,
                               sgm_status (*write)(sgm_pretrained *, sgm_trainer *, const export_options *))
{
    if (s->model != NULL)
        return write(s->model, s->trainer, w);
    if (!has_file(w->run, "model/tensors.json"))
        return sgm_fail(
            SGM_ERROR_NOT_FOUND,
            "'%s' has no folder model, which 'sigma import' writes, and a training from one: only "
            "models of others can be written so",
            w->run);
    sgm_pretrained *model = sgm_pretrained_open(w->run);
    sgm_status status = model != NULL ? write(model, s->trainer, w) : sgm__last_failure();
    sgm_pretrained_free(model);
    return status;
}

/* The tokenizer in a file of GGUF is in another form than those of folders, which Sigma does not write. */
static sgm_status write_hf(sgm_pretrained *model, sgm_trainer *trainer, const export_options *w)
{
    SGM_TRY(sgm_pretrained_export(model, trainer, w->path));
    const char *tokenizer = sgm_pretrained_describe(model)->tokenizer;
    if (tokenizer != NULL && ends_with(tokenizer, ".gguf"))
        complain("warning: no tokenizer is written, as that of '%s' is in the form of GGUF: copy "
                 "tokenizer.json and tokenizer_config.json of the original model into '%s'\n",
                 w->run, w->path);
    return SGM_OK;
}

static sgm_status export_hf(const saved *s, const export_options *w)
{
    return export_model(s, w, write_hf);
}

static sgm_status write_gguf(sgm_pretrained *model, sgm_trainer *trainer, const export_options *w)
{
    return sgm_pretrained_export_gguf(model, trainer, w->path, .type = w->type);
}

/* Readers know the format by the ending. */
static sgm_status export_gguf(const saved *s, const export_options *w)
{
    if (!ends_with(w->path, ".gguf"))
        return sgm_fail(SGM_ERROR_ARGUMENT, "'%s' must end in .gguf", w->path);
    return export_model(s, w, write_gguf);
}

static sgm_status write_peft(sgm_pretrained *model, sgm_trainer *trainer, const export_options *w)
{
    return sgm_pretrained_export_adapters(model, trainer, w->path);
}

static sgm_status export_peft(const saved *s, const export_options *w)
{
    return export_model(s, w, write_peft);
}

/* What a network can be written as. */
static const struct format {
    const char *option; /* of the command line, followed by the file */
    sgm_status (*write)(const saved *s, const export_options *w);
    bool trains;     /* takes --train */
    bool rounds;     /* takes --int8 */
    bool names;      /* takes --names */
    bool batches;    /* takes --batch and --name */
    bool types;      /* takes --type */
    bool adapts;     /* writes adapters as they are; others get the network with adapters merged */
    const char *own; /* it writes a folder, which may not have this file yet */
} formats[] = {
    {.option = "--c", .write = export_c, .trains = true, .batches = true},
    {.option = "--onnx", .write = export_onnx, .rounds = true, .batches = true},
    {.option = "--weights", .write = export_weights, .names = true},
    {.option = "--hf", .write = export_hf, .own = "config.json"},
    {.option = "--gguf", .write = export_gguf, .types = true},
    {.option = "--peft", .write = export_peft, .adapts = true, .own = "adapter_config.json"},
};
#define FORMAT_COUNT (sizeof formats / sizeof *formats)

/* Makes adapters part of the weights, if there are any. */
static sgm_status merge(const saved *s)
{
    sgm_network *network = sgm_network_parse(s->network);
    size_t adapters = sgm_network_adapters(network);
    sgm_network_free(network);
    return adapters > 0 ? sgm_trainer_merge(s->trainer) : SGM_OK;
}

/* The writer refuses such a folder, too, but only when all parameters are read. */
static sgm_status check_folder(const struct format *format, const export_options *w)
{
    struct stat about;
    if (format->own == NULL || stat(w->path, &about) != 0)
        return SGM_OK;
    if (!S_ISDIR(about.st_mode))
        return sgm_fail(SGM_ERROR_FILE, "%s: '%s' is a file, where a folder is made; choose another name",
                        format->option, w->path);
    return !has_file(w->path, format->own)
               ? SGM_OK
               : sgm_fail(SGM_ERROR_FILE, "%s: '%s' has %s already; choose another folder", format->option,
                          w->path, format->own);
}

/* Bytes of a file, or of all files in a folder and in those in it. */
static double size_of(const char *path)
{
    struct stat about;
    if (lstat(path, &about) != 0)
        return 0;
    if (!S_ISDIR(about.st_mode))
        return (double)about.st_size;
    double sum = 0;
    DIR *entries = opendir(path);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        char *within = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0
                           ? sgm__format("%s/%s", path, entry->d_name)
                           : NULL;
        sum += within != NULL ? size_of(within) : 0;
        sgm__free(within);
    }
    if (entries != NULL)
        closedir(entries);
    return sum;
}

/* Where the file is a pipe, or the standard output, what is written there is not followed by words. */
static void tell_written(const char *path)
{
    struct stat about, out;
    char size[32];
    if (fstat(STDOUT_FILENO, &out) == 0 && stat(path, &about) == 0 &&
        (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode)) &&
        (about.st_dev != out.st_dev || about.st_ino != out.st_ino))
        printf("written: %s, %s\n", path, sgm_bytes_text(size_of(path), size, sizeof size));
}

/* Opens the checkpoint and writes; returns an exit code. */
static int export_to(const struct format *format, const export_options *w)
{
    saved s;
    sgm_status status = check_folder(format, w);
    if (status == SGM_OK && (status = saved_open(&s, w->run, w->train)) == SGM_OK) {
        if (!format->adapts)
            status = merge(&s);
        if (status == SGM_OK)
            status = format->write(&s, w);
        if (status == SGM_OK)
            tell_written(w->path);
        saved_close(&s);
    }
    return status == SGM_OK ? CLI_OK : report_error("export", CLI_FAILED);
}

/* The format whose option was given; w->path becomes its file. NULL: the usage is wrong, the message is
 * printed and *code set. paths[i] is the file of formats[i], or NULL. */
static const struct format *chosen(const char *const *paths, const arguments *a, export_options *w, int *code)
{
    const struct format *format = NULL;
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (paths[i] != NULL && format != NULL) {
            *code = usage_error("export", "%s and %s: one file at a time", format->option, formats[i].option);
            return NULL;
        }
        if (paths[i] != NULL) {
            format = &formats[i];
            w->path = paths[i];
        }
    }
    if (format == NULL)
        *code = usage_error("export", "expected what to write, such as --c FILE.c");
    else if (a->word_count != 1)
        *code = usage_error("export", "expected one checkpoint or folder, got %zu", a->word_count);
    else if (!format->trains && w->train)
        *code = usage_error("export", "--train is not for %s", format->option);
    else if (!format->rounds && w->int8)
        *code = usage_error("export", "--int8 is for --onnx");
    else if (!format->batches && (w->batch > 0 || w->name != NULL))
        *code = usage_error("export", "--batch and --name are not for %s", format->option);
    else if (!format->names && w->names != NULL)
        *code = usage_error("export", "--names is not for %s", format->option);
    else if (!format->types && w->type != NULL)
        *code = usage_error("export", "--type is for --gguf");
    else
        return format;
    return NULL;
}

/* The first rules write into `paths` by the order of `formats`. */
int export_run(int argc, char **argv)
{
    const char *paths[FORMAT_COUNT] = {NULL};
    export_options w = {.batch = -1};
    const argument_rule rules[] = {
        {formats[0].option, ARGUMENT_TEXT, &paths[0]},
        {formats[1].option, ARGUMENT_TEXT, &paths[1]},
        {formats[2].option, ARGUMENT_TEXT, &paths[2]},
        {formats[3].option, ARGUMENT_TEXT, &paths[3]},
        {formats[4].option, ARGUMENT_TEXT, &paths[4]},
        {formats[5].option, ARGUMENT_TEXT, &paths[5]},
        {"--train", ARGUMENT_FLAG, &w.train},
        {"--batch", ARGUMENT_COUNT, &w.batch},
        {"--name", ARGUMENT_TEXT, &w.name},
        {"--names", ARGUMENT_TEXT, &w.names},
        {"--int8", ARGUMENT_FLAG, &w.int8},
        {"--type", ARGUMENT_TEXT, &w.type},
    };
    arguments a = {.rules = rules, .rule_count = sizeof rules / sizeof *rules, .help = usage_text};
    int code;
    if (arguments_read(&a, argc, argv, &code)) {
        const struct format *format = chosen(paths, &a, &w, &code);
        if (format != NULL) {
            w.run = a.words[0];
            code = export_to(format, &w);
        }
    }
    arguments_free(&a);
    return code;
}
