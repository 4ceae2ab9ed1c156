/* Curves as lines, bands and marks, on a canvas or in an SVG: a pen knows the difference (pens.js). */
import { lowerBound, smooth } from './curve.js';
import { strokes } from './pens.js';

const many = 16; /* curves: from here on lines go through minimum and maximum, without bands */
const wayOfSmooth = 4; /* times its range: from here on a curve is rough */
const fewPoints = 24; /* in the window: there is nothing to smooth */

/* Data to pixels; `area` is {x, y, w, h}. */
function scaleOf(range, start, length, logarithmic) {
    const f = logarithmic ? Math.log10 : (v) => v;
    const from = f(range[0]), k = length / (f(range[1]) - from || 1);
    return logarithmic ? (v) => (v > 0 ? start + (Math.log10(v) - from) * k : NaN) : (v) => start + (v - from) * k;
}

/* What a view shows of its curves. */
export function geometry(view, area) {
    return {
        area,
        x: scaleOf(view.xRange, area.x, area.w, view.xLog),
        y: scaleOf(view.yRange, area.y + area.h, -area.h, view.yLog),
    };
}

function bounds(pieces, [from, to]) {
    return [Math.max(0, lowerBound(pieces.x, from) - 1), Math.min(pieces.x.length, lowerBound(pieces.x, to) + 1)];
}

/* Runs without gaps: [[px, py, ...], ...]. On a logarithmic axis what is not above 0 is a gap, too. */
function runs(x, values, from, to, map) {
    const all = [];
    let run = null;
    for (let i = from; i < to; i++) {
        const px = map.x(x[i]), py = values[i] === null ? NaN : map.y(values[i]);
        if (Number.isNaN(px) || Number.isNaN(py)) run = null;
        else if (run === null) all.push(run = [px, py]);
        else run.push(px, py);
    }
    return all;
}

function zigzag(pieces, from, to, map) {
    const all = [];
    let run = null;
    for (let i = from; i < to; i++) {
        const px = map.x(pieces.x[i]), low = pieces.min[i] === null ? NaN : map.y(pieces.min[i]),
            high = pieces.max[i] === null ? NaN : map.y(pieces.max[i]);
        if (Number.isNaN(px + high)) {
            run = null;
            continue;
        }
        if (run === null) all.push(run = []);
        run.push(px, Number.isNaN(low) ? map.area.y + map.area.h : low);
        if (low !== high) run.push(px, high);
    }
    return all;
}

/* Polygons: along the maximum, back along the minimum. */
function bands(pieces, from, to, map) {
    const all = [];
    let high = [], low = [];
    const end = () => {
        if (high.length > 2) all.push([...high, ...low.reverse().flat()]);
        high = [];
        low = [];
    };
    for (let i = from; i < to; i++) {
        const px = map.x(pieces.x[i]), top = pieces.max[i] === null ? NaN : map.y(pieces.max[i]);
        if (Number.isNaN(px + top)) {
            end();
            continue;
        }
        const bottom = map.y(pieces.min[i]);
        high.push(px, top);
        low.push([px, Number.isNaN(bottom) ? map.area.y + map.area.h : bottom]);
    }
    end();
    return all;
}

/* Where a value was none, and where one lies above or below what is shown: nothing is silently left out. */
function drawMarks(pen, pieces, from, to, map, colour) {
    const { area } = map;
    for (let i = from; i < to; i++) {
        const px = map.x(pieces.x[i]);
        if (Number.isNaN(px)) continue;
        if (pieces.bad.has(pieces.x[i])) pen.cross(px, area.y + area.h - 5, colour);
        if (pieces.max[i] !== null && map.y(pieces.max[i]) < area.y - 0.5) pen.triangle(px, area.y + 1, 1, colour);
        if (pieces.min[i] !== null && map.y(pieces.min[i]) > area.y + area.h + 0.5) pen.triangle(px,
            area.y + area.h - 1, -1, colour);
    }
}

