/* Models of others: folders as the library transformers keeps them, with config.json and *.safetensors, and
 * files of GGUF.
 *
 *     sgm_env *env = sgm_env_create("gpt2");
 *     sgm_model *model = sgm_model_import(env, "downloads/gpt2", .context = 256);
 *     sgm_generator *generator = sgm_generator_create(sgm_model_trainer(model));       (predict, generate,)
 *     sgm_model_train(model, tokens, next, .optimiser = sgm_adamw(.learning_rate = 1e-5));  (or train on)
 *
 * This library, sigma_models, stands on the public headers of Sigma alone. It knows these architectures:
 * sgm_architecture_at lists them. Each is a network in Sigma's notation, made by the numbers of config.json,
 * and a table of names by which the tensors of the files become its parameters: transposed, side by side, as
 * float32. Nothing is fetched from a network.
 *
 * What a folder says is not believed: sizes, shapes and names are checked against the files before memory is
 * taken, and no file outside the folder is read. Errors name the file, the key or the tensor. */
#ifndef SIGMA_MODELS_H
#define SIGMA_MODELS_H

#include <sigma/environment.h>
#include <sigma/tokenizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a path is one that sgm_pretrained_open reads, by its name and the names of the files there. */
SGM_API bool sgm_pretrained_is_there(const char *path);

/* A model of others, described: what is in the folder, and the network that it is here. Its tensors are read
 * when a trainer takes them. Used by one thread at a time. */
typedef struct sgm_pretrained sgm_pretrained;

typedef struct sgm_pretrained_options {
    size_t struct_size;
    /* Steps of a sequence, which the network is made for; default: those of the model, at most 1024. More
     * than it was trained for is an error. */
    int64_t context;
    /* What it is for: "generate" (the next token), "embed" (a vector for each text), "classify", "fill"
     * (tokens that are masked). Default: what the folder says. Of a FILE.onnx: "predict", the default, or
     * "classify", where its output is one of logits, to be judged by softmax_cross_entropy. */
    const char *task;
    /* Another number of classes: the last layer is begun anew, as the trainer initialises it, with so many
     * outputs, whatever the model had, and so is the one before it where the files have none. The task is
     * "classify" then. Default: the model's classes. */
    int64_t classes;
    /* What these are called, as many as there are: in config.json. Default: LABEL_0, LABEL_1, ... */
    const char *const *class_names;
    /* Texts come in pairs, as a question and an answer: the network of an architecture with segments (BERT)
     * takes the field "segments", which of the two each token is of. Default: all are of the first one. */
    bool pairs;
    /* Targets below 0 are not learnt, such as those of sgm_chat_dataset (sigma/chats.h): the network's cost
     * is softmax_cross_entropy(ignore_negative). An error where its last layer is another one. */
    bool ignore_negative;
    /* Adapters beside the weights (adapter_config.json), which transformers loads with them, are left to
     * sgm_pretrained_adapt. Default: such a folder is an error. */
    bool without_adapters;
    /* A folder of PEFT, whose adapters sgm_pretrained_adapt will give, as above. If it has a layer of
     * classes, their number is the model's, where `classes` is not given; and their names, where
     * `class_names` are not given and sgm_pretrained_export_adapters wrote the folder. */
    const char *peft;
} SGM_BY_NAME sgm_pretrained_options;

/* What was found; texts belong to the sgm_pretrained. */
typedef struct sgm_pretrained_info {
    const char *architecture; /* "gpt2" */
    const char *task;         /* "generate" */
    const char *tokenizer;    /* the file that tokens are from; NULL: none that is known */
    int64_t parameters;       /* how many numbers are trained */
    int64_t classes;          /* that it tells apart; 0: none, or not known */
    int64_t height, width;    /* of the pictures that it takes; 0: it takes none, or arrays */
    int64_t tokens;           /* of the vocabulary; 0, like the two below: it takes no tokens */
    int64_t context;          /* steps that the network is made for ... */
    int64_t longest;          /* ... and that the model was trained for */
    sgm_dtype precision;      /* float64 if the files have that, else float32 */
    int64_t untrained;        /* numbers beside them that no gradient changes: means of batch norms */
} sgm_pretrained_info;

/* Reads config.json and the headers of all files, and compares them with the network; or, of a folder of a
 * run that was imported, what sgm_pretrained_keep wrote there; or a file FILE.gguf, whose metadata say what
 * config.json says of a folder; or a file FILE.onnx, whose graph becomes a network in which each node is a
 * layer, or a part of one, and which must give what the model gives. NULL and an error that names what is
 * missing, has another shape than config.json says, or is not known. */
#define sgm_pretrained_open(...)                                                                             \
    SGM_WITH_OPTIONS(sgm_pretrained_open_with, sgm_pretrained_options, __VA_ARGS__)
SGM_API sgm_pretrained *sgm_pretrained_open_with(const char *path, const sgm_pretrained_options *options);
SGM_API void sgm_pretrained_free(sgm_pretrained *pretrained);
/* What was found, as long as it is open. */
SGM_API const sgm_pretrained_info *sgm_pretrained_describe(const sgm_pretrained *pretrained);
/* What config.json calls a class, from 0, as long as it is open; NULL: it has no name, or there is none. */
SGM_API const char *sgm_pretrained_class(const sgm_pretrained *pretrained, int64_t index);
/* The network in Sigma's notation, as long as it is open; of a folder of a run with its adapters. */
SGM_API const char *sgm_pretrained_network(const sgm_pretrained *pretrained);

