/* The loops of the C writer: to_c copies the functions that a model needs, with its name in place of "model" and the
 * type of its numbers in place of T. This file compiles on its own, with -DT=double and the like; see tests/io/test_c.py.
 *
 * Matrices are stored row by row. m is the number of vectors, d of features, q of values, s of scores, n of classes. */
#include <math.h>
#include <stdint.h>

#ifndef T
#define T double
#define EXP exp
#define LOG log
#define FABS fabs
#define SQRT sqrt
#define ERF erf
#define ERFC erfc
#endif

static T model_within(T value, T limit)
{
    /* NaN stays NaN */
    return value > limit ? limit : value < -limit ? -limit : value;
}

static T model_fill(T value, T missing)
{
    /* only NaN differs from itself */
    return value == value ? value : missing;
}

static void model_look_up(T value, const T *keys, int n, const T *rows, const T *unknown, int d, T *u)
{
    const T *row = unknown;
    for (int i = 0; i < n; i++) {
        if (value == keys[i]) {
            row = rows + i * d;
        }
    }
    for (int i = 0; i < d; i++) {
        u[i] = row[i];
    }
}

static int model_find(const char *text, const char *const *texts, int n)
{
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (text[k] != 0 && text[k] == texts[i][k]) {
            k++;
        }
        if (text[k] == texts[i][k]) {
            return i;
        }
    }
    return -1;
}

static void model_scale(const T *x, const T *shift, const T *factor, int d, T *z)
{
    for (int i = 0; i < d; i++) {
        z[i] = (x[i] - shift[i]) * factor[i];
    }
}

static void model_rotate(const T *x, const T *shift, const T *factor, const T *bound, int d, T *y, T *z)
{
    for (int i = 0; i < d; i++) {
        y[i] = model_within(x[i] - shift[i], bound[i]);
    }
    for (int i = 0; i < d; i++) {
        z[i] = 0;
        for (int k = 0; k < d; k++) {
            z[i] += factor[i * d + k] * y[k];
        }
    }
}

static void model_clip(T *z, T limit, int d)
{
    for (int i = 0; i < d; i++) {
        z[i] = model_within(z[i], limit);
    }
}

static T model_bend(T x, const T *knots, const T *values, int n)
{
    /* linear between the knots, constant beyond them; NaN stays NaN */
    int k = 0;
    if (!(x > knots[0])) {
        return x == x ? values[0] : x;
    }
    while (k < n && x >= knots[k]) {
        k++;
    }
    if (k == n) {
        return values[n - 1];
    }
    return values[k - 1] + (values[k] - values[k - 1]) * ((x - knots[k - 1]) / (knots[k] - knots[k - 1]));
}

static void model_prepare(const T *x, const int *places, const T *knots, const T *values, const T *gaps, int d, T *t)
{
    /* of every feature: how many knots it has, and where they and their values begin; gaps are the values of NaN */
    for (int i = 0; i < d; i++) {
        t[i] = gaps && x[i] != x[i] ? gaps[i] : model_bend(x[i], knots + places[3 * i + 1], values + places[3 * i + 2], places[3 * i]);
    }
}

static void model_turn(const T *t, const T *factor, const T *directions, int d, int d_metric, T *z)
{
    /* prepared features in the metric: each times its factor, then products with the directions */
    for (int i = 0; i < d; i++) {
        z[i] = t[i] * factor[i];
    }
    for (int k = d; k < d_metric; k++) {
        z[k] = 0;
        for (int i = 0; i < d; i++) {
            z[k] += t[i] * directions[(k - d) * d + i];
        }
    }
}

static T model_gaussian(const T *z, const T *v, int d)
{
    T sum = 0;
    for (int i = 0; i < d; i++) {
        const T gap = z[i] - v[i];
        sum += gap * gap;
    }
    return EXP(-sum);
}

static T model_own_gaussian(const T *z, const T *v, int d, T narrow)
{
    T sum = 0;
    for (int i = 0; i < d; i++) {
        const T gap = z[i] - v[i];
        sum += gap * gap;
    }
    return EXP(-narrow * sum);
}

