/* Student's t, computed from the incomplete beta function by its continued fraction (Lentz's method). */
#include <math.h>

#include "base/internal.h"

static double not_zero(double x)
{
    return fabs(x) < 1e-300 ? 1e-300 : x;
}

/* The continued fraction of the incomplete beta function, for x below (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), value = d;
    for (int m = 1; m <= 300; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / not_zero(1 + even * d);
        c = not_zero(1 + even / c);
        value *= c * d;
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / not_zero(1 + odd * d);
        c = not_zero(1 + odd / c);
        value *= c * d;
        if (fabs(c * d - 1) < 1e-14)
            break;
    }
    return value;
}

/* lgamma() is not thread-safe: it sets signgam. */
static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

static double beta_share(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    const double front =
        exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* The probability that |t| is below `t`. */
static double t_share(double t, double df)
{
    return 1 - beta_share(df / 2, 0.5, df / (df + t * t));
}

double marey__t_quantile(double p, double df)
{
    double low = 0, high = 1;
    while (t_share(high, df) < p && high < 1e6)
        high *= 2;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (t_share(middle, df) < p)
            low = middle;
        else
            high = middle;
    }
    return high;
}
