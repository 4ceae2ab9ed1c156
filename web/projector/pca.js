/* Principal component analysis by subspace iteration: the directions in which examples vary most. */
import { normalFrom } from '../random.js';

const extra = 8; /* directions beside those that are wanted: with them the wanted ones are found in fewer rounds */
const exact = 64; /* with as few columns all directions are found, in one round */
const rounds = 30;
const chunk = 16; /* rows between two pauses */

/* The values of each column without their mean. */
function centred(values, rows, columns) {
    const result = new Float64Array(values.length);
    for (let k = 0; k < columns; k++) {
        let sum = 0;
        for (let i = 0; i < rows; i++) sum += values[i * columns + k];
        for (let i = 0; i < rows; i++) result[i * columns + k] = values[i * columns + k] - sum / rows;
    }
    return result;
}

function dot(a, b) {
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
    return sum;
}

/* Makes vectors orthogonal and of length 1; one that depends on those before it becomes zeros. Twice, as rounding
 * leaves a part the first time. */
function orthonormalise(vectors) {
    vectors.forEach((vector, i) => {
        const before = Math.sqrt(dot(vector, vector));
        for (let again = 0; again < 2; again++)
            for (let j = 0; j < i; j++) {
                const share = dot(vector, vectors[j]);
                for (let k = 0; k < vector.length; k++) vector[k] -= share * vectors[j][k];
            }
        const length = Math.sqrt(dot(vector, vector));
        const scale = length > 1e-10 * before ? 1 / length : 0;
        for (let k = 0; k < vector.length; k++) vector[k] *= scale;
    });
}

/* Eigenvalues of a symmetric matrix (a list of rows) by Jacobi's rotations, largest first, with a vector of each. */
export function eigen(matrix) {
    const n = matrix.length, a = matrix.map((row) => Float64Array.from(row));
    const v = a.map((_, i) => Float64Array.from({ length: n }, (__, k) => Number(i === k)));
    const size = Math.sqrt(a.reduce((sum, row) => sum + dot(row, row), 0));
    for (let sweep = 0; sweep < 60; sweep++) {
        let largest = 0;
        for (let p = 0; p < n; p++)
            for (let q = p + 1; q < n; q++) {
                largest = Math.max(largest, Math.abs(a[p][q]));
                if (Math.abs(a[p][q]) > 1e-15 * size) rotate(a, v, p, q);
            }
        if (largest <= 1e-14 * size) break;
    }
    const order = [...a.keys()].sort((i, k) => a[k][k] - a[i][i]);
    return { values: order.map((i) => a[i][i]), vectors: order.map((i) => v.map((row) => row[i])) };
}

/* Makes a[p][q] zero. */
function rotate(a, v, p, q) {
    const theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
    const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
    const c = 1 / Math.sqrt(t * t + 1), s = t * c;
    for (const row of [...a, ...v]) {
        const [x, y] = [row[p], row[q]];
        row[p] = c * x - s * y;
        row[q] = s * x + c * y;
    }
    for (let k = 0; k < a.length; k++) {
        const [x, y] = [a[p][k], a[q][k]];
        a[p][k] = c * x - s * y;
        a[q][k] = s * x + c * y;
    }
}

/* Of each row its share of each vector. */
function* products(x, rows, columns, vectors) {
    const result = vectors.map(() => new Float64Array(rows));
    for (let i = 0; i < rows; i++) {
        const row = x.subarray(i * columns, (i + 1) * columns);
        vectors.forEach((vector, j) => { result[j][i] = dot(row, vector); });
        if (i % chunk === chunk - 1) yield;
    }
    return result;
}

/* The sums of the rows, each as often as its share says. */
function* sums(x, rows, columns, shares) {
    const result = shares.map(() => new Float64Array(columns));
    for (let i = 0; i < rows; i++) {
        const row = x.subarray(i * columns, (i + 1) * columns);
        shares.forEach((share, j) => {
            const vector = result[j], factor = share[i];
            for (let k = 0; k < columns; k++) vector[k] += factor * row[k];
        });
        if (i % chunk === chunk - 1) yield;
    }
    return result;
}

/* Combinations of vectors, with a weight of each. */
function combine(vectors, weights) {
    return weights.map((all) => {
        const result = new Float64Array(vectors[0].length);
        all.forEach((weight, j) => { for (let k = 0; k < result.length; k++) result[k] += weight * vectors[j][k]; });
        return result;
    });
}

/* A direction and its opposite are as good: the largest number of it is positive. */
function orient(vector, scores) {
    let peak = 0;
    for (const value of vector) if (Math.abs(value) > Math.abs(peak)) peak = value;
    if (peak >= 0) return;
    for (let k = 0; k < vector.length; k++) vector[k] = -vector[k];
    for (let i = 0; i < scores.length; i++) scores[i] = -scores[i];
}

/* The first `count` components of `values`, row by row (rows, columns). A generator, so that a page stays responsive:
 * each yield is a moment to pause (slices.js). It returns
 *     vectors      of length 1, the direction of most variance first
 *     variances    of each, divided by rows - 1
 *     shares       of each in the variance of all
 *     scores       of each the coordinate of each row */
export function* pca(values, rows, columns, count) {
    const x = centred(values, rows, columns), wanted = Math.min(count, rows, columns);
    const among = columns <= exact ? columns : Math.min(wanted + extra, rows, columns), next = normalFrom(1);
    let vectors = Array.from({ length: among }, () => Float64Array.from({ length: columns }, next)), before = null;
    let scores, found;
    for (let round = 0; round < rounds; round++) {
        orthonormalise(vectors);
        const given = yield* products(x, rows, columns, vectors);
        found = eigen(given.map((a) => given.map((b) => dot(a, b))));
        vectors = combine(vectors, found.vectors);
        scores = combine(given, found.vectors);
        const all = Math.abs(found.values[0]) || 1;
        if (before && found.values.slice(0, wanted).every((value, i) =>
            Math.abs(value - before[i]) <= 1e-9 * all)) break;
        before = found.values;
        if (among === columns) break;
        if (round < rounds - 1) vectors = yield* sums(x, rows, columns, scores);
    }
    const whole = dot(x, x);
    vectors.forEach((vector, i) => orient(vector, scores[i]));
    return { vectors: vectors.slice(0, wanted), scores: scores.slice(0, wanted),
        variances: found.values.slice(0, wanted).map((value) => Math.max(0, value) / Math.max(1, rows - 1)),
        shares: found.values.slice(0, wanted).map((value) => (whole > 0 ? Math.max(0, value) / whole : 0)) };
}
