/* Exports a trainer's network as a file of C99: a function that predicts, and on request one that does a
 * training step.
 *
 * Here the two programs are recorded by the trainer, planned like those of a handler, and their parameters
 * are named; handlers/source writes the plans as text. The file is written to a temporary one and renamed, so
 * a failure leaves an older file as it was. The trainer's programs are forgotten at the end, as they were
 * recorded in another precision. */
#include "infer/export/picture_export.h"
#include "train/train.h"
#include "trainer/trainer_lock.h"
#include <sigma/training.h>

#include <stdio.h>

#define MAXIMUM_NAME 40

/* One of the two functions of the file. */
typedef struct function {
    sgm__plan *plan;
    sgm__source_input *inputs;
    char **outputs; /* names of the outputs, then those of the inputs: this array owns both */
    size_t name_count;
    sgm__text doc;
    sgm__source_program program;
} function;

typedef struct export
{
    sgm_trainer *trainer;
    const sgm_export_c_options *options;
    function functions[2];
    int32_t count;
    char last[MAXIMUM_NAME + 16]; /* the statement that ends train_step: counts the updates */
    char *about;                  /* the comment at the top of the file */
}
export;

static void free_function(function *f)
{
    for (size_t i = 0; i < f->name_count; i++)
        sgm__free(f->outputs[i]);
    sgm__free(f->outputs);
    sgm__free(f->inputs);
    sgm__text_free(&f->doc);
    sgm__plan_free(f->plan);
}

/* --- checks --- */

static sgm_status check_options(const sgm_export_c_options *options)
{
    const char *name = options->name;
    bool good = (sgm__is_letter(*name) || *name == '_') && strlen(name) <= MAXIMUM_NAME;
    for (const char *c = name; *c != '\0' && good; c++)
        good = (sgm__is_alphanumeric(*c) || *c == '_');
    if (!good)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "'%.60s' cannot begin names of C: use letters, digits and _, at most %d, "
                        "and no digit first",
                        name, MAXIMUM_NAME);
    if (options->batch < 0 || options->train < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "batch and train are numbers of examples, not %lld",
                        (long long)(options->batch < 0 ? options->batch : options->train));
    return SGM_OK;
}

static sgm_status check_trainer(const sgm_trainer *trainer, const sgm_export_c_options *options)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    if (learner->network == NULL)
        return sgm_fail(SGM_ERROR_STATE, "has no network yet: call sgm_trainer_set_network");
    if (sgm_network_is_dynamic(learner->network))
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "its network is recorded anew at each iteration, so there is no one program to write "
                        "as C");
    if (options->train > 0 && learner->optimiser == NULL)
        return sgm_fail(SGM_ERROR_STATE, "has no optimiser, so there is no training step to write as C");
    if (options->train > 0 && learner->optimiser->options.accumulate > 1)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "its optimiser accumulates gradients of %lld minibatches, for which there is no single "
            "step to write as C: set accumulate to 1 and take larger minibatches",
            (long long)learner->optimiser->options.accumulate);
    return SGM_OK;
}

/* --- plans --- */

/* Drops all outputs but the loss, the only value that train_step returns. */
static void keep_loss(sgm_graph *graph)
{
    size_t kept = 0;
    for (size_t i = 0; i < graph->output_count; i++)
        if (strcmp(sgm__graph_string(graph, graph->outputs[i].name), SGM__LOSS) == 0)
            graph->outputs[kept++] = graph->outputs[i];
    graph->output_count = kept;
}

/* Plans the trainer's program for `batch` examples. In mixed precision the parameters are float32, so the
 * network is recorded in float32. */
