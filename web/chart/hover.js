/* What lies under the pointer: a line, a dot on each curve, and a box with the values. Touch: a finger along the plot;
 * two fingers zoom. */
import { changeLine, whoText } from '../change.js';
import { add, fill, h } from '../elements.js';
import { integer, moment, number, percent, roughly } from '../format.js';
import { t } from '../language.js';
import { nearest } from './curve.js';
import { label, paintSwatch } from './legend.js';
import { CanvasPen } from './pens.js';

const maximumRows = 8;

export class Hover {
    constructor(view) {
        this.view = view;
        this.at = null;
        this.pointers = new Map();
        this.canvas = h('canvas', { class: 'plot-over', 'aria-hidden': 'true' });
        this.box = h('div', { class: 'plot-box', hidden: true, role: 'presentation' });
        view.element.append(this.canvas, this.box);
    }

    attach() {
        const { element } = this.view, signal = (this.end = new AbortController()).signal;
        const options = { signal };
        element.addEventListener('pointermove', (event) => this.moved(event), options);
        element.addEventListener('pointerdown', (event) => this.down(event), options);
        for (const name of ['pointerup', 'pointercancel', 'pointerleave'])
            element.addEventListener(name, (event) => this.up(event), options);
    }

    destroy() {
        this.end?.abort();
        this.box.remove();
    }

    place(event) {
        const frame = this.view.element.getBoundingClientRect();
        return { x: event.clientX - frame.left, y: event.clientY - frame.top };
    }

    down(event) {
        this.view.element.focus({ preventScroll: true }); /* then its keys are heard */
        if (event.pointerType === 'mouse') return;
        this.pointers.set(event.pointerId, this.place(event));
        if (this.pointers.size === 2) this.pinch = this.pinchOf();
    }

    up(event) {
        this.pointers.delete(event.pointerId);
        if (this.pointers.size < 2 && this.pinch) {
            this.pinch = null;
            this.view.setWindow(...this.view.xRange);
        }
        if (event.type !== 'pointerup' || event.pointerType !== 'mouse') this.hide();
    }

    pinchOf() {
        const [a, b] = [...this.pointers.values()].map((point) => point.x).sort((one, other) => one - other);
        return [this.view.graph.toDataXCoord(a), this.view.graph.toDataXCoord(b), a, b];
    }

    /* The values under the fingers stay under them. */
    pinched() {
        const { view } = this, [, , oldA, oldB] = this.pinch, [a, b] = [...this.pointers.values()].map((point) =>
            point.x).sort((one, other) => one - other);
        if (b - a < 12 || oldB - oldA < 12 || view.xLog) return;
        const [from, to] = this.pinch, k = (to - from) / (b - a), { x, w } = view.area;
        view.setWindow(from - (a - x) * k, from + (x + w - a) * k, true);
    }

    moved(event) {
        if (event.buttons === 1 && event.pointerType === 'mouse') return; /* zooming */
        if (this.pointers.has(event.pointerId)) this.pointers.set(event.pointerId, this.place(event));
        if (this.pinch) {
            this.pinched();
            return;
        }
        this.at = this.place(event);
        if (this.asked) return;
        this.asked = true;
        requestAnimationFrame(() => {
            this.asked = false;
            this.redraw();
        });
    }

    hide() {
        this.at = null;
        this.box.hidden = true;
        if (this.canvas.width > 0) this.canvas.width = 0;
    }

    redraw() {
        const { view, at } = this, { area, map } = view;
        if (!at || !area) return;
        if (at.x < area.x - 4 || at.x > area.x + area.w + 4 || at.y > area.y + area.h + 4) {
            this.hide();
            return;
        }
        const x = view.graph.toDataXCoord(Math.max(area.x, Math.min(area.x + area.w, at.x)));
        const near = this.find(x, map).sort((a, b) => Math.abs(a.py - at.y) - Math.abs(b.py - at.y));
        const change = this.findChange(at.x), others = near.length - maximumRows;
        const apart = (one) => Math.abs(one.px - at.x);
        const line = near.reduce((best, one) => (best && apart(best) <= apart(one) ? best : one), null);
        this.paint(near, line?.px ?? at.x);
        const order = ({ curve }) => view.curves.indexOf(curve);
        const found = near.slice(0, maximumRows).sort((a, b) => order(a) - order(b));
        this.show(line, x, found, others, change);
    }

