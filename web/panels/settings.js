/* Everything of a trainer that can be read or set, by where it belongs. */
import { command, get } from '../api.js';
import { editorOf } from '../editors.js';
import { button, fill, h, icon, iconButton, setIcon, setText } from '../elements.js';
import { integer, number, plain } from '../format.js';
import { tensorOf } from '../inspect/tensors.js';
import { has, t } from '../language.js';
import { addPanel } from '../layout.js';
import { announce, errorText, toastError } from '../overlays.js';
import { definePanel } from '../panel.js';
import { state } from '../store.js';

const filters = ['settable', 'all', 'changed'];
const manyEntries = 150; /* groups are closed then */
const statusTime = 6000;

definePanel('settings', {
    icon: 'sliders',
    tab: 'settings', order: 1,
    size: { w: 7, h: 19 }, minimum: { w: 4, h: 6 }, heights: { 1: 16 },
    options: { filter: 'settable', closed: [] },
    create,
});

function isChanged(entry) {
    return entry.settable && entry.default !== null && entry.default !== undefined && entry.value !== entry.default;
}

/* The optimiser that runs does not have it. */
function isUnused(entry) {
    return entry.settable && (entry.value === null || entry.value === undefined)
        && (entry.kind === 'number' || entry.kind === 'integer');
}

/* optimiser.schedule.kind belongs to optimiser.schedule. */
function groupOf(identifier) {
    const dot = identifier.lastIndexOf('.');
    return dot < 0 ? '' : identifier.slice(0, dot);
}

/* As the program has them, but optimiser before optimiser.schedule. */
function inOrder(groups) {
    const first = new Map(), top = (name) => name.split('.')[0];
    for (const name of groups.keys()) if (!first.has(top(name))) first.set(top(name), first.size);
    const deepest = (name) => name.split('.').length;
    return [...groups].map((group, i) => ({ group, i }))
        .sort((a, b) => first.get(top(a.group[0])) - first.get(top(b.group[0]))
        || (deepest(a.group[0]) === 1 ? -1 : deepest(b.group[0]) === 1 ? 1 : 0) || a.i - b.i).map(({ group }) => group);
}

/* When a change counts, as the program says it; in the page's language if it is one of the usual ones. */
const effects = {
    'from the next iteration on': 'effect.iteration',
    'from the next epoch on': 'effect.epoch',
    'from the next validation on': 'effect.validation',
    'from the first minibatch after the next update on': 'effect.update',
};

function effectText({ effect }) {
    return effect in effects ? t(effects[effect]) : effect ?? t('effect.iteration');
}

function unitText({ unit }) {
    return unit && has(`unit.${unit}`) ? t(`unit.${unit}`) : unit ?? '';
}

class Row {
    constructor(panel, entry, undoable, why) {
        this.panel = panel;
        this.why = why;
        this.entry = entry;
        this.status = h('span', { class: 'parameter-status', 'aria-live': 'polite' });
        this.detail = h('div', { class: 'parameter-detail', hidden: true });
        this.error = h('p', { class: 'parameter-error', role: 'alert', hidden: true });
        this.name = h('button', { type: 'button', class: 'parameter-name mono', 'aria-expanded': 'false',
            title: entry.doc ? `${entry.identifier}\n${entry.doc}` : entry.identifier,
            text: entry.identifier.slice(groupOf(entry.identifier).length).replace(/^\./, ''),
                on: { click: () => this.expand() } });
        this.editor = editorOf(entry, (value) => this.set(value));
        this.undo = iconButton('undo', t('settings.undo'), () => this.takeBack(), { hidden: true });
        this.default = iconButton('reset', '', () => this.set(plain(this.entry.default)), { hidden: true });
        const numeric = (entry.kind === 'number' || entry.kind === 'integer') && !isUnused(entry);
        this.chart = numeric ? iconButton('chart', t('settings.chart'),
            () => addPanel('chart', { series: [entry.identifier] })) : null;
        this.element = h('li', { class: 'parameter', title: entry.doc, data: { settable: String(entry.settable) } },
            h('div', { class: 'parameter-row' }, this.name,
            h('div', { class: 'parameter-editor' }, this.editor.element), h('div', { class: 'parameter-note' },
                h('span', { class: 'parameter-unit', text: unitText(entry) }), this.status),
            h('div', { class: 'parameter-tools' }, this.undo, this.default, this.chart)), this.error, this.detail);
        this.change = undoable;
        this.element.addEventListener('givenup', () => {
            if (this.element.dataset.state === 'error') this.forgive();
        });
        this.update(entry);
    }

    update(entry) {
        this.moved ||= entry.value !== this.entry.value; /* from elsewhere: what was refused here is of the past */
        this.entry = entry;
        const state = this.element.dataset.state, busy = this.editor.busy();
        if (state === 'error' && this.moved && !busy) this.forgive();
        else if (state !== 'pending' && state !== 'error' && !busy) this.editor.update(entry);
        this.default.hidden = !isChanged(entry);
        const label = t('settings.default', { value: plain(entry.default) });
        this.default.title = label;
        this.default.setAttribute('aria-label', label);
        this.undo.hidden = !this.change?.undoable;
    }