static sgm_status plan_in(sgm_trainer *trainer, sgm__step_purpose purpose, int64_t batch, sgm__plan **plan)
{
    sgm__trainer_settings *settings = sgm__settings_of(trainer);
    sgm__learner *learner = sgm__learner_of(trainer);
    sgm_dtype precision = settings->precision;
    if (precision == SGM_BFLOAT16)
        settings->precision = SGM_FLOAT32;
    sgm__trainer_forget_programs(trainer); /* so that the graph is re-recorded */
    sgm_status status = sgm__trainer_program(trainer, purpose, batch) != NULL ? SGM_OK : sgm__last_failure();
    if (status == SGM_OK && purpose == SGM__UPDATE)
        keep_loss(learner->graph);
    if (status == SGM_OK)
        status = sgm__plan_create(learner->graph, sgm__source_handler(), plan);
    settings->precision = precision;
    sgm__trainer_forget_programs(trainer);
    return status;
}

/* --- parameters --- */

/* Whether a name cannot be a parameter's: words of C, and names that written functions use for themselves
 * (sums, places, v1, i2, words3 ...; all of one or two letters). */
static bool is_taken(const char *name)
{
    static const char *const words[] = {
        "auto",     "break",  "case",    "char",     "const",    "continue",      "default",  "do",
        "double",   "else",   "enum",    "extern",   "float",    "for",           "goto",     "if",
        "inline",   "int",    "long",    "register", "restrict", "return",        "short",    "signed",
        "sizeof",   "static", "struct",  "switch",   "typedef",  "union",         "unsigned", "void",
        "volatile", "while",  "sum",     "best",     "place",    "here",          "value",    "gradient",
        "seen",     "at",     "outputs", "loss",     "words",    "learning_rate", "int64_t"};
    if (strlen(name) < 3)
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], name) == 0)
            return true;
    return (name[0] == 'v' || name[0] == 'i' || strncmp(name, "words", 5) == 0) &&
           sgm__is_digit(name[strlen(name) - 1]);
}

/* The parameter of C for a field of the data. */
static char *parameter_name(const char *field)
{
    char identifier[SGM__SOURCE_NAME - 16];
    sgm__source_identifier(field, identifier, sizeof identifier);
    bool digit = sgm__is_digit(identifier[0]);
    return sgm__format("%s%s%s", digit ? "field_" : "", identifier, is_taken(identifier) ? "_values" : "");
}

static char *output_name(const sgm__plan *plan, const char *name)
{
    char identifier[SGM__SOURCE_NAME - 16];
    if (strcmp(name, SGM__LOSS) == 0)
        return sgm__strdup("loss");
    if (plan->output_count == 1)
        return sgm__strdup("outputs");
    return sgm__format("outputs_%s", sgm__source_identifier(name, identifier, sizeof identifier));
}

static sgm_dtype real_of(const export *e)
{
    return sgm__settings_of(e->trainer)->precision == SGM_FLOAT64 ? SGM_FLOAT64 : SGM_FLOAT32;
}

/* A bias correction, 1 - beta^t, as an expression of the step's number. */
static char *correction_from(const export *e, double beta, sgm__source_input *input)
{
    const char *prefix = e->options->name;
    *input = (sgm__source_input){.expression = true, .functions = 1u << SGM__SOURCE_COMPLEMENT};
    return sgm__format("%s_complement(%.17g, %s_updates[0] + 1)", prefix, beta, prefix);
}

/* Describes how an input appears in C, and returns its name; free with sgm__free. NULL: out of memory. */
static char *describe_input(const export *e, const char *field, sgm__source_input *input)
{
    const sgm__source_request request = {.name = e->options->name, .real = real_of(e)};
    char real[SGM__SOURCE_NAME];
    switch (sgm__fed_number_of(field)) {
    case SGM__FED_LEARNING_RATE:
        *input = (sgm__source_input){.number = true};
        return sgm__strdup("learning_rate");
    case SGM__FED_STEP:
        *input = (sgm__source_input){.expression = true};
        return sgm__format("(%s)(%s_updates[0] + 1)", sgm__source_real(&request, real, sizeof real),
                           request.name);
    case SGM__FED_BIAS_CORRECTION1:
        return correction_from(e, sgm__learner_of(e->trainer)->optimiser->options.beta1, input);
    case SGM__FED_BIAS_CORRECTION2:
        return correction_from(e, sgm__learner_of(e->trainer)->optimiser->options.beta2, input);
    default:
        *input = (sgm__source_input){0};
        return parameter_name(field);
    }
}

