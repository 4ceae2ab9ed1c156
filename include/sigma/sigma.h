/* Sigma trains neural networks from C. This is the one header that a program includes. To read about, there
 * are five, in this order:
 *
 *     data.h          from files to minibatches
 *     network.h       layers, and networks as text or by calls
 *     training.h      optimisers, the trainer, checkpoints, export
 *     hooks.h         what runs beside a training: reporters, metrics, early stopping, rules
 *     environment.h   what runs trainers and shows them: environments, monitors, models, searches
 *
 * They stand on base.h (errors, options, logging, tasks), tensor.h, text.h (tokenizers), registry.h (all that
 * has a name), rules.h (when something shall happen), graph.h (operations, autodiff), handler.h (who
 * computes), operator.h (several workers) and onnx.h.
 *
 * Names. The first word behind sgm_ says on what a function acts, the next one what it does:
 *
 *     sgm_trainer_create(env, "a")            makes one; sgm_env_free and the like let one go
 *     sgm_trainer_set_data(trainer, data)     gives it its part, which belongs to it from then on;
 *     sgm_trainer_add_hook(trainer, hook)     the same for parts of which there may be several
 *     sgm_trainer_name(trainer)               a noun alone reads: nothing is made or changed
 *     sgm_trainer_get(trainer, "0-dense.weights")   where there is a set, too, or a type of that name
 *     sgm_trainer_run(trainer, .epochs = 9)   any other verb does what it says
 *
 * A function whose first word is nothing to act on makes a part, and is called what the part is: sgm_adam(),
 * sgm_dense(.size = 9), sgm_early_stopper(...), sgm_file_source("a.csv"): by a word of the field, or by a
 * kind behind its adjective. With a graph in front it records an operation: sgm_relu(graph, x). Beneath a
 * macro is a function of its name and _with, which takes options as a struct, lists as an array (base.h). */
#ifndef SIGMA_SIGMA_H
#define SIGMA_SIGMA_H

#include <sigma/base.h>
#include <sigma/data.h>
#include <sigma/environment.h>
#include <sigma/graph.h>
#include <sigma/handler.h>
#include <sigma/hooks.h>
#include <sigma/network.h>
#include <sigma/onnx.h>
#include <sigma/operator.h>
#include <sigma/registry.h>
#include <sigma/rules.h>
#include <sigma/tensor.h>
#include <sigma/text.h>
#include <sigma/training.h>

#endif
