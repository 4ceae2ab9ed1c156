/* One metric of a run over iterations, with a line where something was done, and beside it its replays. */
import { CanvasPen } from '../chart/pens.js';
import { h, select } from '../elements.js';
import { number } from '../format.js';
import { t } from '../language.js';
import { context2d } from '../pixels.js';
import { colour } from '../theme.js';
import { metricsOf } from './columns.js';
import { colourOf, paint, pointsOf } from './plot.js';

/* What persons did is in the list of interventions; the other changes are those of hooks. */
function marksOf(run, interventions, off) {
    const newest = run.columns.branch?.at(-1) ?? 0, of = (one) => (one.branch ?? 0) === newest;
    const asked = new Set(interventions.map((one) => one.iteration));
    return [...run.changes.filter((change) => of(change) && !asked.has(change.iteration))
        .map((change) => ({ at: change.iteration, ink: 'warn', alpha: 0.35 })),
    ...interventions.filter(of).map((one) => ({ at: one.iteration, ink: 'warn',
        alpha: off.has(one.number) ? 0.15 : 0.9 }))];
}

function swatch(index) {
    const element = h('span', { class: 'runs-swatch' });
    element.style.background = colourOf(index);
    return element;
}

/* {element, show}: show({interventions, off, replays}) draws anew; `replays` are runs with their columns. element is
 * null for a run without metrics. */
export function createRunChart(run) {
    const metrics = metricsOf([run]), plot = { axis: 'iteration', log: false, curves: [],
        metric: metrics.find((key) => key.endsWith('.loss')) ?? metrics.find((key) => key === 'loss') ?? metrics[0] };
    let shown = { interventions: [], off: new Set(), replays: [] };
    if (metrics.length === 0) return { element: null, show() {} };
    const canvas = h('canvas', { class: 'runs-canvas', role: 'img' }), box = h('div', { class: 'run-plot' }, canvas);
    const legend = h('ul', { class: 'runs-legend', hidden: true });

    function draw() {
        const made = context2d(canvas);
        if (!made) return;
        const { context, width, height } = made, pen = new CanvasPen(context);
        plot.curves = [run, ...shown.replays].map((one, index) => ({ name: one.name, index,
            points: pointsOf(one.columns, plot) }));
        canvas.setAttribute('aria-label', plot.curves.map(({ name, points }) =>
            `${name}, ${plot.metric}: ${number(points.at(-1)?.y)}`).join('; '));
        if (plot.curves[0].points.length === 0) return;
        const map = paint(pen, plot, width, height), { area } = map;
        for (const { at, ink, alpha } of marksOf(run, shown.interventions, shown.off))
            if (at >= map.left && at <= map.right)
                pen.line([map.px(at), area.y, map.px(at), area.y + area.h], colour(ink), 1, alpha);
    }

    function show(what) {
        shown = { ...shown, ...what };
        legend.hidden = shown.replays.length === 0;
        legend.replaceChildren(...[run, ...shown.replays].map(({ name }, index) => h('li', {},
            swatch(index), h('span', { text: name }))));
        draw();
    }

    new ResizeObserver(draw).observe(box);
    const choice = select(metrics.map((key) => [key, key]), plot.metric, (value) => { plot.metric = value; draw(); },
        { 'aria-label': t('runs.metric') });
    return { element: h('section', { class: 'run-section' }, h('h3', { text: t('runs.curve') }), choice, legend, box),
        show };
}
