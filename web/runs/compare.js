/* The runs that were selected: one metric of all in a chart, and in what they were configured otherwise. */
import { get } from '../api.js';
import { download } from '../chart/export.js';
import { CanvasPen } from '../chart/pens.js';
import { fill, h, iconButton, labelled, select, toggle } from '../elements.js';
import { number } from '../format.js';
import { t } from '../language.js';
import { menu, toastError } from '../overlays.js';
import { context2d } from '../pixels.js';
import { colour } from '../theme.js';
import { differing, metricsOf } from './columns.js';
import { axes, axisLabel, axisText, colourOf, exportPng, exportSvg, paint, pointsOf } from './plot.js';
import { smoothed } from './smooth.js';
import { dragZoom } from './zoom.js';

const maximumRows = 1000; /* of the table */
const kept = new Map(); /* name -> {lines, started, columns: null until `coming` is there, coming} */

export function createCompare(place, remove) {
    const own = { axis: 'epoch', metric: null, log: false, smoothing: 0, runs: [], map: null, zoom: null, request: 0,
        table: false };
    const canvas = h('canvas', { class: 'runs-canvas', role: 'img' });
    const hover = h('div', { class: 'runs-hover', hidden: true });
    const table = h('div', { class: 'runs-values scroll', tabindex: '0', hidden: true });
    const values = iconButton('table', t('chart.table'), () => { own.table = !own.table; redraw(); },
        { 'aria-pressed': 'false' });
    const tools = h('div', { class: 'runs-tools' }), legend = h('ul', { class: 'runs-legend' });
    const differences = h('div', { class: 'runs-differences scroll', tabindex: '0' }), title = h('h2');
    const chart = h('section', { class: 'runs-panel runs-chart' }, h('header', { class: 'runs-head' }, title, tools),
        legend, h('div', { class: 'runs-plot' }, canvas, hover), table);
    const differencesTitle = h('h2');
    fill(place, chart, h('section', { class: 'runs-panel' }, h('header', { class: 'runs-head' }, differencesTitle),
        differences));
    canvas.addEventListener('pointermove', (event) => showHover(own, canvas, hover, event));
    canvas.addEventListener('pointerleave', () => { hover.hidden = true; draw(own, canvas); });
    new ResizeObserver(() => draw(own, canvas)).observe(canvas.parentElement);
    const whole = iconButton('shrink', t('chart.reset'), () => zoomTo(null), { hidden: true });
    const zoomTo = (zoom) => {
        own.zoom = zoom;
        whole.hidden = zoom === null;
        show();
    };
    dragZoom(canvas, () => own.map, zoomTo);

    async function load() {
        const request = ++own.request;
        try {
            await Promise.all(own.runs.map(fetchColumns));
        } catch (error) {
            if (request === own.request) toastError(error);
        }
        if (request === own.request) redraw();
    }

    function redraw() {
        own.curves = own.runs.map((run, index) => {
            const raw = pointsOf(kept.get(run.name)?.columns ?? {}, own, run.started);
            return { name: run.name, index, raw, points: smoothed(raw, own.smoothing) };
        });
        canvas.setAttribute('aria-label', own.curves.map(({ name, points }) =>
            `${name}: ${own.metric} ${number(points.at(-1)?.y)}`).join('; '));
        show();
    }

    function show() {
        canvas.parentElement.hidden = own.table;
        table.hidden = !own.table;
        values.setAttribute('aria-pressed', String(own.table));
        if (own.table) fill(table, tableOf(own));
        else draw(own, canvas);
    }

    function build() {
        const metrics = metricsOf(own.runs);
        if (!metrics.includes(own.metric))
            own.metric = metrics.find((key) => key.endsWith('.loss')) ?? metrics[0] ?? 'loss';
        const change = (name) => (value) => {
            own[name] = value;
            if (name === 'axis') zoomTo(null);
            redraw();
        };
        title.textContent = t('runs.chart');
        fill(tools, whole,
            select(metrics.map((key) => [key, key]), own.metric, change('metric'), { 'aria-label': t('runs.metric') }),
            select(axes.map((key) => [key, axisLabel(key)]), own.axis, change('axis'),
                { 'aria-label': t('chart.axis') }),
            smoothing(own, redraw),
            labelled(t('runs.log'), toggle(t('chart.yLog'), own.log, change('log')),
                { class: 'field is-switch runs-log' }),
            values, exportButton(own), iconButton('text', t('runs.report'), () => saveReport(own.runs)));
        fill(legend, own.runs.map((run, index) => {
            const swatch = h('span', { class: 'runs-swatch' });
            swatch.style.background = colourOf(index);
            return h('li', {}, swatch, h('span', { text: run.name }),
                iconButton('close', t('chart.remove', { name: run.name }), () => remove(run.name)));
        }));
        differencesTitle.textContent = t('runs.differences');
        fill(differences, differencesOf(own.runs));
    }

    return { show(runs) { own.runs = runs; build(); redraw(); load(); }, redraw() { build(); redraw(); } };
}

/* What is known of a run has its new name, too. */
export function renamed(from, to) {
    if (kept.has(from)) kept.set(to, kept.get(from));
    kept.delete(from);
}

