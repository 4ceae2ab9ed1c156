/* One metric of several runs, with the same strokes on the page and in files. */
import { paintHead, savePng, saveSvg } from '../chart/export.js';
import { clock, duration, moment, number, tick } from '../format.js';
import { t } from '../language.js';
import { colour } from '../theme.js';

export const colourOf = (index) => colour(`series-${index % 8 + 1}`);

/* `seconds` are those of training; `wall` is the time of day: they, behind the moment at which the run began. */
export const axes = ['epoch', 'iteration', 'seconds', 'wall'];
export const axisLabel = (axis) => t(axis === 'wall' ? 'runs.wall' : `axis.${axis}`);
export const axisText = (axis, x) => (axis === 'seconds' ? duration(x) : axis === 'wall' ? moment(x) : number(x, 6));
const axisTick = (axis, x, span) => (axis === 'seconds' ? duration(x) : axis !== 'wall' ? tick(x)
    : span > 86400 ? moment(x).replace(/ \S+$/, '') : clock(x));

/* Points that a reset or restore left behind go: {x, y} of the newest branch. */
export function pointsOf(columns, { axis, metric, log }, started = 0) {
    const shift = axis === 'wall' ? started : 0;
    const xs = columns[axis === 'wall' ? 'seconds' : axis] ?? [], ys = columns[metric] ?? [];
    const { branch = [], epoch = [] } = columns;
    let points = [], last = null;
    ys.forEach((y, i) => {
        if (last !== null && branch[i] !== null && branch[i] !== undefined && branch[i] !== last)
            points = points.filter((point) => point.epoch < epoch[i]);
        last = branch[i] ?? last;
        if (y !== null && xs[i] !== null && xs[i] !== undefined && (!log || y > 0))
            points.push({ x: xs[i] + shift, y, epoch: epoch[i] ?? i });
    });
    return points;
}

/* Round values between two. */
function ticks(from, to, wanted) {
    const rough = (to - from) / wanted, power = 10 ** Math.floor(Math.log10(rough));
    const unit = [1, 2, 5, 10].find((step) => step * power >= rough) * power;
    const list = [];
    for (let at = Math.ceil(from / unit) * unit; at <= to + unit * 1e-9; at += unit)
        list.push(Math.abs(at) < unit / 1e6 ? 0 : at);
    return list;
}

function logTicks(from, to) {
    const list = [], steps = to - from > 2 ? [1] : [1, 2, 5];
    for (let power = Math.floor(from); power <= to; power++)
        for (const step of steps) {
            const at = power + Math.log10(step);
            if (at >= from && at <= to) list.push(at);
        }
    return list;
}

function span(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
        low = Math.min(low, value);
        high = Math.max(high, value);
    }
    if (!(high >= low)) return [0, 1];
    return high > low ? [low, high] : [low - Math.abs(low || 1) * 0.1, high + Math.abs(high || 1) * 0.1];
}

/* curves: {name, index, points}; zoom: [from, to] or nothing. Resolves pixels to points, too: for the pointer. */
export function geometry({ curves, log, zoom }, area) {
    const y = (value) => (log ? Math.log10(value) : value);
    const every = curves.flatMap((curve) => curve.raw ?? curve.points);
    const all = zoom ? every.filter(({ x }) => x >= zoom[0] && x <= zoom[1]) : every;
    const [left, right] = zoom ?? span(all.map((point) => point.x)), [low, high] = span(all.map((point) => y(point.y)));
    const room = (high - low) * 0.05, bottom = low - room, top = high + room;
    return { area, left, right, bottom, top,
        px: (x) => area.x + (x - left) / (right - left) * area.w,
        py: (value) => area.y + area.h - (y(value) - bottom) / (top - bottom) * area.h,
        ofLog: (at) => area.y + area.h - (at - bottom) / (top - bottom) * area.h };
}

function areaOf(width, height, top = 10) {
    return { x: 60, y: top, w: Math.max(40, width - 84), h: Math.max(40, height - top - 42) };
}

function paintAxes(pen, plot, map, height) {
    const { area } = map, dim = colour('ink-3'), grid = colour('grid-line');
    const marks = plot.log ? logTicks(map.bottom, map.top) : ticks(map.bottom, map.top, area.h / 50);
    for (const at of marks) {
        const y = Math.round(map.ofLog(at)) + 0.5;
        pen.line([area.x, y, area.x + area.w, y], grid, 1);
        pen.text(tick(plot.log ? 10 ** at : at), area.x - 8, y + 4, dim, { align: 'end' });
    }
    for (const at of ticks(map.left, map.right, area.w / 90)) {
        const x = Math.round(map.px(at)) + 0.5;
        pen.line([x, area.y, x, area.y + area.h], grid, 1);
        pen.text(axisTick(plot.axis, at, map.right - map.left), x, area.y + area.h + 16, dim, { align: 'center' });
    }
    pen.text(axisLabel(plot.axis), area.x + area.w / 2, height - 6, dim, { align: 'center' });
}

function paintCurves(pen, plot, map) {
    const through = (points) => points.flatMap((point) => [map.px(point.x), map.py(point.y)]);
    for (const { raw, points, index } of plot.curves)
        if (raw && raw !== points && raw.length > 1) pen.line(through(raw), colourOf(index), 1, 0.28);
    for (const { points, index } of plot.curves) {
        if (points.length > 1) pen.line(through(points), colourOf(index), 1.75);
        else if (points.length === 1) pen.dot(map.px(points[0].x), map.py(points[0].y), 3, colourOf(index));
    }
}

export function paint(pen, plot, width, height, top) {
    const map = geometry(plot, areaOf(width, height, top));
    paintAxes(pen, plot, map, height);
    pen.clip({ ...map.area, y: map.area.y - 3, h: map.area.h + 6, w: map.area.w + 3 },
        () => paintCurves(pen, plot, map));
    return map;
}

/* With its ground, title and legend. */
const exported = (save) => (plot) => save(plot.metric, 960, 540, (pen, width, height) => paint(pen, plot, width, height,
    paintHead(pen, plot.metric, plot.curves.map(({ name, index }) => [name, colourOf(index)]), width, height) + 16));
export const exportPng = exported(savePng), exportSvg = exported(saveSvg);
