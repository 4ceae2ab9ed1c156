/* Build functions of SVMRegressor and SVMClassifier, and the operation that makes probabilities of classes
 * out of those of their pairs.
 *
 * A support vector machine adds up how near an example is to each support vector. For classes there is such a
 * sum for each pair of them, a "decision", and the class that wins most of its pairs is told. All is computed
 * in float64: a distance is the difference of products here, which has fewer digits than they have. */
#include "onnx/ml/ml.h"

#include <math.h>

/* Classes of the operation below, which has lists of them on the stack. */
#define MAXIMUM_CLASSES 512
/* Coefficients of all pairs of classes: support vectors times pairs. */
#define MAXIMUM_COEFFICIENTS ((int64_t)1 << 26)

/* --- probabilities of classes from those of pairs (Wu, Lin and Weng, 2004) --- */

static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    *result = (sgm_type){SGM_FLOAT64, sgm_shape_of(inputs[0].shape.dims[0], attributes->integers[0])};
    return SGM_OK;
}

/* One example: its pairs (0, 1), (0, 2), ..., (1, 2), ..., each with the probability that it is of the first
 * of the two classes. */
typedef struct pairs {
    const double *first;
    int64_t classes;
} pairs;

/* The probability that an example is of class a, if it is of a or b. */
static double wins(const pairs *p, int64_t a, int64_t b)
{
    int64_t low = a < b ? a : b, high = a < b ? b : a;
    double first = p->first[low * (2 * p->classes - low - 1) / 2 + high - low - 1];
    return a < b ? first : 1 - first;
}

/* An element of the matrix Q: the probabilities p that make p Q p the smallest are wanted. */
static double entry(const pairs *p, int64_t a, int64_t b)
{
    double sum = 0;
    if (a != b)
        return -wins(p, b, a) * wins(p, a, b);
    for (int64_t i = 0; i < p->classes; i++)
        sum += i != a ? wins(p, i, a) * wins(p, i, a) : 0;
    return sum;
}

/* Makes Q p, and returns p Q p. */
static double multiply(const pairs *p, const double *shares, double *products)
{
    double all = 0;
    for (int64_t a = 0; a < p->classes; a++) {
        products[a] = 0;
        for (int64_t b = 0; b < p->classes; b++)
            products[a] += entry(p, a, b) * shares[b];
        all += shares[a] * products[a];
    }
    return all;
}

static bool is_near(const pairs *p, const double *products, double all)
{
    for (int64_t a = 0; a < p->classes; a++)
        if (!(fabs(products[a] - all) < 0.005 / (double)p->classes)) /* nor is it where one is NaN */
            return false;
    return true;
}

/* One class after the other, all shares brought back to the sum 1 each time. It ends where libsvm ends, which
 * is before the shares have all of their digits: those of ONNX Runtime end there, too. */
static void couple(const pairs *p, double *shares)
{
    double products[MAXIMUM_CLASSES];
    for (int64_t a = 0; a < p->classes; a++)
        shares[a] = 1.0 / (double)p->classes;
    for (int64_t round = 0; round < 100 || round < p->classes; round++) {
        double all = multiply(p, shares, products);
        if (is_near(p, products, all))
            break;
        for (int64_t a = 0; a < p->classes; a++) {
            double own = entry(p, a, a), step = (all - products[a]) / own;
            shares[a] += step;
            all = (all + step * (step * own + 2 * products[a])) / ((1 + step) * (1 + step));
            for (int64_t b = 0; b < p->classes; b++) {
                products[b] = (products[b] + step * entry(p, a, b)) / (1 + step);
                shares[b] /= 1 + step;
            }
        }
    }
}

/* Integers: the number of classes. */
static sgm_status forward(const sgm_kernel_call *call)
{
    pairs p = {.classes = call->attributes->integers[0]};
    for (int64_t i = 0; i < call->inputs[0].shape.dims[0]; i++) {
        p.first = (const double *)call->inputs[0].data + i * call->inputs[0].shape.dims[1];
        couple(&p, (double *)call->output.data + i * p.classes);
    }
    return SGM_OK;
}

static const sgm_op op_coupling = {.api = SGM_OP_API,
                                   .name = "onnx_coupling",
                                   .doc = "probabilities of classes from those of their pairs",
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .infer = infer,
                                   .forward = forward};

/* --- kernels --- */

static size_t count_floats(const sgm__onnx_node *n, const char *name)
{
    const Onnx__AttributeProto *attribute = sgm__onnx_attribute(n, name);
    return attribute != NULL ? attribute->n_floats : 0;
}

