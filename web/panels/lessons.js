/* Which examples the network does better, and which worse, than at an earlier moment: by the loss of each. */
import { get } from '../api.js';
import { button, fill, h, select } from '../elements.js';
import { integer, number } from '../format.js';
import { drawExample } from '../inspect/examples.js';
import { lessons } from '../inspect/lessons.js';
import { Pace } from '../inspect/pace.js';
import { t } from '../language.js';
import { definePanel } from '../panel.js';
import { state } from '../store.js';

definePanel('lessons', {
    icon: 'chart',
    tab: 'inspect', order: 6,
    size: { w: 12, h: 10 }, minimum: { w: 3, h: 6 }, heights: { 6: 12, 1: 14 },
    options: { data: '' },
    create,
});

const most = 8; /* examples in each list */

function create(panel) {
    let before = null, now = null;
    const pace = new Pace(5000);
    const data = select([], '', (name) => { panel.setOption('data', name); restart(); },
        { 'aria-label': t('confusion.data') });
    const worse = h('div', { class: 'examples' }), better = h('div', { class: 'examples' });
    panel.body.append(h('div', { class: 'toolbar' }, data, button(t('lessons.from_now'), () => restart())),
        h('div', { class: 'scroll lessons' }, h('section', {}, h('h3', { text: t('lessons.worse') }), worse),
            h('section', {}, h('h3', { text: t('lessons.better') }), better)));

    const wanted = () => (panel.options.data === '' ? undefined : panel.options.data);

    function offer(names) {
        if ([...data.options].map((option) => option.value).join('\n') === names.join('\n')) return;
        data.replaceChildren(...names.map((name) => h('option', { value: name, text: name })));
        data.value = names.includes(panel.options.data) ? panel.options.data : names[1] ?? names[0];
    }

    function draw(list, found, answer) {
        const shown = new Map(answer?.items.map((item) => [item.index, item]));
        fill(list, found.filter(({ index }) => shown.has(index)).map(({ index, prediction, from, to }) => {
            const figure = drawExample({ ...shown.get(index), prediction }, answer);
            figure.querySelector('figcaption .dim')?.remove(); /* of outputs that are newer than the losses */
            figure.append(h('div', { class: 'lessons-loss dim', text: `${number(from, 2)} → ${number(to, 2)}` }));
            return figure;
        }), shown.size === 0 || found.length === 0 ? h('p', { class: 'nothing', text: t('lessons.none') }) : null);
    }

    async function load(signal) {
        if (panel.present() === null) return;
        const query = { trainer: panel.trainer(), data: wanted() };
        now = await get('losses', query, { signal });
        offer(now.data);
        if (before === null || now.iteration < before.iteration) before = now;
        const found = lessons(before.items, now.items, most), all = [...found.worse, ...found.better];
        const answer = all.length === 0 ? null : await get('data', { ...query,
            example: all.map(({ index }) => index) }, { signal });
        draw(worse, found.worse, answer);
        draw(better, found.better, answer);
        panel.setNote(t('lessons.sum', { n: integer(now.items.length), all: integer(now.examples),
            from: integer(before.iteration), to: integer(now.iteration) }));
    }

    const look = (signal) => pace.during(() => load(signal));
    const begin = () => panel.load(look);

    function restart() {
        before = null;
        begin();
    }

    panel.every(1000, () => {
        const moved = state.trainers.get(panel.trainer())?.iteration !== now?.iteration;
        if (now && moved && pace.due) panel.renew(look);
    });
    panel.on('trainer', restart);
    panel.on('reconnected', begin);
    panel.on('theme', begin);
    begin();
}