/* Gives a trainer the network, unless it has one, all parameters, and for pictures the pipeline that makes
 * its inputs of files and names the classes (sgm_trainer_set_pipeline). Of a folder of a run the parameters
 * are those of its checkpoint, with those of adapters, which a network that the trainer has must have. On
 * failure some may have been given; a trainer
 * that had no parameters before begins with its first ones then. */
SGM_API sgm_status sgm_pretrained_load(sgm_pretrained *pretrained, sgm_trainer *trainer);
/* Writes into FOLDER/model what sgm_pretrained_export needs: config.json and the other small files of the
 * folder as they are, the names, types and shapes of all tensors, and the tensors that the network does not
 * use. So does a model that was opened from such a folder. */
SGM_API sgm_status sgm_pretrained_keep(sgm_pretrained *pretrained, const char *folder);
/* Writes the folder back: the same files with the parameters of a trainer, each tensor under its name, in its
 * type and shape; bit by bit as it was where nothing was trained. `folder` is made; one that has a
 * config.json already is an error, and so are adapters, which sgm_trainer_merge makes part of the parameters.
 * Where it fails, no config.json is written. Of a file of GGUF there are no files of a tokenizer. */
SGM_API sgm_status sgm_pretrained_export(sgm_pretrained *pretrained, sgm_trainer *trainer,
                                         const char *folder);

typedef struct sgm_gguf_options {
    size_t struct_size;
    /* Of the matrices: "f32", "f16", "bf16", "q8_0". Default: as the files have them, float32 for float64,
     * q8_0 for q4_0. Vectors and positions are float32, and rows that are no multiple of 32 f16 instead of
     * q8_0. */
    const char *type;
} SGM_BY_NAME sgm_gguf_options;
/* Writes the parameters of a trainer as a file FILE.gguf, as llama.cpp reads it, with the settings and the
 * tokenizer of the model; what was read from such a file has all of its metadata again. Errors name what such
 * a file cannot say. Adapters are one, as for sgm_pretrained_export. */
#define sgm_pretrained_export_gguf(...)                                                                      \
    SGM_WITH_OPTIONS_3(sgm_pretrained_export_gguf_with, sgm_gguf_options, __VA_ARGS__)
SGM_API sgm_status sgm_pretrained_export_gguf_with(sgm_pretrained *pretrained, sgm_trainer *trainer,
                                                   const char *path, const sgm_gguf_options *options);

/* Gives a trainer, which has the model's network, the adapters of a folder as the library PEFT writes it: a
 * statement lora(...) for each kind of matrix, rank and alpha, and their values; and layers of classes that
 * were trained whole. What adapter_config.json asks for and is not known is an error that names it; the
 * trainer may have some of the adapters then. */
SGM_API sgm_status sgm_pretrained_adapt(sgm_pretrained *pretrained, sgm_trainer *trainer, const char *folder);
/* Writes a trainer's adapters as PEFT keeps them into a folder that has none yet, and layers of classes that
 * are trained beside them, whose classes' names are in classes.json, which PEFT ignores. Ranks and alphas may
 * differ; dropout may not, as PEFT has one for all. */
SGM_API sgm_status sgm_pretrained_export_adapters(sgm_pretrained *pretrained, sgm_trainer *trainer,
                                                  const char *folder);

/* A model of the environment with network and parameters of a folder, ready to predict and to be trained.
 * NULL on failure. */
#define sgm_model_import(...) SGM_WITH_OPTIONS_2(sgm_model_import_with, sgm_pretrained_options, __VA_ARGS__)
SGM_API sgm_model *sgm_model_import_with(sgm_env *env, const char *path,
                                         const sgm_pretrained_options *options);

typedef struct sgm_pretrained_texts_options {
    size_t struct_size;
    int64_t longest; /* tokens of a text at most, more are cut; default: the steps of the network (context) */
    const char *inputs;  /* the network's input of tokens ("inputs") ... */
    const char *lengths; /* ... and the field of its lengths ("lengths") */
    /* Called before each group of texts is computed, with `user`. Returns false to end, which is then a
     * failure, SGM_ERROR_INTERRUPTED. NULL: nothing is called. */
    bool (*proceed)(void *user);
    void *user; /* passed to `proceed` */
    /* Tokens in place of texts, of which `texts` may then be NULL: those of each, int64 (count), special ones
     * included, 1 to `longest`. */
    const sgm_tensor *const *tokens;
    const char *const *pairs; /* a second text for each, read behind it; NULL: none */
    const char *segments; /* the network's field of segments, of a model for pairs; default: it has none */
    bool no_cut;          /* a text with more tokens than `longest` is an error, which names both numbers */
} SGM_BY_NAME sgm_pretrained_texts_options;
/* What a network of tokens with lengths (BERT, MiniLM) gives for each of `count` texts: (count, ...), a
 * vector, or probabilities of classes, in the order of the texts. Texts of like lengths are computed
 * together, and cost what they are long. The caller frees the tensor. NULL on failure. */
#define sgm_pretrained_predict_texts(...)                                                                    \
    SGM_WITH_OPTIONS_4(sgm_pretrained_predict_texts_with, sgm_pretrained_texts_options, __VA_ARGS__)
SGM_API sgm_tensor *sgm_pretrained_predict_texts_with(sgm_trainer *trainer,
                                                      const sgm_pretrained_tokenizer *tokenizer,
                                                      const char *const *texts, size_t count,
                                                      const sgm_pretrained_texts_options *options);

/* The architectures, from 0, as config.json names them in "model_type"; NULL past the last. */
SGM_API const char *sgm_architecture_at(size_t index);

#ifdef __cplusplus
}
#endif
#endif
