/* Sigma trains neural networks from C. A program includes this one header. To learn the library, read five,
 * in this order:
 *
 *     data.h          from files to minibatches
 *     network.h       layers, and networks as text or by calls
 *     training.h      optimisers, the trainer, checkpoints, export
 *     hooks.h         what runs beside a training: reporters, metrics, early stopping, rules
 *     environment.h   what runs trainers and shows them: environments, monitors, models, searches
 *
 * A table's columns by their names are in table.h, folders of files in files.h and the headers of their kinds
 * (picture.h, sound.h), parts for training and validation in split.h. All stand on base.h (errors, options,
 * logging, tasks), tensor.h, text.h (tokenizers), registry.h (all that has a name), rules.h (when something
 * shall happen), graph.h (operations, autodiff), handler.h (who computes), operator.h (several workers),
 * onnx.h, monitor.h (monitors of your own) and plugin.h (extensions in files of their own). eager.h computes
 * operations on tensors at once, to try things out.
 *
 * Names. The first word after sgm_ is what a function acts on, the next one what it does:
 *
 *     sgm_trainer_create(env, "a")            creates one
 *     sgm_env_free(env)                       frees one, and does nothing to NULL
 *     sgm_tensor_retain(tensor)               one more reference, which sgm_tensor_free gives back
 *     sgm_trainer_set_data(trainer, data)     sets a part, which belongs to the trainer from then on
 *     sgm_trainer_add_hook(trainer, hook)     adds a part of which there may be several
 *     sgm_trainer_name(trainer)               a noun without a verb returns something and changes nothing
 *     sgm_trainer_get(trainer, "0-dense.weights")
 *                                             the same, where there is also a set or a type of that name
 *     sgm_trainer_run(trainer, .epochs = 9)   any other verb does what it says
 *
 * What concerns the whole library begins with the verb: sgm_register_op, sgm_find_op, sgm_set_logger.
 *
 * A function that creates a part to give to another function is called what the part is: sgm_adam(),
 * sgm_dense(.size = 9), sgm_early_stopper(...), sgm_file_source("a.csv"). A function whose first argument is
 * a graph records an operation: sgm_relu(graph, x). Beneath a macro there is a function with the same name
 * and _with at its end, which takes options as a struct and lists as an array; macros that make one of many
 * kinds share a function that is given the kind: sgm_optimiser_create("adam", &options). */
#ifndef SIGMA_SIGMA_H
#define SIGMA_SIGMA_H

#include <sigma/base.h>
#include <sigma/data.h>
#include <sigma/eager.h>
#include <sigma/environment.h>
#include <sigma/files.h>
#include <sigma/graph.h>
#include <sigma/handler.h>
#include <sigma/hooks.h>
#include <sigma/monitor.h>
#include <sigma/network.h>
#include <sigma/onnx.h>
#include <sigma/operator.h>
#include <sigma/optimisers.h>
#include <sigma/picture.h>
#include <sigma/plugin.h>
#include <sigma/registry.h>
#include <sigma/replay.h>
#include <sigma/rules.h>
#include <sigma/sound.h>
#include <sigma/split.h>
#include <sigma/table.h>
#include <sigma/tensor.h>
#include <sigma/text.h>
#include <sigma/text_files.h>
#include <sigma/training.h>

#endif
