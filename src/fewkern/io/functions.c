/* What a user of an exported model calls. to_c copies the functions that a model has, and the comments before them to
 * the head of the file. Words in capitals become numbers, arrays, expressions and statements of the model; S is the
 * type of a sample. */

/* what to put into x[input] for a text, -1 if it is none of its categories */
int NAME_code(int input, const char *text)
{
    CASES
    return -1;
}

/* VALUES value(s) to out */
void NAME_values(const S *x, T *out)
{
    SUM(x, out);
}

/* logarithm of the density */
T NAME_log_density(const S *x)
{
    return NAME_sum0(x);
}

/* SCORES score(s) to out */
void NAME_decision(const S *x, T *out)
{
    SUM(x, out);
}

/* SCORES score(s) to out */
void NAME_moved_decision(const S *x, T *out)
{
    SUM(x, out);
    NAME_add(1, OFFSET, SCORES, out);
}

/* SCORES score(s) to out */
void NAME_weighted_decision(const S *x, T *out)
{
    T values[VALUES];
    SUM(x, values);
    NAME_start(OFFSET, SCORES, out);
    NAME_linear(values, WEIGHTS, SCORES, VALUES, out);
}

/* number of the class, 0 to LAST */
int NAME_predict(const S *x)
{
    T scores[SCORES];
    NAME_decision(x, scores);
    return BEST;
}

/* CLASSES probabilities to out */
void NAME_predict_proba(const S *x, T *out)
{
    NAME_decision(x, out);
    LINK
}

/* CLASSES probabilities to out, times 32768 */
void NAME_predict_proba16(const S *x, uint16_t *out)
{
    T scores[SCORES];
    NAME_decision(x, scores);
    NAME_softmax16(scores, CLASSES, GAIN, SHIFT, POWERS, out);
}

/* label of a class, 0 if there is no such class */
const char *NAME_class_name(int number)
{
    return number >= 0 && number < CLASSES ? NAME_classes[number] : 0;
}

/* lower and upper bound of every value, of coverage COVERAGE, to out (ENDS numbers) */
void NAME_interval(const S *x, T *out)
{
    T values[VALUES];
    SUM(x, values);
    for (int o = 0; o < VALUES; o++) {
        out[2 * o] = values[o] + LOWER[o];
        out[2 * o + 1] = values[o] + UPPER[o];
    }
}

/* lower and upper bound of every value, of coverage COVERAGE, to out (ENDS numbers) */
void NAME_scaled_interval(const S *x, T *out)
{
    T scale[VALUES], values[VALUES];
    SUM(x, values);
    SCALE(x, scale);
    for (int o = 0; o < VALUES; o++) {
        const T g = scale[o] < LEAST[o] ? LEAST[o] : scale[o] > MOST[o] ? MOST[o] : scale[o];
        out[2 * o] = values[o] + LOWER[o] * EXP(g);
        out[2 * o + 1] = values[o] + UPPER[o] * EXP(g);
    }
}

/* 1 for every class in the set of coverage COVERAGE, else 0, to out; how many there are */
int NAME_predict_set(const S *x, int *out)
{
    int count = 0;
    T proba[CLASSES], top;
    NAME_predict_proba(x, proba);
    top = proba[NAME_largest(proba, CLASSES)];
    for (int c = 0; c < CLASSES; c++) {
        out[c] = 1 - proba[c] <= THRESHOLD || proba[c] == top;
        count += out[c];
    }
    return count;
}

/* how unlike the training samples, 0 to 1 */
T NAME_novelty(const S *x)
{
    T z[COUNT], left = 1;
    FEATURES(x, z);
    for (int j = 0; j < COUNT; j++) {
        left -= z[j] * z[j];
    }
    return left < 0 ? 0 : left > 1 ? 1 : left;
}

/* 1 if the novelty is above that of all but ALARMS of usual samples, else 0 */
int NAME_is_novel(const S *x)
{
    return NAME_novelty(x) > THRESHOLD;
}

/* share of x[i] in WHAT o to out[VALUES * i + o]; with NAME_baseline they add up to the WHAT */
void NAME_explain(const S *x, T *out)
{
    PREPARE
    T pull[PULL] = {0};
    for (int i = 0; i < INPUTS * VALUES; i++) {
        out[i] = 0;
    }
    for (int k = 0; k < COUNT; k++) {
        const T *const center = CENTERS + k * FEATURES;
        SHARES
    }
}

/* mean WHAT over the COUNT points that NAME_explain compares with, to out (VALUES number(s)) */
void NAME_baseline(T *out)
{
    NAME_start(MEANS, VALUES, out);
}

/* from the coefficients as they are now */
static void NAME_learned(const S *x, T *out)
{
    T row[SIZE];
    NAME_row(x, row);
    for (int o = 0; o < VALUES; o++) {
        out[o] = 0;
    }
    for (int j = 0; j < SIZE; j++) {
        NAME_add(row[j], NAME_coef + j * VALUES, VALUES, out);
    }
}

/* learn one sample; 1, or 0 if a number is not finite and nothing was learned. forgetting: 1 for never */
int NAME_update(const S *x, const T *y, T forgetting)
{
    T row[SIZE], target[VALUES];
    T out[VALUES], error = 0;
    NAME_row(x, row);
    NAME_sum0(x, out);
    for (int o = 0; o < VALUES; o++) {
        target[o] = y[o];
        error += (y[o] - out[o]) * (y[o] - out[o]);
    }
    return NAME_learn(NAME_now, NAME_coef, SIZE, VALUES, row, target, error, forgetting, RIDGE);
}

/* learn one sample; 1, or 0 if a number is not finite and nothing was learned. forgetting: 1 for never */
int NAME_update_class(const S *x, int y, T forgetting)
{
    T row[SIZE], target[VALUES];
    if (y < 0 || y >= CLASSES) {
        return 0;
    }
    NAME_row(x, row);
    for (int o = 0; o < VALUES; o++) {
        target[o] = TARGET;
    }
    return NAME_learn(NAME_now, NAME_coef, SIZE, VALUES, row, target, NAME_predict(x) != y, forgetting, RIDGE);
}

/* mean WHAT of samples before they were learned */
T NAME_error(void)
{
    return NAME_now[0] > 0 ? NAME_now[1] / NAME_now[0] : 0;
}

/* what was learned: NAME_N_STATE numbers, for NAME_merge of another device */
const T *NAME_state(void)
{
    return NAME_now;
}

/* learn what another device with this file has learned; the rows behind the file then count once more */
void NAME_merge(const T *other)
{
    T row[SIZE], target[VALUES];
    NAME_join(NAME_now, NAME_coef, SIZE, VALUES, other, row, target);
}

/* a sample as whole numbers, to out */
void NAME_quantize(const float *x, S *out)
{
    for (int i = 0; i < INPUTS; i++) {
        out[i] = NAME_rounded(x[i], SHIFT[i], FACTOR[i]);
    }
}

/* VALUES WHAT as numbers of type float, to out */
void NAME_dequantize(const T *values, float *out)
{
    for (int o = 0; o < VALUES; o++) {
        out[o] = (float)values[o] * UNIT[o];
    }
}
