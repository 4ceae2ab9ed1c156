/* Which values a chart shows: a list of what can be a number, with a search. */
import { get } from '../api.js';
import { fill, h, icon, select } from '../elements.js';
import { t } from '../language.js';
import { popover, toastError } from '../overlays.js';
import { state } from '../store.js';

const maximumShown = 200;

/* Adds specifications {id, trainer?}; without a trainer it is all of them. */
export function pickSeries(anchor, panel, has, chosen) {
    let entries = [], trainer = '';
    const list = h('ul', { class: 'picker-list scroll', role: 'listbox', 'aria-label': t('chart.add') });
    const search = h('input', { class: 'input', type: 'search', placeholder: t('chart.search'),
        'aria-label': t('chart.search'), autocomplete: 'off',
        on: { input: show, keydown: (event) => { if (event.key === 'Enter') enter(event); } } });
    const names = [...state.trainers.keys()];
    const who = names.length < 2 ? null : select([['', t('chart.every_trainer')], ...names.map((name) => [name, name])],
        '', (value) => { trainer = value; show(); }, { 'aria-label': t('bar.trainer') });
    const element = popover(anchor, h('div', { class: 'picker' }, who, h('div', { class: 'search' }, icon('search'),
        search), list), t('chart.add'));
    search.focus();
    load();

    async function load() {
        const name = panel.present();
        if (name === null) return;
        try {
            const [tree, known] = await Promise.all([get('tree', { trainer: name }),
                get('series/list', { trainer: name })]);
            const recorded = known.series.map((one) => one.id);
            const numeric = tree.entries.filter((one) => one.kind === 'number' || one.kind === 'integer')
                .map((one) => one.identifier);
            const docs = new Map(tree.entries.map((one) => [one.identifier, one.doc]));
            entries = [...recorded, ...numeric.filter((id) => !recorded.includes(id))].map((id) =>
                ({ id, doc: docs.get(id), recorded: recorded.includes(id) }));
            show();
        } catch (error) {
            toastError(error);
        }
    }

    /* Several words: all of them must occur. A pattern takes whatever matches it. */
    function enter(event) {
        event.preventDefault();
        const text = search.value.trim();
        if (text.includes('*')) chosen({ id: text, ...(trainer && { trainer }) });
        else list.querySelector('button')?.click();
        search.select();
        show();
    }

    function show() {
        const words = search.value.toLowerCase().split(/\s+/).filter(Boolean).filter((word) => !word.includes('*'));
        const choose = (id) => {
            chosen({ id, ...(trainer && { trainer }) });
            show();
            search.focus();
        };
        const fits = entries.filter(({ id, doc }) => words.every((word) => id.toLowerCase().includes(word)
            || doc?.toLowerCase().includes(word)) && !has(id, trainer));
        fill(list, fits.slice(0, maximumShown).map(({ id, doc, recorded }) =>
            h('li', { role: 'none' }, h('button', { type: 'button', class: 'picker-entry', role: 'option',
                title: doc ?? id, on: { click: () => choose(id) } },
            h('span', { class: 'mono', text: id }), recorded ? h('span', { class: 'badge', text: t('chart.recorded') })
                : null))));
        if (search.value.includes('*')) list.prepend(h('li', { class: 'dim picker-hint', text: t('chart.pattern') }));
        else if (fits.length === 0 && entries.length > 0) list.append(h('li',
            { class: 'dim picker-hint', text: t('chart.nothing') }));
        element.style.height = '';
    }
}
