/* The network as a graph: what each layer gives, how many parameters it has, what they take, and, while it trains,
 * how long. A layer that is chosen tells all of it, and its tensors can be looked at. */
import { command, get } from '../api.js';
import { button, fill, h } from '../elements.js';
import { bytes, count, integer, percent, shortTime } from '../format.js';
import { arrange } from '../inspect/graph.js';
import { look } from '../inspect/look.js';
import { t } from '../language.js';
import { toast, toastError } from '../overlays.js';
import { definePanel } from '../panel.js';
import { state } from '../store.js';

definePanel('network', {
    icon: 'branch',
    tab: 'inspect', order: 1,
    size: { w: 4, h: 24 }, minimum: { w: 3, h: 6 }, heights: { 6: 16, 1: 16 },
    create,
});

const box = { width: 190, height: 46, gap: 20, space: 26 };
const space = 'http://www.w3.org/2000/svg';

function s(tag, attributes = {}, ...children) {
    const element = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
}

function shapeText(shape) {
    return shape.length === 0 ? '1' : shape.join(' × ');
}

/* Roughly what fits: the whole is in the details. */
function short(text, maximum) {
    return text.length > maximum ? `${text.slice(0, maximum - 1)}…` : text;
}

function kindOf(layer) {
    if (layer.cost) return 'cost';
    if (layer.type === 'input') return 'input';
    return layer.parameters > 0 ? 'trained' : 'plain';
}

const milliseconds = (value) => shortTime(value / 1000);

/* "1.2 ms (34.0 %)"; "" as long as nothing was measured. */
function timeText(one) {
    return one.milliseconds === null ? '' : `${milliseconds(one.milliseconds)} (${percent(one.share)})`;
}

function label(layer) {
    return [layer.name, t('network.shape', { shape: shapeText(layer.shape) }), layer.parameters > 0
        ? t('network.parameters', { n: integer(layer.parameters) }) : '', timeText(layer)].filter(Boolean).join(', ');
}

/* Also of a box that is there already. */
function showTime(element, layer) {
    const known = layer.milliseconds !== null;
    element.setAttribute('aria-label', label(layer));
    element.querySelector('title').textContent = `${label(layer)}${layer.arguments ? `\n${layer.arguments}` : ''}`;
    element.querySelector('.layer-time').textContent = known && layer.milliseconds > 0
        ? milliseconds(layer.milliseconds) : '';
    element.querySelector('.layer-share').setAttribute('width', known ? (box.width - 22) * layer.share : 0);
}

function drawBox(placed, choose) {
    const { layer } = placed, name = layer.name.replace(/^(\d+)-(.*)$/, '$2');
    const second = [shapeText(layer.shape), layer.parameters > 0 ? count(layer.parameters) : '']
        .filter(Boolean);
    const element = s('g', { class: 'layer', tabindex: '0', role: 'button',
        'data-kind': kindOf(layer), transform: `translate(${placed.x} ${placed.y})` },
    s('rect', { width: box.width, height: box.height, rx: 7 }),
    s('rect', { class: 'layer-share', x: 11, y: box.height - 5, width: 0, height: 3, rx: 1.5 }),
    s('text', { class: 'layer-name', x: 11, y: 19 }, short(name, 14)),
    s('text', { class: 'layer-time', x: box.width - 11, y: 19, 'text-anchor': 'end' }),
    s('text', { class: 'layer-shape', x: 11, y: 36 }, short(layer.cost ? t('network.cost') : second[0], 18)));
    if (second[1]) element.append(s('text', { class: 'layer-count', x: box.width - 11, y: 36, 'text-anchor': 'end' },
        second[1]));
    element.append(s('title'));
    showTime(element, layer);
    element.addEventListener('click', () => choose(layer));
    element.addEventListener('keydown', (event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        event.stopPropagation();
        choose(layer);
    });
    return element;
}

