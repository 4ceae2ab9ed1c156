/* The struct behind sgm_pretrained, and what its files share.
 *
 * import/folder.c opens the files of a folder, import/weights.c pairs tensors with parameters and reads them,
 * import/classes.c has what concerns classes and pictures, import/run.c what a
 * run has learnt, import/pretrained.c is the way in, import/keep.c
 * writes down what an export needs, export/export.c writes a folder. import/peft_config.c,
 * import/peft_classes.c, import/adapters.c and export/adapters.c are for the folders of the library PEFT. */
#ifndef SIGMA_MODELS_PRETRAINED_H
#define SIGMA_MODELS_PRETRAINED_H

#include "architectures/architectures.h"
#include "gguf/names.h"
#include "onnx/translate.h"
#include "options.h"
#include "text.h"
#include <sigma/models.h>

#include <jansson.h>

/* The one folder in that of a model whose files are read: how vectors of tokens become one. */
#define SGM__POOLING_FOLDER "1_Pooling"
#define SGM__POOLING_CONFIG "1_Pooling/config.json"
/* Which file each tensor is in, of a model in several files. */
#define SGM__INDEX "model.safetensors.index.json"
/* In the folder of a run: what sgm_pretrained_keep writes. */
#define SGM__KEPT_FOLDER "model"
#define SGM__KEPT_TENSORS "tensors.json"
#define SGM__KEPT_REST "rest.safetensors"
/* Beside that folder. */
#define SGM__CHECKPOINT "checkpoint.safetensors"

/* In a folder of PEFT. Names of tensors begin with the prefix. */
#define SGM__PEFT_CONFIG "adapter_config.json"
#define SGM__PEFT_WEIGHTS "adapter_model.safetensors"
#define SGM__PEFT_CLASSES "classes.json" /* ["bad", "good"], of ours, which PEFT ignores */
#define SGM__PEFT_PREFIX "base_model.model."

/* A file of tensors, by its name in the folder. */
typedef struct sgm__shard {
    char *name;
    sgm_tensor_file *file; /* NULL: the folder is a kept one, without the tensors */
} sgm__shard;

/* A tensor of the files. */
typedef struct sgm__stored {
    char *name;
    size_t shard;    /* which file it is in ... */
    size_t index;    /* ... and its number there */
    sgm_dtype dtype; /* as it is read */
    bool half;       /* float16 in the file */
    const char
        *blocks; /* the type in a file of GGUF whose numbers are in blocks, "Q8_0"; NULL: they are not */
    sgm_shape shape;
    bool used; /* a parameter is made of it, or ... */
    bool copy; /* ... it has the numbers of one again */
    bool anew; /* of a last layer for other classes: its shape is the new one, and it is not read */
} sgm__stored;

/* A parameter of the network, and what it is made of. */
typedef struct sgm__made {
    char *name;
    sgm_shape shape;
    const sgm__weight *weight;
    size_t block; /* the number that '#' stands for in the tensors' names */
    sgm__stored *parts[SGM__MOST_PARTS];
} sgm__made;

struct sgm_pretrained {
    char *path;        /* of the folder with config.json, or of the file */
    bool kept;         /* it is the kept one of a run */
    char *settings;    /* for messages: where the settings are, "FOLDER/config.json" ... */
    const char *says;  /* ... and what says them, "config.json" */
    json_t *config;    /* what config.json has */
    json_t *processor; /* what preprocessor_config.json has; NULL: it is not there */
    const sgm__architecture *architecture;
    sgm__description description; /* its texts are not used after opening */
    sgm__shard *shards;
    size_t shard_count;
    sgm_tensor_file *rest;       /* of a kept folder: the tensors that the network does not use; NULL: none */
    sgm_tensor_file *checkpoint; /* of the run that a kept folder is in, once it is read; NULL: not yet */
    sgm__stored *stored;         /* sorted by name */
    size_t stored_count;
    sgm__made *made; /* in the order of the network's parameters */
    size_t made_count;
    sgm__gguf *gguf; /* the file that the tensors are in; NULL: they are in those of a folder */
    const sgm__gguf_architecture *gguf_architecture;
    bool onnx; /* it is a file of ONNX, and has none of the above but path */
    sgm__translated translated;
    char *network;
    size_t network_size;
    json_t *peft_classes;     /* names of classes in a folder of PEFT; NULL: none */
    const char **class_names; /* the same; NULL: none */
    char **adapters;          /* of a run: statements of the network that the original has not, "lora(8)" */
    size_t adapter_count;
    char *tokenizer;
    sgm_pretrained_info info;
};

