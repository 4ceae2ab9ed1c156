/* Checkpoints in parts: what of a training is saved, loaded, or given to another trainer.
 *
 *     sgm_trainer_save(trainer, "all.safetensors");                      (everything, to go on exactly)
 *     sgm_trainer_save_parts(trainer, "model.safetensors", .parts = SGM_PART_NETWORK | SGM_PART_PARAMETERS);
 *     sgm_trainer_load_parts(trainer, "runs/old/checkpoint.safetensors", .parts = SGM_PART_PARAMETERS,
 *                            .skip_mismatch = true);                           (another last layer)
 *
 * Keeping is to name parts, discarding to leave them out: SGM_PART_EVERYTHING & ~SGM_PART_OPTIMISER. A file
 * of SGM_PART_NETWORK alone is an untrained network.
 */
#ifndef SIGMA_CHECKPOINT_H
#define SIGMA_CHECKPOINT_H

#include <sigma/training.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sgm_part {
    SGM_PART_NETWORK = 1,    /* its notation */
    SGM_PART_PARAMETERS = 2, /* and their moving averages */
    SGM_PART_OPTIMISER = 4,  /* what it remembers: slots, updates so far, the plateau of a schedule */
    SGM_PART_POSITION = 8,   /* epochs, iterations, the place in the data and what its preprocessing learnt */
    SGM_PART_RANDOM = 16,    /* of dropout and the like */
    SGM_PART_HOOKS = 32,     /* what hooks, criteria and rules remember and share */
    SGM_PART_METRICS = 64,   /* of the newest validation */
    SGM_PART_SETTINGS = 128, /* values that were changed while it ran, such as optimiser.learning_rate */
    SGM_PART_EVERYTHING = 255
} sgm_part;

typedef struct sgm_part_options {
    size_t struct_size;
    unsigned parts; /* several sgm_part; 0: saving: everything, loading: what the file has */
    /* Of parameters and the optimiser's slots only those whose names match one of these patterns, separated
     * by spaces: "*.weights 0-dense.*"; NULL: all */
    const char *states;
    /* Loading: takes what fits by name, shape and type, and leaves the rest as it is, instead of refusing. A
     * failure then only if nothing fits. */
    bool skip_mismatch;
    char **left; /* gets what was left so, as text: NULL if nothing was; free with sgm_string_free */
    /* Of parameters alone. "torch": names and layouts of PyTorch's state_dict(), of a module for each layer:
     * the one that is called as the layer is; if none is, modules and layers go together in their order
     * (loading). "torch(1-dense=fc1, 2-dense=encoder.0)" says which module is which layer. What has no name
     * in PyTorch is saved under its own, with a warning, and loaded from there. */
    const char *names;
} sgm_part_options;

/* A checkpoint with some of the parts; NumPy's format if the path ends in .npz, else safetensors. */
#define sgm_trainer_save_parts(trainer, ...) SGM_PARTS(sgm_trainer_save_with, trainer, __VA_ARGS__, )
SGM_API sgm_status sgm_trainer_save_with(sgm_trainer *trainer, const char *path,
                                         const sgm_part_options *options);
/* Loads parts of a file: of a checkpoint, or any safetensors file with parameters of these names. A trainer
 * without a network takes the file's. First all of it is compared; if it does not fit, nothing is changed and
 * the error lists what differs: the notation, missing and surplus states, shapes, types, the optimiser. Parts
 * that are named must be there. Floats of another precision (float16, bfloat16, float32, float64) are rounded
 * to nearest to the trainer's, which is logged; finite numbers that would become infinite are refused. */
#define sgm_trainer_load_parts(trainer, ...) SGM_PARTS(sgm_trainer_load_with, trainer, __VA_ARGS__, )
SGM_API sgm_status sgm_trainer_load_with(sgm_trainer *trainer, const char *path,
                                         const sgm_part_options *options);
/* The same from trainer to trainer; `from` may run in another thread, and is read between two iterations. */
#define sgm_trainer_copy_parts(to, ...) SGM_PARTS(sgm_trainer_copy_with, to, __VA_ARGS__, )
SGM_API sgm_status sgm_trainer_copy_with(sgm_trainer *to, sgm_trainer *from, const sgm_part_options *options);
/* All parameters and averages; with the network if `to` has none. */
SGM_API sgm_status sgm_trainer_copy_parameters(sgm_trainer *from, sgm_trainer *to);
#define SGM_PARTS(function, trainer, ...) SGM_PARTS_WITH(function, trainer, __VA_ARGS__)
#define SGM_PARTS_WITH(function, trainer, other, ...)                                                        \
    function(trainer, other, SGM_OPTIONS(sgm_part_options, __VA_ARGS__))

/* "network parameters", "everything -optimiser": names from left to right, a minus takes away. */
SGM_API sgm_status sgm_parts_parse(const char *text, unsigned *parts);
/* Of a single part: "network"; NULL if it is none. */
SGM_API const char *sgm_part_name(unsigned part);
/* What a checkpoint has. */
SGM_API sgm_status sgm_checkpoint_parts(const char *path, unsigned *parts);

#ifdef __cplusplus
}
#endif
#endif
