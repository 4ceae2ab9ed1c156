/* What is going on: how far it is, how long it will take, and a way to end it. */
import { get, post } from '../api.js';
import { fill, h, iconButton, setText } from '../elements.js';
import { bytes, count, percent, roughly } from '../format.js';
import { t } from '../language.js';
import { toastError } from '../overlays.js';
import { definePanel } from '../panel.js';

const longEnough = 400; /* milliseconds: what is shorter would only flicker */
const keepEnded = 5000;

definePanel('tasks', {
    icon: 'check',
    tab: 'log', order: 2,
    size: { w: 4, h: 9 }, minimum: { w: 3, h: 3 }, heights: { 1: 8 },
    create,
});

function amount(task) {
    const text = task.unit === 'bytes' ? bytes : count;
    const unit = task.unit === 'bytes' ? '' : ` ${task.unit ?? ''}`;
    if (task.total > 0) return `${text(task.done)} / ${text(task.total)}${unit}`;
    return task.done > 0 ? text(task.done) + unit : '';
}

function left(task) {
    if (task.paused) return t('state.paused');
    if (!(task.rate > 0) || !(task.total > 0)) return '';
    const rate = task.unit === 'bytes' ? bytes(task.rate) : count(task.rate);
    return t('tasks.rate', { rate, left: roughly((task.total - task.done) / task.rate) });
}

class Row {
    constructor(task) {
        this.bar = h('div', { class: 'progress-fill' });
        this.track = h('div', { class: 'progress', role: 'progressbar', 'aria-label': task.description,
            'aria-valuemin': 0, 'aria-valuemax': 100 }, this.bar);
        this.share = h('b');
        this.amount = h('span', { class: 'dim' });
        this.speed = h('span', { class: 'dim task-speed' });
        this.cancel = iconButton('close', t('tasks.cancel', { name: task.description }), async () => {
            this.cancel.disabled = true;
            await post('task-cancel', { task: task.task }).catch(toastError);
            this.cancel.disabled = false;
        }, { 'data-needs': 'steer' });
        this.element = h('li', { class: 'task' }, h('div', { class: 'task-head' },
            h('span', { class: 'task-name', text: task.description.startsWith('/') ? task.description.split('/').at(-1)
            : task.description, title: task.description }),
            h('span', { class: 'badge', text: task.going || task.kind }), this.share, this.cancel),
            this.track, h('div', { class: 'task-foot' }, this.amount, this.speed));
        this.update(task);
    }

    update(task) {
        const known = Number.isFinite(task.progress), running = task.status === 'running';
        this.element.dataset.status = task.status;
        this.track.classList.toggle('is-unknown', !known && running);
        this.bar.style.transform = known ? `scaleX(${task.progress})` : '';
        if (known) this.track.setAttribute('aria-valuenow', Math.round(task.progress * 100));
        setText(this.share, running ? (known ? percent(task.progress, 0) : '') : t(`tasks.${task.status}`));
        setText(this.amount, amount(task));
        setText(this.speed, running ? left(task) : roughly(task.seconds));
        this.cancel.hidden = !task.can_cancel || !running;
    }
}

function create(panel) {
    const rows = new Map(), begun = new Map(); /* begun: not shown yet */
    const list = h('ul', { class: 'tasks scroll', tabindex: '0', 'aria-label': t('panel.tasks') });
    panel.body.append(list);

    function note() {
        panel.setNote(rows.size > 0 ? String(rows.size) : '');
        panel.empty(rows.size === 0 ? t('tasks.none') : null);
    }

    function remove(key) {
        rows.get(key)?.element.remove();
        rows.delete(key);
        note();
    }

    function show(task) {
        begun.delete(task.task);
        rows.set(task.task, new Row(task));
        list.append(rows.get(task.task).element);
        note();
    }

    function take(task) {
        const row = rows.get(task.task);
        if (row) row.update(task);
        if (task.status === 'running') {
            if (row) return;
            if (begun.has(task.task)) begun.get(task.task).task = task;
            else {
                const one = { task, timer: setTimeout(() => show(one.task), longEnough) };
                begun.set(task.task, one);
            }
            return;
        }
        clearTimeout(begun.get(task.task)?.timer);
        begun.delete(task.task);
        if (!row && task.status === 'failed') show(task);
        if (rows.has(task.task)) setTimeout(() => remove(task.task), keepEnded);
    }

    const reload = () => panel.load(async (signal) => {
        const { tasks } = await get('tasks', {}, { signal });
        for (const { timer } of begun.values()) clearTimeout(timer);
        begun.clear();
        rows.clear();
        fill(list);
        for (const task of tasks) if (task.status === 'running') take(task);
        note();
    });
    panel.on('task', take);
    panel.on('reconnected', reload);
    reload();
}