#define SGM__TRY(call)                                                                                       \
    do {                                                                                                     \
        sgm_status try_status = (call);                                                                      \
        if (try_status != SGM_OK)                                                                            \
            return try_status;                                                                               \
    } while (0)

/* --- import/folder.c --- */
/* The small files beside the tensors, NULL past the last: the first ones are tokenizers. */
const char *sgm__small_file_at(size_t index);
/* Whether the folder has such a file. */
bool sgm__folder_has(const char *folder, const char *name);
/* The path of a file of the folder; free with free. NULL and an error if the name leads out of it. */
char *sgm__folder_path(const char *folder, const char *name);
/* What a file of the folder has; the caller releases it. Optional ones may be missing: *json is NULL then. */
sgm_status sgm__folder_json(const char *folder, const char *name, json_t **json);
sgm_status sgm__folder_optional_json(const char *folder, const char *name, json_t **json);
/* Opens all files of tensors and lists what is in them. */
sgm_status sgm__folder_open_tensors(sgm_pretrained *p);
/* Appends a tensor to the list; `name` is copied. */
sgm_status sgm__stored_add(sgm_pretrained *p, const char *name, sgm__stored stored);
/* Sorts the list; a name twice is an error. */
sgm_status sgm__stored_sort(sgm_pretrained *p);
/* NULL: none of that name. */
sgm__stored *sgm__stored_find(const sgm_pretrained *p, const char *name);
/* The value of a tensor, which the caller frees; NULL on failure. Of a kept folder only what the run's
 * network does not use. */
sgm_tensor *sgm__stored_read(const sgm_pretrained *p, const sgm__stored *stored);

/* --- import/gguf.c --- */
/* Reads all but the tensors' numbers: the settings, and the list of tensors by the names of a folder. */
sgm_status sgm__gguf_open_model(sgm_pretrained *p, const char *path);
sgm_tensor *sgm__gguf_read_stored(const sgm_pretrained *p, const sgm__stored *stored);
/* The rows of a tensor's heads in the order of a file of GGUF, or back in that of a folder; the caller frees
 * it. NULL on failure. */
sgm_tensor *sgm__gguf_permute_heads(const json_t *config, const sgm__gguf_name *row, sgm_tensor *tensor,
                                    bool back);
/* What the file calls a tensor, for messages; `room` is used for it. */
const char *sgm__tensor_shown(const sgm_pretrained *p, const char *name, char room[128]);
/* Writes what would be config.json of the same model into a folder ... */
sgm_status sgm__gguf_write_config(const sgm_pretrained *p, const char *folder);
/* ... and with it the metadata, if a tokenizer is in them. */
sgm_status sgm__gguf_keep(const sgm_pretrained *p, const char *folder);

/* --- import/onnx.c --- */
/* Whether a path is that of a file of ONNX, by its end. */
bool sgm__is_onnx(const char *path);
sgm_status sgm__onnx_open(sgm_pretrained *p, const char *path, const sgm_pretrained_options *options);

/* --- import/weights.c --- */
/* Pairs all parameters of the network with tensors, and checks names, types and shapes. */
sgm_status sgm__weights_pair(sgm_pretrained *p);
/* Columns of a parameter that part `part` takes, from *start on. */
int64_t sgm__part_columns(const sgm_pretrained *p, const sgm__made *made, size_t part, int64_t *start);
/* How many tensors a parameter is made of. */
size_t sgm__part_count(const sgm__weight *weight);
/* Whether a tensor has the numbers of a parameter again, beside those that it is made of. */
bool sgm__weights_is_copy(const sgm_pretrained *p, const sgm__made *made, const sgm__stored *stored);
/* What the original calls a tensor: its name by the table, and without the prefix where the model has no
 * head. Free with free. */
char *sgm__weights_tensor(const sgm_pretrained *p, const sgm__made *made, size_t part);
/* What the original calls the module of a matrix, "model.layers.0.self_attn.q_proj": the tensor's name
 * without ".weight". Free with free. */
