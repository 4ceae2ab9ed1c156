/* Exports a trainer's network as an ONNX model of a prediction.
 *
 * The prediction is recorded once, or, so that the model takes any number of examples, twice, for different
 * numbers of examples: sgm_onnx_export (src/onnx/write.c) compares the two graphs and leaves open what
 * differs between them. */
#include "graph/passes.h"
#include "handlers/session.h"
#include "infer/export/picture_export.h"
#include "ops/ops.h"
#include "ops/quantized.h"
#include "train/train.h"
#include "trainer/trainer_lock.h"
#include <sigma/onnx.h>
#include <sigma/training.h>

/* The two numbers of examples that are recorded where the model is to take any number. */
enum { EXAMPLES = 2, OTHER_EXAMPLES = 3 };

/* A copy of the recorded prediction, with the operations of the pipeline if it takes rows of a table or
 * pictures. */
static sgm_graph *complete(const sgm_graph *prediction, const sgm_pipeline *pipeline)
{
    if (pipeline != NULL && sgm__picture_fits_graph(prediction, pipeline))
        return sgm__picture_graph(prediction, pipeline);
    if (pipeline != NULL && sgm__table_fits_graph(prediction, pipeline))
        return sgm__table_graph(prediction, pipeline);
    return sgm__graph_copy(prediction);
}

/* The graph with parameters as constants and products of integers of 8 bits; frees `graph`. NULL passes a
 * failure on. */
static sgm_graph *quantize(sgm_session *session, sgm_graph *graph)
{
    sgm_graph *special = NULL, *folded = NULL;
    sgm_status status =
        graph == NULL ? sgm__last_failure()
                      : sgm__session_specialise(session, graph,
                                                SGM__INFERENCE_CONSTANTS | SGM__INFERENCE_INT8, &special);
    if (status == SGM_OK)
        status = sgm__session_fold(session->handler, special, &folded);
    sgm_graph_free(special);
    sgm_graph_free(graph);
    return status == SGM_OK ? folded : NULL;
}

/* Whether an earlier product has the same weights: recurrent layers multiply by theirs at each step. */
static bool has_been_before(const sgm_graph *graph, size_t end, int32_t codes)
{
    for (size_t i = 0; i < end; i++)
        if (graph->instructions[i].op == &sgm__op_quantized_matmul &&
            graph->operands[graph->instructions[i].first_input + 1].index == codes)
            return true;
    return false;
}

static sgm_quantized count_products(const sgm_graph *graph)
{
    sgm_quantized told = {0};
    for (size_t i = 0; i < graph->count; i++) {
        const sgm__instruction *instruction = &graph->instructions[i];
        told.others += instruction->op == &sgm__op_matmul;
        if (instruction->op != &sgm__op_quantized_matmul)
            continue;
        told.products++;
        const sgm_value *operands = graph->operands + instruction->first_input;
        if (has_been_before(graph, i, operands[1].index))
            continue;
        const sgm_shape *codes = &graph->instructions[operands[1].index].type.shape;
        const sgm_shape *scales = &graph->instructions[operands[2].index].type.shape;
        const int64_t weights = sgm_shape_elements(codes);
        told.bytes_before += weights * (int64_t)sizeof(float);
        told.bytes_after += weights + sgm_shape_elements(scales) * (int64_t)sizeof(float);
    }
    return told;
}

/* Records the prediction for `batch` examples; returns a graph of its own. In mixed precision the parameters
 * are float32, so the network is recorded in float32. */
static sgm_graph *record(sgm_trainer *trainer, int64_t batch, bool int8)
{
    sgm__trainer_settings *settings = sgm__settings_of(trainer);
    sgm_dtype precision = settings->precision;
    if (precision == SGM_BFLOAT16)
        settings->precision = SGM_FLOAT32;
    sgm__trainer_forget_programs(trainer); /* so that the graph is re-recorded */
    sgm_graph *graph = NULL;
    if (sgm__trainer_program(trainer, SGM__PREDICT, batch) != NULL)
        graph = complete(sgm__learner_of(trainer)->graph, sgm_trainer_get_pipeline(trainer));
    settings->precision = precision;
    sgm__trainer_forget_programs(trainer);
    return int8 ? quantize(sgm__learner_of(trainer)->session, graph) : graph;
}

static sgm_status export(sgm_trainer *trainer, const char *path, const sgm_export_onnx_options *options)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    bool int8;
    SGM_TRY(sgm__quantize_read(options->quantize, &int8));
    if (learner->network == NULL)
        return sgm_fail(SGM_ERROR_STATE, "has no network yet: call sgm_trainer_set_network");
    SGM_TRY(sgm__trainer_collect(trainer));
    const sgm_pipeline *pipeline = sgm_trainer_get_pipeline(trainer);
    char *json = NULL;
    if (pipeline != NULL && (json = sgm_pipeline_json(pipeline)) == NULL)
        return sgm__last_failure();
    sgm_graph *graph = record(trainer, options->batch > 0 ? options->batch : EXAMPLES, int8), *other = NULL;
    sgm_status status = graph != NULL ? SGM_OK : sgm__last_failure();
    const sgm_quantized quantized = graph != NULL ? count_products(graph) : (sgm_quantized){0};
    if (status == SGM_OK && options->batch == 0) {
        other = record(trainer, OTHER_EXAMPLES, int8);
        status = other != NULL ? SGM_OK : sgm__last_failure();
    }
    if (status == SGM_OK)
        status = sgm_onnx_export(path, graph, learner->session,
                                 .name = options->name != NULL ? options->name : sgm_trainer_name(trainer),
                                 .other = other, .metadata = {{"sigma.pipeline", json}});
    if (status == SGM_OK && int8 && options->quantized != NULL)
        *options->quantized = quantized;
    sgm_graph_free(other);
    sgm_graph_free(graph);
    sgm_string_free(json);
    return status;
}

sgm_status sgm_trainer_export_onnx_with(sgm_trainer *trainer, const char *path,
                                        const sgm_export_onnx_options *given)
{
    sgm_export_onnx_options options;
    SGM_TRY(sgm__options_read(&options, sizeof options, given, "sgm_trainer_export_onnx"));
    if (path == NULL || *path == '\0' || options.batch < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "expected the path of a file, and a number of examples from 0 on");
    SGM_TRY(sgm__trainer_open(trainer));
    sgm_status status = export(trainer, path, &options);
    sgm__trainer_unlock(trainer);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("trainer '%s'", sgm_trainer_name(trainer));
}
