/* What a layer gives for examples of the data, in two dimensions: which of them are near each other to the network.
 * The server gives the numbers, of a copy of the network; the page projects them, so that no training waits. */
import { get } from '../api.js';
import { button, fill, h, icon, iconButton, select, setText } from '../elements.js';
import { integer, number, percent } from '../format.js';
import { drawExample, nameOf } from '../inspect/examples.js';
import { Pace } from '../inspect/pace.js';
import { t } from '../language.js';
import { definePanel } from '../panel.js';
import { project } from '../projector/project.js';
import { lookOf, Scatter } from '../projector/scatter.js';
import { state } from '../store.js';

definePanel('projector', {
    icon: 'chart',
    tab: 'inspect', order: 5,
    size: { w: 12, h: 15 }, minimum: { w: 4, h: 8 }, heights: { 6: 15, 1: 21 },
    options: { layer: '', data: '', method: 'pca', examples: 500 },
    create,
});

function create(panel) {
    let found = null, points = null, wanted = null, onlyButtons = [];
    const pace = new Pace(15000), cache = new Map(); /* examples that were looked at */
    const choice = (name, label) => select([], '', (value) => turn(name, value), { 'aria-label': label });
    const layer = choice('layer', t('projector.layer')), data = choice('data', t('confusion.data'));
    const method = select([['pca', 'PCA'], ['tsne', 't-SNE']], panel.options.method, (value) => turn('method', value),
        { 'aria-label': t('projector.method') });
    const examples = select([100, 500, 1000, 2000].map((n) => [n, t('projector.examples', { n: integer(n) })]),
        panel.options.examples, (value) => turn('examples', Number(value)), { 'aria-label': t('projector.how_many') });
    const scatter = new Scatter((i) => tell(i));
    const legend = h('div', { class: 'projector-legend', role: 'group', 'aria-label': t('projector.legend') });
    const told = h('div', { class: 'projector-told', 'aria-live': 'polite' });
    const rows = h('div', { class: 'scroll projector-table', hidden: true, tabindex: '0' });
    const asTable = iconButton('table', t('chart.table'), () => showTable(rows.hidden), { 'aria-pressed': 'false' });
    panel.body.append(h('div', { class: 'toolbar' }, layer, data, method, examples,
        button(t('projector.again'), () => begin()), asTable),
    h('div', { class: 'projector' }, h('div', { class: 'projector-plot' }, scatter.canvas, rows),
        h('div', { class: 'projector-side' }, told, legend)));

    function turn(name, value) {
        panel.setOption(name, value);
        begin();
    }

    function offer(element, names, value) {
        if ([...element.options].map((option) => option.value).join('\n') !== names.join('\n'))
            element.replaceChildren(...names.map((name) => h('option', { value: name, text: name })));
        element.value = value;
    }

    /* --- one example --- */

    const label = (item) => (found.classes === null ? '' : `${nameOf(found.names, item.target)} → ${
        nameOf(found.names, item.prediction)}`);

    /* The picture follows when the pointer rests. */
    function tell(i) {
        const item = found.items[i], text = t('confusion.example', { n: integer(item.index) });
        wanted = item.index;
        if (cache.has(item.index)) fill(told, h('b', { text }), cache.get(item.index));
        else {
            fill(told, h('b', { text }), h('span', { text: label(item) }));
            setTimeout(() => { if (wanted === item.index) fetchExample(item.index, text); }, 150);
        }
    }

    async function fetchExample(index, text) {
        const asked = found;
        try {
            const answer = await get('data', { trainer: panel.trainer(), data: panel.options.data || undefined,
                example: index });
            if (asked !== found || answer.items.length === 0) return;
            cache.set(index, drawExample(answer.items[0], answer));
            if (wanted === index) fill(told, h('b', { text }), cache.get(index));
        } catch (error) {
            if (wanted === index) panel.setNote(error.message);
        }
    }

    /* --- all of them --- */

    function drawLegend() {
        const counts = new Map();
        for (const { target } of found.items) counts.set(target, (counts.get(target) ?? 0) + 1);
        const classes = [...counts.keys()].filter((target) => target !== null).sort((a, b) => a - b);
        if (!classes.includes(scatter.only)) scatter.only = null;
        onlyButtons = classes.map((target) => {
            const { ink, hollow } = lookOf(target), swatch = h('span', { class: 'projector-swatch' });
            swatch.style.borderColor = ink;
            swatch.style.background = hollow ? 'none' : ink;
            return h('button', { type: 'button', class: 'projector-class', data: { class: String(target) },
                'aria-pressed': String(scatter.only === target), title: t('projector.only'),
                on: { click: () => bringForward(target) } }, swatch, h('span', { text: nameOf(found.names, target) }),
            h('span', { class: 'dim', text: integer(counts.get(target)) }));
        });
        const wrong = found.items.filter((item) => item.target !== item.prediction).length;
        fill(legend, onlyButtons, classes.length > 0 ? h('span', { class: 'projector-wrong dim' }, icon('close'),
            t('projector.wrong', { n: integer(wrong) })) : null);
    }

    function bringForward(target) {
        scatter.only = scatter.only === target ? null : target;
        for (const one of onlyButtons)
            one.setAttribute('aria-pressed', String(Number(one.dataset.class) === scatter.only));
        scatter.draw();
    }

    function drawTable() {
        if (rows.hidden || !found || !points || rows.contains(document.activeElement)) return;
        const head = [t('projector.example'), t('projector.class'), t('projector.prediction'), 'x', 'y'];
        const { scrollTop } = rows;
        fill(rows, h('table', { class: 'table' }, h('thead', {}, h('tr', {}, head.map((text, i) =>
            h('th', { scope: 'col', class: i > 2 ? 'is-number' : '', text })))), h('tbody', {}, found.items.map(
            (item, i) => h('tr', {}, h('th', { scope: 'row' }, button(integer(item.index), () => point(i),
                { class: 'button is-quiet' })), h('td', { text: nameOf(found.names, item.target) }),
            h('td', { class: item.target === item.prediction ? '' : 'is-wrong',
                text: nameOf(found.names, item.prediction) }),
            h('td', { class: 'is-number', text: number(points[2 * i], 3) }),
            h('td', { class: 'is-number', text: number(points[2 * i + 1], 3) }))))));
        rows.scrollTop = scrollTop;
    }

    function point(i) {
        scatter.choose(i);
        tell(i);
    }

    function showTable(on) {
        rows.hidden = !on;
        scatter.canvas.hidden = on;
        asTable.setAttribute('aria-pressed', String(on));
        drawTable();
        scatter.draw();
    }

    function show(at) {
        points = at;
        scatter.set(points, found.items.map((item) => item.target),
            found.items.map((item) => found.classes !== null && item.target !== item.prediction));
    }

    /* --- what comes in --- */

    async function ask(signal) {
        const query = { trainer: panel.trainer(), data: panel.options.data || undefined,
            examples: panel.options.examples };
        try {
            return await get('layer', { ...query, layer: panel.options.layer || undefined }, { signal });
        } catch (error) {
            if (error.code !== 404 || (!panel.options.layer && !panel.options.data)) throw error;
            for (const name of ['layer', 'data']) panel.setOption(name, ''); /* they were of another network */
            return get('layer', { ...query, data: undefined }, { signal });
        }
    }

    async function load(signal) {
        if (panel.present() === null) return;
        const before = found, former = points;
        const key = ({ layer: name, width, items }) => [panel.options.data, panel.options.method, name, width,
            ...items.map((item) => item.index)].join();
        const answer = await ask(signal), same = before !== null && before.key === key(answer);
        answer.key = key(answer);
        offer(layer, answer.layers, answer.layer);
        offer(data, answer.data, answer.data.includes(panel.options.data) ? panel.options.data
            : answer.data[1] ?? answer.data[0]);
        const result = await project(answer.items, panel.options.method, same ? former : null, signal, (at) => {
            begun(answer);
            show(at);
        });
        begun(answer);
        show(result.points);
        tellAll(result.share);
        drawTable();
    }

    /* From here on these examples are shown; what was said of others is forgotten. */
    function begun(answer) {
        if (found === answer) return;
        const others = found?.key !== answer.key;
        found = answer;
        cache.clear();
        if (others) {
            wanted = null;
            scatter.choose(-1);
            fill(told, h('span', { class: 'dim', text: t('projector.hint') }));
        }
        drawLegend();
    }

    function tellAll(share) {
        const text = t('projector.sum', { n: integer(found.items.length), all: integer(found.examples),
            width: integer(found.width), iteration: integer(found.iteration) });
        const whole = share === null ? text : `${text}, ${t('projector.share', { share: percent(share, 0) })}`;
        panel.setNote(whole);
        scatter.canvas.setAttribute('aria-label', `${panel.title}: ${found.layer}. ${whole}. ${t('projector.keys')}`);
    }

    const look = (signal) => pace.during(() => load(signal));
    const begin = () => panel.load(look);
    panel.every(1000, () => {
        const moved = state.trainers.get(panel.trainer())?.iteration !== found?.iteration;
        if (found && moved && pace.due && !scatter.held) panel.renew(look);
    });
    panel.on('trainer', () => { found = points = null; scatter.set(new Float64Array(0), [], []); begin(); });
    panel.on('reconnected', begin);
    panel.on('theme', () => { if (found) drawLegend(); scatter.draw(); cache.clear(); });
    begin();
    return { resize: () => scatter.draw(), shown: () => scatter.draw() };
}
