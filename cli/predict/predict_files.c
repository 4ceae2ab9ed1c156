/* `sigma predict RUN cat.png dog.jpg`: the class of files, for networks that were trained on folders of such
 * files (data.training.images).
 *
 * A line for each file: its name, its class, and the probabilities of all classes. Files are read in
 * chunks; a chunk is printed when all of its files could be read. */
#include "data/kinds/kind.h"
#include "infer/signature.h"
#include "predict/predict.h"

#include <math.h>
#include <stdio.h>

/* Files that are read and predicted at once. */
#define CHUNK 32

/* --- printing --- */

static size_t largest_of(const double *shares, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (shares[i] > shares[best])
            best = i;
    return best;
}

/* {"file": "a.png", "class": "cat", "probability": 0.9, "probabilities": {"cat": 0.9, "dog": 0.1}} */
static void print_json(const char *file, const char *const *classes, const double *shares, size_t count)
{
    size_t best = largest_of(shares, count);
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

/* a.png: cat 0.9000 (dog 0.1000), the other classes in their order. */
static void print_line(const char *file, const char *const *classes, const double *shares, size_t count)
{
    size_t best = largest_of(shares, count);
    print_name(file);
    printf(": ");
    if (isnan(shares[best])) {
        printf("? nan\n");
        return;
    }
    print_name(classes[best]);
    printf(" %.4f (", shares[best]);
    for (size_t i = 0, shown = 0; i < count; i++) {
        if (i == best)
            continue;
        fputs(shown++ > 0 ? ", " : "", stdout);
        print_name(classes[i]);
        printf(" %.4f", shares[i]);
    }
    printf(")\n");
}

/* --- predicting --- */

/* Takes the outputs (files, classes); NULL is a failure that is passed on. */
static sgm_status print_outputs(sgm_tensor *outputs, const char *const *files, const char *const *classes,
                                size_t class_count, bool json)
{
    if (outputs == NULL)
        return sgm__last_failure();
    const sgm_shape *shape = sgm_tensor_shape(outputs);
    size_t count = (size_t)sgm_shape_elements(shape);
    double *shares = sgm__calloc(count, sizeof *shares);
    sgm_status status = shares != NULL ? sgm_tensor_read(outputs, shares, count) : SGM_ERROR_MEMORY;
    for (size_t i = 0; status == SGM_OK && i < (size_t)shape->dims[0]; i++)
        (json ? print_json : print_line)(files[i], classes, shares + i * class_count, class_count);
    sgm__free(shares);
    sgm_tensor_free(outputs);
    return status;
}

static sgm_status answer_chunk(saved *s, const char *const *files, size_t count, size_t class_count,
                               bool json)
{
    sgm_file chunk[CHUNK];
    for (size_t i = 0; i < count; i++)
        chunk[i] = (sgm_file){.name = files[i]};
    sgm_block *block = sgm_pipeline_files(s->c.data.pipeline, chunk, count);
    if (block == NULL)
        return sgm__last_failure();
    sgm_status status = print_outputs(sgm_trainer_predict_block(s->trainer, block, NULL), files,
                                      sgm_pipeline_classes(s->c.data.pipeline), class_count, json);
    sgm_block_free(block);
    return status;
}

/* What the message of the decoder cannot know: that a table or a folder was meant. */
static sgm_status check_file(const sgm__file_kind *kind, const char *file)
{
    if (sgm__is_folder(file))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: is a folder; name its %s, %s/*%s, or measure a folder of classes with "
                        "'sigma eval'",
                        file, kind->names->several, file, kind->names->endings[0]);
    if (strcmp(file, "-") == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "the network takes %s: name %s files", kind->names->several,
                        kind->names->formats);
    return SGM_OK;
}

sgm_status predict_files(saved *s, const sgm__signature *signature, const char *const *files, size_t count,
                         bool json)
{
    const sgm__file_kind *kind = sgm__file_kind_find(sgm_pipeline_kind(s->c.data.pipeline));
    size_t class_count = 0;
    for (const char *const *name = sgm_pipeline_classes(s->c.data.pipeline); name[class_count] != NULL;)
        class_count++;
    if (!signature->classifies || sgm_shape_elements(&signature->output) != (int64_t)class_count)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "the network does not tell apart the %zu classes of its %s; --data NAME prints "
                        "its numbers for data of the run",
                        class_count, kind->names->several);
    for (size_t i = 0; i < count; i++)
        SGM_TRY(check_file(kind, files[i]));
    for (size_t i = 0; i < count; i += CHUNK)
        SGM_TRY(answer_chunk(s, files + i, count - i < CHUNK ? count - i : CHUNK, class_count, json));
    return SGM_OK;
}