static T model_laplacian(const T *z, const T *v, int d)
{
    T sum = 0;
    for (int i = 0; i < d; i++) {
        sum += FABS(z[i] - v[i]);
    }
    return EXP(-sum);
}

static T model_polynomial(const T *z, const T *v, int d, T constant, int degree)
{
    T base = constant, power;
    for (int i = 0; i < d; i++) {
        base += z[i] * v[i];
    }
    power = base;
    for (int p = 1; p < degree; p++) {
        power *= base;
    }
    return power;
}

static T model_spline(const T *z, const T *v, int d)
{
    T product = 1;
    for (int i = 0; i < d; i++) {
        const T a = z[i], b = v[i], ab = a * b;
        const T low = a < b ? (a > 0 ? a : 0) : (b > 0 ? b : 0);
        product *= 1 + ab + low * (ab - low * ((a + b) / 2 - low / 3));
    }
    return product;
}

static void model_start(const T *offset, int q, T *out)
{
    for (int o = 0; o < q; o++) {
        out[o] = offset[o];
    }
}

static void model_add(T k, const T *coef, int q, T *out)
{
    for (int o = 0; o < q; o++) {
        out[o] += k * coef[o];
    }
}

static void model_linear(const T *z, const T *vectors, int q, int d, T *out)
{
    for (int o = 0; o < q; o++) {
        for (int i = 0; i < d; i++) {
            out[o] += z[i] * vectors[o * d + i];
        }
    }
}

static T model_log_sum(const T *z, const T *vectors, const T *level, const T *narrow, int m, int d, T lowest)
{
    /* One pass: the largest exponent so far stays outside of the sum. NaN in z propagates to the result. */
    T top = 0, total = 0;
    for (int j = 0; j < m; j++) {
        T e = 0;
        for (int i = 0; i < d; i++) {
            const T gap = z[i] - vectors[j * d + i];
            e -= gap * gap;
        }
        e *= narrow[j];
        e = (e < lowest ? lowest : e) + level[j];
        if (j == 0) {
            top = e;
            total = 1;
        } else if (e > top) {
            total = total * EXP(top - e) + 1;
            top = e;
        } else {
            total += EXP(e - top);
        }
    }
    return top + LOG(total);
}

static int model_largest(const T *scores, int n)
{
    int best = 0;
    for (int c = 1; c < n; c++) {
        if (scores[c] > scores[best]) {
            best = c;
        }
    }
    return best;
}

static void model_two(T *out, T slope, T level)
{
    /* one score s stands for (t - s, t + s) / 2 with t = slope * s + level */
    const T score = out[0], whole = slope * score + level;
    out[0] = (whole - score) / 2;
    out[1] = (whole + score) / 2;
}

static void model_softmax(T *out, int n, T factor)
{
    /* relative to the largest score, so that no exponential overflows */
    T top = out[0], total = 0;
    for (int c = 1; c < n; c++) {
        top = out[c] > top ? out[c] : top;
    }
    for (int c = 0; c < n; c++) {
        out[c] = EXP(factor * (out[c] - top));
        total += out[c];
    }
    for (int c = 0; c < n; c++) {
        out[c] /= total;
    }
}

static void model_shares(T *out, int n)
{
    T total = 0;
    for (int c = 0; c < n; c++) {
        out[c] = out[c] < 0 ? 0 : out[c];
        total += out[c];
    }
    for (int c = 0; c < n; c++) {
        out[c] /= total;
    }
}