/* Names all inputs and outputs of the function. */
static sgm_status name_parameters(const export *e, function *f)
{
    const sgm__plan *plan = f->plan;
    size_t inputs = (size_t)plan->input_count, outputs = (size_t)plan->output_count;
    f->inputs = sgm__calloc(inputs + 1, sizeof *f->inputs);
    f->outputs = sgm__calloc(inputs + outputs + 1, sizeof *f->outputs);
    if (f->inputs == NULL || f->outputs == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < outputs; i++) {
        char *name = output_name(plan, sgm__plan_string(plan, plan->outputs[i].name));
        if (name == NULL)
            return SGM_ERROR_MEMORY;
        f->outputs[f->name_count++] = name;
    }
    for (size_t i = 0; i < inputs; i++) {
        const char *field = sgm__plan_string(plan, plan->inputs[i].name);
        char *name = describe_input(e, field, &f->inputs[i]);
        if (name == NULL)
            return SGM_ERROR_MEMORY;
        f->outputs[f->name_count++] = name;
        f->inputs[i].name = name;
    }
    return SGM_OK;
}

/* --- the two functions --- */

/* Plans one of the functions and writes the comment over it. */
static sgm_status add_function(export *e, sgm__step_purpose purpose, int64_t batch, const char *name)
{
    function *f = &e->functions[e->count++];
    SGM_TRY(plan_in(e->trainer, purpose, batch, &f->plan));
    SGM_TRY(name_parameters(e, f));
    if (purpose == SGM__PREDICT)
        sgm__text_append(&f->doc,
                         "What the network predicts for %lld example%s, one after the other. Returns 0;",
                         (long long)batch, batch == 1 ? "" : "s");
    else
        sgm__text_append(
            &f->doc,
            "A step of training with %lld example%s: outputs, gradients, update by %s (the run's learning\n"
            " * rate was %g). Gives the loss. Returns 0;",
            (long long)batch, batch == 1 ? "" : "s", sgm__learner_of(e->trainer)->optimiser->type->name,
            sgm__learner_of(e->trainer)->optimiser->options.learning_rate);
    sgm__text_append(&f->doc, "\n * 1 if a number is no index of its table: then nothing is given%s.",
                     purpose == SGM__PREDICT ? "" : ", and the step is not complete");
    if (f->doc.failed)
        return SGM_ERROR_MEMORY;
    f->program = (sgm__source_program){.function = name,
                                       .doc = f->doc.data,
                                       .plan = f->plan,
                                       .inputs = f->inputs,
                                       .outputs = (const char *const *)f->outputs,
                                       .last = purpose == SGM__PREDICT ? NULL : e->last};
    return SGM_OK;
}

static sgm_tensor *read_state(void *user, const char *name)
{
    const sgm_trainer *trainer = user;
    return sgm_session_get(sgm__learner_of(trainer)->session, name);
}

/* Appends the notation to a comment: the two characters that would end the comment are separated. */
static void append_notation(sgm__text *text, const char *notation)
{
    for (const char *c = notation; *c != '\0'; c++) {
        sgm__text_append_bytes(text, c, 1);
        if (c[0] == '*' && c[1] == '/')
            sgm__text_append(text, " ");
        else if (*c == '\n')
            sgm__text_append(text, " *   ");
    }
}

