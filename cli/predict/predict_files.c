/* `sigma predict RUN cat.png dog.jpg`: the class of files, for networks that were trained on folders of such
 * files (data.training.images).
 *
 * A line for each file, or for the standard input (-): its name, its class, and the probabilities of all
 * classes; or its name and what is said in it, where the network was trained on transcripts; or its name and
 * the numbers that the network gives, where a model of others makes vectors of pictures. Files are read
 * in chunks; a chunk is printed, or put into the table of --output, when all of its files could be read. */
#include "data/kinds/kind.h"
#include "infer/signature.h"
#include "predict/predict.h"

#include <math.h>
#include <stdio.h>

/* Files that are read and predicted at once. */
#define CHUNK 32
/* Of more classes than this a line leaves those out that are hardly possible. */
#define MANY_CLASSES 20
#define HARDLY 0.01

/* What is asked, and what the network can say. */
typedef struct question {
    prediction *p;
    const char *const *classes, *const *characters; /* at least one of them is NULL */
    size_t class_count;                             /* of classes, or characters */
} question;

/* --- printing --- */

/* {"file": "a.png", "class": "cat", "probability": 0.9, "probabilities": {"cat": 0.9, "dog": 0.1}} */
static void print_json(const char *file, const char *const *classes, const double *shares, size_t count)
{
    size_t best = (size_t)largest_of(shares, (int64_t)count);
    printf("{\"file\": ");
    print_json_text(file);
    printf(", \"class\": ");
    if (isnan(shares[best]))
        printf("null");
    else
        print_json_text(classes[best]);
    printf(", \"probability\": ");
    print_json_number(shares[best]);
    printf(", \"probabilities\": {");
    for (size_t i = 0; i < count; i++) {
        fputs(i > 0 ? ", " : "", stdout);
        print_json_text(classes[i]);
        printf(": ");
        print_json_number(shares[i]);
    }
    printf("}}\n");
}

/* a.png: cat 0.9000 (dog 0.1000), the other classes in their order; no parenthesis without any. */
static void print_line(const char *file, const char *const *classes, const double *shares, size_t count)
{
    size_t best = (size_t)largest_of(shares, (int64_t)count);
    print_name(file);
    printf(": ");
    if (isnan(shares[best])) {
        printf("? nan\n");
        return;
    }
    print_name(classes[best]);
    printf(" %.4f", shares[best]);
    size_t shown = 0;
    for (size_t i = 0; i < count; i++) {
        if (i == best || (count > MANY_CLASSES && shares[i] < HARDLY))
            continue;
        fputs(shown++ > 0 ? ", " : " (", stdout);
        print_name(classes[i]);
        printf(" %.4f", shares[i]);
    }
    printf(shown > 0 ? ")\n" : "\n");
}

/* --- transcripts --- */

/* {"file": "a.wav", "text": "yes"}, or a.wav: yes. */
static void print_text(const char *file, const char *said, bool json)
{
    if (json)
        printf("{\"file\": ");
    (json ? print_json_text : print_name)(file);
    printf(json ? ", \"text\": " : ": ");
    (json ? print_json_text : print_name)(said);
    printf(json ? "}\n" : "\n");
}

/* Labels count from 1, and end at -1. */
static sgm_status answer_text(const question *q, const char *file, const int64_t *labels, int64_t count)
{
    sgm__text text = {0};
    for (int64_t i = 0; i < count && labels[i] >= 1; i++)
        sgm__text_append(&text, "%s", q->characters[labels[i] - 1]);
    const char *said = text.data != NULL ? text.data : "";
    sgm_status status = text.failed ? sgm__fail_memory(text.length) : SGM_OK;
    if (status == SGM_OK && q->p->answers != NULL)
        status = predict_answers_add_text(q->p, file, said);
    else if (status == SGM_OK)
        print_text(file, said, q->p->json);
    sgm__text_free(&text);
    return status;
}

/* How many steps of each file count, a new list; NULL on failure. */
static double *lengths_of(const sgm_block *block)
{
    sgm_tensor *field = sgm_block_field(block, "lengths");
    double *lengths = field != NULL ? sgm__calloc((size_t)block->count, sizeof *lengths) : NULL;
    if (lengths != NULL && sgm_tensor_read(field, lengths, (size_t)block->count) == SGM_OK)
        return lengths;
    sgm__free(lengths);
    return NULL;
}

static sgm_status answer_texts(const question *q, const sgm_block *block, const sgm_tensor *outputs,
                               const char *const *files)
{
    double *lengths = lengths_of(block);
    sgm_tensor *labels = lengths != NULL ? sgm__signature_labels(&q->p->signature, outputs, lengths) : NULL;
    const int64_t *numbers = labels != NULL ? sgm_tensor_const_data(labels) : NULL;
    int64_t steps = labels != NULL ? sgm_tensor_shape(labels)->dims[1] : 0;
    sgm_status status = labels != NULL ? SGM_OK : sgm__last_failure();
    for (int64_t i = 0; status == SGM_OK && i < block->count; i++)
        status = answer_text(q, files[i], numbers + i * steps, steps);
    sgm_tensor_free(labels);
    sgm__free(lengths);
    return status;
}

/* --- vectors --- */