function drawEdge([from, to]) {
    const x1 = from.x + box.width / 2, y1 = from.y + box.height, x2 = to.x + box.width / 2, y2 = to.y;
    const bend = Math.min(26, (y2 - y1) / 2);
    return s('path', { class: 'edge', 'marker-end': 'url(#layer-arrow)',
        d: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend - 3} ${x2} ${y2 - 3}` });
}

function draw(layers, choose) {
    const placed = arrange(layers, box), margin = 2;
    const svg = s('svg', { class: 'layers', width: placed.width + 2 * margin, height: placed.height + 2 * margin,
        viewBox: `${-margin} ${-margin} ${placed.width + 2 * margin} ${placed.height + 2 * margin}`, role: 'group',
        'aria-label': t('panel.network') }, s('defs', {}, s('marker', { id: 'layer-arrow', viewBox: '0 0 6 6',
        refX: 5, refY: 3, markerWidth: 6, markerHeight: 6, orient: 'auto' }, s('path', { d: 'M0 0L6 3L0 6z' }))));
    svg.append(...placed.edges.map(drawEdge));
    const elements = placed.boxes.map((one) => [one.layer.name, drawBox(one, choose)]);
    svg.append(...elements.map(([, element]) => element));
    return { svg, elements: new Map(elements) };
}

/* All parameters of the layer: to stay as they are, or to be trained again. */
function freezing(layer, panel) {
    const act = async (name) => {
        try {
            await command(panel.trainer(), name, { pattern: `${layer.name}.*` });
            toast(t(`network.${name}_done`, { name: layer.name }));
        } catch (error) {
            toastError(error);
        }
    };
    return h('div', { class: 'layer-tensors', 'data-needs': 'steer' }, ['freeze', 'unfreeze'].map((name) =>
        button(t(`network.${name}`), () => act(name), { class: 'button is-small',
            title: t(`network.${name}_tip`, { name: layer.name }) })));
}

function details(layer, panel) {
    const rows = [['network.type', layer.type], ['network.arguments', layer.arguments],
        ['network.gives', shapeText(layer.shape)],
        ['network.trained', layer.parameters > 0 ? integer(layer.parameters) : ''],
        ['network.memory', layer.bytes > 0 ? bytes(layer.bytes) : ''],
        ['network.activation', t('network.each', { size: bytes(layer.activation) })]];
    return [h('dl', { class: 'facts' }, rows.filter(([, value]) => value !== '').map(([key, value]) =>
        h('div', {}, h('dt', { text: t(key) }), h('dd', { text: value })))),
    layer.tensors.length === 0 ? null : h('div', { class: 'layer-tensors' }, layer.tensors.map((tensor) =>
        button(`${tensor.name.slice(layer.name.length + 1)}  ${shapeText(tensor.shape)}`,
            () => look(panel.trainer(), tensor.identifier),
            { class: 'button is-small', title: t('network.look', { name: tensor.name }) }))),
    layer.parameters > 0 ? freezing(layer, panel) : null];
}

/* Of the layer, and of the whole step. */
function times(layer, whole) {
    if (layer.milliseconds === null) return [];
    const phases = ['forward', 'backward', 'update'].filter((phase) => layer[phase] > 0)
        .map((phase) => t(`network.${phase}`, { time: milliseconds(layer[phase]) })).join(', ');
    return [['network.time', timeText(layer)], ['network.phases', phases],
        ['network.step', t('network.whole', { time: milliseconds(whole.milliseconds),
            other: milliseconds(whole.other.milliseconds) })]]
        .filter(([, value]) => value !== '')
        .map(([key, value]) => h('div', {}, h('dt', { text: t(key) }), h('dd', { text: value })));
}

function create(panel) {
    let chosen = null, elements = new Map(), newest = null;
    /* What changes all the time is not read aloud. */
    const canvas = h('div', { class: 'scroll layers-scroll' }), facts = h('div', { 'aria-live': 'polite' });
    const taken = h('dl', { class: 'facts' });
    panel.body.append(canvas, h('div', { class: 'layer-facts' }, taken, facts));

    function showTimes(found) {
        newest = found;
        for (const layer of found.layers) {
            const element = elements.get(layer.name);
            if (element) showTime(element, layer);
        }
        const layer = found.layers.find((one) => one.name === chosen);
        fill(taken, layer ? times(layer, found.time) : []);
    }

    function choose(layer) {
        elements.get(chosen)?.classList.remove('is-chosen');
        chosen = layer.name;
        elements.get(chosen)?.classList.add('is-chosen');
        fill(facts, details(layer, panel));
        fill(taken, times(newest.layers.find((one) => one.name === chosen) ?? layer, newest.time));
    }

    const ask = (signal) => get('network', { trainer: panel.trainer(), time: 1 }, { signal });

    const reload = () => panel.load(async (signal) => {
        if (panel.trainer() === null) return;
        const found = await ask(signal);
        newest = found;
        const drawn = draw(found.layers, choose);
        elements = drawn.elements;
        fill(canvas, drawn.svg);
        panel.setNote(t('network.sum', { n: integer(found.parameters), size: bytes(found.bytes) }));
        choose(found.layers.find((layer) => layer.name === chosen)
            ?? found.layers.find((layer) => layer.parameters > 0) ?? found.layers[0]);
    });
    /* Asking has the next steps measured: only while it trains, and somebody looks. */
    let asking = null;
    panel.every(2000, async () => {
        if (state.trainers.get(panel.present())?.state !== 'running' || elements.size === 0) return;
        asking?.abort();
        const own = asking = new AbortController(), trainer = panel.trainer();
        const found = await ask(own.signal).catch(() => null); /* a reload tells what is wrong */
        if (found && own === asking && trainer === panel.trainer()) showTimes(found);
    });
    panel.on('trainer', reload);
    panel.on('reconnected', reload);
    panel.on('change', (change) => { if (change.identifier?.startsWith('network.layers.')) reload(); });
    reload();
}
