/* A forward pass now and then beside the training, in the background: the network's outputs for a fixed
 * block of examples (sgm_network_pass_hook).
 *
 * The trainer does not wait. The engine copies the parameters that the hook reads when it is due
 * (src/hooks/hook_snapshot.c), and the pass runs on the thread of the background hook, with a network, a
 * session and a handler of its own (src/infer/inference_copy.c): one thread of `cpu`, so that it takes
 * little from the training. Measuring in step with the training is metric.c. The output goes to a function
 * of the program, on that same background thread. */
#include "infer/inference_copy.h"

#include <sigma/hooks.h>

/* The self. It is used on the thread of the hook's background group alone, one call at a time. */
typedef struct pass {
    char *network; /* in the notation of networks; the trainer's own must not be touched from here */
    sgm_block *block;
    sgm_pass_function receive;
    void *user;
    sgm_handler *handler; /* from here on NULL and empty until the first pass */
    sgm__inference_copy frozen;
    sgm_program *program;
} pass;

/* Gives the inference copy a parameter from the copied registry; the caller gets the reference that the
 * content has. */
static sgm_tensor *parameter_of(void *user, const char *name)
{
    sgm_hook_call *call = user;
    sgm_content content;
    char *identifier = sgm__format("network.layers.%s", name);
    sgm_status status = identifier ? sgm_hook_get(call, identifier, &content) : SGM_ERROR_MEMORY;
    sgm__free(identifier);
    if (status != SGM_OK)
        return NULL;
    if (content.kind == SGM_KIND_TENSOR)
        return content.as.tensor;
    sgm_fail(SGM_ERROR_TYPE, "parameter '%s' is %s, expected a tensor", name, sgm_kind_name(content.kind));
    sgm_content_clear(&content);
    return NULL;
}

/* The precision of the parameters as they are read; if nothing matches, float32, and the missing parameter
 * is named when it is filled in. */
static sgm_dtype precision_of(sgm_hook_call *call)
{
    sgm_content content;
    sgm_dtype dtype = SGM_FLOAT32;
    if (sgm_hook_get(call, "network.layers.*.*", &content) != SGM_OK)
        return dtype;
    if (content.kind == SGM_KIND_TENSOR)
        dtype = sgm_tensor_dtype(content.as.tensor);
    sgm_content_clear(&content);
    return dtype;
}

/* The first pass: records the network for as many examples as the block has, with its first output as the
 * only one, and compiles it. A failed begin is made again at the next event, hence the free in front. */
static sgm_status begin(pass *self, sgm_hook_call *call)
{
    if (!self->handler)
        self->handler = sgm_handler_create("cpu", .threads = 1);
    if (!self->handler)
        return sgm_last_status();
    sgm__inference_copy_free(&self->frozen);
    SGM_TRY(sgm__inference_copy_record(&self->frozen, self->handler, self->network, self->block->count,
                                       precision_of(call), false));
    if (self->frozen.recording.output_count == 0)
        return sgm_fail(SGM_ERROR_STATE, "the network has no output to pass on");
    const sgm_named_value *output = &self->frozen.recording.outputs[0];
    sgm_graph_add_output(self->frozen.graph, output->name, output->value);
    SGM_TRY(sgm__inference_copy_fill(&self->frozen, parameter_of, call));
    self->program = sgm__inference_copy_prepare(&self->frozen);
    return self->program ? SGM_OK : sgm_last_status();
}

/* The fields of the block by the names of the network's inputs; the block's other fields are ignored. */
static sgm_status feed(const pass *self)
{
    const char *name;
    for (size_t i = 0; (name = sgm_program_input_at(self->program, i)); i++) {
        sgm_tensor *values = sgm_block_field(self->block, name);
        if (!values)
            return sgm_last_status();
        SGM_TRY(sgm_session_feed(self->frozen.session, self->program, name, values));
    }
    return SGM_OK;
}

/* invoke(). Later passes only take over the new values of the parameters. `receive` borrows the output. */
static sgm_status run(void *state, sgm_hook_call *call)
{
    pass *self = state;
    SGM_TRY(self->program ? sgm__inference_copy_fill(&self->frozen, parameter_of, call) : begin(self, call));
    SGM_TRY(feed(self));
    SGM_TRY(sgm_session_run(self->frozen.session, self->program));
    const char *name = self->frozen.recording.outputs[0].name;
    sgm_type type = sgm_program_output_type(self->program, name);
    sgm_tensor *output = sgm_tensor_create(type.dtype, &type.shape);
    sgm_status status =
        output ? sgm_session_read(self->frozen.session, self->program, name, output) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        self->receive(self->user, call->iteration, output);
    sgm_tensor_free(output);
    return status;
}

/* The copy's session goes before the handler that it computes on. */
static void free_pass(void *state)
{
    pass *self = state;
    sgm__inference_copy_free(&self->frozen);
    sgm_handler_free(self->handler);
    sgm_block_free(self->block);
    sgm__free(self->network);
    sgm__free(self);
}

/* Without equal(): two passes are never the same hook, since each has a function of its own to hand to.
 * Without state: parameters and block are all that a pass depends on. */
static const sgm_hook_type pass_type = {.api = SGM_HOOK_API,
                                        .name = "network_pass",
                                        .doc = "passes a block forward, and hands on what comes out",
                                        .invoke = run,
                                        .free = free_pass,
                                        .only_global = "it passes data through the network of the trainer"};

/* A block that nobody else changes, as it is read on another thread. */
static sgm_block *copy_block(const sgm_block *block)
{
    sgm_block *copy = sgm_block_create(block->count);
    sgm_status status = copy ? SGM_OK : SGM_ERROR_MEMORY;
    for (int32_t i = 0; i < block->field_count && status == SGM_OK; i++) {
        sgm_tensor *values = sgm_tensor_copy(block->fields[i].values);
        status = values ? sgm_block_add(copy, block->fields[i].name, values) : SGM_ERROR_MEMORY;
    }
    if (status == SGM_OK)
        return copy;
    sgm_block_free(copy);
    return NULL;
}

/* Parameters are two to four names below network.layers, by how deep sections and layers nest; wildcards
 * do not cross dots. */
sgm_hook *sgm_network_pass_hook(const char *network, const sgm_block *block, sgm_pass_function receive,
                                void *user, sgm_time_step when)
{
    static const char *const reads[] = {"network.layers.*.*", "network.layers.*.*.*",
                                        "network.layers.*.*.*.*", NULL};
    if (!network || !block || !receive) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "sgm_network_pass_hook: expected a network, a block and a function, got NULL");
        return NULL;
    }
    pass *self = sgm__calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->network = sgm__strdup(network);
    self->block = copy_block(block);
    self->receive = receive;
    self->user = user;
    if (self->network && self->block)
        return sgm_hook_create(&pass_type, self, .when = when, .reads = reads, .background = true);
    free_pass(self);
    return NULL;
}
