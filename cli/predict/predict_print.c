/* How `sigma predict` prints a prediction: the class and its probability, the class of each step, labels
 * (cost ctc), the numbers with their intervals (gaussian_nll), or the numbers, as a line for people or as
 * JSON. Printed NaN has no sign: the sign of a NaN means nothing and differs between processors. */
#include "predict/predict.h"
#include <sigma/models.h>

#include <math.h>
#include <stdio.h>

int64_t predict_class(const double *outputs, int64_t count, double *probability)
{
    int64_t best = largest_of(outputs, count);
    *probability = outputs[best];
    if (count == 1) { /* a sigmoid: of class 1 */
        best = outputs[0] > 0.5;
        *probability = best ? outputs[0] : 1 - outputs[0];
    }
    return isnan(*probability) ? -1 : best;
}

const char *predict_class_name(const prediction *p, int64_t class)
{
    const char *const *names = p->pipeline != NULL ? sgm_pipeline_classes(p->pipeline) : NULL;
    int64_t known = 0;
    if (p->model != NULL)
        return sgm_pretrained_class(p->model, class);
    while (names != NULL && known <= class && names[known] != NULL)
        known++;
    return known > class && class >= 0 ? names[class] : NULL;
}

static void print_class_name(const prediction *p, int64_t class)
{
    const char *name = predict_class_name(p, class);
    if (name == NULL)
        printf("%lld", (long long)class);
    else if (p->json)
        print_json_text(name);
    else
        print_name(name);
}

/* Probabilities of all classes, the likeliest first; of equal ones the first. */
static void print_probabilities(const prediction *p, const double *outputs, int64_t count)
{
    int64_t last = -1;
    for (int64_t i = 0; i < count; i++) {
        int64_t next = -1;
        for (int64_t k = 0; k < count; k++) {
            bool is_behind =
                last < 0 || (last < k ? outputs[k] <= outputs[last] : outputs[k] < outputs[last]);
            if (is_behind && (next < 0 || outputs[k] > outputs[next]))
                next = k;
        }
        if (next < 0) /* the others are NaN */
            break;
        fputs(i > 0 ? " " : "", stdout);
        print_class_name(p, next);
        printf(" %.4f", outputs[next]);
        last = next;
    }
    putchar('\n');
}

/* {"cat": 0.97, "dog": 0.03}, in the order of the classes. */
static void print_json_probabilities(const prediction *p, const double *outputs, int64_t count)
{
    printf(", \"probabilities\": {");
    for (int64_t i = 0; i < count; i++) {
        const char *name = predict_class_name(p, i);
        fputs(i > 0 ? ", " : "", stdout);
        if (name != NULL)
            print_json_text(name);
        else
            printf("\"%lld\"", (long long)i);
        printf(": ");
        print_json_element(outputs[i], p->wide);
    }
    printf("}");
}

/* The class and its probability, or those of all. The steps of a NaN prediction have no class: "?" or null.
 */
static void print_class(const prediction *p, const double *outputs, int64_t count)
{
    double probability;
    int64_t class = predict_class(outputs, count, &probability);
    const double both[] = {1 - outputs[0], outputs[0]};
    const double *shares = count == 1 ? both : outputs;
    int64_t share_count = count == 1 ? 2 : count;
    if (class < 0) { /* so are all of softmax's */
        fputs(p->json ? ", \"class\": null, \"probability\": null" : "? nan\n", stdout);
    } else if (p->json) {
        fputs(", \"class\": ", stdout);
        print_class_name(p, class);
        fputs(", \"probability\": ", stdout);
        print_json_number(probability);
    } else if (p->probabilities) {
        print_probabilities(p, shares, share_count);
    } else {
        print_class_name(p, class);
        printf(" %.4f\n", probability);
    }
    if (p->json && p->probabilities)
        print_json_probabilities(p, shares, share_count);
}

/* Of a model of several labels: none is the class. */
static void print_each_label(const prediction *p, const output_row *a)
{
    (p->json ? print_json_probabilities : print_probabilities)(p, a->outputs, a->count);
}

/* What separates entry i from the one before. */
static const char *between(const prediction *p, int64_t i)
{
    return i == 0 ? "" : p->json ? ", " : " ";
}

/* The class of each step of a sequence, up to its length. */
static void print_steps(const prediction *p, const output_row *a)
{
    fputs(p->json ? ", \"classes\": [" : "", stdout);
    for (int64_t i = 0; i < a->steps; i++)
        printf("%s%lld", between(p, i), (long long)largest_of(a->outputs + i * p->classes, p->classes));
    fputs(p->json ? "]" : "\n", stdout);
}