    find(x, map) {
        const { view } = this, found = [];
        for (const curve of view.curves) {
            if (!curve.visible) continue;
            const pieces = curve.pieces(...view.xRange), i = nearest(pieces.x, x);
            if (i < 0 || pieces.x[i] < view.xRange[0] || pieces.x[i] > view.xRange[1]) continue;
            const px = map.x(pieces.x[i]), py = map.y(pieces.last[i] ?? NaN);
            if (Math.abs(px - map.x(x)) < Math.max(30, view.area.w / 8)) found.push({ curve, pieces, i, px,
                py: Number.isNaN(py) ? Infinity : py });
        }
        return found;
    }

    findChange(px) {
        const { view } = this;
        if (!view.marks) return [];
        return view.changes.filter((change) => Math.abs(view.map.x(change[view.axis]) - px) < 5).slice(-3);
    }

    paint(found, x) {
        const { view, canvas } = this, ratio = devicePixelRatio || 1;
        canvas.width = view.width * ratio;
        canvas.height = view.height * ratio;
        canvas.style.width = `${view.width}px`;
        canvas.style.height = `${view.height}px`;
        const context = canvas.getContext('2d'), pen = new CanvasPen(context);
        context.scale(ratio, ratio);
        const px = Math.round(x) + 0.5;
        pen.line([px, view.area.y, px, view.area.y + view.area.h], view.colours.dim, 1, 0.6);
        for (const { curve, px, py } of found.slice(0, 40)) {
            if (!Number.isFinite(py)) continue;
            pen.dot(px, py, 4, view.colours.surface);
            pen.dot(px, py, 3, view.colourOf(curve));
        }
    }

    valueText(value) {
        return this.view.percent ? percent(value, 2) : number(value, 5);
    }

    placeText(x) {
        return { iteration: integer, epoch: (value) => number(value, 5), seconds: roughly }[this.view.axis](x);
    }

    /* A curve that has no point where the line stands says where its own is. */
    row({ curve, pieces, i, px }, line) {
        const { view } = this, swatch = h('span', { class: 'swatch' }), more = [];
        paintSwatch(swatch, curve, view.colourOf(curve));
        if (Math.abs(px - line.px) > 2) more.push(t('chart.at', { place: this.placeText(pieces.x[i]) }));
        if (pieces.min[i] !== pieces.max[i] && pieces.min[i] !== null)
            more.push(`${this.valueText(pieces.min[i])} … ${this.valueText(pieces.max[i])}`);
        const mean = curve.mean?.pieces === pieces ? curve.mean.values[i] : null;
        if (mean !== null) more.push(t('chart.mean', { value: this.valueText(mean) }));
        return h('div', { class: 'plot-box-row' }, swatch, h('span', { text: label(curve, view.curves) }),
            h('b', { text: pieces.last[i] === null ? t('chart.no_number') : this.valueText(pieces.last[i]) }),
            h('span', { class: 'plot-box-range', text: more.join(', ') }));
    }

    show(line, x, found, others, changes) {
        const { view, box, at } = this, place = this.placeText(line ? line.pieces.x[line.i] : x);
        fill(box, h('div', { class: 'plot-box-x', text: `${t(`axis.${view.axis}`)} ${place}` }),
            h('div', { class: 'plot-box-rows' }, found.map((one) => this.row(one, line))));
        if (others > 0) add(box, [h('div', { class: 'dim', text: t('chart.more', { n: others }) })]);
        for (const change of changes)
            add(box, [h('div', { class: 'plot-box-change' },
                h('b', { text: changeLine(change) }),
                h('span', { class: 'dim', text: `${whoText(change.who)}, ${moment(change.time)}` }),
                change.reason ? h('span', { class: 'dim', text: change.reason }) : null)]);
        box.hidden = false;
        const { offsetWidth: w, offsetHeight: height } = box, gap = 14;
        const left = at.x + gap + w > view.width ? at.x - gap - w : at.x + gap;
        const within = (value, maximum) => Math.max(0, Math.min(value, maximum));
        const px = within(left, view.width - w), py = within(at.y - height / 2, view.height - height);
        box.style.transform = `translate(${px}px, ${py}px)`;
    }
}
