/* Which class the network takes for which; a cell that is chosen shows the examples in it, and so does a row of the
 * data's classes: what there is to learn from, and what the network makes of it. */
import { get } from '../api.js';
import { button, fill, h, select, setText } from '../elements.js';
import { integer, percent } from '../format.js';
import { drawExample, nameOf } from '../inspect/examples.js';
import { Pace } from '../inspect/pace.js';
import { t } from '../language.js';
import { definePanel } from '../panel.js';
import { state } from '../store.js';

definePanel('confusion', {
    icon: 'table',
    tab: 'inspect', order: 3,
    size: { w: 8, h: 14 }, minimum: { w: 4, h: 7 }, heights: { 6: 15, 1: 21 },
    options: { data: '' },
    create,
});

const page = 24; /* examples at once */

/* Almost all is not all. */
function share(part, whole) {
    return whole > 0 ? percent(part === whole ? 1 : Math.floor(100 * part / whole) / 100, 0) : '–';
}

function create(panel) {
    let found = null, shown = null, busy = false;
    const pace = new Pace(3000);
    const matrix = h('div', { class: 'confusion-matrix' }), examples = h('div', { class: 'examples' });
    const title = h('b'), all = button(t('confusion.all'), () => { press(null); browse(); },
        { class: 'button is-quiet', hidden: true });
    const heading = h('div', { class: 'examples-head' }, title, all);
    const more = button(t('confusion.more'), () => browse(true), { class: 'button is-quiet', hidden: true });
    const data = select([], '', (name) => { panel.setOption('data', name); shown = null; begin(); },
        { 'aria-label': t('confusion.data') });
    panel.tools.append(data);
    panel.body.append(h('div', { class: 'confusion' }, matrix,
        h('div', { class: 'scroll confusion-examples' }, heading, examples, more)));

    const wanted = () => (panel.options.data === '' ? undefined : panel.options.data);

    function offer(names) {
        const known = [...data.options].map((option) => option.value).join();
        if (known === names.join()) return;
        data.replaceChildren(...names.map((name) => h('option', { value: name, text: name })));
        data.value = names.includes(panel.options.data) ? panel.options.data : names[1] ?? names[0];
    }

    async function show(query, text, append = false) {
        const answer = await get('data', { trainer: panel.trainer(), data: wanted(), ...query });
        offer(answer.data);
        const figures = answer.items.map((example) => drawExample(example, answer));
        if (append) examples.append(...figures);
        else examples.replaceChildren(...figures);
        setText(title, text);
        shown = { query, title: text, next: answer.next };
        all.hidden = query.example === undefined && query.class === undefined;
        more.hidden = query.example !== undefined || answer.next >= answer.examples || answer.items.length === 0;
    }

    function browse(append = false) {
        const from = append && shown ? shown.next : 0, chosen = append ? shown?.query.class : undefined;
        return show({ from, count: page, class: chosen }, append && shown ? shown.title : t('confusion.all'), append)
            .catch((error) => panel.fail(error));
    }

    function press(key) {
        for (const cell of matrix.querySelectorAll('button')) cell.setAttribute('aria-pressed',
            String(cell.dataset.cell === key));
    }

    /* Mistakes have examples; what is right is looked up by its class. */
    function choose(target, prediction) {
        const examples = found.examples.filter(([a, b]) => a === target && b === prediction)
            .map(([, , index]) => index);
        const name = nameOf(found.names, target);
        const text = target === prediction ? t('confusion.class', { name })
            : t('confusion.taken', { target: name, prediction: nameOf(found.names, prediction) });
        const query = target === prediction ? { from: 0, count: page, class: target } : { example: examples };
        press(`${target},${prediction}`);
        if (target !== prediction && examples.length === 0) {
            setText(title, text);
            all.hidden = false;
            examples.replaceChildren(h('p', { class: 'nothing', text: t('confusion.none') }));
            more.hidden = true;
        } else show(query, text).catch((error) => panel.fail(error));
    }

    function cell(count, sum, target, prediction, pressed) {
        const key = `${target},${prediction}`, label = t('confusion.cell', { target: nameOf(found.names, target),
            prediction: nameOf(found.names, prediction), n: integer(count) });
        const element = h('button', { type: 'button', class: 'confusion-cell', title: label, 'aria-label': label,
            data: { cell: key, right: String(target === prediction) }, 'aria-pressed': String(pressed === key),
            on: { click: () => choose(target, prediction) } }, count > 0 ? integer(count) : '');
        element.style.setProperty('--share', `${count > 0 ? 12 + 78 * Math.sqrt(count / sum) : 0}%`);
        return element;
    }

    function draw() {
        const pressed = matrix.querySelector('[aria-pressed="true"]')?.dataset.cell;
        const head = h('tr', {}, h('th', { class: 'confusion-corner', scope: 'col', text: t('confusion.corner') }),
            found.matrix.map((_, i) => h('th', { scope: 'col', title: nameOf(found.names, i) },
                h('span', { text: nameOf(found.names, i) }))), h('th', { scope: 'col',
                class: 'confusion-recall', text: t('confusion.right') }));
        const rows = found.matrix.map((row, i) => {
            const sum = row.reduce((all, count) => all + count, 0), name = nameOf(found.names, i);
            return h('tr', {}, h('th', { scope: 'row', text: name, title: name }), row.map((count, k) =>
                h('td', {}, cell(count, sum, i, k, pressed))), h('td', { class: 'confusion-recall',
                text: share(row[i], sum) }));
        });
        const scroll = matrix.querySelector('.scroll')?.scrollTop ?? 0;
        fill(matrix, h('div', { class: 'scroll' }, h('table', { class: 'confusion-table' }, h('thead', {}, head),
            h('tbody', {}, rows))));
        matrix.classList.toggle('has-names', Boolean(found.names));
        matrix.querySelector('.scroll').scrollTop = scroll;
        panel.setNote(t('confusion.sum', { share: percent(found.right / found.counted), n: integer(found.counted),
            iteration: integer(found.iteration) }));
    }

    /* A network of no classes still has data. */
    async function load(signal) {
        if (panel.trainer() === null || busy) return;
        busy = true;
        try {
            found = await get('confusion', { trainer: panel.trainer(), data: wanted() }, { signal });
            matrix.hidden = false;
            offer(found.data);
            draw();
        } catch (error) {
            if (error.code === 0 || error.name === 'AbortError' || error.code === 409) throw error;
            matrix.hidden = true;
            panel.setNote(t('confusion.no_matrix'));
        } finally {
            busy = false;
        }
        if (shown === null) await show({ from: 0, count: page }, t('confusion.all'));
    }

    const begin = () => panel.load((signal) => pace.during(() => load(signal)));
    panel.every(1000, () => {
        const moved = state.trainers.get(panel.trainer())?.iteration !== found?.iteration;
        if (moved && pace.due && !matrix.hidden && !matrix.contains(document.activeElement)) begin();
    });
    panel.on('trainer', () => { shown = null; matrix.replaceChildren(); begin(); });
    panel.on('reconnected', begin);
    panel.on('theme', () => { if (shown) show(shown.query, shown.title).catch(() => {}); });
    begin();
}
