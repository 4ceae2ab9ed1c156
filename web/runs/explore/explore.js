/* What all runs of the table have in common: parallel coordinates, scatter, importance of settings, means over
 * seeds. */
import { button, fill, freshId, h } from '../../elements.js';
import { t } from '../../language.js';
import { popover } from '../../overlays.js';
import { defaultColumns, labelOf, metricsOf, settingsOf } from '../columns.js';
import { createGroups } from './groups.js';
import { createImportance } from './importance.js';
import { createParallel } from './parallel.js';
import { createScatter } from './scatter.js';

const maximumAxes = 6;

/* Columns that tell how well runs did, and the one that counts first: the best loss of validation. */
function resultsOf(runs) {
    const metrics = metricsOf(runs), of = (part) => metrics.map((name) => `${part}:${name}`);
    const keys = [...of('metrics'), ...of('minimum'), ...of('maximum')];
    const loss = metrics.find((name) => name === 'validation.loss') ?? metrics.find((name) => /(^|\.)loss$/.test(name));
    return { keys, best: loss ? `minimum:${loss}` : keys[0] ?? null };
}

/* filter(): the ranges of the parallel coordinates have changed; open(run); choose(runs). */
export function createExplore(place, { filter, open, choose }) {
    const own = { runs: [], chosen: 'parallel', axes: null };
    const names = ['parallel', 'scatter', 'importance', 'seeds'], panels = {}, tabs = {}, parts = {};
    for (const name of names) {
        const id = freshId('explore');
        panels[name] = h('div', { id, role: 'tabpanel', class: 'explore-panel', hidden: name !== own.chosen });
        tabs[name] = h('button', { type: 'button', class: 'tab', role: 'tab', 'aria-controls': id,
            data: { explore: name },
            on: { click: () => choosePanel(name) }, id: `${id}-tab`, text: t(`explore.${name}`) });
        panels[name].setAttribute('aria-labelledby', `${id}-tab`);
    }
    const axes = button(t('explore.axes'), () => chooseAxes(), { class: 'button is-quiet', 'aria-haspopup': 'dialog' });
    const list = h('div', { class: 'tabs-list', role: 'tablist', 'aria-label': t('explore.title') },
        Object.values(tabs));
    list.addEventListener('keydown', (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        choosePanel(names[(names.indexOf(own.chosen) + step + names.length) % names.length]);
        tabs[own.chosen].focus();
    });
    fill(place, h('header', { class: 'runs-head' }, list, axes), Object.values(panels));
    parts.parallel = createParallel(panels.parallel, filter);
    parts.scatter = createScatter(panels.scatter, open);
    parts.importance = createImportance(panels.importance);
    parts.seeds = createGroups(panels.seeds, choose);

    function choosePanel(name) {
        own.chosen = name;
        show();
    }

    function defaultAxes(results) {
        const settings = defaultColumns(own.runs).filter((key) => key.startsWith('configuration:'));
        return [...settings.slice(0, maximumAxes - 1), results.best].filter(Boolean);
    }

    function chooseAxes() {
        const { keys } = resultsOf(own.runs), shown = new Set(own.axes ?? defaultAxes(resultsOf(own.runs)));
        const all = [...settingsOf(own.runs), 'epochs', 'seconds', ...keys];
        const boxes = all.map((key) => {
            const check = h('input', { type: 'checkbox', on: { change: () => {
                if (check.checked) shown.add(key);
                else shown.delete(key);
                own.axes = all.filter((one) => shown.has(one));
                show();
            } } });
            check.checked = shown.has(key);
            return h('label', { class: 'runs-choice' }, check, h('span', { text: labelOf(key) }));
        });
        popover(axes, h('div', { class: 'runs-choices' }, boxes), t('explore.axes'));
    }

    function show() {
        for (const name of names) {
            panels[name].hidden = name !== own.chosen;
            tabs[name].setAttribute('aria-selected', String(name === own.chosen));
            tabs[name].tabIndex = name === own.chosen ? 0 : -1;
        }
        axes.hidden = own.chosen !== 'parallel';
        const results = resultsOf(own.runs), settings = settingsOf(own.runs);
        if (own.chosen === 'parallel') parts.parallel.show(own.runs, own.axes ?? defaultAxes(results));
        if (own.chosen === 'scatter') parts.scatter.show(own.runs,
            [...settings, 'epochs', 'seconds', 'started', ...results.keys],
            { x: defaultAxes(results)[0], y: results.best, by: settings.find((key) => /type$/.test(key)) ?? null });
        if (own.chosen === 'importance') parts.importance.show(own.runs, settings, results.keys, results.best);
        if (own.chosen === 'seeds') parts.seeds.show(own.runs,
            metricsOf(own.runs).filter((key) => key !== 'learning_rate'));
    }
    /* `runs` are those of the filter; passes(run): whether the ranges leave it. */
    return { show(runs) { own.runs = runs; show(); }, passes: (run) => parts.parallel.passes(run) };
}
