/* CMA-ES: candidates are drawn from a normal distribution whose mean, step size and covariance follow the
 * better half of them. All formulas, names and constants are those of N. Hansen, "The CMA Evolution Strategy:
 * A Tutorial" (2016, arXiv:1604.00772), without negative weights.
 *
 * The numbers that it remembers, of n parameters: generations so far, step size sigma, the mean in double
 * (parameters may be float32), the evolution paths p_sigma and p_c, and the covariance C, n by n. For a
 * generation C is taken apart into B D^2 B' by Jacobi's method: a candidate is m + sigma B D z, with z drawn
 * again from the seed wherever it is needed. Everything is computed in one order by one thread. */
#include "base/base.h"
#include "optim/gradient_free.h"

#include <math.h>

/* The covariance is an n by n matrix of float64, and taking it apart takes n^3. */
#define MAXIMUM_PARAMETERS 400
#define MAXIMUM_SWEEPS 30

/* Parts of the numbers and of the scratch memory. */
typedef struct state {
    size_t n;
    double *generation, *sigma, *mean, *path_sigma, *path_c, *covariance;
    double *axes, *lengths, *work, *drawn; /* scratch: B column by column, D, a matrix, vectors */
} state;

/* Constants of the strategy: formulas (49) to (58) of the tutorial. */
typedef struct constants {
    int64_t parents;
    double mu_eff, c_sigma, d_sigma, c_c, c_1, c_mu, chi;
} constants;

static size_t numbers(size_t n)
{
    return 2 + 3 * n + n * n;
}

static size_t scratch(size_t n)
{
    return 2 * n * n + 4 * n;
}

static state state_of(const sgm_gradient_free_call *call)
{
    size_t n = call->count;
    double *at = call->numbers + 2;
    return (state){.n = n,
                   .generation = call->numbers,
                   .sigma = call->numbers + 1,
                   .mean = at,
                   .path_sigma = at + n,
                   .path_c = at + 2 * n,
                   .covariance = at + 3 * n,
                   .axes = call->scratch,
                   .lengths = call->scratch + n * n,
                   .work = call->scratch + n * n + n,
                   .drawn = call->scratch + 2 * n * n + n};
}

/* ln((candidates + 1) / 2) - ln(rank), before they are made to sum up to 1. */
static double raw_weight(int64_t candidates, int64_t rank)
{
    return log(((double)candidates + 1) / 2) - log((double)rank);
}

static constants constants_of(size_t count, int64_t candidates)
{
    double n = (double)count, sum = 0, squares = 0;
    constants c = {.parents = candidates / 2 > 0 ? candidates / 2 : 1};
    for (int64_t i = 1; i <= c.parents; i++) {
        double weight = raw_weight(candidates, i);
        sum += weight;
        squares += weight * weight;
    }
    c.mu_eff = squares > 0 ? sum * sum / squares : 1;
    c.c_sigma = (c.mu_eff + 2) / (n + c.mu_eff + 5);
    c.d_sigma = 1 + 2 * fmax(0, sqrt((c.mu_eff - 1) / (n + 1)) - 1) + c.c_sigma;
    c.c_c = (4 + c.mu_eff / n) / (n + 4 + 2 * c.mu_eff / n);
    c.c_1 = 2 / ((n + 1.3) * (n + 1.3) + c.mu_eff);
    c.c_mu = fmin(1 - c.c_1, 2 * (c.mu_eff - 2 + 1 / c.mu_eff) / ((n + 2) * (n + 2) + c.mu_eff));
    c.c_mu = fmax(c.c_mu, 0);
    c.chi = sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));
    return c;
}

/* --- the covariance, taken apart --- */

