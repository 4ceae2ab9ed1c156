/* How the numbers of a parameter, its gradient or its newest update are spread: now, and over the iterations since
 * somebody watches. */
import { get, post } from '../api.js';
import { fill, h, select, setText } from '../elements.js';
import { integer, number, tick } from '../format.js';
import { TensorChoice, tensorOf } from '../inspect/tensors.js';
import { t } from '../language.js';
import { definePanel } from '../panel.js';
import { context2d } from '../pixels.js';
import { colour } from '../theme.js';

definePanel('histogram', {
    icon: 'chart',
    tab: 'inspect', order: 2,
    size: { w: 8, h: 10 }, minimum: { w: 4, h: 6 }, heights: { 6: 11, 1: 12 },
    options: { tensor: '', what: 'weights' },
    create,
});

const prefixes = { weights: 'network.layers.', gradients: 'optimiser.gradients.', updates: 'optimiser.updates.' };
const renewed = 30000; /* the server forgets who watches after 120 s */
const edge = { left: 52, right: 8, top: 8, bottom: 22 };

/* Round values between two bounds. */
function ticks(minimum, maximum, wanted) {
    const span = maximum - minimum;
    if (!(span > 0)) return [minimum];
    const power = 10 ** Math.floor(Math.log10(span / wanted)), step = power * ([1, 2, 5, 10].find((n) =>
        span / (n * power) <= wanted) ?? 10);
    const found = [];
    for (let value = Math.ceil(minimum / step) * step; value <= maximum + step * 1e-9; value += step)
        found.push(Math.abs(value) < step * 1e-9 ? 0 : value);
    return found;
}

/* Few numbers in many bins are a comb: neighbours are joined. */
function coarser(column) {
    const join = column.count < 400 ? 4 : column.count < 2000 ? 2 : 1;
    return { ...column, bins: Array.from({ length: column.bins.length / join }, (_, i) =>
        column.bins.slice(i * join, (i + 1) * join).reduce((sum, bin) => sum + bin, 0)) };
}

/* The range of all columns; one that is a point gets some room. */
function rangeOf(columns) {
    const known = columns.filter((column) => column.minimum !== null);
    let minimum = Math.min(...known.map((column) => column.minimum)),
        maximum = Math.max(...known.map((column) => column.maximum));
    if (!(maximum > minimum)) {
        const room = Math.abs(minimum) * 0.1 || 1;
        minimum -= room;
        maximum += room;
    }
    return { minimum, maximum };
}

function axes(context, area, { minimum, maximum }) {
    context.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    context.strokeStyle = colour('grid-line');
    context.fillStyle = colour('ink-3');
    context.lineWidth = 1;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (const value of ticks(minimum, maximum, Math.max(2, area.height / 40))) {
        const y = Math.round(area.y(value)) + 0.5;
        context.beginPath();
        context.moveTo(area.left, y);
        context.lineTo(area.left + area.width, y);
        context.stroke();
        context.fillText(tick(value), area.left - 7, y);
    }
}

/* Columns of shares: dark is rare, bright is frequent. Each fills the time until the next one. */
function drawColumns(context, area, columns) {
    const first = columns[0].iteration, span = Math.max(1, columns.at(-1).iteration - first);
    const x = (i) => (i < columns.length ? area.left + area.width * (columns[i].iteration - first) / span
        : area.left + area.width);
    context.fillStyle = colour('accent');
    columns.forEach((column, i) => {
        if (column.minimum === null) return;
        const before = Math.round(i > 0 ? (x(i - 1) + x(i)) / 2 : area.left), after = Math.round(i + 1 < columns.length
            ? (x(i) + x(i + 1)) / 2 : area.left + area.width);
        const peak = Math.max(...column.bins), step = (column.maximum - column.minimum) / column.bins.length;
        column.bins.forEach((bin, k) => {
            if (bin === 0) return;
            const top = Math.round(area.y(column.minimum + (k + 1) * step)),
                bottom = Math.round(area.y(column.minimum + k * step));
            context.globalAlpha = 0.08 + 0.92 * Math.sqrt(bin / peak);
            context.fillRect(before, Math.min(top, bottom - 1), Math.max(1, after - before), Math.max(1, bottom - top));
        });
    });
    context.globalAlpha = 1;
    context.fillStyle = colour('ink-3');
    context.textBaseline = 'alphabetic';
    context.textAlign = 'left';
    context.fillText(integer(first), area.left, area.bottom + 16);
    context.textAlign = 'right';
    if (columns.length > 1) context.fillText(integer(columns.at(-1).iteration), area.left + area.width,
        area.bottom + 16);
}

