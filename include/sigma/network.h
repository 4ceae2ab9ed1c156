/* Networks: layers, written forward only, and the two ways to put them together.
 *
 * As text:
 *     "input(28, 28) + dropout(0.2) + 2 * (dense(100, relu)) + dense(10) + softmax_cross_entropy"
 *     "left = input(4, name=left) + dense(8, relu);
 *      right = input(3, name=right) + dense(8, relu);
 *      concatenate(left, right) + add(identity, dense(16, tanh) + dense(16))
 *      + dense(3) + softmax_cross_entropy"
 *
 * or by calls that make the same tree:
 *     sgm_chain(sgm_input(.shape = {28, 28}), sgm_dropout(.rate = 0.2),
 *               sgm_repeat(2, sgm_dense(.size = 100, ...)), ...)
 *
 * `a + b` runs b on a's result; `n * (...)` is n copies in a row; add(a, b, ...) and concatenate(a, b, ...)
 * run each branch on the same value and join the results; `name = chain;` names a value for use at a chain's
 * start or as a branch. Layers are named "NUMBER-TYPE" by their place in the text from 0 ("2-dense") unless
 * they have a name; their parameters are "2-dense.weights" and so on. A layer with `share=NAME` has none of
 * its own: it uses the trained ones of the layer NAME before it, in which the gradients of all uses add up. A
 * layer given to another belongs to it, also when the call fails; NULL is passed on.
 */
#ifndef SIGMA_NETWORK_H
#define SIGMA_NETWORK_H

#include <sigma/graph.h>
#include <sigma/registry.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A description: one layer, or several put together. */
typedef struct sgm_layer sgm_layer;
/* Layers with names, ready to be recorded. */
typedef struct sgm_network sgm_network;

/* --- descriptions --- */
/* Parses the notation; errors point at the column: "column 14: unknown layer 'desne' (did you mean
 * 'dense'?)". */
SGM_API sgm_layer *sgm_layer_parse(const char *text);
SGM_API void sgm_layer_free(sgm_layer *layer);
/* Layers one after the other, `count` of them. */
SGM_API sgm_layer *sgm_chain_with(sgm_layer *const *layers, size_t count);
/* Copies of a layer in a row, each with parameters of its own. */
SGM_API sgm_layer *sgm_repeat(int32_t times, sgm_layer *layer);
/* Branches on the same value, joined by layer `join` ("add" or "concatenate"). */
SGM_API sgm_layer *sgm_join_branches(const char *join, sgm_layer *const *branches, size_t count);
/* Layers as an array and its length, for functions that take both. */
#define SGM_LAYERS(...)                                                                                      \
    (sgm_layer *const[]){__VA_ARGS__}, sizeof((sgm_layer *const[]){__VA_ARGS__}) / sizeof(sgm_layer *)
/* Layers one after the other: sgm_chain(sgm_input(.shape = {4}), sgm_dense(.size = 3)). */
#define sgm_chain(...) sgm_chain_with(SGM_LAYERS(__VA_ARGS__))
/* The sum of branches on the same value: sgm_add_branches(a, b). */
#define sgm_add_branches(...) sgm_join_branches("add", SGM_LAYERS(__VA_ARGS__))
/* Branches on the same value side by side along the last dimension. */
#define sgm_concatenate_branches(...) sgm_join_branches("concatenate", SGM_LAYERS(__VA_ARGS__))
/* `name = layer;` as a statement, and the name's use at the start of a chain or as a branch. */
SGM_API sgm_layer *sgm_definition(const char *name, sgm_layer *layer);
/* The value of that name, as the beginning of a chain or as a branch. */
SGM_API sgm_layer *sgm_reference(const char *name);
/* Definitions and chains, one after the other. */
SGM_API sgm_layer *sgm_statements_with(sgm_layer *const *statements, size_t count);
/* Definitions and chains that are listed, one after the other. */
#define sgm_statements(...) sgm_statements_with(SGM_LAYERS(__VA_ARGS__))

