/* What `sigma eval` measured, for people and as JSON. */
#include "data/table/pipeline.h"
#include "eval/eval.h"

#include <math.h>
#include <stdio.h>

/* Of the worst mistakes, so many are printed. */
#define SHOWN_MISTAKES 3

/* --- as JSON --- */

/* A list, or for rank 2 a list of rows. */
static void print_json_tensor(const sgm_tensor *tensor)
{
    const sgm_shape *shape = sgm_tensor_shape(tensor);
    bool is_matrix = shape->rank == 2;
    printf("[");
    for (int64_t i = 0; i < shape->dims[0]; i++) {
        fputs(i > 0 ? ", " : "", stdout);
        if (is_matrix)
            printf("[");
        for (int64_t j = 0; j < (is_matrix ? shape->dims[1] : 1); j++) {
            const int64_t indices[] = {i, j};
            fputs(j > 0 ? ", " : "", stdout);
            print_json_number(sgm_tensor_get(tensor, indices));
        }
        if (is_matrix)
            printf("]");
    }
    printf("]");
}

/* Whether print_metrics, or the beginning of the JSON object, has shown this entry already. */
static bool is_shown_first(const char *name)
{
    return strcmp(name, "loss") == 0 || strcmp(name, "accuracy") == 0 || strcmp(name, "examples") == 0;
}

/* Errors of a target of numbers are brought back into the units of its table; other results stay, as do the
 * errors of several targets together. */
static double in_units(const config *c, const char *name, int64_t target, double value)
{
    static const char *const errors[] = {"mean_absolute_error", "root_mean_squared_error", "maximum_error"};
    const sgm_pipeline *pipeline = c->data.pipeline;
    bool is_each = ends_with(name, "_per_target");
    if (pipeline == NULL || sgm_pipeline_classes(pipeline) != NULL ||
        (sgm_pipeline_width(pipeline, "targets") != 1 && !is_each))
        return value;
    size_t length = strlen(name) - (is_each ? strlen("_per_target") : 0), at = (size_t)target;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strlen(errors[i]) == length && strncmp(name, errors[i], length) == 0)
            return value * (sgm_pipeline_restore(pipeline, at, 1) - sgm_pipeline_restore(pipeline, at, 0));
    return value;
}

/* The numbers of each target, in its units. */
static void print_json_targets(const config *c, const char *name, const sgm_tensor *numbers)
{
    for (int64_t i = 0; i < sgm_tensor_shape(numbers)->dims[0]; i++) {
        fputs(i == 0 ? "[" : ", ", stdout);
        print_json_number(in_units(c, name, i, sgm_tensor_get(numbers, &i)));
    }
    putchar(']');
}

/* ", "classes": ["cat", "dog"]", or the names of targets that are numbers, in whose units errors are. */
static void print_json_names(const config *c)
{
    const sgm_pipeline *pipeline = c->data.pipeline;
    const char *const *classes = pipeline != NULL ? sgm_pipeline_classes(pipeline) : NULL;
    const sgm__pipeline_part *part;
    const text_list *labels = &c->data.training.class_names;
    for (size_t i = 0; pipeline == NULL && i < labels->count; i++) {
        fputs(i == 0 ? ", \"classes\": [" : ", ", stdout);
        print_json_text(labels->items[i]);
    }
    for (size_t i = 0; classes != NULL && classes[i] != NULL; i++) {
        fputs(i == 0 ? ", \"classes\": [" : ", ", stdout);
        print_json_text(classes[i]);
    }
    for (size_t i = 0;
         classes == NULL && pipeline != NULL && (part = sgm__pipeline_target(pipeline, i)) != NULL; i++) {
        fputs(i == 0 ? ", \"targets\": [" : ", ", stdout);
        print_json_text(part->name);
    }
    if (pipeline != NULL || labels->count > 0)
        putchar(']');
}

