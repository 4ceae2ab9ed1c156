/* Build function of Einsum: sums of products over axes that have letters.
 *
 * The operands are joined one after the other. Each step is one product of matrices: letters that both have
 * and that are needed later count the matrices, letters that are not needed later are summed over. Axes of an
 * ellipsis get digits as letters, from the right, and may be 1. */
#include "onnx/nodes/onnx.h"

/* A value whose axis i has the letter letters[i]; ends with a zero. */
typedef struct term {
    sgm_value value;
    char letters[3 * SGM_MAX_RANK + 1]; /* room for what is joined, which then has at most SGM_MAX_RANK */
} term;

/* Letters of a result that is joined from two terms, or of terms that come. */
typedef struct letters {
    char text[4 * SGM_MAX_RANK + 1];
    size_t count;
} letters;

static bool has(const char *text, char letter)
{
    return letter != '\0' && strchr(text, letter) != NULL;
}

static void add(letters *to, char letter)
{
    to->text[to->count++] = letter;
    to->text[to->count] = '\0';
}

/* --- the equation --- */

/* Reads letters up to a comma, an arrow or the end; an ellipsis becomes `dots` digits, the last of them 0.
 * False: there is something else, or too much of it. */
static bool read_letters(const char **at, int32_t dots, char *target, size_t room)
{
    size_t count = 0;
    for (; **at != '\0' && **at != ',' && strncmp(*at, "->", 2) != 0; ++*at) {
        bool is_letter = (**at >= 'a' && **at <= 'z') || (**at >= 'A' && **at <= 'Z');
        int32_t digits = strncmp(*at, "...", 3) == 0 ? dots : 0;
        if (**at == ' ')
            continue;
        if ((!is_letter && **at != '.') || count + (is_letter ? 1 : (size_t)digits) > room)
            return false;
        if (**at == '.' && strncmp(*at, "...", 3) != 0)
            return false;
        if (is_letter)
            target[count++] = **at;
        for (int32_t i = digits; i-- > 0;)
            target[count++] = (char)('0' + i);
        *at += is_letter ? 0 : 2;
    }
    target[count] = '\0';
    return true;
}

/* How many axes the ellipsis of a term stands for: those that have no letter. */
static int32_t count_dots(const char *at, int32_t rank)
{
    int32_t named = 0;
    for (; *at != '\0' && *at != ',' && strncmp(at, "->", 2) != 0; at++)
        named += *at != '.' && *at != ' ';
    return rank > named ? rank - named : 0;
}

/* Without an arrow the result has the digits, then all letters that occur once, in the order of the alphabet.
 */
static void imply_result(const char *all, char *result)
{
    size_t count = 0;
    for (char letter = '0' + SGM_MAX_RANK; letter-- > '0';)
        if (has(all, letter))
            result[count++] = letter;
    for (char letter = 'A'; letter <= 'z' && count < SGM_MAX_RANK; letter++)
        if (has(all, letter) && strchr(all, letter) == strrchr(all, letter))
            result[count++] = letter;
    result[count] = '\0';
}

/* --- one term --- */

/* Takes the entries where two axes with one letter agree: the others become 0 and are summed away. */
static void take_diagonal(sgm_graph *g, term *t)
{
    for (int32_t i = 0; t->letters[i] != '\0'; i++)
        for (int32_t k = i + 1; t->letters[k] != '\0'; k++) {
            if (t->letters[i] != t->letters[k])
                continue;
            sgm_shape shape = sgm_value_type(g, t->value).shape;
            sgm_value equal =
                sgm_equal(g, sgm_iota(g, SGM_INT64, &shape, i), sgm_iota(g, SGM_INT64, &shape, k));
            sgm_value kept = sgm_select(g, equal, t->value, sgm_filled_like(g, t->value, 0));
            t->value = sgm_reduce_sum(g, kept, &k, 1, false);
            memmove(t->letters + k, t->letters + k + 1, strlen(t->letters + k));
            k--;
        }
}