char *sgm__weights_module(const sgm_pretrained *p, const sgm__made *made, size_t part);
/* What stands before "_lora_a" in the names of adapters that are read: the parameter's own name without its
 * layer, or of one of several parts the last word of the module, "q_proj". Free with free. */
char *sgm__adapter_stem(const sgm_pretrained *p, const sgm__made *made, size_t part);
/* An error if a tensor that should have a parameter's numbers again has other ones. */
sgm_status sgm__weights_check_copies(const sgm_pretrained *p, const sgm__made *made);
/* A parameter's value, put together in `dtype`; the caller frees it. NULL on failure. */
sgm_tensor *sgm__weights_read(sgm_pretrained *p, const sgm__made *made, sgm_dtype dtype);

/* --- import/sentences.c --- */
/* What files of sentence-transformers say of vectors of texts, if there are any. */
sgm_status sgm__sentences_read(const sgm_pretrained *p, sgm__description *d);

/* --- import/run.c --- */
/* Of a folder of a run: adds the adapters of its checkpoint to the network. */
sgm_status sgm__run_take_adapters(sgm_pretrained *p);
/* Opens the checkpoint for what follows. */
sgm_status sgm__run_open_checkpoint(sgm_pretrained *p);
/* An error if the trainer's network lacks adapters of the run. */
sgm_status sgm__run_check_adapters(const sgm_pretrained *p, sgm_trainer *trainer);
/* Whether the run has a matrix as codes of 8 bits. */
bool sgm__run_has_codes(const sgm_pretrained *p, const char *parameter);
/* The value of a parameter, which the caller frees: of a run what its network had is in its checkpoint, and
 * what it had not is made of the tensors that it did not use, as is all of a model that is no run. NULL on
 * failure. */
sgm_tensor *sgm__run_read(sgm_pretrained *p, const sgm__made *made, sgm_dtype dtype);
/* Gives a trainer, whose parameters are there, the values of adapters, and codes of 8 bits. An error if the
 * adapters keep a layer as it is that begins anew. */
sgm_status sgm__run_load_adapters(const sgm_pretrained *p, sgm_trainer *trainer);

/* --- import/classes.c --- */
/* The pipeline by which files of pictures become inputs; the caller frees it. NULL on failure. */
sgm_pipeline *sgm__classes_pipeline(const sgm_pretrained *p);
/* Gives a trainer the pipeline by which files of pictures become inputs, if the model is one of pictures. */
sgm_status sgm__classes_give_pipeline(const sgm_pretrained *p, sgm_trainer *trainer);
/* Where other classes are wanted: the tensors of the last layer and the names in config.json become those of
 * these. */
sgm_status sgm__classes_begin(sgm_pretrained *p, const sgm_recording *recording);

/* --- import/peft_classes.c --- */
/* Completes options by what the folder options->peft says of classes. */
sgm_status sgm__peft_classes(sgm_pretrained *p, sgm_pretrained_options *options);

/* --- export/export.c --- */
/* Whether a parameter is made of a tensor, and not a tensor of its numbers again, or of no use here. */
bool sgm__export_is_part(const sgm_pretrained *p, const sgm__stored *stored);
/* The value of a tensor for the file; the caller frees it. A tensor that the network does not use is as it
 * was, whatever the type. */
sgm_tensor *sgm__export_value(sgm_pretrained *p, const sgm__stored *stored, sgm_trainer *trainer,
                              sgm_dtype dtype);
/* An error if the trainer has adapters: parameters without what these add to them would be those of the model
 * before it was trained. */
sgm_status sgm__export_refuse_adapters(sgm_trainer *trainer);

/* --- export/pictures.c --- */
/* Writes config.json and preprocessor_config.json anew where the trainer has learnt from pictures that became
 * inputs in another way than the model's, or of classes with other names. */
sgm_status sgm__export_pictures(const sgm_pretrained *p, sgm_trainer *trainer, const char *folder);

/* --- import/keep.c --- */
/* Reads the list of tensors of a kept folder. */
sgm_status sgm__kept_open_tensors(sgm_pretrained *p);
/* Writes a file of a folder through a temporary one. */
sgm_status sgm__write_file(const char *folder, const char *name, const void *bytes, size_t size);
/* Copies the small files of the model into a folder; config.json is the last. */
sgm_status sgm__copy_small_files(const sgm_pretrained *p, const char *folder);

#endif
