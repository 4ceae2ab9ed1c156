/* Names of the curves with their newest values: a click hides one, a pointer over it brings it to the front. */
import { fill, h, icon, setText } from '../elements.js';
import { number, percent } from '../format.js';
import { t } from '../language.js';
import { strokes } from './pens.js';

/* As short as it can be: the trainer only where there are several, no identifier where all are the same. */
export function label(curve, curves) {
    const several = curves.some((other) => other.trainer !== curve.trainer);
    const same = several && curves.every((other) => other.id === curve.id);
    if (same) return curve.trainer;
    return several ? `${curve.trainer} · ${curve.id}` : curve.id;
}

/* A piece of the curve's line. */
export function paintSwatch(swatch, curve, colour) {
    const dash = strokes[curve.stroke ?? 0];
    let at = 0;
    const stops = dash.flatMap((length, i) => {
        const from = at;
        at += length;
        return [`${i % 2 === 0 ? colour : 'transparent'} ${from}px ${at}px`];
    });
    swatch.style.background = stops.length > 0 ? `repeating-linear-gradient(to right, ${stops.join()})` : colour;
}

export class Legend {
    /* `acts`: add(anchor), remove(curve), toggled(), raise(curve | null). */
    constructor(view, acts) {
        this.view = view;
        this.acts = acts;
        this.rows = new Map();
        this.element = h('div', { class: 'legend' });
        this.plus = h('button', { type: 'button', class: 'legend-add', title: t('chart.add'),
            'aria-label': t('chart.add'), 'aria-haspopup': 'dialog',
            on: { click: () => acts.add(this.plus) } }, icon('plus'));
    }

    build() {
        const { curves } = this.view;
        this.rows.clear();
        this.element.classList.toggle('is-many', curves.length > 12);
        fill(this.element, curves.map((curve) => this.row(curve)), this.plus);
        this.update();
    }

    row(curve) {
        const name = label(curve, this.view.curves), swatch = h('span', { class: 'swatch' }),
            value = h('span', { class: 'legend-value' });
        const shown = h('button', { type: 'button', class: 'legend-name', 'aria-pressed': String(curve.visible),
            title: `${curve.trainer} · ${curve.id}`, on: {
            click: () => {
                curve.visible = !curve.visible;
                shown.setAttribute('aria-pressed', String(curve.visible));
                this.acts.toggled();
            } } }, swatch, h('span', { class: 'legend-text', text: name }), value);
        const remove = h('button', { type: 'button', class: 'legend-remove', title: t('chart.remove', { name }),
            'aria-label': t('chart.remove', { name }),
            on: { click: () => this.acts.remove(curve) } }, icon('close'));
        this.rows.set(curve, { swatch, value });
        return h('span', { class: 'legend-row', on: { pointerenter: () => this.acts.raise(curve), pointerleave: () =>
            this.acts.raise(null) } }, shown, remove);
    }

    update() {
        for (const [curve, { swatch, value }] of this.rows) {
            const newest = curve.newest();
            paintSwatch(swatch, curve, this.view.colourOf(curve));
            setText(value, newest === null ? '' : this.view.percent ? percent(newest, 1) : number(newest, 4));
        }
    }
}
