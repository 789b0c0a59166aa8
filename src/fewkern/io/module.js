/* The functions of the JavaScript writer: to_js writes the numbers of a model before them, as `model`, and exports
 * those that it has. Everything is a plain array of numbers; matrices are arrays of rows. */

function inputs(x) {
  /* from an array, or an object by the names of the columns, to numbers */
  const row = Array.isArray(x) || ArrayBuffer.isView(x) ? x : model.columns.map((name) => {
    if (!(name in x)) throw new RangeError(`no column ${name}; null is a missing cell`);
    return x[name];
  });
  if (row.length !== model.columns.length) {
    throw new RangeError(`expected ${model.columns.length} columns, got ${row.length}`);
  }
  return model.columns.map((name, i) => {
    const value = row[i], texts = model.inputs && model.inputs.texts[i];
    if (value === null || value === undefined) return NaN;
    if (typeof value !== "string") return +value;
    if (texts) return texts.indexOf(model.inputs.trimmed ? value.trim() : value);
    if (value.trim() === "" || value.trim().toLowerCase() === "nan") return NaN;
    if (Number.isNaN(+value)) throw new RangeError(`column ${name}: ${value} is no number`);
    return +value;
  });
}

function features(x) {
  const row = inputs(x);
  if (model.inputs === null) return row;
  return model.inputs.parts.flatMap((part) => {
    const value = row[part.column];
    const filled = part.missing !== null && Number.isNaN(value) ? part.missing : value;
    if (part.keys === undefined) return [filled];
    const place = part.keys.lastIndexOf(filled);
    return place < 0 ? part.unknown.map((one) => (one === null ? NaN : one)) : part.values[place];
  });
}

function bend(x, [knots, values]) {
  /* linear between the knots, constant beyond them; NaN stays NaN */
  if (!(x > knots[0])) return Number.isNaN(x) ? x : values[0];
  const k = knots.findIndex((knot) => x < knot);
  if (k < 0) return values[values.length - 1];
  return values[k - 1] + (values[k] - values[k - 1]) * ((x - knots[k - 1]) / (knots[k] - knots[k - 1]));
}

const dot = (a, b) => a.reduce((total, one, i) => total + one * b[i], 0);
const within = (x, limit) => (x > limit ? limit : x < -limit ? -limit : x);

function scaled(part, t) {
  if (part.factor === null) return t;
  const y = part.shift === null ? t : t.map((one, i) => one - part.shift[i]);
  if (!Array.isArray(part.factor[0])) {
    const z = y.map((one, i) => one * part.factor[i]);
    return part.directions ? z.concat(part.directions.map((direction) => dot(direction, t))) : z;
  }
  const near = y.map((one, i) => within(one, part.bound[i]));
  return part.factor.map((row) => dot(row, near));
}

const squared = (z, v) => z.reduce((total, one, i) => total + (one - v[i]) * (one - v[i]), 0);
const kernels = {
  gaussian: (z, v, part, j) => Math.exp(-(part.narrow ? part.narrow[j] : 1) * squared(z, v)),
  laplacian: (z, v) => Math.exp(-z.reduce((total, one, i) => total + Math.abs(one - v[i]), 0)),
  polynomial: (z, v, part, j) => (dot(z, v) + part.constant[j]) ** part.degree,
  spline: (z, v) =>
    z.reduce((product, a, i) => {
      const b = v[i], low = Math.max(0, Math.min(a, b));
      return product * (1 + a * b + low * (a * b - low * ((a + b) / 2 - low / 3)));
    }, 1),
};

function sum(part, u) {
  const t = part.bends ? u.map((one, i) => bend(one, part.bends[i])) : u;
  const z = scaled(part, t), out = part.offset.slice();
  if (part.coef === null) return out.map((one, o) => one + dot(part.vectors[o], z));
  part.vectors.forEach((v, j) => {
    const k = kernels[part.kind](z, v, part, j);
    part.coef[j].forEach((c, o) => (out[o] += k * c));
  });
  return part.slopes ? out.map((one, o) => one + dot(part.slopes[o], t)) : out;
}

function logSum(part, u) {
  const z = scaled(part, u).map((one) => within(one, part.limit));
  const exponents = part.vectors.map((v, j) => Math.max(-part.narrow[j] * squared(z, v), part.lowest) + part.level[j]);
  const top = exponents.reduce((a, b) => Math.max(a, b));
  return top + Math.log(exponents.reduce((total, one) => total + Math.exp(one - top), 0));
}

function values(x) {
  const u = features(x);
  return model.sums[0].kind === "log" ? model.sums.map((part) => logSum(part, u)) : sum(model.sums[0], u);
}

const logDensity = (x) => values(x)[0];

function decision(x) {
  const found = values(x), { weights, offset } = model.scores;
  const scores = weights === null ? found : weights[0].map((_, s) => dot(weights.map((row) => row[s]), found));
  return offset === null ? scores : scores.map((one, s) => one + offset[s]);
}

function classNumber(x) {
  const scores = decision(x);
  if (scores.some(Number.isNaN)) return -1;
  return scores.length === 1 ? +(scores[0] > 0) : scores.indexOf(Math.max(...scores));
}

function predictClass(x) {
  const number = classNumber(x);
  return number < 0 ? null : model.labels[number];
}

function predictProba(x) {
  let scores = decision(x);
  const { shares, factor } = model.scores;
  if (scores.length === 1) {
    const total = shares === null ? 0 : shares[0] * scores[0] + shares[1];
    scores = [(total - scores[0]) / 2, (total + scores[0]) / 2];
  }
  const top = Math.max(...scores);
  const parts = scores.map((one) => (shares === null ? Math.exp(factor * (one - top)) : Math.max(one, 0)));
  const total = parts.reduce((a, b) => a + b);
  return parts.map((one) => one / total);
}

function predictSet(x) {
  const proba = predictProba(x), top = Math.max(...proba);
  return model.labels.filter((_, c) => 1 - proba[c] <= model.set_threshold || proba[c] === top);
}

function interval(x) {
  const { lower, upper, scale, limits } = model.bounds;
  const scales = scale === null ? null : sum(scale, features(x));
  return values(x).map((value, o) => {
    const g = scales === null ? 0 : Math.min(Math.max(scales[o], limits[0][o]), limits[1][o]);
    return [value + lower[o] * Math.exp(g), value + upper[o] * Math.exp(g)];
  });
}

function novelty(x) {
  const left = sum(model.novelty, features(x)).reduce((total, z) => total - z * z, 1);
  return Math.min(Math.max(left, 0), 1);
}

const isNovel = (x) => novelty(x) > model.novelty_threshold;
