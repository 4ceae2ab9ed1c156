/* What is done to a run, and the choice of columns. */
import { post } from '../api.js';
import { h, labelled } from '../elements.js';
import { t } from '../language.js';
import { dialogue, menu, popover, toast } from '../overlays.js';
import { groupsOf, labelOf } from './columns.js';
import { openRun } from './detail.js';
import { may } from '../role.js';
import { archive, editNotes, knownTags, star } from './notes.js';

export function runMenu(anchor, run, runs, done) {
    const running = run.state === 'running', why = running ? t('runs.is_running') : null;
    const all = [
        { label: t('runs.look'), icon: 'chart', act: () => openRun(run) },
        { label: t('runs.rename'), icon: 'pencil', disabled: running, tip: why, act: () => rename(run, done),
            needs: 'steer' },
        { id: 'runs.notes', label: t('runs.notes'), icon: 'text', act: () => editNotes(run, knownTags(runs), done),
            needs: 'steer' },
        { label: t(run.starred ? 'runs.unstar' : 'runs.star'), icon: 'star', act: () => star(run, done),
            needs: 'steer' },
        { id: 'runs.archive', label: t(run.archived ? 'runs.unarchive' : 'runs.archive'), icon: 'archive',
            act: () => archive(run, done), needs: 'steer' },
        may('admin') ? '-' : null,
        { label: t('runs.delete'), icon: 'trash', danger: true, disabled: running, tip: why,
            act: () => remove(run, done), needs: 'admin' },
    ];
    menu(anchor, all.filter((one) => one !== null && may(one.needs ?? 'look')));
}

function rename(run, done) {
    const slash = run.name.lastIndexOf('/') + 1;
    const input = h('input', { class: 'input', value: run.name.slice(slash), maxlength: 200, autofocus: true });
    return dialogue({ title: t('runs.rename_title', { name: run.name }), accept: t('runs.rename'),
        content: labelled(t('runs.name'), input, { class: 'field is-stacked' }),
        act: async () => {
            const to = input.value.trim();
            await post('run-rename', { name: run.name, to });
            done(run.name, run.name.slice(0, slash) + to);
        } });
}

function remove(run, done) {
    const input = h('input', { class: 'input', autocomplete: 'off', spellcheck: 'false', autofocus: true });
    return dialogue({ title: t('runs.delete_title', { name: run.name }), accept: t('runs.delete'), danger: true,
        content: h('div', { class: 'runs-confirm' }, h('p', { text: t('runs.delete_text') }),
            labelled(t('runs.repeat', { name: run.name }), input, { class: 'field is-stacked' })),
        act: async () => {
            await post('run-delete', { name: run.name, confirmation: input.value });
            toast(t('runs.deleted', { name: run.name }));
            done(run.name, null);
        } });
}

export function chooseColumns(anchor, runs, chosen, change) {
    const set = new Set(chosen);
    const box = (key) => {
        const check = h('input', { type: 'checkbox', disabled: key === 'name', on: { change: () => {
            if (check.checked) set.add(key);
            else set.delete(key);
            change(groupsOf(runs).flatMap((group) => group.keys).filter((one) => set.has(one)));
        } } });
        check.checked = set.has(key);
        return h('label', { class: 'runs-choice' }, check, h('span', { text: labelOf(key) }));
    };
    const defaults = h('button', { type: 'button', class: 'link', text: t('runs.default_columns'),
        on: { click: () => change(null) } });
    popover(anchor, h('div', { class: 'runs-choices' }, groupsOf(runs).map((group) => h('fieldset', {},
        h('legend', { text: group.heading }), group.keys.map(box))), defaults), t('runs.columns'));
}
