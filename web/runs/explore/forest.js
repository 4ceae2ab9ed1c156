/* How much each setting matters for a result: permutation importance of a small random forest. Trees of a regression
 * (Breiman, "Random Forests", 2001) are grown on samples of the runs, drawn with replacement. Each predicts the runs
 * that were not in its sample; then one setting's values are permuted among these, and the setting's importance is by
 * how much the squared error grows, averaged over the trees, in shares of the result's variance. A setting that says
 * nothing has 0; one that alone decides has about 2, as permuted predictions vary as the result does. The draws are
 * the same each time. Settings are numbers, which are split by size, or texts, which are split in the order of their
 * mean result. */
import { uniformFrom } from '../../random.js';

const trees = 64, deepest = 8, smallest = 2, maximumBins = 32;

/* The place of each value among the different ones, at most `maximumBins` of them; null has a place of its own, the
 * first. */
function binsOf(values) {
    const isNumeric = values.every((value) => value === null || typeof value === 'number');
    const present = [...new Set(values.filter((value) => value !== null)
        .map((value) => (isNumeric ? value : String(value))))];
    present.sort(isNumeric ? (a, b) => a - b : undefined);
    const place = new Map(present.map((value, i) => [value,
        1 + Math.floor(i * Math.min(maximumBins - 1, present.length) / present.length)]));
    const bins = Uint8Array.from(values,
        (value) => (value === null ? 0 : place.get(isNumeric ? value : String(value))));
    return { bins, isNumeric };
}

/* The best split of these rows by one setting: {gain, left: which bins go left}; null: there is none. */
function splitBy({ bins, isNumeric }, y, rows) {
    const counts = new Float64Array(maximumBins), sums = new Float64Array(maximumBins);
    let total = 0;
    for (const row of rows) {
        counts[bins[row]]++;
        sums[bins[row]] += y[row];
        total += y[row];
    }
    const order = [...counts.keys()].filter((bin) => counts[bin] > 0);
    if (!isNumeric) order.sort((a, b) => sums[a] / counts[a] - sums[b] / counts[b]);
    let count = 0, sum = 0, best = null;
    for (let i = 0; i + 1 < order.length; i++) {
        count += counts[order[i]];
        sum += sums[order[i]];
        const other = rows.length - count;
        if (count < smallest || other < smallest) continue;
        const gain = sum ** 2 / count + (total - sum) ** 2 / other - total ** 2 / rows.length;
        if (best === null || gain > best.gain) best = { gain, end: i + 1 };
    }
    if (best === null || best.gain <= 1e-12) return null;
    const left = new Uint8Array(maximumBins);
    for (const bin of order.slice(0, best.end)) left[bin] = 1;
    return { gain: best.gain, left };
}

/* `random` chooses about two thirds of the settings for each split, so that trees differ; all, if that is none. */
function grow(settings, y, rows, random, depth = 0) {
    const mean = rows.reduce((sum, row) => sum + y[row], 0) / rows.length;
    if (depth >= deepest || rows.length < 2 * smallest) return { mean };
    let best = null;
    const all = [...settings.keys()], drawn = all.filter(() => random() < 2 / 3);
    for (const index of drawn.length > 0 ? drawn : all) {
        const found = splitBy(settings[index], y, rows);
        if (found && (best === null || found.gain > best.gain)) best = { ...found, index };
    }
    if (best === null) return { mean };
    const isLeft = (row) => best.left[settings[best.index].bins[row]] === 1;
    return { index: best.index, left: best.left,
        less: grow(settings, y, rows.filter(isLeft), random, depth + 1),
        more: grow(settings, y, rows.filter((row) => !isLeft(row)), random, depth + 1) };
}

/* Of a row; `binOf(index)` gives its bin of a setting. */
function predict(node, binOf) {
    while (node.mean === undefined) node = node.left[binOf(node.index)] === 1 ? node.less : node.more;
    return node.mean;
}

function shuffled(list, random) {
    const result = [...list];
    for (let i = result.length - 1; i > 0; i--) {
        const other = Math.floor(random() * (i + 1));
        [result[i], result[other]] = [result[other], result[i]];
    }
    return result;
}

/* `columns`: for each setting its values, null where a run has none; `y`: the results, all numbers. Gives {explained,
 * importance}: the share of the variance that predictions explain (of runs that a tree has not seen; below 0: none),
 * and for each setting its importance. null: too few runs (less than 8), or all results are equal. */
export function importanceOf(columns, y) {
    const n = y.length, mean = y.reduce((sum, value) => sum + value, 0) / n;
    const variance = y.reduce((sum, value) => sum + (value - mean) ** 2, 0) / n;
    if (n < 8 || !(variance > 0)) return null;
    const settings = columns.map(binsOf), random = uniformFrom(1);
    const grown = columns.map(() => 0), predicted = new Float64Array(n), times = new Float64Array(n);
    let counted = 0;
    for (let tree = 0; tree < trees; tree++) {
        const rows = Array.from({ length: n }, () => Math.floor(random() * n)), drawn = new Set(rows);
        const root = grow(settings, y, rows, random), out = [...y.keys()].filter((row) => !drawn.has(row));
        if (out.length < 2) continue;
        counted++;
        const error = (row, binOf) => (predict(root, binOf) - y[row]) ** 2;
        let plain = 0;
        for (const row of out) {
            const value = predict(root, (index) => settings[index].bins[row]);
            predicted[row] += value;
            times[row]++;
            plain += (value - y[row]) ** 2;
        }
        settings.forEach(({ bins }, index) => {
            const other = shuffled(out, random);
            const sum = out.reduce((all, row, i) => all + error(row, (at) => (at === index ? bins[other[i]]
                : settings[at].bins[row])), 0);
            grown[index] += (sum - plain) / out.length;
        });
    }
    const rest = [...y.keys()].filter((row) => times[row] > 0)
        .reduce((sum, row) => sum + (predicted[row] / times[row] - y[row]) ** 2, 0) / n;
    return { explained: 1 - rest / variance, importance: grown.map((sum) => Math.max(0, sum / counted / variance)) };
}

/* --- the direction --- */

/* Equal ones share the mean of their ranks. */
function ranks(values) {
    const order = [...values.keys()].sort((a, b) => values[a] - values[b]), result = new Array(values.length);
    for (let i = 0; i < order.length;) {
        let end = i;
        while (end < order.length && values[order[end]] === values[order[i]]) end++;
        for (let k = i; k < end; k++) result[order[k]] = (i + end - 1) / 2 + 1;
        i = end;
    }
    return result;
}

/* Spearman's rank correlation; null: one of them is the same everywhere, or not all are numbers. */
export function rankCorrelation(x, y) {
    if (x.length < 2 || [...x, ...y].some((value) => typeof value !== 'number')) return null;
    const [a, b] = [ranks(x), ranks(y)], mean = (x.length + 1) / 2;
    const dot = (p, q) => p.reduce((sum, value, i) => sum + (value - mean) * (q[i] - mean), 0);
    const spread = dot(a, a) * dot(b, b);
    return spread > 0 ? dot(a, b) / Math.sqrt(spread) : null;
}