/* {"file": "a.png", "outputs": [0.1, 0.2]}, or a.png: 0.1 0.2. */
static void print_vector(const prediction *p, const char *file, const output_row *row)
{
    if (p->json)
        printf("{\"file\": ");
    (p->json ? print_json_text : print_name)(file);
    fputs(p->json ? ", \"outputs\": [" : ":", stdout);
    for (int64_t i = 0; i < row->count; i++) {
        fputs(!p->json ? " " : i > 0 ? ", " : "", stdout);
        if (p->json)
            print_json_element(row->outputs[i], p->wide);
        else
            printf("%.7g", row->outputs[i]);
    }
    puts(p->json ? "]}" : "");
}

/* --- predicting --- */

/* Outputs are (files, classes), or (files, numbers of a vector). */
static sgm_status answer_rows(const question *q, const sgm_tensor *outputs, const char *const *files)
{
    const sgm_shape *shape = sgm_tensor_shape(outputs);
    size_t count = (size_t)sgm_shape_elements(shape), width = count / (size_t)shape->dims[0];
    double *shares = sgm__calloc(count, sizeof *shares);
    sgm_status status = shares != NULL ? sgm_tensor_read(outputs, shares, count) : SGM_ERROR_MEMORY;
    for (size_t i = 0; status == SGM_OK && i < (size_t)shape->dims[0]; i++) {
        const output_row row = {.outputs = shares + i * width, .count = (int64_t)width};
        if (q->p->answers != NULL)
            status = predict_answers_add_file(q->p, files[i], &row);
        else if (q->classes == NULL)
            print_vector(q->p, files[i], &row);
        else
            (q->p->json ? print_json : print_line)(files[i], q->classes, row.outputs, q->class_count);
    }
    sgm__free(shares);
    return status;
}

/* The files of a chunk, of which the one that is called "-" is the standard input: its bytes are kept in
 * `input`. */
static sgm_status open_chunk(const char *const *files, size_t count, sgm_file *chunk, sgm__text *input)
{
    for (size_t i = 0; i < count; i++) {
        chunk[i] = (sgm_file){.name = files[i]};
        if (strcmp(files[i], "-") != 0)
            continue;
        SGM_TRY(predict_read_standard_input(input));
        chunk[i] = (sgm_file){.name = "standard input",
                              .bytes = input->data != NULL ? input->data : "",
                              .length = input->length};
    }
    return SGM_OK;
}

static sgm_status answer_chunk(const question *q, const char *const *files, size_t count)
{
    sgm_file chunk[CHUNK];
    sgm__text input = {0};
    sgm_block *block = open_chunk(files, count, chunk, &input) == SGM_OK
                           ? sgm_pipeline_files(q->p->pipeline, chunk, count)
                           : NULL;
    sgm__text_free(&input);
    sgm_tensor *outputs = block != NULL ? sgm_trainer_predict_block(q->p->s.trainer, block, NULL) : NULL;
    sgm_status status = outputs == NULL         ? sgm__last_failure()
                        : q->characters != NULL ? answer_texts(q, block, outputs, files)
                                                : answer_rows(q, outputs, files);
    sgm_tensor_free(outputs);
    sgm_block_free(block);
    return status;
}

/* Whether the network's outputs are classes, or labels, of its files. */
static sgm_status check_network(const question *q, const sgm__file_kind *kind)
{
    const sgm__signature *signature = &q->p->signature;
    const sgm_shape *output = &signature->output;
    int64_t last = output->rank > 0 ? output->dims[output->rank - 1] : 1;
    if (q->characters != NULL && (signature->blank != 0 || last != (int64_t)q->class_count + 1))
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "the network does not say the %zu characters of its %s: it should end with dense(%zu, "
            "time_distributed) + ctc(%lld); --data NAME prints its numbers for data of the run",
            q->class_count, kind->names->several, q->class_count + 1,
            (long long)sgm_pipeline_width(q->p->pipeline, "targets"));
    if (q->classes != NULL &&
        (!signature->classifies || sgm_shape_elements(output) != (int64_t)q->class_count))
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "the network does not tell apart the %zu classes of its %s; --data NAME prints its "
                        "numbers for data of the run",
                        q->class_count, kind->names->several);
    return SGM_OK;
}

/* What the message of the decoder cannot know: that a table or a folder was meant. */
static sgm_status check_file(const sgm__file_kind *kind, const char *file)
{
    if (sgm__is_folder(file))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: is a folder; name its %s, %s/*%s, or measure a folder of classes with "
                        "'sigma eval'",
                        file, kind->names->several, file, kind->names->endings[0]);
    return SGM_OK;
}

/* The standard input can be read once. */
static sgm_status check_input(const char *const *files, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += strcmp(files[i], "-") == 0;
    return found <= 1 ? SGM_OK : sgm_fail(SGM_ERROR_ARGUMENT, "-: the standard input can be named once");
}

sgm_status predict_files(prediction *p, const char *const *files, size_t count)
{
    const sgm__file_kind *kind = sgm__file_kind_find(sgm_pipeline_kind(p->pipeline));
    question q = {.p = p,
                  .classes = sgm_pipeline_classes(p->pipeline),
                  .characters = sgm_pipeline_characters(p->pipeline)};
    for (const char *const *name = q.characters != NULL ? q.characters : q.classes;
         name != NULL && name[q.class_count] != NULL;)
        q.class_count++;
    SGM_TRY(check_network(&q, kind));
    SGM_TRY(check_input(files, count));
    for (size_t i = 0; i < count; i++)
        SGM_TRY(check_file(kind, files[i]));
    for (size_t i = 0; i < count; i += CHUNK)
        SGM_TRY(answer_chunk(&q, files + i, count - i < CHUNK ? count - i : CHUNK));
    return SGM_OK;
}
