/* A point for each run by any two of its values, coloured by a third. */
import { CanvasPen } from '../../chart/pens.js';
import { fill, h, select } from '../../elements.js';
import { t } from '../../language.js';
import { context2d } from '../../pixels.js';
import { colour } from '../../theme.js';
import { labelOf, textOf, valueOf } from '../columns.js';
import { colouring, ramp, scaleOf } from './scale.js';

const reach = 12; /* pixels around a point in which the pointer is on it */

/* `open(run)`: a point was pressed. */
export function createScatter(place, open) {
    const own = { runs: [], keys: [], x: null, y: null, by: null, points: [] };
    const canvas = h('canvas', { class: 'explore-canvas', role: 'img' });
    const hover = h('div', { class: 'runs-hover', hidden: true }), tools = h('div', { class: 'runs-tools' });
    const legend = h('div', { class: 'explore-legend' });
    fill(place, tools, legend, h('div', { class: 'explore-plot' }, canvas, hover));
    new ResizeObserver(draw).observe(canvas.parentElement);
    canvas.addEventListener('pointermove', showHover);
    canvas.addEventListener('pointerleave', () => { hover.hidden = true; });
    canvas.addEventListener('click', (event) => {
        const found = nearest(event);
        if (found) open(found.run);
    });

    function nearest(event) {
        const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
        let best = null, least = reach ** 2;
        for (const point of own.points) {
            const distance = (point.x - x) ** 2 + (point.y - y) ** 2;
            if (distance < least) [best, least] = [point, distance];
        }
        return best;
    }

    function showHover(event) {
        const found = nearest(event);
        hover.hidden = !found;
        canvas.style.cursor = found ? 'pointer' : '';
        if (!found) return;
        fill(hover, h('div', {}, h('strong', { text: found.run.name })),
            [own.x, own.y, own.by].filter(Boolean).map((key) =>
            h('div', {}, h('span', { text: labelOf(key) }), h('b', { text: textOf(found.run, key) }))));
        const width = canvas.clientWidth;
        hover.style.left = `${Math.max(0, found.x > width / 2 ? found.x - hover.offsetWidth - 14 : found.x + 14)}px`;
    }

    function axes(pen, x, y, area, height) {
        const dim = colour('ink-3'), grid = colour('grid-line');
        for (const [share, text] of x.marks) {
            const at = Math.round(area.x + share * area.w) + 0.5;
            pen.line([at, area.y - 10, at, area.y + area.h + 10], grid, 1);
            pen.text(text.slice(0, 16), at, area.y + area.h + 24, dim, { align: 'center' });
        }
        for (const [share, text] of y.marks) {
            const at = Math.round(area.y + area.h - share * area.h) + 0.5;
            pen.line([area.x - 10, at, area.x + area.w + 10, at], grid, 1);
            pen.text(text.slice(0, 11), area.x - 16, at + 4, dim, { align: 'end' });
        }
        pen.text(labelOf(own.x), area.x + area.w / 2, height - 6, dim, { align: 'center' });
        pen.text(labelOf(own.y), 4, 12, dim);
    }

    function draw() {
        const made = context2d(canvas), x = own.x && scaleOf(own.runs, own.x), y = own.y && scaleOf(own.runs, own.y);
        own.points = [];
        if (!made || !x || !y) return;
        const { context, width, height } = made, pen = new CanvasPen(context);
        const area = { x: 90, y: 34, w: width - 130, h: height - 92 };
        axes(pen, x, y, area, height);
        const ink = colouring(own.by && scaleOf(own.runs, own.by), own.by);
        for (const run of own.runs) {
            const [a, b] = [x.share(valueOf(run, own.x)), y.share(valueOf(run, own.y))];
            if (a !== null && b !== null)
                own.points.push({ run, x: area.x + a * area.w, y: area.y + (1 - b) * area.h });
        }
        for (const { run, x: px, y: py } of own.points) pen.dot(px, py, 4, ink(run));
        canvas.setAttribute('aria-label', t('explore.scatter_label', { n: own.points.length, x: labelOf(own.x),
            y: labelOf(own.y) }));
    }

    function showLegend() {
        const scale = own.by && scaleOf(own.runs, own.by);
        if (!scale) return fill(legend);
        if (scale.isNumeric) {
            const bar = h('span', { class: 'explore-ramp' });
            bar.style.background = `linear-gradient(to right, ${[0, 0.5, 1].map(ramp).join(', ')})`;
            return fill(legend, h('span', { text: scale.textAt(0) }), bar, h('span', { text: scale.textAt(1) }));
        }
        return fill(legend, scale.names.slice(0, 12).map((name, i) => {
            const swatch = h('span', { class: 'explore-dot' });
            swatch.style.background = colour(`series-${i % 8 + 1}`);
            return h('span', {}, swatch, name);
        }));
    }

    function redraw() {
        showLegend();
        draw();
    }

    return { show(runs, keys, defaults) {
        own.runs = runs;
        for (const name of ['x', 'y', 'by']) if (!keys.includes(own[name])) own[name] = defaults[name] ?? null;
        const choices = keys.map((key) => [key, labelOf(key)]);
        const choose = (name, label, list) => h('label', { class: 'explore-choice' }, h('span', { text: label }),
            select(list, own[name] ?? '', (value) => { own[name] = value || null; redraw(); },
                { data: { scatter: name } }));
        fill(tools, choose('x', t('explore.x'), choices), choose('y', t('explore.y'), choices),
            choose('by', t('explore.by'), [['', t('explore.nothing')], ...choices]));
        redraw();
    } };
}
