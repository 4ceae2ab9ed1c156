/* What gives parameters their values: initialisers before training, optimisers with their schedules in it,
 * and modifiers after each update.
 *
 *     sgm_trainer_add_initialiser(trainer, "*.weights", sgm_he());
 *     sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.001,
 *                                                 .schedule = {.kind = SGM_COSINE, .period = 20}));
 *     sgm_trainer_add_modifier(trainer, "*.weights", sgm_modifier_parse("max_norm(3)"));
 */
#ifndef SIGMA_OPTIMISERS_H
#define SIGMA_OPTIMISERS_H

#include <sigma/network.h>
#include <sigma/registry.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- initialisers: what parameters are before training --- */
/* How parameters get their first values. */
typedef struct sgm_initialiser sgm_initialiser;
typedef struct sgm_initialiser_options {
    size_t struct_size;
    double mean;               /* gaussian, truncated: default 0 */
    double standard_deviation; /* gaussian: default 0.05; truncated: default 1, within two deviations */
    double minimum, maximum;   /* uniform: default -0.05 to 0.05 */
    double value;              /* constant */
    double gain;               /* glorot, he, orthogonal: factor of the deviation, default 1 */
    /* custom: the value of the element at `indices`; `random` is uniform in [0, 1) and another one for each
     * element */
    double (*function)(void *user, const int64_t *indices, const sgm_shape *shape, double random);
    void *user; /* custom: passed to the function */
} SGM_BY_NAME sgm_initialiser_options;
/* Types: gaussian, uniform, truncated, constant, glorot (uniform; Glorot and Bengio, 2010; also called
 * xavier), glorot_normal, he (normal; He et al., 2015), orthogonal (Saxe et al., 2013), custom. */
SGM_API sgm_initialiser *sgm_initialiser_create(const char *type, const sgm_initialiser_options *options);
/* "gaussian(standard_deviation=0.1)", "he", "constant(0.5)". */
SGM_API sgm_initialiser *sgm_initialiser_parse(const char *text);
SGM_API void sgm_initialiser_free(sgm_initialiser *initialiser);
/* Fills a float tensor. The numbers are a function of seed and name only. */
SGM_API sgm_status sgm_initialiser_fill(const sgm_initialiser *initialiser, sgm_tensor *tensor,
                                        int64_t fan_in, int64_t fan_out, uint64_t seed, const char *name);
/* Any initialiser by its name: SGM_INITIALISER("glorot_normal", .gain = 2). */
#define SGM_INITIALISER(type, ...)                                                                           \
    sgm_initialiser_create(type, SGM_OPTIONS(sgm_initialiser_options, __VA_ARGS__))
/* Normally distributed. `mean`, `standard_deviation`. */
#define sgm_gaussian(...) SGM_INITIALISER("gaussian", __VA_ARGS__)
/* Equally likely between `minimum` and `maximum`. */
#define sgm_uniform(...) SGM_INITIALISER("uniform", __VA_ARGS__)
/* Normally distributed, drawn again beyond two deviations. `mean`, `standard_deviation`. */
#define sgm_truncated(...) SGM_INITIALISER("truncated", __VA_ARGS__)
/* All the same `value`. */
#define sgm_constant_value(...) SGM_INITIALISER("constant", __VA_ARGS__)
/* Uniform, by fan in and fan out (Glorot and Bengio, 2010). `gain`. */
#define sgm_glorot(...) SGM_INITIALISER("glorot", __VA_ARGS__)
/* Normal, by fan in (He et al., 2015). `gain`. */
#define sgm_he(...) SGM_INITIALISER("he", __VA_ARGS__)
/* Rows or columns that are orthogonal (Saxe et al., 2013). `gain`. */
#define sgm_orthogonal(...) SGM_INITIALISER("orthogonal", __VA_ARGS__)
/* By a function of your own. `function`, `user`. */
#define sgm_custom_initialiser(...) SGM_INITIALISER("custom", __VA_ARGS__)

