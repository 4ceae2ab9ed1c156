/* Where the values of a column lie on an axis, numbers by size and texts one beside the other, and colours for them. */
import { number } from '../../format.js';
import { colour } from '../../theme.js';
import { valueOf } from '../columns.js';

const widest = 30; /* positive numbers of which the largest is more than so many times the smallest: logarithmic */
const fewest = 6; /* so many different numbers are written at their places */
const maximumTexts = 24; /* further ones share the last place */

/* `share(value)`: 0 to 1, null for none; `marks`: [share, text] to be written at the axis. */
function numbers(values) {
    const low = Math.min(...values), high = Math.max(...values), log = low > 0 && high / low > widest;
    const at = log ? Math.log10 : (value) => value, from = at(low), to = at(high);
    const share = (value) => (typeof value !== 'number' ? null : to > from ? (at(value) - from) / (to - from) : 0.5);
    const valueAt = (part) => (log ? 10 ** (from + part * (to - from)) : from + part * (to - from));
    const some = [...new Set(values)].sort((a, b) => a - b);
    const marks = some.length <= fewest ? some.map((value) => [share(value), number(value, 3)])
        : [0, 0.25, 0.5, 0.75, 1].map((part) => [part, number(valueAt(part), 3)]);
    return { isNumeric: true, log, share, valueAt, marks, textAt: (part) => number(valueAt(part), 3) };
}

function texts(values) {
    const order = new Intl.Collator(undefined, { numeric: true });
    const names = [...new Set(values.map(String))].sort(order.compare).slice(0, maximumTexts);
    const place = (index) => (names.length > 1 ? index / (names.length - 1) : 0.5);
    const index = (value) => {
        const at = names.indexOf(String(value));
        return at < 0 ? names.length - 1 : at;
    };
    return { isNumeric: false, names, index, share: (value) => (value === null ? null : place(index(value))),
        marks: names.map((name, i) => [place(i), name]),
        textAt: (part) => names[Math.round(part * (names.length - 1))] ?? '' };
}

/* Of the runs' column `key`; null: no run has a value of it. */
export function scaleOf(runs, key) {
    const values = runs.map((run) => valueOf(run, key)).filter((value) => value !== null);
    if (values.length === 0) return null;
    return values.every((value) => typeof value === 'number') ? numbers(values) : texts(values);
}

const parse = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));

/* 0 to 1: from blue over grey to yellow, which those who do not see red or green tell apart, too. */
export function ramp(share) {
    const stops = [0, 1, 2].map((i) => parse(colour(`ramp-${i}`)));
    const [from, to] = share < 0.5 ? [stops[0], stops[1]] : [stops[1], stops[2]], part = (share * 2) % 1;
    const mix = share >= 1 ? stops[2] : from.map((value, i) => Math.round(value + (to[i] - value) * part));
    return `rgb(${mix.join(' ')})`;
}

/* The colour of a run by a column: numbers by the ramp, texts by the series' colours; without a value grey. */
export function colouring(scale, key) {
    if (!scale) return () => colour('series-1');
    return (run) => {
        const value = valueOf(run, key), share = scale.share(value);
        if (share === null) return colour('ink-3');
        return scale.isNumeric ? ramp(share) : colour(`series-${scale.index(value) % 8 + 1}`);
    };
}