/* Sums over the axes whose letters nobody else needs. */
static void sum_unneeded(sgm_graph *g, term *t, const char *needed)
{
    for (int32_t i = 0; t->letters[i] != '\0';)
        if (has(needed, t->letters[i])) {
            i++;
        } else {
            t->value = sgm_reduce_sum(g, t->value, &i, 1, false);
            memmove(t->letters + i, t->letters + i + 1, strlen(t->letters + i));
        }
}

/* The axes of the term in this order of letters; one that it has not becomes an axis of 1. */
static sgm_value arrange(sgm_graph *g, const term *t, const char *order)
{
    int32_t axes[SGM_MAX_RANK], count = 0;
    sgm_shape old = sgm_value_type(g, t->value).shape, shape = {0};
    for (const char *at = order; *at != '\0'; at++) {
        const char *place = strchr(t->letters, *at);
        if (place != NULL)
            axes[count++] = (int32_t)(place - t->letters);
        shape.dims[shape.rank++] = place != NULL ? old.dims[place - t->letters] : 1;
    }
    return sgm_reshape(g, sgm_permute(g, t->value, axes), &shape);
}

/* --- two terms --- */

/* (counting..., rows, columns) of a term: the product of the dimensions of each group of letters. */
static sgm_value as_matrices(sgm_graph *g, const term *t, const letters *counting, const letters *rows,
                             const letters *columns)
{
    char order[3 * sizeof counting->text];
    snprintf(order, sizeof order, "%s%s%s", counting->text, rows->text, columns->text);
    sgm_value x = arrange(g, t, order);
    sgm_shape all = sgm_value_type(g, x).shape, shape = {.rank = (int32_t)counting->count + 2};
    for (size_t i = 0; i < counting->count; i++)
        shape.dims[i] = all.dims[i];
    int64_t *sizes = shape.dims + counting->count;
    sizes[0] = sizes[1] = 1;
    for (size_t i = 0; i < rows->count + columns->count; i++) {
        int64_t *size = &sizes[i >= rows->count];
        *size = sgm__onnx_times(*size, all.dims[counting->count + i]);
    }
    return sgm_reshape(g, x, &shape);
}

static int64_t size_of(sgm_graph *g, const term *t, char letter)
{
    return sgm_value_type(g, t->value).shape.dims[strchr(t->letters, letter) - t->letters];
}

/* Sorts the letters of both terms by what becomes of them. */
static void sort_letters(const term *a, const term *b, const char *needed, letters *counting, letters *left,
                         letters *right, letters *summed)
{
    for (const char *at = a->letters; *at != '\0'; at++)
        add(!has(b->letters, *at) ? left : has(needed, *at) ? counting : summed, *at);
    for (const char *at = b->letters; *at != '\0'; at++)
        if (!has(a->letters, *at))
            add(right, *at);
}

/* a becomes the product of a and b. Axes of 1 of an ellipsis are broadcast as matrices are counted. */
static bool join(sgm__onnx_node *n, term *a, const term *b, const char *needed)
{
    sgm_graph *g = n->graph;
    letters counting = {.count = 0}, left = {.count = 0}, right = {.count = 0}, summed = {.count = 0};
    sort_letters(a, b, needed, &counting, &left, &right, &summed);
    size_t rank = counting.count + left.count + right.count;
    if (rank > SGM_MAX_RANK || counting.count + 2 > SGM_MAX_RANK) {
        sgm__onnx_unsupported(n, "a product of %zu axes; at most %d are supported", rank, SGM_MAX_RANK);
        return false;
    }
    for (const char *at = summed.text; *at != '\0'; at++)
        if (size_of(g, a, *at) != size_of(g, b, *at)) {
            sgm_graph_fail(g, SGM_ERROR_SHAPE, "axis '%c' has %lld and %lld entries", *at,
                           (long long)size_of(g, a, *at), (long long)size_of(g, b, *at));
            return false;
        }
    sgm_value y = sgm_matmul(g, as_matrices(g, a, &counting, &left, &summed),
                             as_matrices(g, b, &counting, &summed, &right));
    sgm_shape shape = sgm_value_type(g, y).shape;
    shape.rank = (int32_t)counting.count;
    for (const char *at = left.text; *at != '\0'; at++)
        shape.dims[shape.rank++] = size_of(g, a, *at);
    for (const char *at = right.text; *at != '\0'; at++)
        shape.dims[shape.rank++] = size_of(g, b, *at);
    for (int32_t i = shape.rank; i < SGM_MAX_RANK; i++)
        shape.dims[i] = 0;
    a->value = sgm_reshape(g, y, &shape);
    snprintf(a->letters, sizeof a->letters, "%.8s%.8s%.8s", counting.text, left.text, right.text);
    return g->status == SGM_OK;
}

