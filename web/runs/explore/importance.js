/* Which settings matter for a result: a bar for each, and the direction in which it works. */
import { fill, h, select } from '../../elements.js';
import { number, percent } from '../../format.js';
import { t } from '../../language.js';
import { labelOf, valueOf } from '../columns.js';
import { importanceOf, rankCorrelation } from './forest.js';

/* A forest of many runs takes a second, and the page asks again whenever it shows its runs. */
let last = { text: null, found: null };
function remembered(columns, y) {
    const text = JSON.stringify([columns, y]);
    if (text !== last.text) last = { text, found: importanceOf(columns, y) };
    return last.found;
}

/* [{key, importance, correlation}], the most important first, and what the forest explains; null: too few runs. */
export function rankSettings(runs, settings, result) {
    const known = runs.filter((run) => typeof valueOf(run, result) === 'number');
    const y = known.map((run) => valueOf(run, result));
    const columns = settings.map((key) => known.map((run) => valueOf(run, key)));
    const found = remembered(columns, y);
    if (!found) return null;
    const list = settings.map((key, i) => ({ key, importance: found.importance[i],
        correlation: rankCorrelation(columns[i], y) }));
    return { runs: known.length, explained: found.explained, list: list.sort((a, b) => b.importance - a.importance) };
}

function bar(share) {
    const inner = h('span', { class: 'explore-bar' });
    inner.style.width = `${(share * 100).toFixed(1)}%`;
    return h('span', { class: 'explore-bars', 'aria-hidden': 'true' }, inner);
}

function tableOf({ list }) {
    const most = Math.max(...list.map((one) => one.importance), 1e-12);
    const heads = ['explore.setting', 'explore.importance', 'explore.correlation'];
    return h('table', { class: 'table explore-importance' },
        h('thead', {}, h('tr', {}, heads.map((key, i) => h('th', { scope: 'col', class: i > 0 ? 'is-number' : null,
            colspan: i === 1 ? 2 : null, text: t(key) })))),
        h('tbody', {}, list.map(({ key, importance, correlation }) => h('tr', { data: { setting: key } },
            h('th', { scope: 'row', text: labelOf(key) }), h('td', {}, bar(importance / most)),
            h('td', { class: 'is-number', text: number(importance, 2) }),
            h('td', { class: 'is-number', text: correlation === null ? '–' : number(correlation, 2) })))));
}

export function createImportance(place) {
    const own = { result: null }, tools = h('div', { class: 'runs-tools' }), content = h('div', { class: 'scroll' });
    fill(place, tools, content);
    return { show(runs, settings, results, standard) {
        if (!results.includes(own.result)) own.result = standard;
        const redraw = () => {
            const found = own.result && settings.length > 0 ? rankSettings(runs, settings, own.result) : null;
            if (!found) return fill(content, h('p', { class: 'dim', text: t('explore.too_few') }));
            return fill(content, tableOf(found), h('p', { class: 'dim', text: t('explore.method',
                { n: found.runs, share: percent(Math.max(0, found.explained), 0) }) }));
        };
        fill(tools, h('label', { class: 'explore-choice' }, h('span', { text: t('explore.result') }),
            select(results.map((key) => [key, labelOf(key)]), own.result,
                (value) => { own.result = value; redraw(); })));
        redraw();
    } };
}
