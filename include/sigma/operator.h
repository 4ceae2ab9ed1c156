/* Operators: several workers train one trainer's network side by side.
 *
 *     sgm_trainer_set_operator(trainer, sgm_gradient_operator(.workers = 2));
 *
 *     sgm_reducer *reducer = sgm_average_reducer();
 *     sgm_reducer_add(reducer, "*.biases", sgm_maximum_reducer());
 *     sgm_trainer_set_operator(trainer, sgm_parameter_operator(.workers = 2, .reducer = reducer));
 *
 * A worker is a thread with a handler and a replica: its own copy of what training changes. The trainer
 * itself shows what the workers have learnt together.
 */
#ifndef SIGMA_OPERATOR_H
#define SIGMA_OPERATOR_H

#include <sigma/registry.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- reducers: one state made of the workers' --- */
/* How states of several workers become one. */
typedef struct sgm_reducer sgm_reducer;
/* The mean, element by element. This and the other constructors return NULL when they fail. */
SGM_API sgm_reducer *sgm_average_reducer(void);
SGM_API sgm_reducer *sgm_maximum_reducer(void); /* the largest, element by element */
/* One weight for each worker, not negative; they are divided by their sum. */
SGM_API sgm_reducer *sgm_weighted_reducer(const double *weights, size_t count);
/* A reducer by its text: "average", "maximum", "weighted(3, 8)". */
SGM_API sgm_reducer *sgm_reducer_parse(const char *text);
/* States whose name matches ("*.weights") are merged by `other`, which is taken over, also on failure. Of
 * several patterns the most specific one counts; a pattern twice is an error. */
SGM_API sgm_status sgm_reducer_add(sgm_reducer *reducer, const char *pattern, sgm_reducer *other);
/* Takes a pattern away again; none of this text is an error with those that there are. */
SGM_API sgm_status sgm_reducer_remove(sgm_reducer *reducer, const char *pattern);
SGM_API void sgm_reducer_free(sgm_reducer *reducer);
/* Merges `count` tensors of one shape and type into `result`, as the state of this name is merged. */
SGM_API sgm_status sgm_reducer_apply(const sgm_reducer *reducer, const char *state,
                                     const sgm_tensor *const *values, size_t count, sgm_tensor *result);

/* --- operators --- */
/* How several workers train one network. */
typedef struct sgm_operator sgm_operator;
typedef struct sgm_operator_options {
    size_t struct_size;
    int32_t workers; /* default: one for each name in `handlers`, without them 2, with ranks 1; at most 64 */
    double share;    /* where `workers` is not given: as many workers as this share of the processors that the
                      * process may use, from 1 to 64 */
    /* Names of handlers, separated by spaces, for each worker in turn: "cpu reference". Default: the kind
     * that the trainer has. */
    const char *handlers;
    int32_t threads;      /* of each worker's handler; default: the trainer's, divided by the workers */
    int64_t every;        /* parameters: iterations from merge to merge; 0: at the end of each epoch */
    sgm_reducer *reducer; /* parameters: taken over; default: the average */
    /* Of sgm_mpi_operator: */
    double timeout;      /* seconds that a rank waits for another one before the run fails; default 60 */
    int64_t check_every; /* iterations from one comparison of the ranks' states to the next; default 1000 */
    int64_t bucket;      /* bytes of gradients that are summed by themselves; default 4 MiB */
    bool bfloat16;       /* gradients travel as bfloat16; what is lost of each goes with the next one */
    /* Each parameter is updated by one rank, which alone has the optimiser state of it and brings the new
     * values to all; not with `every`, nor for optimisers that take steps of all parameters together
     * (SGM_ERROR_UNSUPPORTED when the training begins). Rank 0 saves for all. */
    bool sharded;
} SGM_BY_NAME sgm_operator_options;
/* Each iteration takes one minibatch and gives each worker a part of it; the gradients are merged, and there
 * is one update. n workers do what one worker does with every cost, to rounding: each cost's parts count by
 * what it is a mean over, and batch_norm normalises by the whole minibatch. SGM_ERROR_UNSUPPORTED when the
 * training begins: a layer compares the examples of a minibatch (triplet,
 * info_nce). Workers on GPUs of their own,
 * "cuda(device=0) cuda(device=1)", sum gradients between the devices if NVIDIA's NCCL is there, and each
 * makes the update; so do those of all ranks. Else the gradients go through the computer's memory. */
#define sgm_gradient_operator(...) sgm_gradient_operator_with(SGM_OPTIONS(sgm_operator_options, __VA_ARGS__))
SGM_API sgm_operator *sgm_gradient_operator_with(const sgm_operator_options *options);
/* Each iteration takes one minibatch for each worker, which updates parameters of its own, with an
 * optimiser state of its own; now and then the parameters are merged (McDonald et al., 2010). */
#define sgm_parameter_operator(...)                                                                          \
    sgm_parameter_operator_with(SGM_OPTIONS(sgm_operator_options, __VA_ARGS__))
SGM_API sgm_operator *sgm_parameter_operator_with(const sgm_operator_options *options);
/* Workers on several machines: each process that a launcher has started (mpirun, srun) is a rank, which has
 * the same program and workers of its own, by default one. All ranks create it, in the same order as other
 * such operators; a rank waits for the others as long as `timeout` says. A minibatch is
 * divided among the ranks, and the gradients are summed: n ranks do what one does, to rounding, but for
 * random numbers (dropout), which each rank draws for itself. Rank 0 leads: it alone has the run's folder,
 * and commands to it act on all ranks at the same iteration. Without a launcher it is one rank. With `every`,
 * workers have parameters of their own, as those of sgm_parameter_operator, which are averaged over all ranks
 * after so many iterations, and with the optimiser states at the end of each epoch. NULL with
 * SGM_ERROR_UNSUPPORTED: there is a launcher, but not the plug-in libsigma-mpi.so. */
#define sgm_mpi_operator(...) sgm_mpi_operator_with(SGM_OPTIONS(sgm_operator_options, __VA_ARGS__))
SGM_API sgm_operator *sgm_mpi_operator_with(const sgm_operator_options *options);
/* The number of this rank, from 0; 0 for other operators. */
SGM_API int32_t sgm_operator_rank(const sgm_operator *parallel);
/* How many ranks there are; 1 for other operators. */
SGM_API int32_t sgm_operator_ranks(const sgm_operator *parallel);
/* Members of sgm_operator_options: workers, handlers, threads, every, and those of ranks. */
SGM_API const sgm_setting *sgm_operator_settings(size_t *count);
/* Frees an operator that was given to no trainer. */
SGM_API void sgm_operator_free(sgm_operator *parallel);

#ifdef __cplusplus
}
#endif
#endif