/* An entry of a list of floats that has it. */
static double float_at(const sgm__onnx_node *n, const char *name, int64_t index)
{
    return (double)sgm__onnx_attribute(n, name)->floats[index];
}

/* |x|^2 + |v|^2 - 2 x v, which is no less than 0. */
static sgm_value squared_distances(sgm_graph *g, sgm_value x, sgm_value vectors)
{
    const int32_t axis = 1;
    sgm_value own = sgm_reduce_sum(g, sgm_square(g, x), &axis, 1, true);
    sgm_value others = sgm_transpose(g, sgm_reduce_sum(g, sgm_square(g, vectors), &axis, 1, true));
    sgm_value products = sgm_multiply(g, sgm_number(g, 2), sgm_matmul(g, x, sgm_transpose(g, vectors)));
    return sgm_maximum(g, sgm_subtract(g, sgm_add(g, own, others), products), sgm_number(g, 0));
}

/* How near each example is to each vector: (examples, vectors). kernel_params are gamma, an offset, a degree.
 */
static sgm_value near(sgm__onnx_node *n, sgm_value x, sgm_value vectors)
{
    sgm_graph *g = n->graph;
    double given[3] = {0};
    size_t count = count_floats(n, "kernel_params");
    for (size_t i = 0; i < 3 && count == 3; i++)
        given[i] = float_at(n, "kernel_params", (int64_t)i);
    if (sgm__onnx_text_is(n, "kernel_type", "LINEAR", "LINEAR"))
        return sgm_matmul(g, x, sgm_transpose(g, vectors));
    if (count != 3)
        return sgm__onnx_unsupported(n, "it has %zu 'kernel_params': three are expected", count);
    sgm_value gamma = sgm_number(g, given[0]);
    if (sgm__onnx_text_is(n, "kernel_type", "LINEAR", "RBF"))
        return sgm_exp(g, sgm_negate(g, sgm_multiply(g, gamma, squared_distances(g, x, vectors))));
    sgm_value product = sgm_multiply(g, gamma, sgm_matmul(g, x, sgm_transpose(g, vectors)));
    product = sgm_add(g, product, sgm_number(g, given[1]));
    if (sgm__onnx_text_is(n, "kernel_type", "LINEAR", "POLY"))
        return sgm_power(g, product, sgm_number(g, given[2]));
    if (sgm__onnx_text_is(n, "kernel_type", "LINEAR", "SIGMOID"))
        return sgm_tanh(g, product);
    return sgm__onnx_unsupported(n, "'kernel_type' is none of LINEAR, POLY, RBF and SIGMOID");
}

/* A list of floats as a matrix of so many rows, which each have a number for each feature of x. */
static sgm_value rows_of(sgm__onnx_node *n, const char *name, int64_t rows, sgm_value x)
{
    size_t count;
    int64_t features = sgm__onnx_type(n, x).shape.dims[1];
    sgm_value list = sgm__onnx_ml_floats(n, name, SGM_FLOAT64, &count);
    if (rows < 1 || features < 1 || (int64_t)count / rows != features || (int64_t)count % rows != 0)
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "%zu '%s' for %lld rows of %lld features", count,
                              name, (long long)rows, (long long)features);
    return sgm_reshape(n->graph, list, SGM__ONNX_SHAPE(rows, features));
}

/* --- numbers --- */

/* Without support vectors the coefficients are those of a linear model. */
sgm_value sgm__onnx_ml_svm_regressor(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    size_t count;
    int64_t vectors = sgm__onnx_integer(n, "n_supports", 0);
    sgm_value x = sgm_cast(g, sgm__onnx_ml_features(n), SGM_FLOAT64), y;
    bool tells_outliers = sgm__onnx_integer(n, "one_class", 0) != 0;
    if (g->status != SGM_OK || sgm__onnx_integer(n, "n_targets", 1) != 1 || count_floats(n, "rho") != 1 ||
        !sgm__onnx_text_is(n, "post_transform", "NONE", "NONE"))
        return sgm__onnx_unsupported(n, "it has other than one target, one 'rho' and no 'post_transform'");
    sgm__onnx_text_is(n, "kernel_type", "LINEAR", "LINEAR");
    count_floats(n, "kernel_params");
    count_floats(n, "support_vectors");
    if (vectors > 0) {
        sgm_value coefficients = sgm__onnx_ml_floats(n, "coefficients", SGM_FLOAT64, &count);
        if ((int64_t)count != vectors)
            return sgm_graph_fail(g, SGM_ERROR_SHAPE, "%zu coefficients for %lld support vectors", count,
                                  (long long)vectors);
        y = sgm_matmul(g, near(n, x, rows_of(n, "support_vectors", vectors, x)),
                       sgm_reshape(g, coefficients, SGM__ONNX_SHAPE(vectors, 1)));
    } else {
        y = sgm_matmul(g, x, sgm_transpose(g, rows_of(n, "coefficients", 1, x)));
    }
    y = sgm_add(g, y, sgm_number(g, float_at(n, "rho", 0)));
    if (tells_outliers)
        y = sgm_subtract(
            g,
            sgm_multiply(g, sgm_number(g, 2), sgm_cast(g, sgm_greater(g, y, sgm_number(g, 0)), SGM_FLOAT64)),
            sgm_number(g, 1));
    return sgm_cast(g, y, SGM_FLOAT32);
}

