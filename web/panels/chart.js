/* Values over iterations, epochs or seconds. Options: series: ["IDENTIFIER" | {id, trainer}] (of all trainers if none
 * is given, patterns with * are allowed), name (of a title "chart.NAME"), onlyWithValues (it is not to be seen before
 * its first value, as a run may never have one), and those of chart/settings.js. */
import { get } from '../api.js';
import { Curve, Pieces } from '../chart/curve.js';
import { strokes } from '../chart/pens.js';
import { exportCsv, exportPng, exportSvg, tableOf } from '../chart/export.js';
import { forget, matcher, recorded, watch } from '../chart/known.js';
import { Legend } from '../chart/legend.js';
import { pickSeries } from '../chart/picker.js';
import { chartSettings } from '../chart/settings.js';
import { View } from '../chart/view.js';
import { fill, h, iconButton } from '../elements.js';
import { integer, number } from '../format.js';
import { t } from '../language.js';
import { toastError } from '../overlays.js';
import { definePanel } from '../panel.js';
import { isPresent, state } from '../store.js';

const idsPerRequest = 25; /* an address has its limits */
const logFrom = 20; /* times the least value that the largest is: then a logarithmic axis */
const fewCurves = 10, manyCurves = 40; /* the more there are, the fewer points each needs */
const viewOptions = { axis: 'iteration', yLog: false, xLog: false, fromZero: false, robust: false, bands: true,
    marks: true, smoothing: 0, follow: 0, percent: false };

definePanel('chart', {
    icon: 'chart',
    size: { w: 6, h: 8 }, minimum: { w: 3, h: 5 }, heights: { 1: 8 }, order: 2,
    default: [
        { tab: 'training', order: 2, w: 8, h: 10,
            options: { name: 'loss', series: ['training.loss', 'validation.loss'], yLog: 'auto',
                smoothing: 0.25 } },
        { tab: 'training', order: 3, w: 4, h: 9, options: { name: 'learning_rate',
            series: ['optimiser.current_learning_rate'] } },
        { tab: 'checkpoints', order: 3, w: 8, h: 10,
            options: { name: 'branches', series: ['training.loss', 'validation.loss'], yLog: true } },
        { tab: 'training', order: 5, w: 8, h: 9, options: { name: 'r_squared', series: ['*.r_squared'],
            onlyWithValues: true } },
        { tab: 'training', order: 6, w: 4, h: 9, options: { name: 'errors', onlyWithValues: true,
            series: ['*.mean_absolute_error', '*.root_mean_squared_error'] } },
    ],
    options: { series: [], ...viewOptions },
    settings: (panel) => chartSettings({ ...panel.options, yLog: panel.isLog() }, panel.change),
    create: createChart,
});

/* The least and the largest value of pieces; least is 0 if one is not positive, or if there are none. */
function positiveSpan(curves) {
    let low = Infinity, high = 0;
    for (const { min, max } of curves)
        for (let i = 0; i < min.length; i++)
            if (min[i] !== null) {
                low = Math.min(low, min[i]);
                high = Math.max(high, max[i]);
            }
    return low > 0 && low < Infinity ? [low, high] : [0, high];
}

