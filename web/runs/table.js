/* The table of runs: sorted by a column, each row to be selected and with a menu. */
import { button, fill, h, icon, iconButton, setText } from '../elements.js';
import { integer } from '../format.js';
import { t } from '../language.js';
import { isNumeric, labelOf, sorted, textOf } from './columns.js';
import { colourOf } from './plot.js';

const atOnce = 200;

export function createTable(place, { onSelect, onMenu, onOpen, onSort, onStar }) {
    const box = h('div', { class: 'runs-scroll scroll', tabindex: '0' });
    const more = button('', () => { limit += atOnce * 5; show(shown); }, { class: 'button is-quiet runs-more' });
    let limit = atOnce, shown = null;
    fill(place, box);

    function heading(key, { runs, sort }) {
        const is = sort.key === key;
        return h('th', { scope: 'col', class: isNumeric(key, runs) ? 'is-number' : null,
            'aria-sort': is ? (sort.down ? 'descending' : 'ascending') : null },
        h('button', { type: 'button', class: 'runs-sort', data: { key }, on: { click: () => onSort(key) } },
            h('span', { text: labelOf(key) }),
            is ? h('span', { 'aria-hidden': 'true', text: sort.down ? '↓' : '↑' }) : null));
    }

    function cell(run, key, numeric) {
        if (key === 'state') {
            const bad = run.bad > 0 ? h('span', { class: 'badge is-warn', title: t('runs.bad', { n: run.bad }) },
                icon('warning')) : null;
            return h('td', {}, h('span', { class: 'runs-state', title: run.reason ?? run.configuration_error },
                h('span', { class: 'state-dot', data: { state: run.state } }), h('span', { text: textOf(run, key) }),
                bad));
        }
        const text = textOf(run, key);
        if (key === 'tags') return h('td', { class: 'runs-tags' }, run.tags.map((tag) =>
            h('span', { class: 'badge', text: tag })));
        return h('td', { class: numeric.has(key) ? 'is-number' : 'runs-text', text,
            title: text.length > 24 ? text : null });
    }

    function row(run, { columns }, numeric) {
        const swatch = h('span', { class: 'runs-swatch' });
        const check = h('input', { type: 'checkbox', 'aria-label': t('runs.select', { name: run.name }),
            data: { run: run.name }, on: { change: () => onSelect(run.name, check.checked) } });
        const open = iconButton('more', t('runs.menu', { name: run.name }), () => onMenu(open, run),
            { 'aria-haspopup': 'menu', data: { icon: 'more', menu: run.name } });
        const star = iconButton(run.starred ? 'starred' : 'star', t('runs.star_of', { name: run.name }),
            () => onStar(run), { 'aria-pressed': String(run.starred), data: { icon: 'star', star: run.name },
                class: 'icon-button runs-star' });
        return h('tr', { class: run.archived ? 'is-archived' : null, data: { row: run.name } },
            h('th', { scope: 'row' }, h('div', { class: 'runs-name' },
                h('label', { class: 'runs-tick' }, check, swatch), star,
                h('button', { type: 'button', class: 'runs-open', text: run.name, data: { open: run.name },
                    title: t('runs.open', { name: run.name }), on: { click: () => onOpen(run) } }))),
            columns.filter((key) => key !== 'name').map((key) => cell(run, key, numeric)),
            h('td', { class: 'runs-menu' }, open));
    }

    /* Ticks the rows that are selected, in their colours. */
    function mark(selected) {
        for (const element of box.querySelectorAll('tr[data-row]')) {
            const index = selected.indexOf(element.dataset.row);
            element.classList.toggle('is-selected', index >= 0);
            element.querySelector('[data-run]').checked = index >= 0;
            element.querySelector('.runs-swatch').style.background = index >= 0 ? colourOf(index) : '';
        }
    }

    /* What had the focus has it again. */
    function keepFocus(act) {
        const { run, key, menu, open, star } = document.activeElement?.dataset ?? {};
        const inside = box.contains(document.activeElement);
        const is = ({ dataset }) => dataset.run === run && dataset.key === key && dataset.menu === menu
            && dataset.open === open && dataset.star === star;
        const { scrollTop, scrollLeft } = box;
        act();
        box.scrollTo(scrollLeft, scrollTop);
        if (!inside) return;
        const all = [...box.querySelectorAll('[data-run], [data-key], [data-menu], [data-open], [data-star]')];
        all.find(is)?.focus({ preventScroll: true });
    }

    function show(view) {
        shown = view;
        const { columns, sort } = view, list = sorted(view.rows, sort.key, sort.down);
        const numeric = new Set(columns.filter((key) => isNumeric(key, view.runs)));
        const left = list.length - limit;
        box.setAttribute('aria-label', t('runs.table'));
        setText(more, t('runs.more', { n: integer(left) }));
        keepFocus(() => fill(box, h('table', { class: 'table runs-table' },
            h('thead', {}, h('tr', {}, heading('name', view),
                columns.filter((key) => key !== 'name').map((key) => heading(key, view)),
                h('th', {}, h('span', { class: 'unseen', text: t('runs.actions') })))),
            h('tbody', {}, list.slice(0, limit).map((run) => row(run, view, numeric)))), left > 0 ? more : null,
        list.length === 0 ? h('p', { class: 'runs-empty',
            text: t(view.runs.length === 0 ? 'runs.none' : 'runs.nothing') }) : null));
        mark(view.selected);
        return list;
    }
    /* What stands beside it may have taken its place. */
    function keepInSight(name) {
        box.querySelector(`[data-run="${CSS.escape(name)}"]`)?.closest('tr').scrollIntoView({ block: 'nearest' });
    }
    return { show, mark, keepInSight };
}