    expand() {
        const open = this.detail.hidden, { entry } = this;
        this.detail.hidden = !open;
        this.name.setAttribute('aria-expanded', String(open));
        if (!open) return;
        const facts = [['settings.identifier', entry.identifier], ['settings.kind', entry.kind]];
        if (entry.minimum !== null && entry.minimum !== undefined) facts.push(['settings.bounds',
            entry.maximum >= 1e29 ? t('settings.at_least', { value: plain(entry.minimum) })
                : `${plain(entry.minimum)} … ${plain(entry.maximum)}`]);
        if (entry.default !== null && entry.default !== undefined) facts.push(['settings.default_value',
            plain(entry.default)]);
        if (entry.settable && entry.kind !== 'tensor') facts.push(['settings.effect', effectText(entry)]);
        fill(this.detail, entry.doc ? h('p', { text: entry.doc }) : null,
            h('dl', {}, facts.map(([key, value]) => h('div', {}, h('dt', { text: t(key) }),
                h('dd', { text: value })))));
        if (entry.kind === 'tensor' && tensorOf(entry.identifier)) this.describeTensor();
    }

    /* Its numbers in short, and the way to its panels. */
    async describeTensor() {
        const id = this.entry.identifier, numbers = h('p', { class: 'dim' });
        this.detail.append(numbers, h('div', { class: 'parameter-ways' }, ['histogram', 'picture'].map((kind) =>
            button(t(`panel.${kind}`), () => addPanel(kind, { tensor: tensorOf(id) }),
                { class: 'button is-quiet' }))));
        try {
            const found = await get('histogram', { trainer: this.panel.trainer(), id, bins: 2 });
            numbers.textContent = ['minimum', 'mean', 'maximum', 'standard_deviation'].map((name) =>
                `${t(`histogram.${name}`)} ${number(found[name])}`).join('   ');
        } catch (error) {
            numbers.textContent = errorText(error);
        }
    }

    /* What was refused is no longer in the field. */
    forgive() {
        this.say('');
        this.error.hidden = true;
        this.editor.update(this.entry);
    }

    say(state, text = '', whole = text) {
        this.element.dataset.state = state;
        setText(this.status, text);
        this.status.title = whole;
    }

    async change_(act) {
        this.say('pending', t('settings.pending'));
        this.moved = false;
        this.changedAt = null;
        this.error.hidden = true;
        try {
            await act();
            const iteration = this.changedAt ?? state.trainers.get(this.panel.trainer())?.iteration;
            this.sayWhen(iteration);
            announce(`${this.entry.identifier}: ${this.status.title}`);
            setTimeout(() => { if (this.element.dataset.state === 'done') this.say(''); }, statusTime);
        } catch (error) {
            this.say('error');
            const own = `${this.panel.trainer()}.${this.entry.identifier}`, text = errorText(error);
            this.error.textContent = text.startsWith(own) ? text.slice(own.length - this.entry.identifier.length)
                : text;
            this.error.hidden = false;
        }
    }

    set(value) {
        return this.change_(async () => {
            const answer = await command(this.panel.trainer(), 'set', { identifier: this.entry.identifier, value,
                ...this.why.given() });
            this.why.clear();
            const found = answer.values?.find((one) => one.identifier === this.entry.identifier);
            this.say('');
            if (found) {
                this.editor.update({ ...this.entry, ...found });
                this.update({ ...this.entry, ...found });
            }
        });
    }

    /* The program says where it was: better known than when its answer comes. */
    noted(change) {
        this.change = change;
        this.changedAt = change.iteration;
        if (this.element.dataset.state === 'done') this.sayWhen(change.iteration);
    }

    sayWhen(iteration) {
        const next = (this.entry.effect ?? 'from the next iteration on') === 'from the next iteration on';
        const text = next ? t('settings.done', { iteration: integer((iteration ?? 0) + 1) })
            : effectText(this.entry);
        this.say('done', text, t('settings.done_tip', { when: text }));
    }

    takeBack() {
        return this.change_(async () => {
            await command(this.panel.trainer(), 'undo', { number: this.change.number, ...this.why.given() });
            this.why.clear();
        });
    }
}

/* Why the next value is changed: the journal keeps it. */
function reasonField() {
    const element = h('input', { class: 'input settings-reason', maxlength: 200, placeholder: t('settings.reason'),
        'aria-label': t('settings.reason'), title: t('settings.reason_tip'), autocomplete: 'off',
        'data-needs': 'steer' });
    return { element, given: () => (element.value.trim() ? { reason: element.value.trim() } : {}),
        clear: () => { element.value = ''; } };
}