/* ", "worst_mistakes_files": ["cat/3.png", ...]": those of the rows of worst_mistakes. */
static void print_json_files(const sgm_tensor *mistakes, const eval_names *names)
{
    for (int64_t i = 0; i < sgm_tensor_shape(mistakes)->dims[0] && names->files != NULL; i++) {
        const char *file = eval_name_of(names, (int64_t)sgm_tensor_get(mistakes, (const int64_t[]){i, 0}));
        fputs(i == 0 ? ", \"worst_mistakes_files\": [" : ", ", stdout);
        print_json_text(file != NULL ? file : "");
        fputs(i + 1 == sgm_tensor_shape(mistakes)->dims[0] ? "]" : "", stdout);
    }
}

/* One object on a line: name, loss, accuracy, examples, and of which they are a share, then all other results
 * in the registry's order. */
void eval_print_json(const char *name, const sgm_metrics *metrics, const eval_counted *counted,
                     const sgm_matches *results, const config *c, const eval_names *names)
{
    printf("{\"data\": ");
    print_json_text(name);
    printf(", \"loss\": ");
    print_json_number(metrics->loss);
    printf(", \"accuracy\": ");
    print_json_number(metrics->accuracy);
    printf(", \"examples\": %lld", (long long)metrics->examples);
    eval_print_json_counted(counted);
    print_json_names(c);
    for (size_t i = 0; i < results->count; i++) {
        const sgm_match *result = &results->items[i];
        if (is_shown_first(result->identifier))
            continue;
        printf(", ");
        print_json_text(result->identifier);
        printf(": ");
        if (ends_with(result->identifier, "_per_target"))
            print_json_targets(c, result->identifier, result->content.as.tensor);
        else if (result->content.kind == SGM_KIND_TENSOR)
            print_json_tensor(result->content.as.tensor);
        else
            print_json_number(in_units(c, result->identifier, 0, result->content.as.number));
        if (strcmp(result->identifier, "worst_mistakes") == 0)
            print_json_files(result->content.as.tensor, names);
    }
    printf("}\n");
}

/* --- for people --- */

/* The names of the classes, if the pipeline or the configuration has as many as there are classes; else NULL:
 * numbers are shown. */
const char *const *eval_class_names(const config *c, int64_t classes)
{
    const text_list *names = &c->data.training.class_names;
    const char *const *known = c->data.pipeline != NULL ? sgm_pipeline_classes(c->data.pipeline) : NULL;
    int64_t count = 0;
    while (known != NULL && known[count] != NULL)
        count++;
    if (known != NULL && count == classes)
        return known;
    return (int64_t)names->count == classes ? (const char *const *)names->items : NULL;
}

static void print_class(const char *const *names, int64_t class)
{
    if (names != NULL)
        print_name(names[class]);
    else
        printf("%lld", (long long)class);
}

/* Each row of `mistakes` is (number, class, predicted class, output of the network for that class), the
 * worst first. `what` is what the number counts: "example", or "prediction" where an example has several. A
 * file is named instead. */
static void print_mistakes(const sgm_tensor *mistakes, const char *const *names, const char *what,
                           const eval_names *files)
{
    int64_t count = sgm_tensor_shape(mistakes)->dims[0];
    for (int64_t i = 0; i < count && i < SHOWN_MISTAKES; i++) {
        double numbers[4];
        for (int64_t j = 0; j < 4; j++)
            numbers[j] = sgm_tensor_get(mistakes, (const int64_t[]){i, j});
        const char *file = eval_name_of(files, (int64_t)numbers[0]);
        printf(i == 0 ? "  worst mistakes: " : "; ");
        if (file != NULL)
            print_name(file);
        else
            printf("%s %lld", what, (long long)numbers[0]);
        printf(", ");
        print_class(names, (int64_t)numbers[1]);
        printf(" predicted as ");
        print_class(names, (int64_t)numbers[2]);
        printf(" (%.3f)", numbers[3]);
    }
    if (count > 0)
        printf("\n");
}