typedef struct sgm_layer_options {
    size_t struct_size;
    const char *name;            /* of the layer, instead of NUMBER-TYPE */
    int64_t seed;                /* dropout: of random numbers of its own; default: the training's */
    const char *share;           /* name of a layer before it, whose trained parameters it uses as its own */
    int64_t shape[SGM_MAX_RANK]; /* input, reshape: of one example, ends at the first 0 */
    int64_t size; /* dense, embedding, rnn, gru, lstm; convolutions: channels; poolings: the window's */
    const char *activation; /* dense, elementwise, activation, rnn: any operation with that flag; default:
                             * none, of rnn: tanh */
    bool no_bias;           /* dense, rnn, gru, lstm */
    double rate;            /* dropout: share of values set to 0; the others are scaled by 1 / (1 - rate) */
    const char *targets;    /* costs: field of the data; default "targets" */
    double importance;      /* costs: factor in the total; default 1 */
    const char *weights;    /* costs of examples by themselves: field with a factor for each; none */
    bool time_distributed;  /* dense: acts on the last dimension of each example, which is not flattened */
    int64_t vocabulary;     /* embedding: how many numbers there are */
    bool sparse;            /* embedding: only rows that were used are updated */
    /* softmax_cross_entropy, negative_log_likelihood: targets are numbers of classes, or a share for each */
    bool classes, shares;
    bool last, reverse, bidirectional; /* rnn, gru, lstm */
    double forget_bias;                /* lstm: is added to the forget gate's sum */
    /* height and width; the second 0: as the first. kernel: convolutions; the others: also poolings */
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    int64_t groups; /* convolutions */
    bool same;      /* convolutions and poolings: padding that keeps the size, divided by the stride */
    double label_smoothing;      /* softmax_cross_entropy: share of the targets that goes to all classes */
    const double *class_weights; /* softmax_cross_entropy: a factor for each class; they are copied */
    size_t class_weight_count;   /* how many class_weights there are */
    double gamma, alpha; /* focal: default 2 and 0.25; softmax_cross_entropy: gamma alone, default 0 */
    double delta;        /* huber: where the square ends; default 1 */
    double epsilon;      /* gaussian_nll: the least variance; default 1e-6 */
    double margin;       /* hinge, multi_class_hinge, triplet; default 1 */
    bool squared;        /* hinge, multi_class_hinge, triplet */
    bool channels;       /* prelu: a slope for each; glu, swiglu, geglu: they are halved, not the features */
    int64_t factor[2];   /* upsampling: of height and width; the second 0: as the first */
    bool bilinear, linear;  /* upsampling, upsampling_1d */
    const char *lengths;    /* input: the field of the data that tells how many steps of each example count */
    const char *starts;     /* input: the field that tells where the sequence of each step began in its row */
    int64_t labels;         /* ctc: the most labels of an example; blank: the class between them, default 0 */
    int64_t blank;          /* ctc: see labels */
    bool skip;              /* ctc: examples with too few steps for their labels cost nothing */
    bool steps;             /* global poolings: over the steps of a sequence */
    int64_t streams;        /* rnn, gru, lstm: sequences that go on from minibatch to minibatch */
    int64_t rank;           /* lora: numbers that are learnt for each input and each output; also `alpha` */
    const char *on, *train; /* lora: patterns of parameters, with spaces between them */
    double dropout;         /* lora: share of the inputs that it does not see while training */
    bool rank_stabilised;   /* lora: alpha / sqrt(rank) */
    const char *quantize;   /* lora: "int8" */
    int64_t columns[2];     /* lora: the first one and how many, where it is not for all outputs */
} SGM_BY_NAME sgm_layer_options;
/* Options for sgm_layer_create: SGM_LAYER_OPTIONS(.size = 10). */
#define SGM_LAYER_OPTIONS(...) SGM_OPTIONS(sgm_layer_options, __VA_ARGS__)
/* Any registered layer by its name; an option that is set and that the layer does not have is an error. */
SGM_API sgm_layer *sgm_layer_create(const char *type, const sgm_layer_options *options);
/* Examples of the data: the field of the layer's `name`, or "inputs"; `shape` is that of one example.
 * `lengths` names the field that tells how many steps of each example count. */
#define sgm_input(...) sgm_layer_create("input", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* Makes the value an output of the network under this layer's name, and passes it on. */
#define sgm_output_layer(...) sgm_layer_create("output", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* activation(x W + b): (batch, features) to (batch, size); an example of several dimensions is flattened
 * first, unless `time_distributed` is given. Also `no_bias`. */
#define sgm_dense(...) sgm_layer_create("dense", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A learnt vector for each number from 0 to `vocabulary` - 1: (batch, time) to (batch, time, size).
 * `sparse`: only rows that were used are updated. */
