/* ONNX: models of other frameworks run here, and what was trained here runs in other runtimes.
 *
 *     sgm_onnx *model = sgm_onnx_load("digits.onnx");
 *     sgm_onnx_set(model, "pixels", images);
 *     sgm_onnx_run(model);
 *     sgm_tensor *output = sgm_onnx_get(model, "probabilities");
 *
 *     sgm_onnx_export("mine.onnx", graph, session);       (a network: sgm_trainer_export_onnx)
 *
 * A model has operators of ONNX's default domain and of ai.onnx.ml that docs/onnx.md lists, functions of its
 * own, and numbers of any type: those that tensors lack are held in the next wider one, int8 in int32,
 * float16 in float32 and so on. An operator, domain or type that is not known is an error of loading, which
 * names the operator, the node and its opset, or the type; what depends on shapes is one of the first run.
 * Format: https://github.com/onnx/onnx/blob/main/docs/IR.md
 *
 * Shapes come from the tensors that are set: another batch is another tensor. A model is used by one thread
 * at a time. If Sigma was built without protobuf-c, loading and exporting fail with SGM_ERROR_UNSUPPORTED.
 */
#ifndef SIGMA_ONNX_H
#define SIGMA_ONNX_H

#include <sigma/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A model, ready to be run. */
typedef struct sgm_onnx sgm_onnx;

typedef struct sgm_onnx_options {
    size_t struct_size;
    const char *handler; /* that runs it, as sgm_handler_create has it; default "cpu" */
    int threads;         /* of the handler; default: one per processor */
    /* "int8": products of float32 with constant weights of at least 4,096 numbers round both sides to 8 bits,
     * as sgm_quantized_matmul does: faster, and less exact. Default NULL: as the model says. */
    const char *quantize;
} SGM_BY_NAME sgm_onnx_options;
/* sgm_onnx_load(path, .handler = "reference"): reads a model, with data of tensors in other files of its
 * folder, and checks it. NULL and an error with the place if it is malformed. */
#define sgm_onnx_load(...) SGM_WITH_OPTIONS(sgm_onnx_load_with, sgm_onnx_options, __VA_ARGS__)
SGM_API sgm_onnx *sgm_onnx_load_with(const char *path, const sgm_onnx_options *options);
/* Reads a model in memory, of which nothing is kept, and checks it. It has no other files. */
SGM_API sgm_onnx *sgm_onnx_parse(const void *bytes, size_t length, const sgm_onnx_options *options);
SGM_API void sgm_onnx_free(sgm_onnx *model);

/* What a model wants: the name of an input, by `index` from 0, NULL past the last. Where `type` is given it
 * gets the type as the model declares it: dimensions that it leaves open are -1; a rank that it leaves open
 * is -1.
 */
SGM_API const char *sgm_onnx_input_at(const sgm_onnx *model, size_t index, sgm_type *type);
/* What a model gives: the name of an output, with its type, as sgm_onnx_input_at. */
SGM_API const char *sgm_onnx_output_at(const sgm_onnx *model, size_t index);
/* Whether an output is of texts in the file, which are the names of classes: here it has their numbers, as
 * int64. */
SGM_API bool sgm_onnx_output_is_class(const sgm_onnx *model, size_t index);
/* The name of a class by its number from 0, which is also its column among scores; NULL past the last, and
 * where the file has no texts for classes. The model's. */
SGM_API const char *sgm_onnx_class_at(const sgm_onnx *model, size_t index);

/* Copies a tensor for an input. Its type must be the declared one, its dimensions where they are declared. */
SGM_API sgm_status sgm_onnx_set(sgm_onnx *model, const char *input, const sgm_tensor *value);
/* All inputs must be set. What was recorded and compiled is used again for the same shapes, and the same
 * values of those inputs that decide about shapes (such as Reshape's): of the newest 16 sets of them, as far
 * as those before the newest take no more than 512 MiB. */
SGM_API sgm_status sgm_onnx_run(sgm_onnx *model);
/* An output of the newest run: a new tensor. */
SGM_API sgm_tensor *sgm_onnx_get(sgm_onnx *model, const char *output);

