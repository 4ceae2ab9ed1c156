/* Boots the page over a folder of runs: looks every few seconds whether something has changed. */
import { get } from '../api.js';
import { languageButton, logo, showTheme, themeButton } from '../appearance.js';
import { download } from '../chart/export.js';
import { add, button, fill, h, icon, setText } from '../elements.js';
import { integer } from '../format.js';
import { loadLanguage, preferredLanguage, t } from '../language.js';
import { notify, notifySwitch } from '../notify.js';
import { closePopover } from '../overlays.js';
import { setRole } from '../role.js';
import { on } from '../store.js';
import { initTheme, switchTheme } from '../theme.js';
import { chooseColumns, runMenu } from './actions.js';
import { csvOf, filtered, defaultColumns } from './columns.js';
import { createCompare, renamed } from './compare.js';
import { openRun } from './detail.js';
import { createExplore } from './explore/explore.js';
import { star } from './notes.js';
import { createTable } from './table.js';

const seconds = 3, maximumSelected = 24;
const view = { runs: [], rows: [], columns: [], sort: { key: 'started', down: true }, selected: [], filter: '',
    withArchived: false, onlyStarred: false, explore: false, chosen: null, revision: -1, folder: '', leftOut: 0 };
let parts = {}, timer = 0, list = [];

function remembered(name) {
    try {
        return JSON.parse(localStorage.getItem(`sigma.runs.${name}`));
    } catch {
        return null;
    }
}

function remember(name, value) {
    if (value === null) localStorage.removeItem(`sigma.runs.${name}`);
    else localStorage.setItem(`sigma.runs.${name}`, JSON.stringify(value));
}

/* --- what is seen --- */

function show() {
    view.columns = view.chosen ?? defaultColumns(view.runs);
    view.rows = filtered(view.runs, view.filter, view);
    if (view.explore) {
        parts.exploring.show(view.rows);
        view.rows = view.rows.filter((run) => parts.exploring.passes(run));
    }
    showTable();
}

function showTable() {
    list = parts.table.show(view);
    const running = view.runs.filter((run) => run.state === 'running').length;
    setText(parts.count, t('runs.count', { n: integer(view.rows.length), all: integer(view.runs.length) })
        + (running > 0 ? `, ${t('runs.running_count', { n: integer(running) })}` : '')
        + (view.leftOut > 0 ? `, ${t('runs.left_out', { n: integer(view.leftOut) })}` : ''));
    parts.archived.hidden = !view.runs.some((run) => run.archived);
    parts.starred.hidden = !view.onlyStarred && !view.runs.some((run) => run.starred);
}

/* A range of the parallel coordinates has changed. */
function narrow() {
    view.rows = filtered(view.runs, view.filter, view).filter((run) => parts.exploring.passes(run));
    showTable();
}

function showExplore() {
    view.explore = !view.explore;
    parts.explore.hidden = !view.explore;
    parts.root.classList.toggle('has-explore', view.explore);
    parts.exploreButton.setAttribute('aria-pressed', String(view.explore));
    show();
}

function showCompare() {
    const runs = view.selected.map((name) => view.runs.find((run) => run.name === name)).filter(Boolean);
    parts.compare.hidden = runs.length === 0;
    parts.root.classList.toggle('has-selection', runs.length > 0);
    if (runs.length > 0) parts.comparison.show(runs);
}

function select(name, wanted) {
    view.selected = view.selected.filter((one) => one !== name);
    if (wanted && view.selected.length < maximumSelected) view.selected.push(name);
    parts.table.mark(view.selected);
    showCompare();
    parts.table.keepInSight(name);
}

function sortBy(key) {
    view.sort = { key, down: view.sort.key === key ? !view.sort.down : false };
    remember('sort', view.sort);
    show();
}

function setColumns(columns) {
    view.chosen = columns;
    remember('columns', columns);
    if (columns === null) closePopover(true);
    show();
}

/* A run has another name, or (null) is gone. */
function changed(name, to) {
    if (name) {
        view.selected = view.selected.map((one) => (one === name ? to : one)).filter(Boolean);
        view.runs = view.runs.filter((run) => run.name !== name || to !== null)
            .map((run) => (run.name === name ? { ...run, name: to } : run));
        if (to) renamed(name, to);
        show();
        showCompare();
    }
    look();
}

/* --- the server --- */

function notice(text) {
    fill(parts.notice, text === '' ? null : [icon('warning'), h('span', { text })]);
}

/* Runs that were running at the last look, and have ended since. */
function tellEnds(before, after) {
    const running = new Set(before.filter((run) => run.state === 'running').map((run) => run.name));
    for (const { name, state, reason } of after)
        if (running.has(name) && state !== 'running')
            notify(name, reason ?? t(`runs.state.${state}`), state === 'failed' ? 'error' : 'info');
}