/* One rotation of Jacobi's method, which makes the entry (p, q) of the symmetric matrix `a` zero. */
static void rotate(double *a, double *axes, size_t n, size_t p, size_t q)
{
    double apq = a[p * n + q], theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
    double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1)), c = 1 / sqrt(t * t + 1),
           s = t * c;
    for (size_t k = 0; k < n; k++) {
        double akp = a[k * n + p], akq = a[k * n + q];
        a[k * n + p] = c * akp - s * akq;
        a[k * n + q] = s * akp + c * akq;
    }
    for (size_t k = 0; k < n; k++) {
        double apk = a[p * n + k], aqk = a[q * n + k];
        a[p * n + k] = c * apk - s * aqk;
        a[q * n + k] = s * apk + c * aqk;
        double vp = axes[p * n + k], vq = axes[q * n + k];
        axes[p * n + k] = c * vp - s * vq;
        axes[q * n + k] = s * vp + c * vq;
    }
}

/* C = B D^2 B': `axes` has the columns of B one behind the other, `lengths` D. */
static void take_apart(const state *s)
{
    size_t n = s->n;
    double *a = s->work;
    memcpy(a, s->covariance, n * n * sizeof *a);
    for (size_t i = 0; i < n * n; i++)
        s->axes[i] = i % (n + 1) == 0;
    for (int sweep = 0; sweep < MAXIMUM_SWEEPS; sweep++) {
        double off = 0, diagonal = 0;
        for (size_t p = 0; p < n; p++) {
            diagonal += a[p * n + p] * a[p * n + p];
            for (size_t q = p + 1; q < n; q++)
                off += a[p * n + q] * a[p * n + q];
        }
        if (!(off > 1e-30 * diagonal))
            break;
        for (size_t p = 0; p < n; p++)
            for (size_t q = p + 1; q < n; q++)
                if (a[p * n + q] != 0)
                    rotate(a, s->axes, n, p, q);
    }
    for (size_t i = 0; i < n; i++)
        s->lengths[i] = sqrt(fmax(a[i * n + i], 1e-300));
}

/* --- a generation --- */

/* Whether the parameter is another one than the mean that it was made of. */
static bool is_moved(const sgm_gradient_free_call *call, double mean, double parameter)
{
    return call->float32 ? (float)mean != (float)parameter : mean != parameter;
}

/* The numbers begin as zeros: generation 0. Whoever has set parameters meanwhile has set the mean. */
static void begin(const sgm_gradient_free_call *call)
{
    state s = state_of(call);
    if (*s.generation == 0) {
        *s.sigma = call->learning_rate;
        for (size_t i = 0; i < s.n * s.n; i++)
            s.covariance[i] = i % (s.n + 1) == 0;
    }
    for (size_t i = 0; i < s.n; i++)
        if (*s.generation == 0 || is_moved(call, s.mean[i], call->point[i]))
            s.mean[i] = call->point[i];
    take_apart(&s);
}

/* y = B D z */
static void stretch(const state *s, const double *z, double *y)
{
    for (size_t i = 0; i < s->n; i++)
        y[i] = 0;
    for (size_t k = 0; k < s->n; k++)
        for (size_t i = 0; i < s->n; i++)
            y[i] += s->axes[k * s->n + i] * (s->lengths[k] * z[k]);
}

static void ask(const sgm_gradient_free_call *call, int64_t candidate, double *point)
{
    state s = state_of(call);
    sgm__gradient_free_draw(call->seed, candidate, s.drawn, s.n);
    stretch(&s, s.drawn, point);
    for (size_t i = 0; i < s.n; i++)
        point[i] = s.mean[i] + *s.sigma * point[i];
}

/* The candidate of this rank, from 0: by loss, equal ones by number, losses that are no numbers last. */
static int64_t ranked(const double *losses, int64_t candidates, int64_t rank)
{
    for (int64_t k = 0; k < candidates; k++) {
        int64_t before = 0;
        for (int64_t i = 0; i < candidates; i++) {
            bool smaller = isnan(losses[k]) ? !isnan(losses[i]) : losses[i] < losses[k];
            bool equal = losses[i] == losses[k] || (isnan(losses[i]) && isnan(losses[k]));
            before += smaller || (equal && i < k);
        }
        if (before == rank)
            return k;
    }
    return 0;
}