/* Records the model into a graph of the caller's, with inputs and outputs under the names that they have in
 * the model, and initialisers as constants. Inputs that were set take their shapes from there; of the others
 * the first dimension is `batch` if it is open; other open ones are an error. */
SGM_API sgm_status sgm_onnx_import(sgm_onnx *model, sgm_graph *graph, int64_t batch);

/* --- what a model is made of, for who translates it --- */

/* A node of the model's graph. Texts belong to the model. */
typedef struct sgm_onnx_node_info {
    const char *type, *domain;        /* "Conv"; "" is ONNX's default domain */
    const char *name;                 /* that of the node, or of its first output where it has none */
    size_t input_count, output_count; /* of the lists below, with those that are left out */
    size_t attribute_count;           /* how many attributes it has */
} sgm_onnx_node_info;
/* An attribute of a node; a number or an integer by itself is a list of one. */
typedef struct sgm_onnx_attribute {
    const char *name;        /* "strides" */
    const int64_t *integers; /* `count` of them; NULL: it is no list of integers */
    const float *numbers;    /* `count` of them; NULL: it is no list of numbers */
    size_t count;            /* of either list */
    const char *text;        /* `length` characters, with no zero at the end; NULL: it is no text */
    size_t length;           /* of the text */
} sgm_onnx_attribute;
/* A node by its number from 0, which comes after the nodes that make its inputs; false past the last. */
SGM_API bool sgm_onnx_node_at(const sgm_onnx *model, size_t node, sgm_onnx_node_info *info);
/* The name of a value that a node takes, "" where it leaves one out; NULL past the last. */
SGM_API const char *sgm_onnx_node_input(const sgm_onnx *model, size_t node, size_t index);
/* The name of a value that a node makes, "" where it is not wanted; NULL past the last. */
SGM_API const char *sgm_onnx_node_output(const sgm_onnx *model, size_t node, size_t index);
/* An attribute by its number from 0; false past the last. */
SGM_API bool sgm_onnx_node_attribute(const sgm_onnx *model, size_t node, size_t index,
                                     sgm_onnx_attribute *attribute);
/* A value that the file has, an initialiser or the value of a Constant, also through Identity: a new
 * reference. NULL if the name is that of something else, with no error, or on failure, with one. */
SGM_API sgm_tensor *sgm_onnx_constant(const sgm_onnx *model, const char *name);

/* What a model says about itself: the text that it keeps under a key; NULL: none. The model's. */
SGM_API const char *sgm_onnx_metadata(const sgm_onnx *model, const char *key);

/* The most entries of metadata in an export. */
#define SGM_ONNX_MAX_METADATA 4
/* What a model says about itself under a key. */
typedef struct sgm_onnx_entry {
    const char *key, *text; /* both are copied; a key NULL: no entry */
} sgm_onnx_entry;

typedef struct sgm_onnx_export_options {
    size_t struct_size;
    const char *name; /* of the graph in the file; default "sigma" */
    /* The same graph recorded with another number of examples: dimensions that differ are left open in the
     * file, as "batch". Default NULL: all are fixed. */
    const sgm_graph *other;
    /* What the file says about itself beside that (metadata_props); those without a key are left out. */
    sgm_onnx_entry metadata[SGM_ONNX_MAX_METADATA];
} SGM_BY_NAME sgm_onnx_export_options;
/* sgm_onnx_export(path, graph, session, .other = graph_of_3): writes what leads to the outputs of a graph,
 * through a temporary file, as operators of opset 17. States become initialisers of the same names, with the
 * values that they have in the session (NULL: the graph has none). An operation that ONNX does not have and
 * that is not composed of others is an error that names it and its layer. */
SGM_API sgm_status sgm_onnx_export_with(const char *path, const sgm_graph *graph, sgm_session *session,
                                        const sgm_onnx_export_options *options);
#define sgm_onnx_export(...) SGM_WITH_OPTIONS_3(sgm_onnx_export_with, sgm_onnx_export_options, __VA_ARGS__)

/* A tensor that is a message by itself, as in ONNX's test data; narrow types in the wider ones that hold
 * them. */
SGM_API sgm_tensor *sgm_onnx_parse_tensor(const void *bytes, size_t length);

#ifdef __cplusplus
}
#endif
#endif