/* --- schedules: factors of the learning rate, over epochs (parts of epochs count) --- */
/* How the learning rate changes over the epochs. */
typedef enum sgm_schedule_kind {
    SGM_CONSTANT,    /* it does not */
    SGM_STEP,        /* times `factor` every `period` epochs */
    SGM_EXPONENTIAL, /* factor ^ (epoch / period) */
    SGM_COSINE, /* from 1 to `factor` along half a cosine in `period` epochs (Loshchilov and Hutter, 2016) */
    SGM_ONE_CYCLE, /* up from `factor` to 1 in 0.3 of `period`, then down to `factor` / 10000 (Smith, 2018) */
    SGM_PLATEAU    /* times `factor` when the loss of an epoch was not the lowest for `period` epochs */
} sgm_schedule_kind;
/* A schedule, as a member of sgm_optimiser_options. */
typedef struct sgm_schedule {
    sgm_schedule_kind kind; /* default: constant */
    double period;  /* epochs; step and exponential: default 1; plateau: default 5; cosine, one-cycle: the
                       epochs of the run */
    double factor;  /* step, plateau: default 0.1; exponential: 0.95; cosine: 0; one-cycle: 0.04 */
    double warm_up; /* epochs of linear rise from 0 before any of these begins */
} sgm_schedule;
/* The factor at `epoch` (fractions count); `reductions`: how often a plateau was met; `epochs`: of the whole
 * run. */
SGM_API double sgm_schedule_factor(const sgm_schedule *schedule, double epoch, double epochs,
                                   int64_t reductions);
/* The kind of a name such as "cosine"; others are an error with the nearest. */
SGM_API sgm_status sgm_schedule_kind_parse(const char *name, sgm_schedule_kind *kind);
/* "cosine" and so on. */
SGM_API const char *sgm_schedule_kind_name(sgm_schedule_kind kind);
/* The members of sgm_schedule as rows, *count of them. */
SGM_API const sgm_setting *sgm_schedule_settings(size_t *count);

/* --- optimisers: recorded as instructions, like layers --- */
/* How parameters follow their gradients. */
typedef struct sgm_optimiser sgm_optimiser;
/* Defaults by type; an option of 0 means its default. '-': not an option of this type, which
 * refuses it.
 *                   learning_rate momentum decay_rate beta1 beta2 epsilon weight_decay tolerance history
 * gradient_descent           0.01        -          -     -     -       -            0         -       -
 * momentum                   0.01      0.9          -     -     -       -            0         -       -
 * nesterov                   0.01      0.9          -     -     -       -            0         -       -
 * adagrad                    0.01        -          -     -     -    1e-6            0         -       -
 * adadelta                      1        -        0.9     -     -    1e-6            0         -       -
 * rmsprop                   0.001        -       0.99     -     -    1e-8            0         -       -
 * adam                      0.001        -          -   0.9 0.999    1e-8            0         -       -
 * adamw                     0.001        -          -   0.9 0.999    1e-8         0.01         -       -
 * lion                     0.0001        -          -   0.9  0.99       -          0.1         -       -
 * lamb                      0.001        -          -   0.9 0.999    1e-6         0.01         -       -
 * adafactor                  0.01        -        0.8     -     -    1e-3            0         -       -
 * muon                      0.001     0.95          -   0.9  0.95    1e-8          0.1         -       -
 * lbfgs                         1        -          -     -     -       -            0      1e-7      10
 * random_search              0.05        -          -     -     -       -            0         -       -
 * cma_es                      0.5        -          -     -     -       -            0         -       - */
typedef struct sgm_optimiser_options {
    size_t struct_size;
    double learning_rate; /* before the schedule */
    double momentum;      /* factor of the velocity in each update */
    double decay_rate;    /* factor of the running mean of squared gradients in each update */
    double beta1, beta2;  /* factors of the running means of gradients and of squared gradients */
    double tolerance;     /* no update if no element of the gradient is larger than this */
    int64_t history;      /* steps that are remembered */
    int64_t population;   /* random_search, cma_es: candidates of an update; default 4 + 3 ln(parameters) */
    double epsilon;       /* keeps divisions finite */
    double weight_decay;  /* adamw, lamb, lion, muon, adafactor: decoupled; others: L2, in the gradient */
    double clip_value;    /* gradients are clipped to [-clip_value, clip_value]; 0: no clipping */
    double clip_norm; /* gradients are scaled so that the norm of all together is at most this; 0: no limit */
    int64_t accumulate;    /* minibatches whose gradients are averaged for one update; default 1 */
    double average;        /* decay of a moving average of the parameters, used for validation; 0: none */
    sgm_schedule schedule; /* of the learning rate */
} SGM_BY_NAME sgm_optimiser_options;
/* An optimiser by its name; it belongs to the trainer that gets it. NULL and an error with the nearest
 * name. */
