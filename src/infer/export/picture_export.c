/* The normalisation of pictures in front of a prediction: in C a function that takes pixels as cameras and
 * image libraries give them, in a graph operations on the bytes of each channel. See picture_export.h; both
 * do what data/kinds/picture.c does with a picture that has the right size. */
#include "infer/export/picture_export.h"
#include "data/kinds/masked_picture.h"
#include "graph/rebuild.h"

/* --- what fits --- */

/* NULL: the pipeline is of something else. Pictures with masks are pictures, too. */
static const sgm__picture_form *form_of(const sgm_pipeline *pipeline)
{
    if (pipeline->kind == &sgm__masked_pictures)
        return &((const sgm__masked_form *)pipeline->form)->picture;
    return pipeline->kind == &sgm__pictures ? pipeline->form : NULL;
}

/* Whether an input of this name and shape, examples first, is the pictures. */
static bool is_pictures(const sgm__picture_form *form, const char *name, const sgm_shape *shape)
{
    return form != NULL && strcmp(name, "inputs") == 0 && shape->rank == 4 &&
           shape->dims[1] == form->channels && shape->dims[2] == form->height &&
           shape->dims[3] == form->width;
}

bool sgm__picture_fits(const sgm__table_program *program)
{
    const sgm__plan *plan = program->plan;
    return plan->input_count == 1 && plan->output_count == 1 &&
           is_pictures(form_of(program->pipeline), sgm__plan_string(plan, plan->inputs[0].name),
                       &plan->inputs[0].type.shape);
}

static bool is_picture_input(const sgm_graph *graph, const sgm__instruction *instruction,
                             const sgm_pipeline *pipeline)
{
    return instruction->op == &sgm__op_input &&
           is_pictures(form_of(pipeline), sgm__graph_string(graph, instruction->name),
                       &instruction->type.shape);
}

bool sgm__picture_fits_graph(const sgm_graph *prediction, const sgm_pipeline *pipeline)
{
    bool fits = form_of(pipeline) != NULL;
    for (size_t i = 0; i < prediction->count && fits; i++)
        fits = prediction->instructions[i].op != &sgm__op_input ||
               is_picture_input(prediction, &prediction->instructions[i], pipeline);
    return fits;
}

/* --- as C --- */

static void write_numbers(const char *name, const double *numbers, int32_t count, sgm__text *text)
{
    sgm__text_append(text, "    static const double %s[] = {", name);
    for (int32_t i = 0; i < count; i++)
        sgm__text_append(text, "%s%.17g", i > 0 ? ", " : "", numbers[i]);
    sgm__text_append(text, "};\n");
}

static void write_interface(const sgm__table_program *program, const sgm__picture_form *form,
                            const sgm__source_request *request, sgm__text *text)
{
    sgm__text words = {0};
    sgm__text_append(
        &words,
        "#define ~_PICTURES %lld\n"
        "#define ~_WIDTH %d\n"
        "#define ~_HEIGHT %d\n"
        "#define ~_CHANNELS %d\n"
        "/* What the network predicts for ~_PICTURES pictures, which have been scaled to ~_WIDTH x\n"
        " * ~_HEIGHT: rows of pixels from the top, and of each pixel %s.%s\n"
        " * Returns as $_predict does. */\n"
        "int $_predict_pixels(const unsigned char *pixels, @ *outputs);\n",
        (long long)program->rows, (int)form->width, (int)form->height, (int)form->channels,
        form->channels == 1 ? "a byte of grey" : "bytes of red, green and blue",
        program->pipeline->kind == &sgm__masked_pictures
            ? "\n * Outputs are, of each pixel in the same order, the probability of every class;\n"
              " * $_class(k) is what the pixels of class k have in a mask."
            : "");
    sgm__source_write_template(request, words.data != NULL ? words.data : "", text);
    text->failed |= words.failed;
    sgm__text_free(&words);
}

static void write_predict_pixels(const sgm__picture_form *form, const sgm__source_request *request,
                                 sgm__text *text)
{
    sgm__source_write_template(request, "int $_predict_pixels(const unsigned char *pixels, @ *outputs)\n{\n",
                               text);
    write_numbers("mean", form->mean, form->channels, text);
    write_numbers("deviation", form->deviation, form->channels, text);
    sgm__source_write_template(
        request,
        "    static @ inputs[(long)~_PICTURES * ~_CHANNELS * ~_HEIGHT * ~_WIDTH];\n"
        "    const long area = (long)~_HEIGHT * ~_WIDTH;\n"
        "    for (long picture = 0; picture < ~_PICTURES; picture++)\n"
        "        for (long pixel = 0; pixel < area; pixel++)\n"
        "            for (long channel = 0; channel < ~_CHANNELS; channel++)\n"
        "                inputs[(picture * ~_CHANNELS + channel) * area + pixel] =\n"
        "                    (@)((*pixels++ / 255.0 - mean[channel]) / deviation[channel]);\n"
        "    return $_predict(inputs, outputs);\n"
        "}\n\n",
        text);
}

sgm_status sgm__picture_write_source(const sgm__table_program *program, const sgm__source_request *request,
                                     sgm__text *interface, sgm__text *code)
{
    const sgm__picture_form *form = form_of(program->pipeline);
    write_interface(program, form, request, interface);
    sgm__table_declare_class(program->pipeline, request, interface);
    sgm__text_append(interface, "\n");
    write_predict_pixels(form, request, code);
    sgm__table_write_class(program->pipeline, request, code);
    return interface->failed || code->failed ? SGM_ERROR_MEMORY : SGM_OK;
}

/* --- as operations --- */

/* A number for each channel, which meets (examples, channels, height, width). */
static sgm_value each_channel(sgm_graph *graph, const sgm__picture_form *form, const double *numbers)
{
    sgm_shape shape = sgm_shape_of(1, form->channels, 1, 1);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_FLOAT64, &shape, numbers);
    sgm_value value = tensor != NULL ? sgm_constant(graph, tensor) : (sgm_value){-1};
    sgm_tensor_free(tensor);
    return value;
}

/* In float64, as the pipeline computes it, then in the type of the input. */
static sgm_value normalise(sgm_graph *graph, const sgm__picture_form *form, const sgm_type *input)
{
    sgm_value x = sgm_input_value(graph, "inputs", SGM_UINT8, &input->shape);
    x = sgm_cast(graph, x, SGM_FLOAT64);
    x = sgm_divide(graph, x, sgm_filled_like(graph, x, 255));
    x = sgm_subtract(graph, x, each_channel(graph, form, form->mean));
    x = sgm_divide(graph, x, each_channel(graph, form, form->deviation));
    return sgm_cast(graph, x, input->dtype);
}

sgm_graph *sgm__picture_graph(const sgm_graph *prediction, const sgm_pipeline *pipeline)
{
    sgm__rebuild work;
    if (!sgm__rebuild_begin(&work, prediction))
        return NULL;
    for (int32_t i = 0; i < (int32_t)prediction->count; i++) {
        const sgm__instruction *instruction = &prediction->instructions[i];
        if (is_picture_input(prediction, instruction, pipeline)) {
            work.map[i] = normalise(work.graph, form_of(pipeline), &instruction->type);
            continue;
        }
        sgm__rebuild_map(&work, instruction);
        work.map[i] = sgm__rebuild_transcribe(&work, instruction);
    }
    return sgm__rebuild_finish(&work);
}