/* One request for a run at a time; of a file that is still being read in parts the first answer is enough. */
async function fetchColumns(run) {
    const known = kept.get(run.name);
    if (known && known.started === run.started && (known.lines === run.lines || run.reading)) return known.coming;
    const entry = { lines: run.lines, started: run.started, columns: known?.columns ?? null };
    entry.coming = get(`run/${encodeURIComponent(run.name)}`).then(({ columns }) => { entry.columns = columns; },
        (error) => {
            if (kept.get(run.name) === entry) kept.delete(run.name);
            throw error;
        });
    kept.set(run.name, entry);
    return entry.coming;
}

/* One HTML file about these runs. */
async function saveReport(runs) {
    try {
        download(await get('report', { run: runs.map((run) => run.name) }), 'report.html');
    } catch (error) {
        toastError(error);
    }
}

/* 0: off. */
function smoothing(own, redraw) {
    const shown = h('output', { class: 'runs-smoothing', text: number(own.smoothing, 2) });
    const slider = h('input', { type: 'range', class: 'slider', min: 0, max: 0.99, step: 0.01, value: own.smoothing,
        'aria-label': t('chart.smoothing'), on: { input: () => {
            own.smoothing = Number(slider.value);
            shown.textContent = number(own.smoothing, 2);
            redraw();
        } } });
    return h('label', { class: 'runs-smooth' }, h('span', { class: 'field-label', text: t('chart.smoothing') }),
        slider, shown);
}

function exportButton(own) {
    const element = iconButton('download', t('runs.export_chart'), () => menu(element, [
        { label: t('chart.png'), icon: 'download', act: () => exportPng(own) },
        { label: t('chart.svg'), icon: 'download', act: () => exportSvg(own) },
    ]), { 'aria-haspopup': 'menu' });
    return element;
}

function draw(own, canvas) {
    const made = own.curves ? context2d(canvas) : null;
    if (!made) return null;
    const { context, width, height } = made, pen = new CanvasPen(context);
    if (own.curves.every((curve) => curve.points.length === 0)) {
        pen.text(t('chart.waiting'), width / 2, height / 2, colour('ink-3'), { align: 'center', size: 13 });
        own.map = null;
        return null;
    }
    own.map = paint(pen, own, width, height);
    return pen;
}

function nearest(points, x) {
    let low = 0, high = points.length - 1;
    while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (points[middle].x <= x) low = middle;
        else high = middle;
    }
    return x - points[low].x <= points[high].x - x ? points[low] : points[high];
}

function showHover(own, canvas, hover, event) {
    const pen = draw(own, canvas), { map } = own;
    if (!pen || !map) return;
    const box = canvas.getBoundingClientRect(), at = event.clientX - box.left;
    const x = map.left + (at - map.area.x) / map.area.w * (map.right - map.left);
    const found = own.curves.filter((curve) => curve.points.length > 0)
        .map((curve) => ({ ...curve, point: nearest(curve.points, x) }))
        .filter(({ point }) => point.x >= map.left && point.x <= map.right);
    for (const { point, index } of found) pen.dot(map.px(point.x), map.py(point.y), 3.5, colourOf(index));
    fill(hover, found.slice(0, 12).map(({ name, index, point }) => {
        const swatch = h('span', { class: 'runs-swatch' });
        swatch.style.background = colourOf(index);
        return h('div', {}, swatch, h('span', { text: name }),
            h('span', { class: 'dim', text: axisText(own.axis, point.x) }),
            h('b', { text: number(point.y, 5) }));
    }));
    hover.hidden = false;
    const left = at > box.width / 2 ? at - hover.offsetWidth - 14 : at + 14;
    hover.style.left = `${Math.max(0, Math.min(left, box.width - hover.offsetWidth))}px`;
}

/* A column a run, the newest row first. */
function tableOf({ curves, axis, metric, zoom }) {
    const rows = new Map();
    curves.forEach(({ points }, k) => {
        for (const { x, y } of points) {
            if (zoom && (x < zoom[0] || x > zoom[1])) continue;
            if (!rows.has(x)) rows.set(x, []);
            rows.get(x)[k] = y;
        }
    });
    const head = [axisLabel(axis), ...curves.map((curve) => curve.name)];
    return h('table', { class: 'table', 'aria-label': metric }, h('thead', {}, h('tr', {}, head.map((text) =>
        h('th', { scope: 'col', class: 'is-number', text })))),
    h('tbody', {}, [...rows].sort(([a], [b]) => b - a).slice(0, maximumRows).map(([x, row]) => h('tr', {},
        h('th', { scope: 'row', class: 'is-number', text: axisText(axis, x) }), curves.map((_, k) =>
            h('td', { class: 'is-number', text: row[k] === undefined ? '' : number(row[k], 6) }))))));
}

function differencesOf(runs) {
    if (runs.length < 2) return h('p', { class: 'dim', text: t('runs.select_more') });
    const keys = differing(runs);
    if (keys.length === 0) return h('p', { class: 'dim', text: t('runs.no_differences') });
    const text = (value) => (value === undefined ? '–' : String(value));
    return h('table', { class: 'table' },
        h('thead', {}, h('tr', {}, h('th', { scope: 'col', text: t('runs.value') }),
            runs.map((run, index) => {
                const swatch = h('span', { class: 'runs-swatch' });
                swatch.style.background = colourOf(index);
                return h('th', { scope: 'col' }, swatch, run.name);
            }))),
        h('tbody', {}, keys.map((key) => h('tr', {}, h('th', { scope: 'row', text: key }),
            runs.map((run) => h('td', { class: run.configuration[key] === runs[0].configuration[key] ? 'mono'
                : 'mono is-different', text: text(run.configuration[key]) }))))));
}