SGM_API sgm_optimiser *sgm_optimiser_create(const char *type, const sgm_optimiser_options *options);
SGM_API void sgm_optimiser_free(sgm_optimiser *optimiser);
/* Members of sgm_optimiser_options, but for the schedule, which has a table of its own. */
SGM_API const sgm_setting *sgm_optimiser_settings(size_t *count);
/* Sets "beta1" or "schedule.kind" of an optimiser that no trainer has yet. Unlike in the options 0 is a value
 * like any other. */
SGM_API sgm_status sgm_optimiser_set(sgm_optimiser *optimiser, const char *name, const sgm_content *content);
/* Any optimiser by its name: SGM_OPTIMISER("adam", .learning_rate = 0.01). */
#define SGM_OPTIMISER(type, ...) sgm_optimiser_create(type, SGM_OPTIONS(sgm_optimiser_options, __VA_ARGS__))
/* Gradient descent: p - r g, of parameter, learning rate and gradient. */
#define sgm_gradient_descent(...) SGM_OPTIMISER("gradient_descent", __VA_ARGS__)
/* Gradient descent with a velocity (Polyak, 1964). `momentum`. */
#define sgm_momentum(...) SGM_OPTIMISER("momentum", __VA_ARGS__)
/* Momentum that looks ahead (Nesterov, 1983; Sutskever et al., 2013). `momentum`. */
#define sgm_nesterov(...) SGM_OPTIMISER("nesterov", __VA_ARGS__)
/* Steps divided by the root of all squared gradients (Duchi, Hazan and Singer, 2011). */
#define sgm_adagrad(...) SGM_OPTIMISER("adagrad", __VA_ARGS__)
/* Steps in the parameter's own unit (Zeiler, 2012). `decay_rate`. */
#define sgm_adadelta(...) SGM_OPTIMISER("adadelta", __VA_ARGS__)
/* Steps divided by the root of recent squared gradients (Tieleman and Hinton, 2012). `decay_rate`. */
#define sgm_rmsprop(...) SGM_OPTIMISER("rmsprop", __VA_ARGS__)
/* Recent gradients over the root of recent squares (Kingma and Ba, 2014). `beta1`, `beta2`. */
#define sgm_adam(...) SGM_OPTIMISER("adam", __VA_ARGS__)
/* Adam with decoupled weight decay (Loshchilov and Hutter, 2017). */
#define sgm_adamw(...) SGM_OPTIMISER("adamw", __VA_ARGS__)
/* Steps of one size by the sign of the momentum (Chen et al., 2023). `beta1`, `beta2`. */
#define sgm_lion(...) SGM_OPTIMISER("lion", __VA_ARGS__)
/* Adam whose steps are in proportion to the parameter, for large minibatches (You et al., 2019). */
#define sgm_lamb(...) SGM_OPTIMISER("lamb", __VA_ARGS__)
/* Adam that remembers only rows and columns (Shazeer and Stern, 2018). `decay_rate`. */
#define sgm_adafactor(...) SGM_OPTIMISER("adafactor", __VA_ARGS__)
/* Orthogonal steps of matrices, adamw for the rest (Jordan, 2024). `momentum`, `beta1`, `beta2`. */
#define sgm_muon(...) SGM_OPTIMISER("muon", __VA_ARGS__)
/* Steps of all parameters together by the last `history` ones, for all data at once (Nocedal, 1980).
 * `tolerance`. */
#define sgm_lbfgs(...) SGM_OPTIMISER("lbfgs", __VA_ARGS__)

/* Candidates at normally distributed distances of standard deviation `learning_rate`, of which the best is
 * the next point if it is better. No gradients. `population`. */
#define sgm_random_search(...) SGM_OPTIMISER("random_search", __VA_ARGS__)
/* Candidates from a normal distribution that follows the better half of them; `learning_rate` is its first
 * standard deviation (CMA-ES; Hansen, 2016). No gradients; at most 400 parameters. `population`. */
#define sgm_cma_es(...) SGM_OPTIMISER("cma_es", __VA_ARGS__)

/* What a method without gradients sees of one update: all trained parameters as one vector, the point. */
typedef struct sgm_gradient_free_call {
    size_t count;         /* parameters: elements of vectors */
    int64_t candidates;   /* of an update */
    uint64_t seed;        /* of this update: another one each time, the same in a resume */
    double learning_rate; /* schedule included */
    bool float32;         /* parameters are stored as float32 between updates */
    double *point;        /* the parameters; tell() writes the new ones */
    double *numbers;      /* what the method remembers, zeros at first; NULL: nothing */
    double *scratch;      /* memory for one update */
} sgm_gradient_free_call;
/* A method without gradients: a static table. All functions are called by one thread, for each update
 * begin(), ask() for each candidate, which is then judged by its loss of the same minibatch, and tell().
 * ask() has to give the same point whenever it is called in an update. */