async function look() {
    clearTimeout(timer);
    try {
        const answer = await get('runs', { after: view.revision });
        notice('');
        if (!answer.same) {
            setRole(answer.role);
            tellEnds(view.runs, answer.runs);
            Object.assign(view, { runs: answer.runs, revision: answer.revision, folder: answer.folder,
                leftOut: answer.left_out });
            view.selected = view.selected.filter((name) => view.runs.some((run) => run.name === name));
            setText(parts.title, view.folder);
            document.title = `${view.folder} – Sigma`;
            show();
            showCompare();
        }
    } catch (error) {
        notice(error.code === 0 ? t('runs.lost') : error.code === 401 || error.code === 403 ? t('connection.refused')
            : error.message);
    }
    /* A long file is read in parts, one for each question. */
    timer = setTimeout(look, view.runs.some((run) => run.reading) ? 200 : seconds * 1000);
}

/* --- the page --- */

function buildBar(bar) {
    parts.title = h('h1', { text: view.folder || 'Sigma' });
    parts.count = h('span', { class: 'runs-count', role: 'status' });
    parts.theme = themeButton();
    fill(bar, h('div', { class: 'bar-brand' }, logo(), parts.title), parts.count,
        h('div', { class: 'bar-end' }, notifySwitch(), languageButton(), parts.theme));
}

/* A button that is pressed as long as `view[name]` holds. */
function switchOf(label, name) {
    const element = button(t(label), () => {
        view[name] = !view[name];
        element.setAttribute('aria-pressed', String(view[name]));
        show();
    }, { class: 'button is-quiet', 'aria-pressed': String(view[name]), data: { switch: name } });
    return element;
}

function buildTools() {
    parts.filter = h('input', { type: 'search', class: 'input', value: view.filter,
        placeholder: t('runs.filter_example'), 'aria-label': t('runs.filter'), title: t('runs.filter_hint'),
        on: { input: () => { view.filter = parts.filter.value; show(); } } });
    parts.archived = switchOf('runs.with_archived', 'withArchived');
    parts.starred = switchOf('runs.only_starred', 'onlyStarred');
    parts.exploreButton = button(t('explore.title'), showExplore, { class: 'button is-quiet',
        data: { switch: 'explore' },
        'aria-pressed': String(view.explore) });
    const columns = button(t('runs.columns'), () => chooseColumns(columns, view.runs, view.columns, setColumns),
        { class: 'button is-quiet', 'aria-haspopup': 'dialog' });
    const clear = button(t('runs.clear'), () => { view.selected = []; show(); showCompare(); },
        { class: 'button is-quiet runs-clear' });
    return h('div', { class: 'runs-toolbar' }, h('div', { class: 'search' }, icon('search'), parts.filter),
        parts.starred, parts.archived, parts.exploreButton, columns, clear,
        button(t('chart.csv'), () => download(new Blob([csvOf(list, view.columns)], { type: 'text/csv' }), 'runs.csv'),
            { class: 'button is-quiet' }));
}

function build() {
    parts = { root: document.getElementById('runs'), notice: document.getElementById('notice') };
    document.getElementById('skip').textContent = t('runs.skip');
    buildBar(document.getElementById('bar'));
    const place = h('div', { class: 'runs-place' });
    parts.compare = h('div', { class: 'runs-compare', hidden: true });
    const table = h('section', { class: 'runs-panel runs-list' });
    parts.explore = h('section', { class: 'runs-panel runs-explore', 'aria-label': t('explore.title'),
        hidden: !view.explore });
    fill(parts.root, table, parts.explore, parts.compare);
    add(table, [buildTools(), place]);
    parts.table = createTable(place, { onSelect: select, onSort: sortBy,
        onOpen: openRun, onMenu: (anchor, run) => runMenu(anchor, run, view.runs, changed),
        onStar: (run) => star(run, look) });
    parts.exploring = createExplore(parts.explore, { filter: narrow, open: openRun, choose: (runs) => {
        view.selected = runs.slice(0, maximumSelected).map((run) => run.name);
        parts.table.mark(view.selected);
        showCompare();
    } });
    parts.comparison = createCompare(parts.compare, (name) => select(name, false));
    show();
    showCompare();
}

function onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || document.querySelector('dialog[open]')
        || event.target.closest('input:not([type="checkbox"]), select, [role="menu"]')) return;
    if (event.key === '/') parts.filter.focus();
    else if (event.key === 't') switchTheme();
    else return;
    event.preventDefault();
}

async function boot() {
    initTheme();
    await loadLanguage(preferredLanguage(null));
    view.chosen = remembered('columns');
    view.sort = remembered('sort') ?? view.sort;
    const asked = new URLSearchParams(location.search);
    view.selected = asked.getAll('run').slice(0, maximumSelected);
    build();
    on('theme', () => {
        showTheme(parts.theme);
        show();
        showCompare();
    });
    on('language', build);
    addEventListener('keydown', onKey);
    document.addEventListener('visibilitychange', () => { if (!document.hidden) look(); });
    look();
}

boot();