/* Does it go up and down, or where it goes? A running mean is smooth already. */
function isRough(values, from, to) {
    let way = 0, low = Infinity, high = -Infinity, before = null;
    for (let i = from; i < to; i++) {
        if (values[i] === null) continue;
        if (before !== null) way += Math.abs(values[i] - before);
        before = values[i];
        low = Math.min(low, before);
        high = Math.max(high, before);
    }
    return way > wayOfSmooth * (high - low);
}

/* As it is drawn: means of logarithms on a logarithmic axis. */
function meanOf(pieces, { smoothing, xRange, xLog, yLog }) {
    const log = (value) => (value > 0 ? Math.log(value) : NaN), same = (value) => value;
    const x = xLog ? log : same;
    return smooth(pieces, smoothing, x(xRange[1]) - x(xRange[0]),
        { x, y: yLog ? log : same, back: yLog ? Math.exp : same });
}

function drawCurve(pen, curve, view, map, crowded) {
    const pieces = curve.pieces(...view.xRange), [from, to] = bounds(pieces, view.xRange),
        colour = view.colourOf(curve), dash = strokes[curve.stroke ?? 0];
    curve.mean = null;
    if (to <= from) return;
    const smoothed = view.smoothing > 0 && to - from > fewPoints && isRough(pieces.last, from, to);
    const few = to - from < map.area.w / 12;
    if (crowded) {
        for (const run of zigzag(pieces, from, to, map)) pen.line(run, colour, 1, smoothed ? 0.25 : 0.85, dash);
    } else {
        if (view.bands && pieces.reduced) for (const polygon of bands(pieces, from, to, map)) pen.area(polygon, colour,
            smoothed ? 0.14 : 0.24);
        for (const run of runs(pieces.x, pieces.last, from, to, map)) {
            pen.line(run, colour, smoothed ? 1 : 1.5, smoothed ? 0.32 : 1, dash);
            if (few && !smoothed) for (let i = 0; i < run.length; i += 2) pen.dot(run[i], run[i + 1], 2.2, colour);
            else if (run.length === 2) pen.dot(run[0], run[1], 1.5, colour);
        }
    }
    if (smoothed) {
        const values = meanOf(pieces, view);
        curve.mean = { pieces, values };
        for (const run of runs(pieces.x, values, from, to, map)) pen.line(run, colour, crowded ? 1.25 : 2, 1, dash);
    }
    drawMarks(pen, pieces, from, to, map, colour);
}

export function drawCurves(pen, view, map) {
    const shown = view.curves.filter((curve) => curve.visible);
    for (const curve of shown) if (curve !== view.raised) drawCurve(pen, curve, view, map, shown.length > many);
    if (view.raised && shown.includes(view.raised)) drawCurve(pen, view.raised, view, map, false);
}

export function drawChanges(pen, view, map) {
    if (!view.marks) return;
    for (const change of view.changes) {
        const px = map.x(change[view.axis]);
        if (!(px >= map.area.x && px <= map.area.x + map.area.w)) continue;
        pen.dashed(px, map.area.y, px, map.area.y + map.area.h, view.colours.mark);
        pen.flag(px, map.area.y, view.colours.mark);
    }
}

/* Minimum and maximum of what can be seen: the range of the y axis. `robust` leaves out a hundredth at each end. */
export function extent(view) {
    let low = Infinity, high = -Infinity, minimum = Infinity;
    const sample = [];
    for (const curve of view.curves) {
        if (!curve.visible) continue;
        const pieces = curve.pieces(...view.xRange), [from, to] = bounds(pieces, view.xRange);
        for (let i = from; i < to; i++) {
            if (pieces.min[i] === null || pieces.max[i] === null) continue;
            low = Math.min(low, pieces.min[i]);
            high = Math.max(high, pieces.max[i]);
            if (pieces.min[i] > 0) minimum = Math.min(minimum, pieces.min[i]);
            else if (pieces.max[i] > 0) minimum = Math.min(minimum, pieces.max[i]);
            if (view.robust) sample.push(pieces.min[i], pieces.max[i]);
        }
    }
    if (view.robust && sample.length >= 40) {
        sample.sort((a, b) => a - b);
        low = sample[Math.floor(sample.length * 0.01)];
        high = sample[Math.ceil(sample.length * 0.98) - 1];
    }
    return { low, high, minimum };
}
