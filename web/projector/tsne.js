/* t-SNE (van der Maaten and Hinton 2008) with its exact gradient: a picture in which neighbours stay neighbours. */
import { normalFrom } from '../random.js';

const perplexity = 30; /* roughly how many neighbours count */
const iterations = 600;
const exaggerated = 150; /* iterations in which neighbours attract each other more, so that groups form */
const exaggeration = 12;
const chunk = 32; /* rows between two pauses */
const least = 1e-12;

/* Squared distances between all rows. */
function* distances(x, rows, columns) {
    const d = new Float64Array(rows * rows);
    for (let i = 0; i < rows; i++) {
        for (let j = 0; j < i; j++) {
            let sum = 0;
            for (let k = 0; k < columns; k++) sum += (x[i * columns + k] - x[j * columns + k]) ** 2;
            d[i * rows + j] = d[j * rows + i] = sum;
        }
        if (i % chunk === chunk - 1) yield;
    }
    return d;
}

/* Makes of a row of squared distances the shares of its neighbours: the precision whose entropy is that of
 * `neighbours` equal ones is found by bisection. */
function neighboursOf(row, own, neighbours) {
    const p = new Float64Array(row.length), wanted = Math.log(neighbours);
    let nearest = Infinity, mean = 0;
    row.forEach((value, j) => { if (j !== own) { nearest = Math.min(nearest, value); mean += value / row.length; } });
    let from = 0, to = Infinity, precision = 1 / Math.max(mean - nearest, least);
    for (let step = 0; step < 60; step++) {
        let sum = 0, weighted = 0;
        for (let j = 0; j < row.length; j++) {
            p[j] = j === own ? 0 : Math.exp(-precision * (row[j] - nearest));
            sum += p[j];
            weighted += p[j] * (row[j] - nearest);
        }
        const entropy = Math.log(sum) + precision * weighted / sum;
        for (let j = 0; j < row.length; j++) p[j] /= sum;
        if (Math.abs(entropy - wanted) < 1e-5) break;
        if (entropy > wanted) from = precision;
        else to = precision;
        precision = to === Infinity ? precision * 2 : (from + to) / 2;
    }
    return p;
}

/* How much each two rows are neighbours; the sum of all is 1. */
export function* affinities(x, rows, columns) {
    const d = yield* distances(x, rows, columns), p = new Float64Array(rows * rows);
    const neighbours = Math.max(1.01, Math.min(perplexity, (rows - 1) / 3));
    for (let i = 0; i < rows; i++) {
        p.set(neighboursOf(d.subarray(i * rows, (i + 1) * rows), i, neighbours), i * rows);
        if (i % chunk === chunk - 1) yield;
    }
    for (let i = 0; i < rows; i++)
        for (let j = 0; j < i; j++)
            p[i * rows + j] = p[j * rows + i] = Math.max((p[i * rows + j] + p[j * rows + i]) / (2 * rows), least);
    return p;
}

/* The gradient of the divergence between neighbours here (p) and there (points y, two numbers for each). */
export function* gradientOf(p, y, rows, factor, gradient, near) {
    let sum = 0;
    for (let i = 0; i < rows; i++) {
        for (let j = 0; j < i; j++) {
            const dx = y[2 * i] - y[2 * j], dy = y[2 * i + 1] - y[2 * j + 1];
            sum += 2 * (near[i * rows + j] = 1 / (1 + dx * dx + dy * dy));
        }
        if (i % chunk === chunk - 1) yield;
    }
    gradient.fill(0);
    for (let i = 0; i < rows; i++) {
        for (let j = 0; j < i; j++) {
            const q = near[i * rows + j], pull = 4 * (factor * p[i * rows + j] - q / sum) * q;
            const dx = pull * (y[2 * i] - y[2 * j]), dy = pull * (y[2 * i + 1] - y[2 * j + 1]);
            gradient[2 * i] += dx;
            gradient[2 * i + 1] += dy;
            gradient[2 * j] -= dx;
            gradient[2 * j + 1] -= dy;
        }
        if (i % chunk === chunk - 1) yield;
    }
}

/* A step of descent with momentum; a coordinate that keeps its direction gets larger steps (gains). */
function descend(y, { gradient, speed, gains }, rate, momentum) {
    for (let k = 0; k < y.length; k++) {
        const turned = gradient[k] > 0 === speed[k] > 0;
        gains[k] = Math.max(0.01, turned ? gains[k] * 0.8 : gains[k] + 0.2);
        speed[k] = momentum * speed[k] - rate * gains[k] * gradient[k];
        y[k] += speed[k];
    }
    for (let axis = 0; axis < 2; axis++) {
        let mean = 0;
        for (let k = axis; k < y.length; k += 2) mean += 2 * y[k] / y.length;
        for (let k = axis; k < y.length; k += 2) y[k] -= mean;
    }
}

/* Points in two dimensions, [x0, y0, x1, y1, ...], for `x`, row by row (rows, columns). It begins at the first two
 * columns, made small, with a little noise that is the same each time; so the columns are best principal components.
 * A generator: it yields the points so far after each iteration, and nothing where there is but a moment to pause. */
export function* tsne(x, rows, columns) {
    const next = normalFrom(2), y = new Float64Array(2 * rows);
    let size = 0;
    for (let i = 0; i < rows; i++) size += x[i * columns] ** 2 / rows;
    for (let i = 0; i < rows; i++)
        for (let axis = 0; axis < 2; axis++)
            y[2 * i + axis] = 1e-4 * ((axis < columns && size > 0 ? x[i * columns + axis] / Math.sqrt(size) : 0)
                + 0.01 * next());
    if (rows < 3) return y;
    const p = yield* affinities(x, rows, columns);
    const state = { gradient: new Float64Array(2 * rows), speed: new Float64Array(2 * rows),
        gains: new Float64Array(2 * rows).fill(1) };
    const near = new Float64Array(rows * rows), rate = Math.max(50, rows / exaggeration / 4);
    for (let iteration = 0; iteration < iterations; iteration++) {
        const early = iteration < exaggerated;
        yield* gradientOf(p, y, rows, early ? exaggeration : 1, state.gradient, near);
        descend(y, state, rate, early ? 0.5 : 0.8);
        yield y;
    }
    return y;
}