#define sgm_embedding(...) sgm_layer_create("embedding", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* activation(weighted sums over windows + b): (batch, channels, height, width) to (batch, size, ...).
 * `kernel`, `stride`, `padding`, `dilation`, `groups`, `same`, `no_bias`. The name has _layer behind it where
 * the graph has an operation of that name. */
#define sgm_convolution_layer(...) sgm_layer_create("convolution", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* The largest element of each window of `size`. `stride` (default: the size), `padding`, `dilation`,
 * `same`. */
#define sgm_max_pooling_layer(...) sgm_layer_create("max_pooling", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* The mean of each window of `size`. `stride` (default: the size), `padding`, `same`. */
#define sgm_average_pooling_layer(...) sgm_layer_create("average_pooling", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A recurrent layer (Elman, 1990): (batch, time, features) to (batch, time, size), with `last` to (batch,
 * size). `activation`, `reverse`, `bidirectional`, `no_bias`, `streams`. */
#define sgm_rnn(...) sgm_layer_create("rnn", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* As sgm_rnn, with gated recurrent units (Cho et al., 2014) and without `activation`. */
#define sgm_gru(...) sgm_layer_create("gru", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* As sgm_gru, with long short-term memory (Gers et al., 2000) and `forget_bias`. */
#define sgm_lstm(...) sgm_layer_create("lstm", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* activation(w x + b) with a weight for each element and one bias: the shape stays. */
#define sgm_elementwise(...) sgm_layer_create("elementwise", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* An activation of each element: sgm_activation(.activation = "relu"). */
#define sgm_activation(...) sgm_layer_create("activation", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* x where it is above 0, else x times a slope that is learnt (He et al., 2015); `channels`: one for each
 * channel. */
#define sgm_prelu(...) sgm_layer_create("prelu", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* The first half of the features times the activation, sigmoid unless given, of the second half (Dauphin
 * et al., 2016): (batch, 2 n) to (batch, n). `channels` halves these instead. */
#define sgm_glu(...) sgm_layer_create("glu", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* sgm_glu with silu (Shazeer, 2020). */
#define sgm_swiglu(...) sgm_layer_create("swiglu", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* sgm_glu with gelu (Shazeer, 2020). */
#define sgm_geglu(...) sgm_layer_create("geglu", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A picture larger by `factor`: each element repeated, or with `bilinear` between its neighbours. */
#define sgm_upsampling(...) sgm_layer_create("upsampling", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* Means over windows, so many that any picture becomes one of `size`. */
#define sgm_adaptive_average_pooling(...)                                                                    \
    sgm_layer_create("adaptive_average_pooling", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* The largest elements of windows, so many that any picture becomes one of `size`. */
#define sgm_adaptive_max_pooling(...) sgm_layer_create("adaptive_max_pooling", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* While training sets a share `rate` of the elements to 0 and divides the others by 1 - rate (Srivastava
 * et al., 2014). */
#define sgm_dropout(...) sgm_layer_create("dropout", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A cost of one class of several, of logits: -sum(t log softmax(y)). `label_smoothing`, `class_weights`,
 * `gamma`, `classes`, `shares`. All costs have `targets`, `importance` and `weights`. */
