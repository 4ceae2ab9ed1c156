/* `sigma inspect MODEL.onnx`: what an ONNX model takes and gives, and the graph that it becomes. */
#include "inspect/inspect.h"

#include <stdio.h>

/* A line for each input, for each output, which has no type before a run, and for each class that has a name.
 */
static void print_values(const sgm_onnx *model)
{
    sgm_type type;
    char text[128];
    const char *name;
    printf("inputs (-1: any)\n");
    for (size_t i = 0; (name = sgm_onnx_input_at(model, i, &type)) != NULL; i++)
        printf("  %-32s %-8s %s\n", name, sgm_dtype_name(type.dtype),
               type.shape.rank < 0 ? "of any shape" : sgm_shape_text(&type.shape, text, sizeof text));
    printf("outputs\n");
    for (size_t i = 0; sgm_onnx_output_at(model, i) != NULL; i++)
        if (sgm_onnx_output_is_class(model, i))
            printf("  %-32s numbers of classes\n", sgm_onnx_output_at(model, i));
        else
            printf("  %s\n", sgm_onnx_output_at(model, i));
    for (size_t i = 0; (name = sgm_onnx_class_at(model, i)) != NULL; i++) {
        printf(i == 0 ? "classes\n  %zu " : "  %zu ", i);
        print_name(name);
        putchar('\n');
    }
}

/* How many elements the constants of a recorded graph have. */
static int64_t count_constants(const sgm_graph *graph)
{
    int64_t elements = 0;
    for (int32_t i = 0; i < sgm_graph_count(graph); i++) {
        sgm_value value = {i};
        sgm_shape shape = sgm_value_type(graph, value).shape;
        if (strcmp(sgm_value_op(graph, value)->name, "constant") == 0)
            elements += sgm_shape_elements(&shape);
    }
    return elements;
}

/* The model as a graph for `batch` examples. */
static sgm_status print_graph(sgm_onnx *model, int64_t batch, bool listing)
{
    char number[64];
    sgm_graph *graph = sgm_graph_create();
    sgm_status status = graph != NULL ? sgm_onnx_import(model, graph, batch) : sgm__last_failure();
    if (status == SGM_OK)
        printf("graph of %lld examples\n  %d instructions, %s numbers in constants\n", (long long)batch,
               sgm_graph_count(graph), sgm_count_text(count_constants(graph), number, sizeof number));
    char *text = status == SGM_OK && listing ? sgm_graph_text(graph) : NULL;
    if (text != NULL)
        printf("%s", text);
    sgm_string_free(text);
    sgm_graph_free(graph);
    return status;
}

sgm_status inspect_onnx(const char *path, int64_t batch, bool listing)
{
    sgm_onnx *model = sgm_onnx_load(path);
    if (model == NULL)
        return sgm__last_failure();
    print_values(model);
    sgm_status status = print_graph(model, batch < 0 ? 1 : batch, listing);
    sgm_onnx_free(model);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("'%s'", path);
}