/* --- the node --- */

#define MAXIMUM_TERMS 16

static void append(char *text, size_t size, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", more);
}

/* Reads the terms of the equation and the letters of the result. False: the equation does not fit the inputs.
 */
static bool read_equation(const sgm__onnx_node *n, const char *equation, term *terms, char *result)
{
    char all[MAXIMUM_TERMS * SGM_MAX_RANK + 1] = "";
    const char *at = equation;
    int32_t most = 0;
    for (int32_t i = 0; i < n->input_count; i++) {
        int32_t rank = sgm__onnx_type(n, n->inputs[i]).shape.rank, dots = count_dots(at, rank);
        terms[i].value = n->inputs[i];
        most = dots > most ? dots : most;
        if (!read_letters(&at, dots, terms[i].letters, SGM_MAX_RANK) ||
            strlen(terms[i].letters) != (size_t)rank || (*at == ',') != (i + 1 < n->input_count))
            return false;
        append(all, sizeof all, terms[i].letters);
        at += *at == ',';
    }
    if (*at == '\0') {
        imply_result(all, result);
        return true;
    }
    at += 2;
    if (!read_letters(&at, most, result, SGM_MAX_RANK) || *at != '\0')
        return false;
    for (const char *letter = result; *letter != '\0'; letter++)
        if (!has(all, *letter) || strchr(letter + 1, *letter) != NULL)
            return false;
    return true;
}

sgm_value sgm__onnx_einsum(sgm__onnx_node *n)
{
    term terms[MAXIMUM_TERMS] = {0};
    char equation[256], result[SGM_MAX_RANK + 1];
    const Onnx__AttributeProto *given = sgm__onnx_attribute(n, "equation");
    if (given == NULL || given->s.len == 0 || given->s.len >= sizeof equation ||
        n->input_count > MAXIMUM_TERMS)
        return sgm__onnx_unsupported(n, "an 'equation' of 1 to 255 letters and %d operands", MAXIMUM_TERMS);
    memcpy(equation, given->s.data, given->s.len);
    equation[given->s.len] = '\0';
    for (int32_t i = 0; i < n->input_count; i++)
        if (!sgm_value_exists(n->inputs[i]))
            return sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "operand %d is missing", i);
    if (!read_equation(n, equation, terms, result))
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "the equation '%.100s' does not fit the operands",
                              equation);
    for (int32_t i = 0; i < n->input_count; i++)
        take_diagonal(n->graph, &terms[i]);
    for (int32_t i = 0; i < n->input_count; i++) {
        char needed[(MAXIMUM_TERMS + 1) * SGM_MAX_RANK + 1];
        snprintf(needed, sizeof needed, "%s", result);
        for (int32_t k = i + 1; k < n->input_count; k++)
            append(needed, sizeof needed, terms[k].letters);
        if (i == 0) {
            sum_unneeded(n->graph, &terms[0], needed);
            continue;
        }
        char others[sizeof needed + sizeof terms[0].letters];
        snprintf(others, sizeof others, "%s%s", terms[0].letters, needed);
        sum_unneeded(n->graph, &terms[i], others);
        if (!join(n, &terms[0], &terms[i], needed))
            return (sgm_value){-1};
        sum_unneeded(n->graph, &terms[0], needed);
    }
    return arrange(n->graph, &terms[0], result);
}
