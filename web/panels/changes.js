/* The audit trail: what was changed, by whom, when; each of a person's can be taken back. */
import { command, get } from '../api.js';
import { partsOf, whoText } from '../change.js';
import { fill, h, iconButton } from '../elements.js';
import { integer, moment } from '../format.js';
import { t } from '../language.js';
import { toast, toastError } from '../overlays.js';
import { definePanel } from '../panel.js';

definePanel('changes', {
    icon: 'undo',
    tab: 'settings', order: 2,
    size: { w: 5, h: 9 }, minimum: { w: 3, h: 4 },
    create,
});

function create(panel) {
    let changes = [];
    const list = h('ol', { class: 'changes scroll', 'aria-label': t('panel.changes'), tabindex: '0' });
    const undo = h('button', { type: 'button', class: 'button is-quiet', 'data-needs': 'steer',
        text: t('changes.undo_last'),
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

    function row(change) {
        const { name, act, before, after } = partsOf(change), who = whoText(change.who);
        const values = [before === null ? null : h('s', { text: before }),
            act ? null : h('span', { class: 'dim', 'aria-label': t('changes.to'), text: '→' }),
            after === null ? null : h('b', { text: after })];
        return h('li', { class: change.undone ? 'change is-undone' : 'change' },
            h('div', { class: 'change-what' }, act ? h('span', { class: 'change-act', text: act }) : null,
                h('span', { class: 'mono', text: name }), h('span', { class: 'change-values' }, values)),
            h('div', { class: 'change-when' },
                h('span', { class: change.person ? 'badge is-accent' : 'badge', text: who }),
                change.reason ? h('span', { class: 'change-reason', text: change.reason }) : null,
                change.undoes ? h('span', { class: 'badge', text: t('changes.undoing') }) : null,
                change.undone ? h('span', { class: 'badge', text: t('changes.taken_back') }) : null,
                h('span', { text: t('changes.at', { epoch: integer(change.epoch),
                    iteration: integer(change.iteration) }) }), h('time', { text: moment(change.time) })),
            change.undoable ? iconButton('undo', t(change.undoes ? 'changes.again' : 'changes.undo', { name }),
                () => takeBack({ number: change.number }), { 'data-needs': 'steer' }) : null);
    }

    /* What the button takes back: the newest of a person that still holds. */
    function newest() {
        return changes.findLast((change) => change.person && !change.undoes && !change.undone
            && change.identifier !== 'position');
    }

    function show() {
        undo.disabled = !newest()?.undoable;
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