/* Writes the comment at the top of the file: the notation, how the file is used, how much memory it needs. */
static sgm_status describe(export *e, const char *path)
{
    const char *slash = strrchr(path, '/'), *file = slash != NULL ? slash + 1 : path;
    char capitals[SGM__SOURCE_NAME];
    int64_t memory = 0;
    sgm__text about = {0};
    for (int32_t i = 0; i < e->count; i++)
        if (e->functions[i].plan->arena_bytes > memory)
            memory = e->functions[i].plan->arena_bytes;
    char *notation = sgm_network_text(sgm__learner_of(e->trainer)->network);
    if (notation == NULL)
        return sgm__last_failure();
    sgm__text_append(&about, "%s: a network as C99, written by Sigma %s. It calls no library.\n *\n *   ",
                     e->options->name, sgm_version());
    append_notation(&about, notation);
    sgm__source_capitals(e->options->name, capitals, sizeof capitals);
    sgm__text_append(
        &about,
        "\n *\n * Compile this file; where its functions are called, write\n"
        " *     #define %s_DECLARATIONS\n"
        " *     #include \"%s\"\n"
        " * Beside the weights%s it needs %lld bytes of memory, which its functions share: one call at a "
        "time.",
        capitals, file, e->count > 1 ? " and the optimiser state" : "", (long long)memory);
    sgm_string_free(notation);
    e->about = sgm__text_take(&about);
    return e->about != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Adds what predicts for rows of the table, or pixels of pictures, that the network was trained on. */
static sgm_status add_pipeline(const export *e, sgm__source_request *request, sgm__text *declarations,
                               sgm__text *definitions)
{
    const sgm__table_program program = {.pipeline = sgm_trainer_get_pipeline(e->trainer),
                                        .plan = e->functions[0].plan,
                                        .inputs = e->functions[0].inputs,
                                        .rows = e->options->batch > 0 ? e->options->batch : 1};
    if (program.pipeline != NULL && sgm__picture_fits(&program))
        SGM_TRY(sgm__picture_write_source(&program, request, declarations, definitions));
    else if (program.pipeline != NULL && sgm__table_fits(&program))
        SGM_TRY(sgm__table_write_source(&program, request, declarations, definitions));
    else
        return SGM_OK;
    request->declarations = declarations->data;
    request->definitions = definitions->data;
    return SGM_OK;
}

static sgm_status write_to(export *e, const char *path)
{
    sgm__source_program programs[2];
    for (int32_t i = 0; i < e->count; i++)
        programs[i] = e->functions[i].program;
    sgm__source_request request = {.name = e->options->name,
                                   .about = e->about,
                                   .real = real_of(e),
                                   .programs = programs,
                                   .program_count = e->count,
                                   .has_states = e->count > 1,
                                   .updates = sgm__position_of(e->trainer)->updates,
                                   .state = read_state,
                                   .user = e->trainer};
    sgm__text text = {0}, declarations = {0}, definitions = {0};
    sgm_status status = add_pipeline(e, &request, &declarations, &definitions);
    if (status == SGM_OK)
        status = sgm__source_write(&request, &text);
    if (status == SGM_OK && text.failed)
        status = SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__file_write_atomic(path, text.data, text.length);
    sgm__text_free(&declarations);
    sgm__text_free(&definitions);
    sgm__text_free(&text);
    return status;
}

static sgm_status write_all(export *e, const char *path)
{
    const sgm_export_c_options *options = e->options;
    SGM_TRY(check_trainer(e->trainer, options));
    SGM_TRY(sgm__trainer_collect(e->trainer));
    snprintf(e->last, sizeof e->last, "%s_updates[0]++;", options->name);
    SGM_TRY(add_function(e, SGM__PREDICT, options->batch > 0 ? options->batch : 1, "predict"));
    if (options->train > 0)
        SGM_TRY(add_function(e, SGM__UPDATE, options->train, "train_step"));
    SGM_TRY(describe(e, path));
    return write_to(e, path);
}

sgm_status sgm_trainer_export_c_with(sgm_trainer *trainer, const char *path,
                                     const sgm_export_c_options *given)
{
    sgm_export_c_options options;
    SGM_TRY(sgm__options_read(&options, sizeof options, given, "sgm_trainer_export_c"));
    if (options.name == NULL)
        options.name = "model";
    if (path == NULL || *path == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected the path of a file");
    SGM_TRY(check_options(&options));
    SGM_TRY(sgm__trainer_open(trainer));
    export e = {.trainer = trainer, .options = &options};
    sgm_status status = write_all(&e, path);
    for (int32_t i = 0; i < e.count; i++)
        free_function(&e.functions[i]);
    sgm__free(e.about);
    sgm__trainer_unlock(trainer);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("trainer '%s'", sgm_trainer_name(trainer));
}