static void model_line_integrals(T a, T c, T g, T end, const T *nodes, T *out)
{
    /* Of exp(-(a t t + 2 c t + g) / 2) and t times that from 0 to 1; end is a + 2 c + g. */
    const T root = SQRT(a), half = SQRT((T)0.5), low = c / root * half, high = (c / root + root) * half;
    if (a < (T)0.1) {
        /* differences would cancel: eight nodes, and behind them their weights */
        out[0] = out[1] = 0;
        for (int i = 0; i < 8; i++) {
            const T t = nodes[i], value = nodes[8 + i] * EXP(-((a * t + 2 * c) * t + g) / 2);
            out[0] += value;
            out[1] += t * value;
        }
    } else {
        const T off = g / 2 - low * low;
        const T part = low > 0 ? ERFC(low) - ERFC(high) : high < 0 ? ERFC(-high) - ERFC(-low) : ERF(high) - ERF(low);
        out[0] = part * EXP(off > 0 ? -off : 0) * (T)1.2533141373155003 / root;
        out[1] = (EXP(-g / 2) - EXP(-end / 2) - c * out[0]) / a;
    }
}

static void model_along(const T *z, const T *start, const T *vectors, const T *coef, const T *narrow, const T *nodes,
                        int m, int d, int q, T *pull)
{
    /* the mean slopes of all values on the straight way from start to z */
    for (int i = 0; i < d * q; i++) {
        pull[i] = 0;
    }
    for (int j = 0; j < m; j++) {
        const T *const v = vectors + j * d;
        const T two = narrow ? 2 * narrow[j] : 2;
        T a = 0, c = 0, g = 0, end = 0, integrals[2];
        for (int i = 0; i < d; i++) {
            const T way = z[i] - start[i], before = start[i] - v[i], after = z[i] - v[i];
            a += two * way * way;
            c += two * way * before;
            g += two * before * before;
            end += two * after * after;
        }
        model_line_integrals(a, c, g, end, nodes, integrals);
        for (int i = 0; i < d; i++) {
            const T slope = two * (integrals[1] * (z[i] - start[i]) + integrals[0] * (start[i] - v[i]));
            for (int o = 0; o < q; o++) {
                pull[o * d + i] -= coef[j * q + o] * slope;
            }
        }
    }
}

static void model_share(const T *t, const T *center, const T *pull, const T *slopes, const T *factor,
                        const T *directions, const int *columns, T weight, int d, int d_metric, int q, T *out)
{
    /* the way along every feature times its slope, which comes through the metric */
    for (int i = 0; i < d; i++) {
        for (int o = 0; o < q; o++) {
            T slope = (slopes ? slopes[o * d + i] : 0) + (factor ? factor[i] : 1) * pull[o * d_metric + i];
            for (int k = d; k < d_metric; k++) {
                slope += directions[(k - d) * d + i] * pull[o * d_metric + k];
            }
            out[columns[i] * q + o] += weight * (t[i] - center[i]) * slope;
        }
    }
}

static void model_absorb(T *triangle, T *cross, int n, int q, T *row, T *y, int first)
{
    /* One more row of least squares, by rotations: it is zero afterwards. The entries before the first are zero. */
    for (int i = first; i < n; i++) {
        T *const r = triangle + i * n - i * (i - 1) / 2 - i;
        const T a = row[i], h = SQRT(r[i] * r[i] + a * a);
        if (a != 0) {
            /* less = 1 - c without cancellation: c is close to one after many rows */
            const T s = a / h, less = s * s / (1 + r[i] / h);
            for (int k = i; k < n; k++) {
                const T old = r[k];
                r[k] += s * row[k] - less * old;
                row[k] -= s * old + less * row[k];
            }
            for (int o = 0; o < q; o++) {
                const T old = cross[i * q + o];
                cross[i * q + o] += s * y[o] - less * old;
                y[o] -= s * old + less * y[o];
            }
        }
    }
}

static void model_solve(const T *triangle, const T *cross, const T *first, int n, int q, T *coef)
{
    /* first, and what the triangle adds to it */
    for (int i = n - 1; i >= 0; i--) {
        const T *const r = triangle + i * n - i * (i - 1) / 2 - i;
        for (int o = 0; o < q; o++) {
            T rest = cross[i * q + o];
            for (int k = i + 1; k < n; k++) {
                rest -= r[k] * coef[k * q + o];
            }
            coef[i * q + o] = rest / r[i];
        }
    }
    for (int i = 0; i < n * q; i++) {
        coef[i] += first[i];
    }
}

