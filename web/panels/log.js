/* What the library and the program say, newest last; it follows as long as its end is in sight. */
import { get } from '../api.js';
import { add, fill, h, icon, select } from '../elements.js';
import { clock, integer } from '../format.js';
import { t } from '../language.js';
import { definePanel } from '../panel.js';

const levels = ['debug', 'info', 'warning', 'error'];
const maximumLines = 2000;

definePanel('log', {
    icon: 'table',
    tab: 'log', order: 1,
    size: { w: 8, h: 19 }, minimum: { w: 4, h: 5 }, heights: { 6: 14, 1: 13 },
    options: { level: 'info' },
    create,
});

function create(panel) {
    let lines = [], asked = 0, waiting = [];
    const search = h('input', { class: 'input', type: 'search', placeholder: t('log.search'),
        'aria-label': t('log.search'), on: { input: () => { clearTimeout(asked); asked = setTimeout(reload,
        250); } } });
    const level = select(levels.map((name) => [name, t(`log.${name}`)]), panel.options.level,
        (value) => { panel.setOption('level', value); reload(); },
        { class: 'input log-level', 'aria-label': t('log.level') });
    const list = h('div', { class: 'log scroll', role: 'log', 'aria-live': 'off', tabindex: '0',
        'aria-label': t('panel.log') });
    const down = h('button', { type: 'button', class: 'button log-down', hidden: true, text: t('log.newest'),
        on: { click: () => { list.scrollTop = list.scrollHeight; } } });
    list.addEventListener('scroll', () => { down.hidden = atEnd(); });
    panel.body.append(h('div', { class: 'toolbar' }, h('div', { class: 'search' }, icon('search'), search), level),
        list, down);

    const atEnd = () => list.scrollHeight - list.scrollTop - list.clientHeight < 24;

    function fits(line) {
        const text = search.value.trim().toLowerCase();
        return levels.indexOf(line.level) >= levels.indexOf(panel.options.level)
            && (text === '' || `${line.source} ${line.message}`.toLowerCase().includes(text));
    }

    function row(line) {
        return h('div', { class: 'log-line', data: { level: line.level } }, h('time', { text: clock(line.time) }),
            h('span', { class: 'log-mark', text: line.level === 'info' ? '' : t(`log.short_${line.level}`) }),
            h('span', { class: 'log-source', text: line.source ?? '' }),
                h('span', { class: 'log-message', text: line.message }));
    }

    function note() {
        panel.setNote(lines.length > 0 ? t('log.count', { n: integer(lines.length) }) : '');
        panel.empty(lines.length === 0 ? t('log.none') : null);
    }

    const reload = () => panel.load(async (signal) => {
        waiting = [];
        const answer = await get('log', { level: panel.options.level, search: search.value.trim() || null, limit: 500 },
            { signal });
        lines = answer.messages;
        fill(list, lines.map(row));
        list.scrollTop = list.scrollHeight;
        note();
    });

    /* Many lines at once become one change of the page. */
    function flush() {
        const follow = atEnd(), fresh = waiting;
        waiting = [];
        lines.push(...fresh);
        add(list, fresh.map(row));
        const over = lines.length - maximumLines;
        if (over > 0) {
            lines.splice(0, over);
            for (let i = 0; i < over; i++) list.firstChild.remove();
        }
        if (follow) list.scrollTop = list.scrollHeight;
        else down.hidden = false;
        note();
    }
    panel.on('log', (line) => {
        if (!fits(line)) return;
        if (waiting.push(line) === 1) setTimeout(flush, 100);
    });
    panel.on('reconnected', reload);
    reload();
    return { shown: () => { list.scrollTop = list.scrollHeight; } };
}