typedef struct sgm_gradient_free_method {
    size_t maximum;                                    /* parameters that it can search; 0: any number */
    size_t (*numbers)(size_t count);                   /* how many it remembers, which checkpoints keep */
    size_t (*scratch)(size_t count);                   /* how many it needs during an update */
    void (*begin)(const sgm_gradient_free_call *call); /* NULL: nothing to do */
    /* Gives a candidate, from 0 on. */
    void (*ask)(const sgm_gradient_free_call *call, int64_t candidate, double *point);
    /* Called behind the last candidate: `loss` is that of the point, losses[i] that of candidate i; they may
     * be NaN. */
    void (*tell)(const sgm_gradient_free_call *call, double loss, const double *losses);
} sgm_gradient_free_method;

/* The version of sgm_optimiser_type. */
#define SGM_OPTIMISER_API 4
/* What update() gets. */
typedef struct sgm_update_call {
    sgm_graph *graph;                     /* into which it records */
    const sgm_optimiser_options *options; /* defaults filled in */
    const char *parameter_name;           /* "2-dense.weights" */
    sgm_value parameter, gradient;        /* of one type and shape */
    sgm_value learning_rate;              /* rank 0, of the parameter's type: schedule included */
    sgm_value step;                       /* rank 0: number of this update, from 1 */
} sgm_update_call;
/* An optimiser from outside the library: a static table. */
typedef struct sgm_optimiser_type {
    uint32_t api;           /* SGM_OPTIMISER_API */
    const char *name, *doc; /* as SGM_OPTIMISER takes it; what it does, in a line */
    /* Of momentum, decay_rate, beta1, beta2, epsilon, tolerance and history those that are not 0 are its
     * settings; the registry of a trainer has no value for the others, and refuses them. */
    sgm_optimiser_options defaults;
    /* Gives the new value of the parameter, and may assign slots. */
    sgm_value (*update)(const sgm_update_call *call);
    bool decoupled; /* update() applies the weight decay itself, as it does where that has a default */
    /* NULL, or for a method that looks at all parameters together: called before the updates, it may record
     * what they share, and change the gradients that update() gets. count: 1 or more. */
    void (*prepare)(sgm_update_call *calls, size_t count);
    /* For who asks (`sigma info NAME`): the new parameter p from the gradient g, with the learning rate r;
     * NULL: not said. */
    const char *formula;
    /* A method without gradients, in the place of update() and prepare(); NULL: it has gradients. */
    const sgm_gradient_free_method *search;
} sgm_optimiser_type;
/* Makes an optimiser known by its name. `type` must stay; any thread. */
SGM_API sgm_status sgm_register_optimiser(const sgm_optimiser_type *type);
/* The types of optimisers that are known, from 0; NULL past the last. */
SGM_API const sgm_optimiser_type *sgm_optimiser_type_at(size_t index);
/* For update(): the state "optimiser.SLOT.PARAMETER" of the parameter's type, zero before the first update.
 */
SGM_API sgm_value sgm_optimiser_slot(const sgm_update_call *call, const char *slot);
/* As sgm_optimiser_slot, of `shape`: the parameter's, or with 1 in place of some dimensions. */
SGM_API sgm_value sgm_optimiser_slot_shaped(const sgm_update_call *call, const char *slot,
                                            const sgm_shape *shape);

/* --- modifiers: what becomes of a parameter after each update; recorded, like the update --- */
/* What becomes of a parameter after each update. */
typedef struct sgm_modifier sgm_modifier;
/* "clip(-1, 1)": to these bounds; "scale(0.999)"; "max_norm(3)": what goes into one output (a column) is made
 * no longer than that. */
SGM_API sgm_modifier *sgm_modifier_parse(const char *text);
/* Records the new value, of the same type and shape. */
typedef sgm_value (*sgm_modifier_function)(void *user, sgm_graph *graph, sgm_value parameter);
/* A modifier of your own. NULL on failure. */
SGM_API sgm_modifier *sgm_modifier_create(sgm_modifier_function function, void *user);
SGM_API void sgm_modifier_free(sgm_modifier *modifier);

#ifdef __cplusplus
}
#endif
#endif