/* --- classes --- */

/* The classes of a classifier, their pairs, and its support vectors. */
typedef struct machine {
    int64_t classes, pairs, vectors;
    const Onnx__AttributeProto *counts; /* of support vectors, by class */
} machine;

/* Fails where the lists of the node do not fit each other. */
static bool read_machine(sgm__onnx_node *n, machine *m)
{
    m->classes = sgm__onnx_ml_class_count(n, "classlabels_ints");
    m->counts = sgm__onnx_attribute(n, "vectors_per_class");
    m->pairs = m->classes * (m->classes - 1) / 2;
    bool fits = m->classes > 1 && m->classes <= MAXIMUM_CLASSES;
    for (size_t i = 0; fits && m->counts != NULL && i < m->counts->n_ints; i++) {
        fits = m->counts->ints[i] >= 0 && m->counts->ints[i] <= INT32_MAX;
        m->vectors += m->counts->ints[i];
    }
    if (!fits)
        sgm__onnx_unsupported(
            n, "it has %lld classes, where 2 to %d are supported, or a wrong number of vectors",
            (long long)m->classes, MAXIMUM_CLASSES);
    if (!fits || m->counts == NULL || m->vectors == 0)
        return fits;
    size_t probabilities = count_floats(n, "prob_a");
    fits = (int64_t)m->counts->n_ints == m->classes && m->vectors <= MAXIMUM_COEFFICIENTS / m->pairs &&
           (int64_t)count_floats(n, "coefficients") == (m->classes - 1) * m->vectors &&
           (int64_t)count_floats(n, "rho") == m->pairs && count_floats(n, "prob_b") == probabilities &&
           (probabilities == 0 || (int64_t)probabilities == m->pairs);
    if (!fits)
        sgm_graph_fail(
            n->graph, SGM_ERROR_SHAPE,
            "its lists do not fit %lld classes and %lld support vectors, or there are more than %lld "
            "coefficients for all pairs of classes",
            (long long)m->classes, (long long)m->vectors, (long long)MAXIMUM_COEFFICIENTS);
    return fits;
}

/* Sets a column, that of a pair, to the coefficients of the support vectors of one of its classes against the
 * other one, which stand in row `row` of the file's. */
static void put_coefficients(const sgm__onnx_node *n, const machine *m, double *matrix, int64_t pair,
                             int64_t class, int64_t row)
{
    int64_t first = 0;
    for (int64_t i = 0; i < class; i++)
        first += m->counts->ints[i];
    for (int64_t s = first; s < first + m->counts->ints[class]; s++)
        matrix[s * m->pairs + pair] = float_at(n, "coefficients", row * m->vectors + s);
}

/* Of each pair of classes (examples, pairs): above 0 for the first one. */
static sgm_value decisions(sgm__onnx_node *n, const machine *m, sgm_value x)
{
    size_t count;
    int64_t pair = 0;
    sgm_tensor *matrix = sgm_tensor_create(SGM_FLOAT64, SGM__ONNX_SHAPE(m->vectors, m->pairs));
    for (int64_t i = 0; matrix != NULL && i < m->classes; i++)
        for (int64_t j = i + 1; j < m->classes; j++, pair++) {
            put_coefficients(n, m, sgm_tensor_data(matrix), pair, i, j - 1);
            put_coefficients(n, m, sgm_tensor_data(matrix), pair, j, i);
        }
    sgm_value coefficients = sgm__onnx_constant(n->graph, matrix);
    sgm_value similar = near(n, x, rows_of(n, "support_vectors", m->vectors, x));
    return sgm_add(n->graph, sgm_matmul(n->graph, similar, coefficients),
                   sgm__onnx_ml_floats(n, "rho", SGM_FLOAT64, &count));
}

