/* Parallel coordinates: an axis for each value, a line for each run; a range of an axis filters the runs. */
import { CanvasPen } from '../../chart/pens.js';
import { button, fill, h } from '../../elements.js';
import { t } from '../../language.js';
import { context2d } from '../../pixels.js';
import { colour } from '../../theme.js';
import { labelOf, valueOf } from '../columns.js';
import { colouring, scaleOf } from './scale.js';

const side = 70, top = 34, foot = 14, reach = 24; /* pixels; `reach`: how near to an axis a press is one on it */
const steps = 100;

/* Whether a run lies in all ranges: key -> [from, to] in shares of the axis' scale. */
export function isInRanges(run, ranges, scales) {
    return [...ranges].every(([key, [from, to]]) => {
        const share = scales.get(key)?.share(valueOf(run, key)) ?? null;
        return share !== null && share >= from - 1e-9 && share <= to + 1e-9;
    });
}

/* `change(ranges)` is called when a range has changed. */
export function createParallel(place, change) {
    const own = { runs: [], axes: [], scales: new Map(), ranges: new Map() };
    const canvas = h('canvas', { class: 'explore-canvas', role: 'img' });
    const controls = h('div', { class: 'explore-ranges' });
    const whole = button(t('explore.all_ranges'), () => { own.ranges.clear(); changed(); },
        { class: 'button is-quiet' });
    const details = h('details', { class: 'explore-details' }, h('summary', { text: t('explore.ranges') }), controls,
        whole);
    fill(place, h('p', { class: 'dim', text: t('explore.parallel_hint') }),
        h('div', { class: 'explore-plot is-wide scroll', tabindex: '0' }, canvas), details);
    new ResizeObserver(draw).observe(canvas.parentElement);

    const xOf = (index, width) => (own.axes.length > 1 ? side + index * (width - 2 * side) / (own.axes.length - 1)
        : width / 2);
    const yOf = (share, height) => height - foot - share * (height - top - foot);

    function changed() {
        buildControls();
        draw();
        change(own.ranges);
    }

    function setRange(key, from, to) {
        const ends = [Math.max(0, Math.min(from, to)), Math.min(1, Math.max(from, to))];
        if (ends[0] <= 0 && ends[1] >= 1) own.ranges.delete(key);
        else own.ranges.set(key, ends);
    }

    /* By keyboard: two sliders an axis. */
    function buildControls() {
        const focused = document.activeElement?.dataset.range;
        whole.hidden = own.ranges.size === 0;
        fill(controls, own.axes.map((key) => {
            const scale = own.scales.get(key), range = own.ranges.get(key) ?? [0, 1];
            const slider = (end) => h('input', { type: 'range', class: 'slider', min: 0, max: steps, step: 1,
                value: Math.round(range[end] * steps), data: { range: `${key} ${end}` },
                'aria-label': t(end === 0 ? 'explore.from' : 'explore.to', { name: labelOf(key) }),
                'aria-valuetext': scale.textAt(range[end]), on: { input: (event) => {
                    const now = [...(own.ranges.get(key) ?? [0, 1])];
                    now[end] = Number(event.target.value) / steps;
                    setRange(key, ...now);
                    changed();
                } } });
            return h('div', { class: 'explore-range' }, h('span', { text: labelOf(key) }), slider(0), slider(1),
                h('span', { class: 'dim', text: `${scale.textAt(range[0])} – ${scale.textAt(range[1])}` }));
        }));
        [...controls.querySelectorAll('input')].find((one) => one.dataset.range === focused)?.focus();
    }

    function paintAxis(pen, key, x, height, align) {
        const scale = own.scales.get(key), range = own.ranges.get(key), dim = colour('ink-3');
        pen.line([x, yOf(0, height), x, yOf(1, height)], colour('line-strong'), 1);
        const room = own.axes.length > 1
            ? Math.floor((canvas.clientWidth - 2 * side) / (own.axes.length - 1) / 6.6) : 40;
        const label = labelOf(key), short = label.length > room ? `…${label.slice(1 - Math.max(6, room))}` : label;
        pen.text(short, align === 'start' ? 0 : align === 'end' ? canvas.clientWidth : x, 14, colour('ink-2'),
            { align, bold: true });
        let last = Infinity;
        for (const [share, text] of scale.marks) {
            const y = yOf(share, height);
            if (last - y < 12) continue;
            last = y;
            const short = text.slice(0, 18);
            pen.area([x + 4, y - 7, x + 9 + pen.width(short), y - 7, x + 9 + pen.width(short), y + 7, x + 4, y + 7],
                colour('surface'), 0.8);
            pen.text(short, x + 6, y + 4, dim);
        }
        if (!range) return;
        const y = yOf(range[1], height);
        pen.area([x - 6, y, x + 6, y, x + 6, yOf(range[0], height), x - 6, yOf(range[0], height)], colour('accent'),
            0.35);
    }

    function paintRuns(pen, runs, width, height, ink, alpha) {
        for (const run of runs) {
            const points = own.axes.flatMap((key, i) => {
                const share = own.scales.get(key).share(valueOf(run, key));
                return share === null ? [] : [xOf(i, width), yOf(share, height)];
            });
            if (points.length > 2) pen.line(points, ink(run), 1.5, alpha);
        }
    }

    function draw() {
        const made = context2d(canvas);
        if (!made || own.axes.length === 0) return;
        const { context, width, height } = made, pen = new CanvasPen(context), last = own.axes.at(-1);
        const isIn = (run) => isInRanges(run, own.ranges, own.scales);
        const inside = own.runs.filter(isIn);
        paintRuns(pen, own.runs.filter((run) => !isIn(run)), width, height, () => colour('ink-3'), 0.12);
        paintRuns(pen, inside, width, height, colouring(own.scales.get(last), last), inside.length > 100 ? 0.5 : 0.85);
        own.axes.forEach((key, i) => paintAxis(pen, key, xOf(i, width), height,
            own.axes.length === 1 ? 'center' : i === 0 ? 'start' : i === own.axes.length - 1 ? 'end' : 'center'));
        canvas.setAttribute('aria-label', t('explore.parallel_label', { n: inside.length, all: own.runs.length,
            axes: own.axes.map(labelOf).join(', ') }));
    }

    let drag = null;
    const shareAt = (event) => {
        const box = canvas.getBoundingClientRect();
        return Math.max(0, Math.min(1, (box.height - foot - (event.clientY - box.top)) / (box.height - top - foot)));
    };
    canvas.addEventListener('pointerdown', (event) => {
        const box = canvas.getBoundingClientRect(), x = event.clientX - box.left;
        const key = own.axes.find((_, i) => Math.abs(xOf(i, box.width) - x) <= reach);
        if (event.button !== 0 || key === undefined) return;
        drag = { key, from: shareAt(event) };
        canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
        if (!drag) return;
        setRange(drag.key, drag.from, shareAt(event));
        draw();
    });
    canvas.addEventListener('pointerup', (event) => {
        if (!drag) return;
        const { key, from } = drag, to = shareAt(event);
        drag = null;
        if (Math.abs(to - from) < 0.01) own.ranges.delete(key); /* a press takes the range away */
        else setRange(key, from, to);
        changed();
    });

    return { show(runs, axes) {
        own.runs = runs;
        own.scales = new Map(axes.map((key) => [key, scaleOf(runs, key)]).filter(([, scale]) => scale));
        own.axes = axes.filter((key) => own.scales.has(key));
        for (const key of own.ranges.keys()) if (!own.scales.has(key)) own.ranges.delete(key);
        buildControls();
        draw();
    }, passes: (run) => isInRanges(run, own.ranges, own.scales) };
}