/* Indents the library's table by two columns. */
static sgm_status print_confusion(const sgm_tensor *confusion, const config *c)
{
    char *text = sgm_confusion_text(confusion, eval_class_names(c, sgm_tensor_shape(confusion)->dims[0]));
    if (text == NULL)
        return sgm__last_failure();
    char *rest = text, *line;
    while ((line = strtok_r(rest, "\n", &rest)) != NULL)
        printf("  %s\n", line);
    sgm_string_free(text);
    return SGM_OK;
}

/* Averages over classes taken in other ways, which only the JSON shows. */
static bool is_detail(const char *name)
{
    return ends_with(name, "_macro") || ends_with(name, "_weighted") || ends_with(name, "_micro");
}

/* The number of predictions in a confusion matrix. */
static int64_t total_of(const sgm_tensor *confusion)
{
    const sgm_shape *shape = sgm_tensor_shape(confusion);
    int64_t total = 0;
    for (int64_t i = 0; i < shape->dims[0]; i++)
        for (int64_t j = 0; j < shape->dims[1]; j++)
            total += (int64_t)sgm_tensor_get(confusion, (const int64_t[]){i, j});
    return total;
}

/* Shares and scaled errors have four decimals; larger numbers six digits. Printed NaN has no sign. */
static const char *number_text(double number, char *text, size_t size)
{
    snprintf(text, size, fabs(number) < 100 ? "%.4f" : "%.6g", isnan(number) ? NAN : number);
    return text;
}

/* Of several targets of a table a line each, "  price: mean_absolute_error 2104, ...", in their units. */
static void print_targets(const sgm_matches *results, const config *c)
{
    static const char end[] = "_per_target";
    const sgm__pipeline_part *part;
    for (size_t i = 0; c->data.pipeline != NULL && (part = sgm__pipeline_target(c->data.pipeline, i)) != NULL;
         i++) {
        int64_t at = (int64_t)i, shown = 0;
        for (size_t k = 0; k < results->count; k++) {
            const sgm_match *result = &results->items[k];
            char text[32];
            if (!ends_with(result->identifier, end) ||
                at >= sgm_tensor_shape(result->content.as.tensor)->dims[0])
                continue;
            if (shown++ == 0) {
                printf("  ");
                print_name(part->name);
            }
            double number =
                in_units(c, result->identifier, at, sgm_tensor_get(result->content.as.tensor, &at));
            printf("%s%.*s %s", shown == 1 ? ": " : ", ", (int)(strlen(result->identifier) - strlen(end)),
                   result->identifier, number_text(number, text, sizeof text));
        }
        if (shown > 0)
            putchar('\n');
    }
}

sgm_status eval_print_results(const sgm_matches *results, const sgm_metrics *metrics, const config *c,
                              const eval_names *names)
{
    bool any = false;
    char text[32];
    const sgm_tensor *confusion = NULL, *mistakes = NULL;
    for (size_t i = 0; i < results->count; i++) {
        const sgm_match *result = &results->items[i];
        if (strcmp(result->identifier, "confusion") == 0)
            confusion = result->content.as.tensor;
        else if (strcmp(result->identifier, "worst_mistakes") == 0)
            mistakes = result->content.as.tensor;
        if (result->content.kind != SGM_KIND_NUMBER || is_shown_first(result->identifier) ||
            is_detail(result->identifier))
            continue;
        double number = in_units(c, result->identifier, 0, result->content.as.number);
        printf("%s%s %s", any ? ", " : "  ", result->identifier, number_text(number, text, sizeof text));
        any = true;
    }
    if (any)
        printf("\n");
    print_targets(results, c);
    if (confusion != NULL)
        SGM_TRY(print_confusion(confusion, c));
    if (confusion != NULL && mistakes != NULL)
        print_mistakes(mistakes, eval_class_names(c, sgm_tensor_shape(confusion)->dims[0]),
                       total_of(confusion) == metrics->examples ? "example" : "prediction", names);
    return SGM_OK;
}