#define sgm_softmax_cross_entropy(...)                                                                       \
    sgm_layer_create("softmax_cross_entropy", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A cost of numbers, summed over the minibatch: sum((y - t)^2). */
#define sgm_squared_difference(...) sgm_layer_create("squared_difference", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A cost of numbers: mean((y - t)^2). */
#define sgm_mean_squared(...) sgm_layer_create("mean_squared", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A cost of numbers, in their unit: sqrt(mean((y - t)^2)), of the minibatch as a whole, also where workers
 * share it. Its gradient is 0 where all targets are met. */
#define sgm_root_mean_squared(...) sgm_layer_create("root_mean_squared", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A cost of yes or no for each output, of logits: sum(log(1 + e^y) - t y). */
#define sgm_binary_cross_entropy(...) sgm_layer_create("binary_cross_entropy", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A cost of one class of several, of probabilities: -sum(t log y). `classes`, `shares`. */
#define sgm_negative_log_likelihood(...)                                                                     \
    sgm_layer_create("negative_log_likelihood", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A cost of numbers in which outliers count no more than others: mean(|y - t|). */
#define sgm_mean_absolute(...) sgm_layer_create("mean_absolute", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A cost of numbers: a square up to a difference of `delta`, then a line (Huber, 1964). */
#define sgm_huber(...) sgm_layer_create("huber", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A cost of numbers and how sure they are, of a mean for each target and then the logarithm of its variance:
 * the mean of (s + (y - t)^2 / e^s) / 2 (Nix and Weigend, 1994); the output has standard deviations in the
 * place of logarithms. `epsilon`. */
#define sgm_gaussian_nll(...) sgm_layer_create("gaussian_nll", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A cost of directions: 1 - y t / (|y| |t|). */
#define sgm_cosine_distance(...) sgm_layer_create("cosine_distance", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A cost of shares, of logits: sum(t log t) - sum(t log softmax(y)). */
#define sgm_kl_divergence(...) sgm_layer_create("kl_divergence", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A cost of yes or no where one of the two is rare (Lin et al., 2017). `gamma`, `alpha`. */
#define sgm_focal(...) sgm_layer_create("focal", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A cost of yes or no, as a support vector machine has it. `margin`, `squared`. */
#define sgm_hinge(...) sgm_layer_create("hinge", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A cost of one class of several by margins. `margin`, `squared`. */
#define sgm_multi_class_hinge(...) sgm_layer_create("multi_class_hinge", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A cost of labels of a sequence without their times (Graves et al., 2006). `labels`, `blank`, `skip`. */
#define sgm_ctc_cost(...) sgm_layer_create("ctc", SGM_LAYER_OPTIONS(__VA_ARGS__))
/* A cost of vectors that tell what belongs together (Hermans et al., 2017). `margin`, `squared`. */
#define sgm_triplet(...) sgm_layer_create("triplet", SGM_LAYER_OPTIONS(__VA_ARGS__))

/* --- adapters --- */
/* Low-rank adapters (Hu et al., 2021), as a statement or for sgm_network_adapt: each matrix W (inputs,
 * outputs) whose parameter `on` matches gets two small ones, A (inputs, rank) and B (rank, outputs), and acts
 * as W + alpha / rank A B does. They are the parameters "2-dense.weights_lora_a" and "..._lora_b"; with
 * `name`, which several adapters of one matrix need, that stands in the place of "weights". A is drawn, B
 * begins with zeros, so that at first nothing changes. All other parameters are frozen, but for those that
 * `train` matches. A pattern without a dot is for all parameters of a layer: "*attention*". `rank`; `alpha`,
 * default: as the rank; `on`, default: all matrices; `train`, `dropout`, `rank_stabilised`, `columns`;
 * `quantize`, "int8": frozen matrices that are adapted are kept as 8 bits. */
#define sgm_lora(...) sgm_layer_create("lora", SGM_LAYER_OPTIONS(__VA_ARGS__))

/* --- networks --- */
/* A network of layers, which it takes over and names. What needs no shapes is checked. */
SGM_API sgm_network *sgm_network_create(sgm_layer *layers);
/* A network of the notation; NULL and an error with the column. */
SGM_API sgm_network *sgm_network_parse(const char *text);
SGM_API void sgm_network_free(sgm_network *network);
/* The notation again; free with sgm_string_free. */
SGM_API char *sgm_network_text(const sgm_network *network);
/* How many layers it has. */
SGM_API size_t sgm_network_layers(const sgm_network *network);
/* The name of a layer, "2-dense", which stays the network's; NULL past the last. */
SGM_API const char *sgm_network_layer_name(const sgm_network *network, size_t index);
/* The type of a layer; NULL past the last. */
SGM_API const struct sgm_layer_type *sgm_network_layer_type(const sgm_network *network, size_t index);
/* An argument of a layer as it will be recorded, given or default: flags are booleans, shapes texts ("28,
 * 28"). The content belongs to the caller. */
SGM_API sgm_status sgm_network_get_argument(const sgm_network *network, size_t index, const char *name,
                                            sgm_content *content);
/* From the next recording on, for this one of repeated layers; only arguments that are live. The notation
 * stays as it was described. */
SGM_API sgm_status sgm_network_set_argument(sgm_network *network, size_t index, const char *name,
                                            const sgm_content *content);

/* Adds adapters: a layer such as sgm_lora(.rank = 8), or sgm_layer_parse("lora(8)"), which belongs to the
 * network then, also when the call fails. They are a statement of its notation from now on, and there from
 * the next recording on. */
SGM_API sgm_status sgm_network_adapt(sgm_network *network, sgm_layer *adapter);
/* How many adapters were added, or were statements. */
SGM_API size_t sgm_network_adapters(const sgm_network *network);
/* An argument of an adapter, as sgm_network_get_argument has those of layers; also its "name", "" if it has
 * none. */
SGM_API sgm_status sgm_network_get_adapter(const sgm_network *network, size_t index, const char *name,
                                           sgm_content *content);
/* The notation of an adapter, "lora(8, alpha=16)"; free with sgm_string_free. */
SGM_API char *sgm_network_adapter_text(const sgm_network *network, size_t index);
/* Takes all adapters out of the network and its notation. */
SGM_API void sgm_network_drop_adapters(sgm_network *network);

/* A parameter of a network that was recorded. */
typedef struct sgm_parameter {
    const char *name;        /* "2-dense.weights" */
    sgm_type type;           /* type and shape */
    int64_t fan_in, fan_out; /* 0 where there is no such thing */
    bool trainable;          /* gradients change it */
    const char *initialiser; /* what it gets without another rule, as text: "glorot", "constant(0)" */
    sgm_value value;         /* in the graph that was recorded */
    bool sparse;             /* only rows whose gradient is not 0 are updated */
    bool frozen;  /* trainable, but it keeps its value, as adapters of the network are trained in its place */
    bool adapted; /* adapters change what products with it give */
    const char *adapts; /* of an adapter: the parameter that it is for; NULL: it is a layer's own */
    size_t adapter;     /* of an adapter: its number in the network (sgm_network_get_adapter) */
    /* A matrix that adapters keep as 8 bits (lora's argument `quantize`) is two parameters, NAME_codes of
     * uint8 and NAME_scales, as sgm_quantize has them; of both: NAME. NULL: it is a parameter like others. */
    const char *quantizes;
    bool placed; /* of a recording of steps: keys or values of each place, (batch, heads, places, size), which
                  * may be written again from any place on */
} sgm_parameter;

/* A value of a recording. */
typedef struct sgm_named_value {
    const char *name;  /* of a field, an output, or a cost's layer */
    sgm_value value;   /* in the graph that was recorded */
    double importance; /* costs */
    sgm_value part; /* costs: what these examples add to the cost of the whole minibatch; `value`, unless they
                     * are a part of one */
} sgm_named_value;

/* What sgm_network_record shall record. */
typedef struct sgm_recording_options {
    size_t struct_size;
    int64_t batch;      /* examples; at least 1 */
    sgm_dtype dtype;    /* float32, float64, or bfloat16: mixed precision. Then states and inputs of the graph
                         * are float32 and layers see them cast to bfloat16; costs and outputs are float32.
                         * Keys and values that steps keep are bfloat16 */
    bool training;      /* dropout acts, costs are recorded */
    bool costs;         /* record costs though not training (validation) */
    uint64_t iteration; /* for layers that record something else each time */
    const char *prefix; /* of the parameters' names as states; default "" (the averaged ones: "average.") */
    bool part; /* the examples are a part of a minibatch, which several workers share: sgm_layer_is_part */
    bool step; /* one step of sequences, or `steps` of them, whose inputs are declared with all: layers that
                * look back keep what they need in states of their own, zeros at first. Not while training;
                * layers that look ahead refuse */
    int64_t steps; /* of sequences whose input names their lengths, if fewer than it declares; 0: all.
                    * Parameters are those of all steps, so that predictions of short sequences cost what
                    * these are long. With `step`: how many come in at each run; 0: one */
} SGM_BY_NAME sgm_recording_options;

/* What a network recorded. Arrays and names belong to the network and stay until it records again. */
typedef struct sgm_recording {
    const sgm_named_value *inputs, *targets; /* fields of the data, as inputs of the graph of the same name */
    size_t input_count, target_count;        /* how many there are of each */
    /* Predictions, named after the layers that make them: first those that costs judge (as probabilities for
     * softmax_cross_entropy and binary_cross_entropy), then output layers, then values where the text ends.
     */
    const sgm_named_value *outputs;
    size_t output_count;          /* how many */
    const sgm_named_value *costs; /* one number for each cost layer, without its importance */
    size_t cost_count;            /* how many */
    sgm_value total;              /* sum of importance * cost; nothing if there are no costs */
    sgm_value part; /* sum of importance * part of the costs; over all workers, the total of the minibatch */
    const sgm_parameter *parameters; /* in the order in which layers made them */
    size_t parameter_count;          /* how many */
    bool classifies;   /* the first cost is one of classes, so that outputs and targets have an accuracy */
    bool deviates;     /* the first cost's output is means of the targets, then standard deviations */
    sgm_value lengths; /* of the first output, if it is a sequence: how many steps of each example count,
                        * int64 (batch); nothing: all do */
    bool ignores;      /* targets below 0 do not count */
    int64_t places;    /* of a recording of steps: how many of them it can take; 0: any number */
    bool random;       /* uses the states "random.seed" and "random.step" (int64, rank 0) */
} sgm_recording;
/* Records the network into a graph of the caller's. Errors have the layer's name; shapes are checked here. */
SGM_API sgm_status sgm_network_record(sgm_network *network, sgm_graph *graph,
                                      const sgm_recording_options *options, sgm_recording *recording);
/* True if a layer wants to be re-recorded at each iteration. */
SGM_API bool sgm_network_is_dynamic(const sgm_network *network);

/* --- layers from outside the library --- */
/* The version of sgm_layer_type. */
#define SGM_LAYER_API 2
/* What kind of layer it is; several may be set. */
typedef enum sgm_layer_flags {
    SGM_LAYER_COST = 1,       /* inputs: prediction; its value is one number for each example or one in all */
    SGM_LAYER_DYNAMIC = 2,    /* is re-recorded at each iteration, and what comes behind it if it differs */
    SGM_LAYER_JOIN = 4,       /* arguments are branches */
    SGM_LAYER_CLASSIFIES = 8, /* a cost of classes: the largest output is the prediction */
    SGM_LAYER_DEVIATIONS = 32, /* a cost whose output is a mean for each target, then a standard deviation */
    SGM_LAYER_SUM = 16,        /* a cost that is a sum over the minibatch, where others are means */
    /* A statement of its own. forward() is called for each product of sgm_layer_matmul whose parameter the
     * text argument "on" matches, with `inputs` x and x W, and gives what takes the product's place; its
     * parameters are the adapted layer's. Those of layers are frozen but for what its text argument "train"
     * matches. */
    SGM_LAYER_ADAPTER = 64
} sgm_layer_flags;

/* Arguments in the notation are rows (sgm_option, registry.h): integers, numbers, texts, booleans (flags),
 * and lists of integers (shapes) or of numbers. Positional ones come in the order of the table: a value goes
 * to the next argument of its kind, a shape takes all integers that follow, a list of numbers is only given
 * by name. A flag is given by its name alone. All can be given as name=value: shape=(28, 28),
 * class_weights=(1, 2.5); the bounds of a list are those of each. Integers, numbers and flags may be live:
 * they can change between two recordings, so no parameter's shape may depend on them. A text argument named
 * "activation" must be an operation with that flag. */
typedef struct sgm_layer_call sgm_layer_call; /* one layer being recorded */
/* A layer: a static table. */
typedef struct sgm_layer_type {
    uint32_t api;                /* SGM_LAYER_API */
    uint32_t flags;              /* several sgm_layer_flags */
    const char *name, *doc;      /* as the notation has it; what it does, in a line */
    const sgm_option *arguments; /* rows, as said above; NULL: there are none */
    size_t argument_count;       /* rows of `arguments` */
    /* Branches of SGM_LAYER_JOIN; else values before it: 1, or 0 where a chain begins. */
    int32_t min_inputs, max_inputs;
    /* Records what the layer computes and returns its value; failures go to the graph. */
    sgm_value (*forward)(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count);
    /* Costs: what the network's output is, from the prediction; NULL: the prediction itself. */
    sgm_value (*predict)(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction);
    /* For who asks (`sigma info NAME`): what it computes, and the layer in the notation, "dense(10, relu)";
     * NULL: not said. */
    const char *formula, *example;
} sgm_layer_type;
/* Makes a layer known by its name. `type` must stay; any thread. */
SGM_API sgm_status sgm_register_layer(const sgm_layer_type *type);
/* The types of layers that are known, from 0; NULL past the last. */
SGM_API const sgm_layer_type *sgm_layer_type_at(size_t index);

/* For forward(), as all that follows: an integer among the arguments, given or default. */
SGM_API int64_t sgm_layer_integer(const sgm_layer_call *call, const char *argument);
/* A number among the arguments, given or default. */
SGM_API double sgm_layer_number(const sgm_layer_call *call, const char *argument);
/* A text among the arguments; NULL: it was not given and has no default. */
SGM_API const char *sgm_layer_text(const sgm_layer_call *call, const char *argument);
/* A flag among the arguments. */
SGM_API bool sgm_layer_flag(const sgm_layer_call *call, const char *argument);
/* A shape among the arguments; rank 0: it was not given. */
SGM_API sgm_shape sgm_layer_shape(const sgm_layer_call *call, const char *argument);
/* `count` of them, which belong to the network; NULL: not given. */
SGM_API const double *sgm_layer_numbers(const sgm_layer_call *call, const char *argument, size_t *count);
/* The name of the layer that is recorded: "2-dense". */
SGM_API const char *sgm_layer_name(const sgm_layer_call *call);
/* Whether the recording is one for training. */
SGM_API bool sgm_layer_is_training(const sgm_layer_call *call);
/* The type of what the layer gets and gives; with mixed precision bfloat16, and float32 for costs. */
SGM_API sgm_dtype sgm_layer_dtype(const sgm_layer_call *call);
/* How many examples the recording is for. */
SGM_API int64_t sgm_layer_batch(const sgm_layer_call *call);
/* The iteration of the training, for layers with SGM_LAYER_DYNAMIC. */
SGM_API uint64_t sgm_layer_iteration(const sgm_layer_call *call);
/* A state "LAYER.name", in the layer's type; `trainable` ones get gradients. With mixed precision one that is
 * not trained is given as the float32 state itself, so that it can be assigned to. */
SGM_API sgm_value sgm_layer_parameter(sgm_layer_call *call, sgm_graph *graph, const char *name,
                                      const sgm_shape *shape, int64_t fan_in, int64_t fan_out, bool trainable,
                                      const char *initialiser);
/* A trainable parameter (inputs, outputs) that the layer uses with sgm_layer_matmul alone, so that adapters
 * may keep it as 8 bits; else as sgm_layer_parameter. */
SGM_API sgm_value sgm_layer_matrix(sgm_layer_call *call, sgm_graph *graph, const char *name,
                                   const sgm_shape *shape, int64_t fan_in, int64_t fan_out,
                                   const char *initialiser);
/* x (rows, inputs) times a parameter (inputs, outputs), with what adapters make of it. Layers that multiply
 * by their parameters in another way have no adapters. */
SGM_API sgm_value sgm_layer_matmul(sgm_layer_call *call, sgm_graph *graph, sgm_value x, sgm_value weights);
/* A field of the data as an input, shape (batch, example...). */
SGM_API sgm_value sgm_layer_field(sgm_layer_call *call, sgm_graph *graph, const char *field,
                                  const sgm_shape *example);
/* How many steps of each example of the input (batch, steps, ...) count, int64 (batch); nothing: all do. What
 * a layer gives has the same lengths if it has as many steps. */
SGM_API sgm_value sgm_layer_lengths(const sgm_layer_call *call);
/* True: what comes in are one or more steps of sequences, the next ones at each run. */
SGM_API bool sgm_layer_is_step(const sgm_layer_call *call);
/* For a cost: it is a mean over so many steps or other things of the minibatch, one number of a float type;
 * without this call over its examples. Workers that share a minibatch weight their parts so. It may depend on
 * parameters: its gradients count. */
SGM_API void sgm_layer_set_count(sgm_layer_call *call, sgm_value count);
/* True: the examples are a part of a minibatch, which several workers share. What a layer computes from
 * several examples together (statistics, a comparison) then needs the others': it sums over the workers or
 * fails. */
SGM_API bool sgm_layer_is_part(const sgm_layer_call *call);
/* Of a part: the share of the minibatch's examples that it has, one number in the layer's type. */
SGM_API sgm_value sgm_layer_share(sgm_layer_call *call, sgm_graph *graph);
/* Of a part: the sum of `x` over all workers, which record it alike, in the same type; else `x`. */
SGM_API sgm_value sgm_layer_all_reduce(sgm_layer_call *call, sgm_graph *graph, sgm_value x);
/* Uniform in [0, 1), different at each step and for each call. */
SGM_API sgm_value sgm_layer_random(sgm_layer_call *call, sgm_graph *graph, const sgm_shape *shape);
/* Applies an activation by name; "" or NULL: none. */
SGM_API sgm_value sgm_layer_activate(sgm_layer_call *call, sgm_graph *graph, const char *activation,
                                     sgm_value x);

#ifdef __cplusplus
}
#endif
#endif
