/* Runs that differ in nothing but their seed, as one row: mean and deviation of their results. */
import { button, fill, h, select } from '../../elements.js';
import { integer, number } from '../../format.js';
import { t } from '../../language.js';
import { labelOf, valueOf } from '../columns.js';

/* What makes no other experiment of a run. */
const isSeed = (key) => /(^|\.)seed$/.test(key) || key === 'name';

/* [{runs, configuration}] of runs that have a configuration; the largest groups first. */
export function groupsBySeed(runs) {
    const groups = new Map();
    for (const run of runs) {
        const entries = Object.entries(run.configuration).filter(([key]) => !isSeed(key))
            .sort(([a], [b]) => (a < b ? -1 : 1));
        if (entries.length === 0) continue;
        const text = JSON.stringify(entries);
        if (!groups.has(text)) groups.set(text, { runs: [], configuration: Object.fromEntries(entries) });
        groups.get(text).runs.push(run);
    }
    return [...groups.values()].sort((a, b) => b.runs.length - a.runs.length);
}

/* {n, mean, deviation} of those that are numbers; the deviation is the sample's (n - 1), null of one value. */
export function summary(values) {
    const known = values.filter((value) => typeof value === 'number'), n = known.length;
    if (n === 0) return { n, mean: null, deviation: null };
    const mean = known.reduce((sum, value) => sum + value, 0) / n;
    const squares = known.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    return { n, mean, deviation: n > 1 ? Math.sqrt(squares / (n - 1)) : null };
}

/* The settings in which groups differ, and of each the value that most groups have. */
export function differencesOf(groups) {
    const keys = [...new Set(groups.flatMap((group) => Object.keys(group.configuration)))].sort();
    const usual = new Map();
    for (const key of keys) {
        const counts = new Map();
        for (const { configuration } of groups)
            counts.set(configuration[key], (counts.get(configuration[key]) ?? 0) + 1);
        if (counts.size > 1) usual.set(key, [...counts].reduce((a, b) => (b[1] > a[1] ? b : a))[0]);
    }
    return usual;
}

function cellOf({ n, mean, deviation }, all) {
    if (mean === null) return h('td', { class: 'is-number', text: '–' });
    const spread = deviation === null ? '' : ` ± ${number(deviation, 2)}`, less = n < all ? ` (${integer(n)})` : '';
    return h('td', { class: 'is-number', text: `${number(mean, 4)}${spread}${less}` });
}

const maximumResults = 4;

/* `choose(runs)`: a group's runs are to be compared. */
export function createGroups(place, choose) {
    const own = { kind: 'metrics', sort: null, down: false };
    const tools = h('div', { class: 'runs-tools' });
    const content = h('div', { class: 'explore-scroll scroll', tabindex: '0' });
    fill(place, tools, content);

    function rowOf({ group, results }, usual) {
        return h('tr', {}, h('td', {}, button(t('explore.n_runs', { n: integer(group.runs.length) }),
            () => choose(group.runs), { class: 'link', title: group.runs.map((run) => run.name).join('\n') })),
        [...usual].map(([key, value]) => {
            const own = group.configuration[key];
            return h('td', { class: own === value ? 'mono' : 'mono is-different',
                text: own === undefined ? '–' : String(own) });
        }), results.map((result) => cellOf(result, group.runs.length)));
    }

    return { show(runs, metrics) {
        const groups = groupsBySeed(runs), usual = differencesOf(groups), shown = metrics.slice(0, maximumResults);
        const redraw = () => {
            const rows = groups.map((group) => ({ group, results: shown.map((name) =>
                summary(group.runs.map((run) => valueOf(run, `${own.kind}:${name}`)))) }));
            const at = shown.indexOf(own.sort), sign = own.down ? -1 : 1;
            if (at >= 0) rows.sort((a, b) => sign
                * ((a.results[at].mean ?? Infinity) - (b.results[at].mean ?? Infinity)));
            const sortBy = (name) => () => {
                own.down = own.sort === name && !own.down;
                own.sort = name;
                redraw();
            };
            const heads = [...usual.keys()].map((key) => h('th', { scope: 'col', text: key }));
            const ends = shown.map((name) => h('th', { scope: 'col', class: 'is-number',
                'aria-sort': own.sort === name ? (own.down ? 'descending' : 'ascending') : null },
            h('button', { type: 'button', class: 'runs-sort', text: labelOf(`${own.kind}:${name}`),
                data: { mean: name },
                on: { click: sortBy(name) } })));
            fill(content, rows.length === 0 ? h('p', { class: 'dim', text: t('explore.no_groups') })
                : h('table', { class: 'table explore-groups' }, h('thead', {}, h('tr', {},
                    h('th', { scope: 'col', text: t('explore.group') }), heads, ends)),
                h('tbody', {}, rows.map((row) => rowOf(row, usual)))));
        };
        fill(tools, select(['metrics', 'minimum', 'maximum'].map((kind) => [kind, t(`runs.group.${kind}`)]), own.kind,
            (kind) => { own.kind = kind; redraw(); }, { 'aria-label': t('explore.result') }),
        h('span', { class: 'dim', text: t('explore.groups_hint') }));
        redraw();
    } };
}
