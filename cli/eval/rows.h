/* What the files share that measure a model on rows of numbers with their targets: eval_rows.c reads the
 * table and runs the model, eval_rows_classes.c finds out which classes the targets are. */
#ifndef SGM_CLI_EVAL_ROWS_H
#define SGM_CLI_EVAL_ROWS_H

#include "config/start/onnx_model.h"
#include "eval/eval.h"

/* Different targets of a table of classes, at most: each is looked for among all. */
#define MOST_ROW_CLASSES 4096

/* A class as the table calls it. */
typedef struct row_class {
    char *text;     /* owned */
    int64_t line;   /* the first that has it */
    int64_t number; /* of the model's classes */
} row_class;

/* A model with one input, and the rows that were read so far with what the model says of them. */
typedef struct eval_rows {
    const char *path, *target; /* the table; its column of the target, NULL: the last ones */
    const char *model;         /* its path */
    const char *blamed;        /* what an error names: the table, or the model where it cannot run */
    onnx_model onnx;           /* that runs as it is; onnx.onnx NULL: the network of `s` */
    saved *s;
    sgm__signature signature;
    int64_t elements; /* numbers of an example's input */
    bool scales;      /* inputs are brought from minimum..maximum to 0..1 */
    double minimum, maximum;
    int32_t target_column; /* the first of them */
    bool classifies;       /* targets are classes: `targets` are places in `classes`; else numbers */
    bool tells;            /* the model tells the class itself: `told` */
    int64_t count, each;   /* rows; numbers that the model gives for one */
    double *outputs, *targets;
    int64_t *told;
    size_t output_capacity, target_capacity, told_capacity, class_capacity, class_count;
    row_class *classes;
    char **names; /* of the model's classes, owned; NULL: they have numbers alone */
    int64_t name_count;
} eval_rows;

/* --- eval_rows_classes.c --- */
/* The place of a class in `classes`, at the end of which a new one comes; -1 and an error. */
int64_t eval_rows_class(eval_rows *r, const char *text, int64_t line);
/* Once all rows were read: gives each class its number, which `targets` become, and `names` where there are
 * some. `outputs` become one number for each class, those of the told class where the model's own numbers say
 * something else. *loss: the cross-entropy where outputs are probabilities, else NaN. */
sgm_status eval_rows_find_classes(eval_rows *r, double *loss);

#endif