static int model_learn(T *state, T *coef, int n, int q, T *row, T *y, T error, T forgetting, T ridge)
{
    /* State: weight and sum of the errors, whose turn the ridge is, the weight up to the first coefficients, the
     * triangle by rows, its products with targets, the first coefficients. Targets are relative to these: what is left
     * is small, and so are the errors of rounding. */
    T *const triangle = state + 4, *const cross = triangle + n * (n + 1) / 2, *const first = cross + n * q;
    T sum = error;
    for (int i = 0; i < n; i++) {
        sum += row[i];
    }
    for (int o = 0; o < q; o++) {
        sum += y[o];
    }
    if (!(sum - sum == 0) || !(forgetting > 0) || forgetting > 1) {
        return 0;
    }
    state[0] = forgetting * state[0] + 1;
    state[1] = forgetting * state[1] + error;
    if (forgetting < 1) {
        const T keep = SQRT(forgetting);
        for (int i = 0; i < n * (n + 1) / 2 + n * q; i++) {
            triangle[i] *= keep;
        }
    }
    for (int o = 0; o < q; o++) {
        for (int i = 0; i < n; i++) {
            y[o] -= row[i] * first[i * q + o];
        }
    }
    model_absorb(triangle, cross, n, q, row, y, 0);
    if (n > 1) {
        /* the ridge grows with the weight: one coefficient after the other gets the share of all */
        const int turn = (int)state[2];
        for (int i = 0; i < n; i++) {
            row[i] = 0;
        }
        for (int o = 0; o < q; o++) {
            y[o] = -ridge * first[turn * q + o];
        }
        row[turn] = ridge;
        model_absorb(triangle, cross, n, q, row, y, turn);
        state[2] = (T)(turn + 1 < n ? turn + 1 : 1);
    }
    model_solve(triangle, cross, first, n, q, coef);
    if (triangle[0] * triangle[0] > 2 * state[3]) {
        /* twice as many samples: begin anew from the present coefficients */
        state[3] = triangle[0] * triangle[0];
        for (int i = 0; i < n * q; i++) {
            cross[i] = 0;
            first[i] = coef[i];
        }
    }
    return 1;
}

static void model_join(T *state, T *coef, int n, int q, const T *other, T *row, T *y)
{
    T *const triangle = state + 4, *const cross = triangle + n * (n + 1) / 2, *const first = cross + n * q;
    const T *r = other + 4, *const c = r + n * (n + 1) / 2, *const theirs = c + n * q;
    state[0] += other[0];
    state[1] += other[1];
    for (int i = 0; i < n; i++) {
        for (int o = 0; o < q; o++) {
            y[o] = c[i * q + o];
            for (int k = i; k < n; k++) {
                y[o] += r[k - i] * (theirs[k * q + o] - first[k * q + o]);
            }
        }
        for (int k = i; k < n; k++) {
            row[k] = *r++;
        }
        model_absorb(triangle, cross, n, q, row, y, i);
    }
    model_solve(triangle, cross, first, n, q, coef);
}

/* In 16-bit fixed point (io/fixed.py); shifts of negative numbers keep their sign, as all compilers do. */

static int16_t model_rounded(float x, float shift, float factor)
{
    /* NaN is the number that is missing */
    const float y = (x - shift) * factor;
    if (y != y) {
        return -32768;
    }
    return (int16_t)(y > 32767 ? 32767 : y < -32767 ? -32767 : y < 0 ? y - 0.5f : y + 0.5f);
}

static int16_t model_bend16(int16_t x, const int16_t *knots, const int16_t *values, int n)
{
    int k = 0;
    while (k < n && x >= knots[k]) {
        k++;
    }
    if (k == 0 || k == n) {
        return values[k == 0 ? 0 : n - 1];
    } else {
        const uint32_t way = (uint32_t)((int32_t)x - knots[k - 1]), gap = (uint32_t)((int32_t)knots[k] - knots[k - 1]);
        const uint32_t rise = (uint32_t)((int32_t)values[k] - values[k - 1]);
        return (int16_t)(values[k - 1] + (int32_t)((way * rise + gap / 2) / gap));
    }
}