/* What is now, lying on its side at the same scale. */
function drawNow(context, area, now, span) {
    if (now.minimum === null) return;
    const peak = Math.max(...now.bins), step = (now.maximum - now.minimum) / now.bins.length;
    const left = area.left + area.width + 14;
    context.fillStyle = colour('accent');
    now.bins.forEach((bin, k) => {
        const top = area.y(now.minimum + (k + 1) * step), bottom = area.y(now.minimum + k * step);
        if (bin > 0) context.fillRect(left, top, Math.max(1, span * bin / peak), Math.max(1, bottom - top - 0.5));
    });
    const y = area.y(now.mean);
    context.strokeStyle = colour('ink');
    context.setLineDash([3, 3]);
    context.beginPath();
    context.moveTo(left, y);
    context.lineTo(left + span, y);
    context.stroke();
    context.setLineDash([]);
}

function create(panel) {
    let found = null, watching = null, since = 0;
    const canvas = h('canvas', { class: 'histogram', role: 'img' });
    const figures = h('dl', { class: 'histogram-figures' });
    const choice = new TensorChoice(t('histogram.tensor'), (name) => { panel.setOption('tensor', name); begin(); });
    const kind = select(Object.keys(prefixes).map((name) => [name, t(`histogram.${name}`)]), panel.options.what,
        (what) => { panel.setOption('what', what); begin(); }, { 'aria-label': t('histogram.what') });
    panel.body.append(h('div', { class: 'toolbar' }, choice.element, kind, figures), canvas);

    const identifier = () => prefixes[panel.options.what] + choice.element.value;

    function draw() {
        const made = panel.visible ? context2d(canvas) : null, columns = found?.history ?? [];
        if (!made || columns.length === 0) return;
        const { context, width, height } = made, range = rangeOf(columns), now = Math.min(140, width * 0.24);
        const area = { left: edge.left, width: width - edge.left - edge.right - now - 14, top: edge.top,
            bottom: height - edge.bottom, height: height - edge.top - edge.bottom };
        area.y = (value) => area.bottom - (value - range.minimum) / (range.maximum - range.minimum) * area.height;
        axes(context, area, range);
        drawColumns(context, area, columns);
        drawNow(context, area, found, now);
    }

    function show() {
        const some = (found?.history?.length ?? 0) > 0;
        panel.empty(some ? null : found?.note || t('histogram.none'));
        canvas.hidden = !some;
        const told = ['minimum', 'maximum', 'mean', 'standard_deviation', ...(found?.others > 0 ? ['others'] : [])];
        fill(figures, some ? told.map((name) =>
            h('div', {}, h('dt', { text: t(`histogram.${name}`) }), h('dd', { text: number(found[name], 3) }))) : []);
        canvas.setAttribute('aria-label', some ? t('histogram.label', { name: identifier(),
            minimum: number(found.minimum, 3), maximum: number(found.maximum, 3), mean: number(found.mean, 3) }) : '');
        setText(panel.note, some ? t('histogram.since', { n: integer(found.history[0].iteration) }) : '');
        draw();
    }

    async function look(signal) {
        const trainer = panel.trainer(), wanted = identifier();
        if (watching !== wanted + trainer || Date.now() - since > renewed) {
            await post('histogram-watch', { trainer, identifier: wanted });
            watching = wanted + trainer;
            since = Date.now();
        }
        const answer = await get('histogram', { trainer, id: wanted, history: 1 }, { signal });
        if (wanted !== identifier()) return;
        const history = answer.history.map(coarser);
        found = { ...(answer.bins ? coarser(answer) : answer), history };
        show();
    }

    const begin = () => panel.load(async (signal) => {
        found = null;
        if (panel.trainer() === null) return;
        const name = await choice.load(panel.trainer(), panel.options.tensor, signal);
        kind.hidden = name === null;
        if (name === null) panel.empty(t('histogram.no_parameters'));
        else await look(signal);
    });

    panel.every(1000, () => { if (choice.tensors.length > 0) panel.renew(look); });
    panel.on('trainer', begin);
    panel.on('reconnected', () => { watching = null; begin(); });
    panel.on('theme', draw);
    panel.on('look', ({ trainer, identifier: wanted }) => {
        if (trainer !== panel.trainer() || !choice.has(tensorOf(wanted))) return;
        panel.setOption('tensor', tensorOf(wanted));
        begin();
    });
    begin();
    return { resize: draw, shown: draw };
}