/* How many pairs each class wins: a pair's first class adds what it wins, its second what the first does not.
 */
static sgm_value votes(sgm__onnx_node *n, const machine *m, sgm_value made)
{
    sgm_graph *g = n->graph;
    int64_t pair = 0;
    sgm_tensor *signs = sgm_tensor_create(SGM_FLOAT64, SGM__ONNX_SHAPE(m->pairs, m->classes)),
               *lost = sgm_tensor_create(SGM_FLOAT64, SGM__ONNX_SHAPE(m->classes));
    for (int64_t i = 0; signs != NULL && lost != NULL && i < m->classes; i++) {
        ((double *)sgm_tensor_data(lost))[i] = (double)i;
        for (int64_t j = i + 1; j < m->classes; j++, pair++) {
            ((double *)sgm_tensor_data(signs))[pair * m->classes + i] = 1;
            ((double *)sgm_tensor_data(signs))[pair * m->classes + j] = -1;
        }
    }
    sgm_value constant = sgm__onnx_constant(g, lost), matrix = sgm__onnx_constant(g, signs);
    sgm_value won = sgm_cast(g, sgm_greater(g, made, sgm_number(g, 0)), SGM_FLOAT64);
    return sgm_add(g, sgm_matmul(g, won, matrix), constant);
}

/* A sigmoid of each decision (Platt, 1999), then those of all pairs together. */
static sgm_value probabilities(sgm__onnx_node *n, const machine *m, sgm_value made)
{
    sgm_graph *g = n->graph;
    size_t count;
    sgm_value slope = sgm__onnx_ml_floats(n, "prob_a", SGM_FLOAT64, &count),
              offset = sgm__onnx_ml_floats(n, "prob_b", SGM_FLOAT64, &count);
    sgm_value first = sgm_sigmoid(g, sgm_negate(g, sgm_add(g, sgm_multiply(g, made, slope), offset)));
    first = sgm_minimum(g, sgm_maximum(g, first, sgm_number(g, 1e-7)), sgm_number(g, 1 - 1e-7));
    const sgm_attributes attributes = {.integer_count = 1, .integers = {m->classes}};
    return sgm_record(g, &op_coupling, &first, 1, &attributes);
}

/* A linear model for each class, with one number for all that is added. Of two classes ONNX Runtime tells the
 * second wherever any score is above 0, ONNX's reference the one with the larger score: none is right. */
static sgm_value linear_scores(sgm__onnx_node *n, const machine *m, sgm_value x)
{
    sgm_graph *g = n->graph;
    if (count_floats(n, "rho") < 1 || m->classes == 2)
        return sgm__onnx_unsupported(
            n, "linear models of two classes, or without 'rho': LinearClassifier has them");
    sgm_value coefficients = rows_of(n, "coefficients", m->classes, x);
    return sgm_add(g, sgm_matmul(g, x, sgm_transpose(g, coefficients)), sgm_number(g, float_at(n, "rho", 0)));
}

/* The class is that of the most votes also where there are probabilities, which may say something else. */
sgm_value sgm__onnx_ml_svm_classifier(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    machine m = {0};
    sgm_value x = sgm_cast(g, sgm__onnx_ml_features(n), SGM_FLOAT64), scores, best;
    static const char *const read[] = {"coefficients", "kernel_params", "prob_a",
                                       "prob_b",       "rho",           "support_vectors"};
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        count_floats(n, read[i]);
    sgm__onnx_text_is(n, "kernel_type", "LINEAR", "LINEAR");
    if (g->status != SGM_OK || !read_machine(n, &m))
        return (sgm_value){-1};
    if (m.vectors == 0) {
        scores = best = linear_scores(n, &m, x);
    } else {
        scores = decisions(n, &m, x);
        best = votes(n, &m, scores);
        if (count_floats(n, "prob_a") > 0)
            scores = probabilities(n, &m, scores);
        else if (m.pairs == 1)
            scores = sgm_concatenate(g, (const sgm_value[]){sgm_negate(g, scores), scores}, 2, 1);
    }
    n->outputs[1] = sgm__onnx_ml_transformed(n, sgm_cast(g, scores, SGM_FLOAT32));
    return sgm__onnx_ml_classes(n, "classlabels_ints", best);
}
