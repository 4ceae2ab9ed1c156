/* The audit trail: what was changed, by whom, when; each of a person's can be taken back. */
import { command, get } from '../api.js';
import { changeText } from '../chart/hover.js';
import { fill, h, iconButton } from '../elements.js';
import { integer, moment } from '../format.js';
import { t } from '../language.js';
import { toast, toastError } from '../overlays.js';
import { definePanel } from '../panel.js';

definePanel('changes', {
    icon: 'undo',
    tab: 'parameters', order: 2,
    size: { w: 5, h: 9 }, least: { w: 3, h: 4 },
    create,
});

const people = new Set(['monitor', 'ctl', 'terminal', 'program']);

function whoText(who) {
    return people.has(who) ? t(`who.${who}`) : who;
}

function create(panel) {
    let changes = [];
    const list = h('ol', { class: 'changes scroll', 'aria-label': t('panel.changes'), tabindex: '0' });
    const undo = h('button', { type: 'button', class: 'button is-quiet', text: t('changes.undo_last'),
        on: { click: () => takeBack({}) } });
    panel.tools.append(undo);
    panel.body.append(list);

    async function takeBack(which) {
        undo.disabled = true;
        try {
            await command(panel.trainer(), 'undo', which);
            toast(t('changes.undone'));
            await reload();
        } catch (error) {
            toastError(error);
        }
        show();
    }

    const values = ({ before, after }) => h('span', { class: 'change-values' }, h('s', { text: changeText(before) }),
        h('span', { class: 'dim', 'aria-label': t('changes.to'), text: '→' }), h('b', { text: changeText(after) }));

    /* What a person would say: a rule was attached, the run went back, a value was another one. */
    function what(change) {
        const { identifier, before, after } = change, hook = /^hook (.+)$/.exec(identifier)?.[1];
        const said = (key, name, text) => [h('span', { text: t(key, { name }) }),
            h('span', { class: 'change-values' }, h('b', { text: changeText(text) }))];
        if (hook && (before === null || before === 'none')) return said('changes.attached', hook, after);
        if (hook && (after === null || after === 'none')) return said('changes.detached', hook, before);
        if (identifier === 'position') return said('changes.went_back', '', after);
        return [change.undoes ? h('span', { class: 'badge', text: t('changes.undid') }) : null,
            h('span', { class: 'mono', text: identifier }), values(change)];
    }

    function row(change) {
        return h('li', { class: 'change' }, h('div', { class: 'change-what' }, what(change)),
            h('div', { class: 'change-when' },
                h('span', { class: change.who === 'monitor' ? 'badge is-accent' : 'badge', text: whoText(change.who) }),
                h('span', { text: t('changes.at', { epoch: integer(change.epoch),
                    iteration: integer(change.iteration) }) }), h('time', { text: moment(change.time) })),
            change.undoable ? iconButton('undo', t('changes.undo', { name: change.identifier }),
                () => takeBack({ number: change.number })) : null);
    }

    function show() {
        undo.disabled = !changes.some((change) => change.undoable);
        panel.setNote(changes.length > 0 ? integer(changes.length) : '');
        panel.empty(changes.length === 0 ? t('changes.none') : null);
        fill(list, [...changes].reverse().map(row));
    }

    const reload = () => panel.load(async (signal) => {
        const trainer = panel.present();
        changes = trainer === null ? [] : (await get('changes', { trainer }, { signal })).changes;
        show();
    });
    panel.on('change', (change) => { if (change.trainer === panel.trainer()) reload(); });
    panel.on('trainer', reload);
    panel.on('reconnected', reload);
    reload();
}
