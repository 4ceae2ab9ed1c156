/* Which inputs of a network are fields that the columns of a table fill. See table_export.h.
 *
 * A field has the input's name and as many numbers as its columns have together. Pipelines of pictures have
 * fields without columns; and a pipeline that a program gave to other data than it was made for, or that was
 * changed by hand, may have more columns than the network has room for. */
#include "infer/export/table_export.h"

/* The field of this name and with so many numbers of an example; -1: none. */
static int32_t find_field(const sgm_pipeline *pipeline, const char *name, int64_t width)
{
    int32_t field = 0;
    while (field < pipeline->field_count &&
           (!pipeline->fields[field].is_input || strcmp(pipeline->fields[field].name, name) != 0))
        field++;
    for (size_t i = 0; i < pipeline->part_count; i++)
        if (pipeline->parts[i].field == field)
            width -= pipeline->parts[i].width;
    if (field < pipeline->field_count && pipeline->fields[field].is_length)
        width -= pipeline->fields[field].width;
    return field < pipeline->field_count && width == 0 ? field : -1;
}

int32_t sgm__table_field_of_input(const sgm__table_program *program, int32_t input)
{
    const sgm__binding *taken = &program->plan->inputs[input];
    return find_field(program->pipeline, sgm__plan_string(program->plan, taken->name),
                      sgm_shape_elements(&taken->type.shape) / program->rows);
}

/* Whether it is a field, and no length without the text that is counted. */
static bool has_text_of(const sgm__table_program *program, int32_t field)
{
    bool found = field >= 0 && !program->pipeline->fields[field].is_length;
    for (int32_t i = 0; i < program->plan->input_count && field >= 0 && !found; i++)
        found = sgm__table_field_of_input(program, i) == field - 1;
    return found;
}

bool sgm__table_fits(const sgm__table_program *program)
{
    bool fits = program->plan->output_count == 1;
    for (int32_t i = 0; i < program->plan->input_count && fits; i++)
        fits = has_text_of(program, sgm__table_field_of_input(program, i));
    return fits;
}

int32_t sgm__table_field_of_instruction(const sgm_graph *graph, const sgm__instruction *instruction,
                                        const sgm_pipeline *pipeline)
{
    const sgm_shape *shape = &instruction->type.shape;
    if (instruction->op != &sgm__op_input || shape->rank == 0 || shape->dims[0] == 0)
        return -1;
    return find_field(pipeline, sgm__graph_string(graph, instruction->name),
                      sgm_shape_elements(shape) / shape->dims[0]);
}

bool sgm__table_fits_graph(const sgm_graph *prediction, const sgm_pipeline *pipeline)
{
    bool fits = true;
    for (size_t i = 0; i < prediction->count && fits; i++) {
        const sgm__instruction *instruction = &prediction->instructions[i];
        fits = instruction->op != &sgm__op_input ||
               sgm__table_field_of_instruction(prediction, instruction, pipeline) >= 0;
    }
    return fits;
}