export function createChart(panel) {
    const { options } = panel;
    let specs = options.series.map((one) => (typeof one === 'string' ? { id: one } : one));
    let resolution = 600, table = null, detailTimer = 0, destroyed = false;
    const colours = new Map(); /* key of a series -> number of a colour */
    const offered = new Set(); /* series that were pushed, whether they are shown or not */
    const plot = h('div', { class: 'chart-plot' });
    const view = new View(plot, Object.fromEntries(Object.keys(viewOptions).map((name) => [name, options[name]])),
        windowed);
    const legend = new Legend(view, { add: pick, remove, toggled: () => view.draw(),
        raise: (curve) => { view.raised = curve; view.draw(); } });
    const whole = iconButton('shrink', t('chart.reset'), () => view.reset(), { hidden: true });
    const log = h('button', { type: 'button', class: 'editor-log', title: t('chart.yLog'),
        'aria-label': t('chart.yLog'), 'aria-pressed': String(options.yLog === true), text: 'log',
        on: { click: () => change('yLog', !view.yLog) } });
    view.yLog = options.yLog === true;
    panel.tools.append(whole, log);
    panel.body.append(legend.element, plot);
    if (options.name) panel.setTitle(t(`chart.${options.name}`));
    panel.change = change;
    panel.isLog = () => view.yLog;

    /* --- which curves --- */

    function trainersOf(spec) {
        if (spec.trainer) return state.trainers.has(spec.trainer) ? [spec.trainer] : [];
        if (options.trainer) return [options.trainer];
        return [...state.trainers.values()].filter((trainer) => !trainer.unscheduled).map((trainer) => trainer.name);
    }

    /* Patterns become what is recorded. What is not yet is so from now on, if it exists. */
    async function idsOf(spec, trainer) {
        const known = await recorded(trainer), fits = matcher(spec.id);
        const ids = spec.id.includes('*') ? known.filter((id) => fits.test(id)) : known.includes(spec.id) ? [spec.id]
            : [];
        if (ids.length === 0 || spec.watch) watch(trainer, spec.id).then((fresh) => fresh && !destroyed && reload())
            .catch(toastError);
        return ids;
    }

    /* A series keeps its colour when others come and go. */
    function colour(curves) {
        const taken = new Set(curves.map((curve) => colours.get(curve.key)));
        let next = 1;
        for (const curve of curves) {
            while (!colours.has(curve.key) && taken.has(next)) next++;
            if (!colours.has(curve.key)) {
                colours.set(curve.key, next);
                taken.add(next);
            }
            curve.colour = colours.get(curve.key);
        }
        for (const key of colours.keys()) if (!curves.some((curve) => curve.key === key)) colours.delete(key);
        byTrainer(curves);
    }

    /* With several trainers a colour says which one, and a stroke which value. */
    function byTrainer(curves) {
        const ids = [...new Set(curves.map((curve) => curve.id))];
        const several = new Set(curves.map((curve) => curve.trainer)).size > 1;
        for (const curve of curves) {
            curve.byTrainer = several;
            curve.stroke = several ? ids.indexOf(curve.id) % strokes.length : 0;
        }
    }

    async function resolve() {
        const before = new Map(view.curves.map((curve) => [curve.key, curve])), curves = [], seen = new Set();
        for (const spec of specs)
            for (const trainer of trainersOf(spec))
                for (const id of await idsOf(spec, trainer)) {
                    const key = `${trainer}\n${id}`;
                    if (seen.has(key)) continue;
                    seen.add(key);
                    const curve = before.get(key)?.axis === view.axis ? before.get(key) : new Curve(trainer, id,
                        view.axis, 2 * resolution);
                    curve.visible = before.get(key)?.visible ?? true;
                    curve.spec = spec;
                    curves.push(curve);
                }
        colour(curves);
        return curves;
    }

    /* --- what they are --- */

    async function fetchSeries(curves, query, signal, take) {
        const points = Math.round(resolution / (curves.length > manyCurves ? 3 : curves.length > fewCurves ? 2 : 1));
        const requests = [];
        for (const trainer of new Set(curves.map((curve) => curve.trainer))) {
            const of = curves.filter((curve) => curve.trainer === trainer);
            for (let i = 0; i < of.length; i += idsPerRequest) {
                const part = of.slice(i, i + idsPerRequest);
                requests.push(get('series', { trainer, id: part.map((curve) => curve.id), axis: view.axis,
                    points: query.from === undefined ? points : Math.round(1.5 * points), ...query }, { signal })
                    .then((answer) => answer.series.forEach((found, k) => take(part[k], found))));
            }
        }
        await Promise.all(requests);
    }

    function reload() {
        return panel.load(async (signal) => {
            const axis = view.axis;
            const curves = await resolve();
            for (const curve of curves) curve.loaded = false;
            view.curves = curves;
            legend.build();
            await fetchSeries(curves, {}, signal, (curve, found) => curve.set(found));
            if (axis !== view.axis) return;
            arrived();
            await loadChanges(signal);
            view.draw();
            if (view.zoom || view.follow) loadDetail();
        });
    }

    /* Where nobody has chosen: a logarithmic axis shows more of what falls by much. */
    function chooseLog() {
        if (options.yLog !== 'auto') return;
        const [low, high] = positiveSpan(view.curves.map((curve) => curve.whole));
        view.yLog = low > 0 && high / low >= logFrom;
        log.setAttribute('aria-pressed', String(view.yLog));
    }

    function arrived() {
        chooseLog();
        const some = view.curves.some((curve) => curve.whole.x.length > 0);
        panel.empty(specs.length === 0 ? t('chart.choose') : some ? null : t('chart.waiting'));
        plot.classList.toggle('is-bare', !some);
        panel.element.hidden = options.onlyWithValues && !some;
        legend.update();
        noteStride();
        describe();
        view.draw();
    }

    /* A run of very short steps is sampled: each value is true, but not each is there. */
    function noteStride() {
        const names = new Set(view.curves.map((curve) => curve.trainer));
        const stride = Math.max(1, ...[...names].map((name) => state.trainers.get(name)?.stride ?? 1));
        panel.setNote(stride > 1 ? t('chart.stride', { n: integer(stride) }) : '');
    }

    async function loadChanges(signal) {
        const names = [...new Set(view.curves.map((curve) => curve.trainer))].filter(isPresent);
        const lists = await Promise.all(names.map((trainer) =>
            get('changes', { trainer }, { signal }).catch(() => ({ changes: [] }))));
        view.changes = lists.flatMap((list) => list.changes);
    }

    /* --- a finer part of it for a zoom --- */

    function windowed() {
        whole.hidden = !view.isZoomed();
        clearTimeout(detailTimer);
        if (view.zoom) detailTimer = setTimeout(loadDetail, 120);
        else for (const curve of view.curves) curve.detail = null;
    }

    async function loadDetail() {
        if (destroyed) return;
        const [from, to] = view.zoom ?? view.xRange, open = !view.zoom, room = (to - from) * 0.25, axis = view.axis;
        const begin = Math.max(0, from - room), end = open ? null : to + room;
        try {
            await fetchSeries(view.curves.filter((curve) => curve.whole.reduced), { from: begin, to: end }, undefined,
                (curve, found) => {
                if (curve.axis !== axis) return;
                const pieces = new Pieces(2 * resolution);
                pieces.set(found);
                curve.detail = { from: begin, to: end ?? Infinity, pieces };
            });
        } catch (error) {
            toastError(error);
        }
        view.draw();
    }

    /* --- what the user does --- */

    function change(name, value) {
        panel.setOption(name, value);
        view[name] = value;
        if (name === 'axis') {
            view.zoom = view.yZoom = null;
            windowed();
            reload();
        } else if (name === 'follow') {
            view.zoom = null;
            view.draw();
            if (value) setTimeout(loadDetail, 50);
        } else {
            if (name === 'yLog') {
                view.yZoom = null;
                log.setAttribute('aria-pressed', String(value));
            }
            view.draw();
        }
    }

    function keep() {
        panel.setOption('series', specs.map(({ id, trainer }) => (trainer ? { id, trainer } : id)));
        reload();
    }

    function pick(anchor) {
        pickSeries(anchor, panel, (id, trainer) => view.curves.some((curve) => curve.id === id
            && (!trainer || curve.trainer === trainer)), (spec) => {
            specs = [...specs, { ...spec, watch: true }];
            keep();
        });
    }

    /* Of a pattern, or of all trainers: what is left is named one by one. */
    function remove(curve) {
        const rest = view.curves.filter((other) => other.spec === curve.spec && other !== curve);
        const alone = rest.every((other) => other.id !== curve.id);
        specs = specs.flatMap((spec) => (spec !== curve.spec ? [spec] : alone && !spec.id.includes('*') ? []
            : rest.map((other) => ({ id: other.id, trainer: other.trainer }))));
        keep();
    }

    function showTable(on) {
        table?.remove();
        table = null;
        plot.hidden = on;
        view.shown = !on && panel.visible;
        view.measure();
        if (on) panel.body.append(table = h('div', { class: 'scroll chart-table', tabindex: '0' }, tableOf(view)));
        else view.draw();
    }

    /* It goes on with the run, except under the eyes of who reads further down. */
    function renewTable() {
        if (!table || table.scrollTop > 0) return;
        view.measure();
        fill(table, tableOf(view));
    }

    /* For those who cannot see it. */
    function describe() {
        const parts = view.curves.filter((curve) => curve.visible && curve.whole.x.length > 0).slice(0, 6)
            .map((curve) => t('chart.described', { name: `${curve.trainer} ${curve.id}`, value: number(curve.newest()),
                count: curve.count }));
        view.element.setAttribute('aria-label', `${panel.title}. ${parts.join('; ')}. ${t('chart.table_hint')}`);
    }

    /* --- what comes in --- */

    /* A series that was not there before may be one of those that are wanted. */
    function wanted(trainer, ids) {
        let some = false;
        for (const id of ids) {
            if (offered.has(`${trainer}\n${id}`)) continue;
            offered.add(`${trainer}\n${id}`);
            some ||= !view.curves.some((curve) => curve.key === `${trainer}\n${id}`)
                && specs.some((spec) => trainersOf(spec).includes(trainer) && matcher(spec.id).test(id));
        }
        return some;
    }

    panel.on('points', ({ trainer, series, cut }) => {
        let went = cut === undefined, some = false;
        if (wanted(trainer, Object.keys(series))) reload();
        for (const curve of view.curves) {
            const points = curve.trainer === trainer ? series[curve.id] : undefined;
            if (!points) continue;
            some = true;
            if (!curve.append(points)) went = false;
        }
        if (!went && view.curves.some((curve) => curve.trainer === trainer)) reload();
        if (some) panel.element.hidden = false;
        if (!some || !panel.visible) return;
        panel.empty(null);
        plot.classList.remove('is-bare');
        legend.update();
        view.drawSoon();
    });
    panel.on('change', (found) => {
        if (!view.curves.some((curve) => curve.trainer === found.trainer)) return;
        view.changes.push(found);
        view.draw();
    });
    panel.on('trainers', () => { if (specs.some((spec) => !spec.trainer)) reload(); });
    panel.on('reconnected', () => { forget(); reload(); });
    panel.on('dropped', reload);
    panel.on('theme', () => { view.recolour(); legend.update(); });
    panel.on('colours', () => { view.draw(); legend.update(); });
    panel.every(10000, () => {
        describe();
        noteStride();
        if (view.follow && !view.zoom) loadDetail();
    });
    panel.every(1500, renewTable);
    if (specs.length === 0) panel.empty(t('chart.choose'));
    legend.build();

    return {
        resize(width) {
            const finer = width > resolution * 1.6;
            if (finer || resolution === 600) resolution = Math.max(200, Math.round(width));
            if (finer || !panel.begun) reload();
            panel.begun = true;
        },
        shown() {
            view.shown = !plot.hidden;
            view.draw();
        },
        hidden() { view.shown = false; },
        menu: () => [
            { label: t('chart.add'), icon: 'plus', act: () => pick(panel.menuButton) },
            { label: t('chart.table'), checked: table !== null, act: () => showTable(table === null) },
            '-',
            { label: t('chart.csv'), icon: 'download', act: () => exportCsv(view, panel.title).catch(toastError) },
            { label: t('chart.png'), icon: 'download', act: () => exportPng(view, panel.title) },
            { label: t('chart.svg'), icon: 'download', act: () => exportSvg(view, panel.title) },
            '-',
        ],
        destroy() {
            destroyed = true;
            clearTimeout(detailTimer);
            view.destroy();
        },
    };
}
