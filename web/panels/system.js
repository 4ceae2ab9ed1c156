/* How busy the machine is, and how much of it is this program's. */
import { get } from '../api.js';
import { h, setText } from '../elements.js';
import { bytes, fixed, percent } from '../format.js';
import { t } from '../language.js';
import { definePanel } from '../panel.js';
import { context2d } from '../pixels.js';
import { colour } from '../theme.js';

const kept = 150; /* values, of 2 s each: five minutes */

definePanel('system', {
    icon: 'sliders',
    tab: 'log', order: 3,
    size: { w: 4, h: 10 }, minimum: { w: 3, h: 4 }, heights: { 6: 9, 1: 9 },
    create,
});

/* A line of the last minutes; `own` is drawn below `all`. Values are shares. */
class Spark {
    constructor(name) {
        this.all = [];
        this.own = [];
        this.canvas = h('canvas', { class: 'spark', 'aria-hidden': 'true' });
        this.value = h('b');
        this.note = h('span', { class: 'dim' });
        this.element = h('div', { class: 'gauge' }, h('div', { class: 'gauge-head' },
            h('span', { text: t(`system.${name}`) }), this.value, this.note), this.canvas);
    }

    push(all, own) {
        for (const [list, value] of [[this.all, all], [this.own, own]]) {
            list.push(value ?? null);
            if (list.length > kept) list.shift();
        }
    }

    draw() {
        const made = context2d(this.canvas);
        if (!made) return;
        const { context, width: w, height } = made;
        context.strokeStyle = colour('grid-line');
        context.beginPath();
        for (const y of [0.5, Math.round(height / 2) + 0.5, height - 0.5]) {
            context.moveTo(0, y);
            context.lineTo(w, y);
        }
        context.stroke();
        this.line(context, this.all, w, height, colour('ink-3'), 0);
        this.line(context, this.own, w, height, colour('accent'), 0.16);
    }

    line(context, values, w, height, ink, alpha) {
        const x = (i) => w - (values.length - 1 - i) * (w / (kept - 1)),
            y = (value) => 1 + (1 - Math.min(1, value)) * (height - 2);
        const points = values.map((value, i) => [x(i), value]).filter(([, value]) => value !== null);
        if (points.length === 0) return;
        context.beginPath();
        points.forEach(([px, value], i) => (i === 0 ? context.moveTo(px, y(value)) : context.lineTo(px, y(value))));
        context.strokeStyle = ink;
        context.lineWidth = 1.25;
        context.stroke();
        if (alpha === 0) return;
        context.lineTo(points.at(-1)[0], height);
        context.lineTo(points[0][0], height);
        context.globalAlpha = alpha;
        context.fillStyle = ink;
        context.fill();
        context.globalAlpha = 1;
    }
}

function create(panel) {
    const cpu = new Spark('cpu'), memory = new Spark('memory');
    const load = h('dd'), threads = h('dd'), own = h('dd');
    panel.body.classList.add('system');
    panel.body.append(cpu.element, memory.element,
        h('dl', { class: 'figures' }, h('div', {}, h('dt', { text: t('system.process_memory') }), own),
        h('div', {}, h('dt', { text: t('system.load') }), load), h('div', {}, h('dt', { text: t('system.threads') }),
            threads)));

    function take(now) {
        cpu.push(now.cpu, now.process_cpu);
        memory.push(now.memory / now.memory_total, now.process_memory / now.memory_total);
        setText(cpu.value, percent(now.cpu, 0));
        setText(cpu.note, now.process_cpu === null || now.process_cpu === undefined ? '' : t('system.own',
            { share: percent(now.process_cpu, 0) }));
        setText(memory.value, percent(now.memory / now.memory_total, 0));
        setText(memory.note, t('system.of', { used: bytes(now.memory), total: bytes(now.memory_total) }));
        setText(own, bytes(now.process_memory));
        setText(load, (now.load ?? []).map((value) => fixed(value, 2)).join('  '));
        setText(threads, String(now.threads ?? ''));
        show();
    }

    function show() {
        if (!panel.visible) return;
        cpu.draw();
        memory.draw();
    }

    panel.on('system', take);
    panel.on('theme', show);
    panel.load(async (signal) => take(await get('system', {}, { signal })));
    return { resize: show, shown: show };
}