function create(panel) {
    const rows = new Map(), changes = new Map();
    let entries = [], shape = '', opened = new Set();
    const search = h('input', { class: 'input', type: 'search', placeholder: t('settings.search'),
        'aria-label': t('settings.search'), on: { input: () => build() } });
    const segments = h('div', { class: 'segments', role: 'group', 'aria-label': t('settings.filter') },
        filters.map((name) =>
        h('button', { type: 'button', class: 'segment', data: { name }, text: t(`settings.${name}`),
            'aria-pressed': String(name === panel.options.filter), on: { click: () => {
            panel.setOption('filter', name);
            for (const other of segments.children) other.setAttribute('aria-pressed',
                String(other.dataset.name === name));
            build();
        } } })));
    const list = h('div', { class: 'parameters scroll', tabindex: '-1' }), why = reasonField();
    panel.body.append(h('div', { class: 'toolbar' }, h('div', { class: 'search' }, icon('search'), search), segments,
        why.element), list);

    function fits(entry, words) {
        const { filter } = panel.options;
        if (filter === 'settable' && (!entry.settable || entry.kind === 'tensor' || isUnused(entry))) return false;
        if (filter === 'changed' && !isChanged(entry) && !changes.has(entry.identifier)) return false;
        return words.every((word) => entry.identifier.toLowerCase().includes(word) || entry.doc?.toLowerCase()
            .includes(word));
    }

    function rowOf(entry) {
        if (!rows.has(entry.identifier)) rows.set(entry.identifier,
            new Row(panel, entry, changes.get(entry.identifier), why));
        return rows.get(entry.identifier);
    }

    function isOpen(name, searching, count) {
        if (searching) return true;
        if (panel.options.closed.includes(name)) return false;
        return count <= manyEntries || opened.has(name) || name === 'optimiser';
    }

    function flip(name, open) {
        opened = new Set(opened);
        if (open) opened.add(name);
        else opened.delete(name);
        panel.setOption('closed', open ? panel.options.closed.filter((other) => other !== name)
            : [...panel.options.closed, name]);
        build();
        list.querySelector(`[data-group="${CSS.escape(name)}"]`)?.focus();
    }

    function build() {
        const words = search.value.toLowerCase().split(/\s+/).filter(Boolean), groups = new Map();
        const shown = entries.filter((entry) => fits(entry, words));
        for (const entry of shown) {
            const name = groupOf(entry.identifier);
            if (!groups.has(name)) groups.set(name, []);
            groups.get(name).push(entry);
        }
        fill(list, inOrder(groups).map(([name, members]) => {
            const open = isOpen(name, words.length > 0, shown.length);
            const arrow = h('span', {}, icon('right'));
            if (open) setIcon(arrow, 'down');
            return h('section', { class: 'parameter-group' },
                h('h3', {}, h('button', { type: 'button', class: 'parameter-heading', data: { group: name },
                'aria-expanded': String(open),
                on: { click: () => flip(name, !open) } }, arrow,
                    h('span', { class: 'mono', text: name || t('settings.top') }),
                    h('span', { class: 'dim', text: integer(members.length) }))),
            open ? h('ul', {}, members.map((entry) => rowOf(entry).element)) : null);
        }));
        panel.setNote(t('settings.count', { n: integer(shown.length), all: integer(entries.length) }));
        if (shown.length === 0 && entries.length > 0) list.append(h('p',
            { class: 'nothing', text: t(panel.options.filter === 'changed' ? 'settings.none_changed'
            : 'settings.none') }));
    }

    function take(found) {
        entries = found;
        const shapeOf = (one) => `${one.identifier} ${one.kind} ${one.settable} ${isUnused(one)}`;
        const now = found.map(shapeOf).join('\n');
        for (const entry of found) rows.get(entry.identifier)?.update(entry);
        if (now === shape && panel.options.filter !== 'changed') return;
        if (now !== shape) rows.clear();
        shape = now;
        if (!list.contains(document.activeElement)) build();
    }

    async function loadAll(signal) {
        const trainer = panel.present();
        if (trainer === null) return panel.empty(t('state.gone'));
        const [tree, past] = await Promise.all([get('tree', { trainer }, { signal }),
            get('changes', { trainer }, { signal })]);
        changes.clear();
        for (const change of past.changes) changes.set(change.identifier, change);
        panel.empty(null);
        take(tree.entries);
    }

    const reload = () => panel.load(loadAll);
    panel.on('change', (change) => {
        if (change.trainer !== panel.trainer()) return;
        changes.set(change.identifier, change);
        const row = rows.get(change.identifier);
        if (row) row.noted(change);
        if (panel.visible) refresh();
    });
    panel.on('trainer', () => { shape = ''; rows.clear(); reload(); });
    panel.on('reconnected', reload);
    async function refresh() {
        const trainer = panel.present();
        if (trainer === null) return;
        try {
            take((await get('tree', { trainer })).entries);
        } catch (error) {
            if (error.code !== 0) toastError(error);
        }
    }
    panel.every(3000, refresh);
    reload();
    return { shown: () => { if (entries.length > 0) refresh(); } };
}
