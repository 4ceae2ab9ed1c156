/* Splits: which examples a network is trained on, and which ones it is measured on.
 *
 *     sgm_table *all = sgm_table_open("pets.csv");
 *     sgm_split *split = sgm_table_split(all, "species", .kind = SGM_SPLIT_STRATIFIED, .shares = {0.8, 0.2});
 *     sgm_table *measured = sgm_table_open("pets.csv", .split = split);
 *     sgm_pipeline *pipeline = sgm_pipeline_fit(measured, .targets = {"species"});
 *     sgm_dataset *training = sgm_dataset_create("training",
 *         .extractor = sgm_split_extractor(sgm_pipeline_extractor(pipeline, "pets.csv"), split, 0, false));
 *     sgm_dataset *validation = sgm_dataset_create("validation",
 *         .extractor = sgm_split_extractor(sgm_pipeline_extractor(pipeline, "pets.csv"), split, 1, false));
 *
 * A split gives each example of a source, in the order of the source, one part, from 0. It is a function of
 * the number of examples, their keys, the options and the seed only. */
#ifndef SIGMA_SPLIT_H
#define SIGMA_SPLIT_H

#include <sigma/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most parts of a split. */
#define SGM_MAX_PARTS 32

/* What decides the part of an example. */
typedef enum sgm_split_kind {
    SGM_SPLIT_RANDOM,     /* each example by itself */
    SGM_SPLIT_STRATIFIED, /* random, but each key (a class) has its share in each part, to within two examples
                           */
    SGM_SPLIT_GROUP,      /* examples of one key (a patient, a household) are all in one part, so that none is
                           * recognised instead of predicted; large groups first, each to the part that lacks
                           * most */
    SGM_SPLIT_TIME /* the smallest keys are in part 0, the largest in the last one: the past predicts the
                    * future */
} sgm_split_kind;

typedef struct sgm_split_options {
    size_t struct_size;
    sgm_split_kind kind; /* default: random */
    /* Of the parts: above 0, together 1, and 0 behind the last one. A sum below 1 is a further part. */
    double shares[SGM_MAX_PARTS];
    uint64_t seed; /* of what is drawn */
} SGM_BY_NAME sgm_split_options;

/* Which part each example is in; reference-counted. */
typedef struct sgm_split sgm_split;
/* `keys`: a number for each example, which is not NaN; NULL for a random split. The caller keeps them, and
 * frees the split. It is an error if a part has no example: there are too few, or too few groups. */
#define sgm_split_create(...) SGM_WITH_OPTIONS_2(sgm_split_create_with, sgm_split_options, __VA_ARGS__)
SGM_API sgm_split *sgm_split_create_with(int64_t examples, const double *keys,
                                         const sgm_split_options *options);
/* One more reference, which sgm_split_free gives back; extractors keep references. */
SGM_API sgm_split *sgm_split_retain(sgm_split *split);
SGM_API void sgm_split_free(sgm_split *split);
/* Examples in all. */
SGM_API int64_t sgm_split_examples(const sgm_split *split);
/* Examples of one part; 0 past the last part. */
SGM_API int64_t sgm_split_part_examples(const sgm_split *split, int32_t part);
/* How many parts there are. */
SGM_API int32_t sgm_split_parts(const sgm_split *split);
/* The part of an example; -1 past the last one. */
SGM_API int32_t sgm_split_part_of(const sgm_split *split, int64_t example);
/* Of what an extractor gives, the examples of one part, or with `others` those of all other parts (training
 * with one fold left out). Takes the extractor, also on failure. Extracting fails if the source has another
 * number of examples than the split. */
SGM_API sgm_extractor *sgm_split_extractor(sgm_extractor *extractor, sgm_split *split, int32_t part,
                                           bool others);

#ifdef __cplusplus
}
#endif
#endif