/* The paths (31) and (45), and the step size (44); `y` and `z` are the weighted means of the parents' steps,
 * C^(-1/2) y = B z. Gives h_sigma. */
static bool follow_paths(const state *s, const constants *c, const double *y, const double *z)
{
    double norm = 0, to_sigma = sqrt(c->c_sigma * (2 - c->c_sigma) * c->mu_eff),
           to_c = sqrt(c->c_c * (2 - c->c_c) * c->mu_eff);
    for (size_t i = 0; i < s->n; i++) {
        double turned = 0;
        for (size_t k = 0; k < s->n; k++)
            turned += s->axes[k * s->n + i] * z[k];
        s->path_sigma[i] = (1 - c->c_sigma) * s->path_sigma[i] + to_sigma * turned;
        norm += s->path_sigma[i] * s->path_sigma[i];
    }
    norm = sqrt(norm);
    double faded = sqrt(1 - pow(1 - c->c_sigma, 2 * (*s->generation + 1)));
    bool h = norm / faded < (1.4 + 2 / ((double)s->n + 1)) * c->chi;
    for (size_t i = 0; i < s->n; i++)
        s->path_c[i] = (1 - c->c_c) * s->path_c[i] + (h ? to_c * y[i] : 0);
    *s->sigma *= exp(fmin(1, c->c_sigma / c->d_sigma * (norm / c->chi - 1)));
    return h;
}

/* The covariance (47): what stays, and the update of rank one. */
static void shrink_covariance(const state *s, const constants *c, bool h)
{
    double stays = 1 - c->c_1 - c->c_mu + (h ? 0 : c->c_1 * c->c_c * (2 - c->c_c));
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < s->n; k++)
            s->covariance[i * s->n + k] =
                stays * s->covariance[i * s->n + k] + c->c_1 * s->path_c[i] * s->path_c[k];
}

static void tell(const sgm_gradient_free_call *call, double loss, const double *losses)
{
    state s = state_of(call);
    constants c = constants_of(s.n, call->candidates);
    double *z = s.drawn, *mean_z = s.drawn + s.n, *mean_y = s.drawn + 2 * s.n, *y = s.work, sum = 0;
    (void)loss;
    for (int64_t rank = 0; rank < c.parents; rank++)
        sum += raw_weight(call->candidates, rank + 1);
    for (size_t i = 0; i < s.n; i++)
        mean_z[i] = mean_y[i] = 0;
    for (int64_t rank = 0; rank < c.parents; rank++) {
        double weight = raw_weight(call->candidates, rank + 1) / sum;
        sgm__gradient_free_draw(call->seed, ranked(losses, call->candidates, rank), z, s.n);
        for (size_t i = 0; i < s.n; i++)
            mean_z[i] += weight * z[i];
    }
    stretch(&s, mean_z, mean_y);
    for (size_t i = 0; i < s.n; i++)
        s.mean[i] += *s.sigma * mean_y[i];
    bool h = follow_paths(&s, &c, mean_y, mean_z);
    shrink_covariance(&s, &c, h);
    for (int64_t rank = 0; rank < c.parents; rank++) {
        double weight = c.c_mu * raw_weight(call->candidates, rank + 1) / sum;
        sgm__gradient_free_draw(call->seed, ranked(losses, call->candidates, rank), z, s.n);
        stretch(&s, z, y);
        for (size_t i = 0; i < s.n; i++)
            for (size_t k = 0; k < s.n; k++)
                s.covariance[i * s.n + k] += weight * y[i] * y[k];
    }
    *s.generation += 1;
    memcpy(call->point, s.mean, s.n * sizeof *s.mean);
}

const sgm_gradient_free_method sgm__cma_es = {.maximum = MAXIMUM_PARAMETERS,
                                              .numbers = numbers,
                                              .scratch = scratch,
                                              .begin = begin,
                                              .ask = ask,
                                              .tell = tell};
