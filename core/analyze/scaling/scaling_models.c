/*
 * Amdahl's law and the universal scalability law as curves.
 *
 * With c = contention and k = coherency, the latter says T(n) = T(1) (1 + c (n - 1) + k n (n - 1)) / n, which is
 *
 *   T(n) = parallel / n + serial + coherency (n - 1)      parallel = T(1) (1 - c), serial = T(1) c, coherency = T(1) k
 *
 * and without its last term is Amdahl's. It is linear in the three, so that the nearest curve without a negative term
 * is found exactly: it is the best one of those that leave some terms out and come out without a negative one. No start
 * value, no iteration, and nothing that a strange series could keep from converging. One with the last term alone has no
 * T(1), and is not taken.
 */
#include <math.h>

#include "analyze/scaling/internal.h"

enum { N_TERMS = 3 };

static void terms_at(double workers, double terms[N_TERMS])
{
    terms[0] = 1 / workers;
    terms[1] = 1;
    terms[2] = workers - 1;
}

double marey__scaling_curve_at(const struct marey__scaling_curve *curve, double workers)
{
    double terms[N_TERMS];
    terms_at(workers, terms);
    return curve->parallel_s * terms[0] + curve->serial_s * terms[1] + curve->coherency_s * terms[2];
}

double marey__scaling_curve_best(const struct marey__scaling_curve *curve)
{
    return curve->coherency_s > 0 ? fmax(sqrt(curve->parallel_s / curve->coherency_s), 1) : INFINITY;
}

/* ---- the nearest ---- */

struct data {
    const double *workers, *seconds;
    size_t n;
};

/* Normal equations of relative distances, each term scaled to length one: workers may reach far. */
struct equations {
    double products[N_TERMS][N_TERMS], targets[N_TERMS], scales[N_TERMS];
};

static struct equations equations_of(const struct data *data)
{
    struct equations e = {0};
    for (size_t i = 0; i < data->n; i++) {
        double terms[N_TERMS];
        terms_at(data->workers[i], terms);
        for (size_t a = 0; a < N_TERMS; a++) {
            terms[a] /= data->seconds[i];
            e.targets[a] += terms[a];
            for (size_t b = 0; b <= a; b++)
                e.products[a][b] += terms[a] * terms[b];
        }
    }
    for (size_t a = 0; a < N_TERMS; a++)
        e.scales[a] = e.products[a][a] > 0 ? 1 / sqrt(e.products[a][a]) : 0;
    for (size_t a = 0; a < N_TERMS; a++) {
        e.targets[a] *= e.scales[a];
        for (size_t b = 0; b <= a; b++)
            e.products[a][b] = e.products[b][a] = e.products[a][b] * e.scales[a] * e.scales[b];
    }
    return e;
}

/* Solve for the terms in `chosen` (bits) by Cholesky's way. False when they cannot be told apart or one is negative. */
static bool solve(const struct equations *e, unsigned chosen, double out[N_TERMS])
{
    size_t list[N_TERMS] = {0}, n = 0;
    double root[N_TERMS][N_TERMS] = {{0}}, half[N_TERMS] = {0};
    for (size_t a = 0; a < N_TERMS; a++) {
        out[a] = 0;
        if (chosen >> a & 1)
            list[n++] = a;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double rest = e->products[list[i]][list[j]];
            for (size_t k = 0; k < j; k++)
                rest -= root[i][k] * root[j][k];
            if (i == j && rest < 1e-12)
                return false;
            root[i][j] = i == j ? sqrt(rest) : rest / root[j][j];
        }
        half[i] = e->targets[list[i]];
        for (size_t k = 0; k < i; k++)
            half[i] -= root[i][k] * half[k];
        half[i] /= root[i][i];
    }
    for (size_t i = n; i-- > 0;) {
        double rest = half[i];
        for (size_t k = i + 1; k < n; k++)
            rest -= root[k][i] * out[list[k]] / e->scales[list[k]];
        if (rest < 0)
            return false;
        out[list[i]] = rest / root[i][i] * e->scales[list[i]];
    }
    return true;
}

static double squares(const struct data *data, const struct marey__scaling_curve *curve)
{
    double sum = 0;
    for (size_t i = 0; i < data->n; i++) {
        const double off = marey__scaling_curve_at(curve, data->workers[i]) / data->seconds[i] - 1;
        sum += off * off;
    }
    return sum;
}

struct marey__scaling_curve marey__scaling_curve_fit(const double *workers, const double *seconds,
                                                     size_t n, bool has_coherency)
{
    const struct data data = {workers, seconds, n};
    const struct equations e = equations_of(&data);
    struct marey__scaling_curve best = {0};
    double best_squares = INFINITY;
    for (unsigned chosen = 1; chosen < (has_coherency ? 8u : 4u); chosen++) {
        double terms[N_TERMS];
        if ((chosen & 3) == 0 || !solve(&e, chosen, terms))
            continue;
        const struct marey__scaling_curve curve = {terms[0], terms[1], terms[2]};
        const double its_squares = squares(&data, &curve);
        if (its_squares < best_squares) {
            best = curve;
            best_squares = its_squares;
        }
    }
    return best;
}