static void model_prepare16(const int16_t *x, const uint16_t *places, const int16_t *fill, const int16_t *knots,
                            const int16_t *values, int d, int16_t *t)
{
    /* of every feature: its input, how many knots it has, and where they and their values begin */
    for (int i = 0; i < d; i++) {
        const uint16_t *const own = places + 4 * i;
        const int16_t value = fill && x[own[0]] == -32768 ? fill[i] : x[own[0]];
        t[i] = model_bend16(value, knots + own[2], values + own[3], own[1]);
    }
}

static int32_t model_dot16(const int16_t *a, const int16_t *b, int d, int shift)
{
    int32_t sum = 0;
    for (int i = 0; i < d; i++) {
        sum += (int32_t)a[i] * b[i] >> shift;
    }
    return sum;
}

static void model_turn16(int16_t *z, const int16_t *directions, const uint8_t *shifts, int d, int d_metric, int shift)
{
    for (int k = d; k < d_metric; k++) {
        z[k] = (int16_t)(model_dot16(z, directions + (k - d) * d, d, shift) >> shifts[k - d]);
    }
}

static void model_linear16(const int16_t *z, const int16_t *slopes, int q, int d, int shift, int32_t *out)
{
    for (int o = 0; o < q; o++) {
        out[o] += model_dot16(z, slopes + o * d, d, shift);
    }
}

static uint32_t model_decay(uint32_t n, uint16_t gain, int shift, const uint16_t *powers)
{
    /* 2^-u in 1/32768, for u in 1/4096: octaves are shifts, and between the entries of the table it is linear */
    const uint32_t left = n >> shift, u = left * gain >> 15;
    if (left > 65535 || u > 65535) {
        return 0;
    } else {
        const uint16_t *const p = powers + (u >> 6 & 63);
        const uint32_t octaves = u >> 12, value = p[0] - ((uint32_t)(p[0] - p[1]) * (u & 63) >> 6);
        return (value + (((uint32_t)1 << octaves) >> 1)) >> octaves;
    }
}

static uint32_t model_gaussian16(const int16_t *z, const int16_t *v, const uint8_t *shifts, int d, uint16_t gain,
                                 int shift, const uint16_t *powers)
{
    uint32_t sum = 0;
    for (int i = 0; i < d && sum >> shift <= 65535; i++) {
        const int32_t way = (int32_t)z[i] - v[i];
        const uint32_t gap = (uint32_t)(way < 0 ? -way : way);
        sum += gap * gap >> shifts[i];
    }
    return model_decay(sum, gain, shift, powers);
}

static void model_add16(uint32_t k, const int16_t *coef, int q, int shift, int32_t *out)
{
    for (int o = 0; o < q; o++) {
        out[o] += (int32_t)k * coef[o] >> shift;
    }
}

static void model_softmax16(const int32_t *scores, int n, uint16_t gain, int shift, const uint16_t *powers,
                            uint16_t *out)
{
    /* relative to the largest score; one score s stands for 0 and s */
    const int one = n == 2 ? 1 : 0;
    uint32_t total = 0;
    int32_t top = one && scores[0] < 0 ? 0 : scores[0];
    for (int c = 1; c < n - one; c++) {
        top = scores[c] > top ? scores[c] : top;
    }
    for (int c = 0; c < n; c++) {
        const int32_t score = one ? (c == 0 ? 0 : scores[0]) : scores[c];
        out[c] = (uint16_t)model_decay((uint32_t)top - (uint32_t)score, gain, shift, powers);
        total += out[c];
    }
    for (int c = 0; c < n; c++) {
        out[c] = (uint16_t)(((uint32_t)out[c] << 15) / total);
    }
}