/* At most as many labels as the output has steps. */
static void print_labels(const prediction *p, const output_row *a)
{
    const char *const *characters = p->pipeline != NULL ? sgm_pipeline_characters(p->pipeline) : NULL;
    if (characters != NULL && !p->json) {
        for (int64_t i = 0; i < a->count / p->classes && a->labels[i] > 0; i++)
            print_name(characters[a->labels[i] - 1]);
        printf("\n");
        return;
    }
    fputs(p->json ? ", \"labels\": [" : "", stdout);
    for (int64_t i = 0; i < a->count / p->classes && a->labels[i] >= 0; i++)
        printf("%s%lld", between(p, i), (long long)a->labels[i]);
    fputs(p->json ? "]" : "\n", stdout);
}

bool predict_has_steps(const prediction *p, const output_row *a)
{
    return p->classes < a->count && p->classes > 1;
}

/* The form that suits a network which tells classes apart. */
static void print_row(const prediction *p, const output_row *a)
{
    if (a->labels != NULL)
        print_labels(p, a);
    else if (predict_has_steps(p, a))
        print_steps(p, a);
    else if (p->has_labels)
        print_each_label(p, a);
    else
        print_class(p, a->outputs, a->count);
}

double predict_in_units(const prediction *p, int64_t output, double value)
{
    if (isnan(value))
        return NAN;
    return p->pipeline != NULL ? sgm_pipeline_restore(p->pipeline, (size_t)output, value) : value;
}

void predict_interval(const prediction *p, const output_row *a, int64_t target, double *lower, double *upper)
{
    int64_t deviation = a->count / 2 + target;
    sgm__signature_interval(predict_in_units(p, target, a->outputs[target]),
                            predict_in_units(p, deviation, a->outputs[deviation]), lower, upper);
}

/* "354713 (95 %: 331000 to 378426)" for each target. */
static void print_intervals(const prediction *p, const output_row *a)
{
    double lower, upper;
    for (int64_t i = 0; i < a->count / 2; i++) {
        predict_interval(p, a, i, &lower, &upper);
        printf("%s%.7g (%d %%: %.7g to %.7g)", i > 0 ? ", " : "", predict_in_units(p, i, a->outputs[i]),
               SGM__INTERVAL_PERCENT, lower, upper);
    }
    putchar('\n');
}

/* ", "lower": [331000], "upper": [378426]". */
static void print_json_intervals(const prediction *p, const output_row *a)
{
    double ends[2];
    for (int end = 0; end < 2; end++) {
        printf(", \"%s\": [", end == 0 ? "lower" : "upper");
        for (int64_t i = 0; i < a->count / 2; i++) {
            predict_interval(p, a, i, &ends[0], &ends[1]);
            fputs(i > 0 ? ", " : "", stdout);
            print_json_element(ends[end], p->wide);
        }
        putchar(']');
    }
}

/* The class that an ONNX model tells, if it does. */
static void print_told_class(const prediction *p, const output_row *a)
{
    if (a->class_name == NULL && a->told)
        printf("%lld", (long long)a->class_told);
    else if (a->class_name != NULL)
        (p->json ? print_json_text : print_name)(a->class_name);
}

void predict_print(const prediction *p, const output_row *a)
{
    bool tells = p->signature.classifies || a->labels != NULL;
    if (p->json) {
        printf("{\"example\": %lld", (long long)p->done);
        if (tells)
            print_row(p, a);
        fputs(a->told ? ", \"class\": " : "", stdout);
        print_told_class(p, a);
        printf(", \"outputs\": [");
        for (int64_t i = 0; i < a->count; i++) {
            fputs(i > 0 ? ", " : "", stdout);
            print_json_element(predict_in_units(p, i, a->outputs[i]), p->wide);
        }
        printf("]");
        if (p->signature.deviates)
            print_json_intervals(p, a);
        printf("}\n");
    } else if (tells) {
        print_row(p, a);
    } else if (p->signature.deviates) {
        print_intervals(p, a);
    } else {
        print_told_class(p, a);
        for (int64_t i = 0; i < a->count; i++)
            printf("%s%.7g", i > 0 || a->told ? " " : "", predict_in_units(p, i, a->outputs[i]));
        putchar('\n');
    }
}
