/* States of the training that were saved: go back to one, keep it elsewhere, or begin a branch there. */
import { command, get, post, upload } from '../api.js';
import { download } from '../chart/export.js';
import { button, fill, h, iconButton } from '../elements.js';
import { bytes, integer, moment, plain } from '../format.js';
import { t } from '../language.js';
import { confirm, dialogue, toast, toastError } from '../overlays.js';
import { definePanel } from '../panel.js';
import { may } from '../role.js';
import { select as selectTrainer, state } from '../store.js';

definePanel('checkpoints', {
    icon: 'save',
    tab: 'checkpoints', order: 1,
    size: { w: 8, h: 9 }, minimum: { w: 4, h: 5 },
    create,
});

const nameShape = '[A-Za-z0-9_\\-][A-Za-z0-9_.\\-]*';

/* A name that is not taken yet: name, name-2, ... */
function freeName(wanted, taken) {
    for (let n = 1; ; n++) {
        const name = n === 1 ? wanted : `${wanted}-${n}`;
        if (!taken.includes(name)) return name;
    }
}

/* New rows for old ones: who stood on a row's button stands on that of the same checkpoint. */
function keepFocus(body, renew) {
    const before = document.activeElement, old = body.contains(before) ? before.closest('tr') : null;
    const place = old ? [...old.querySelectorAll('a, button')].indexOf(before) : -1;
    renew();
    const same = old && [...body.rows].find((one) => one.dataset.name === old.dataset.name);
    if (same) same.querySelectorAll('a, button')[place]?.focus();
}

/* Rows of an identifier and a value, for what a branch does differently. */
function overrides(entries) {
    const rows = h('div', { class: 'overrides' }), ids = 'branch-identifiers';
    const addRow = (identifier = '', value = '') => {
        const name = h('input', { class: 'input mono', value: identifier, list: ids,
            placeholder: 'optimiser.learning_rate', 'aria-label': t('branch.identifier'), autocomplete: 'off' });
        const what = h('input', { class: 'input', value, placeholder: t('branch.value'),
            'aria-label': t('branch.value'), autocomplete: 'off' });
        name.addEventListener('change',
            () => { what.placeholder = plain(entries.find((entry) =>
                entry.identifier === name.value)?.value) || t('branch.value'); });
        const row = h('div', { class: 'override' }, name, what, iconButton('close', t('branch.remove'),
            () => row.remove()));
        rows.append(row);
    };
    const known = entries.find((entry) => entry.identifier === 'optimiser.learning_rate');
    addRow(known ? known.identifier : '', known ? plain(Number((known.value / 10).toPrecision(6))) : '');
    const element = h('div', {}, rows, h('datalist', { id: ids },
        entries.map((entry) => h('option', { value: entry.identifier }))),
        button(t('branch.more'), () => addRow(), { class: 'button is-quiet' }));
    const values = () => Object.fromEntries([...rows.children].map((row) =>
        [...row.querySelectorAll('input')].map((input) => input.value.trim())).filter(([name]) => name !== ''));
    return { element, values };
}

async function branch(panel, checkpoint) {
    const trainer = panel.trainer();
    let entries = [];
    try {
        entries = (await get('tree', { trainer })).entries.filter((entry) => entry.settable && entry.kind !== 'tensor');
    } catch (error) {
        toastError(error);
        return;
    }
    const name = h('input', { class: 'input', required: true, maxlength: 60, pattern: nameShape,
        value: freeName(`${trainer}-branch`, [...state.trainers.keys()]) });
    const changed = overrides(entries);
    const made = await dialogue({ title: t('branch.title', { name: checkpoint.name }), wide: true,
        accept: t('branch.accept'), content: h('div', { class: 'fields' },
        h('p', { text: t('branch.text') }), h('label', { class: 'field is-stacked' },
            h('span', { class: 'field-label', text: t('branch.name') }), name),
        h('div', { class: 'field is-stacked' }, h('span', { class: 'field-label', text: t('branch.changes') }),
            changed.element)),
    act: () => command(trainer, 'branch', { checkpoint: checkpoint.name, name: name.value.trim(),
        set: changed.values() }) });
    if (made) toast(t('branch.done', { name: name.value.trim() }), 'info',
        { label: t('branch.look'), act: () => selectTrainer(name.value.trim()) });
}

function create(panel) {
    let checkpoints = [];
    const name = h('input', { class: 'input', placeholder: t('checkpoints.name'), 'aria-label': t('checkpoints.name'),
        maxlength: 60, pattern: nameShape, title: t('checkpoints.name_tip'), autocomplete: 'off' });
    const saveButton = button(t('checkpoints.save'), null, { type: 'submit', class: 'button is-primary' });
    const file = h('input', { type: 'file', accept: '.safetensors', hidden: true,
        on: { change: () => send(file.files[0]) } });
    const uploadButton = button(t('checkpoints.upload'), () => file.click(), { title: t('checkpoints.upload_tip'),
        'data-needs': 'admin' });
    const form = h('form', { class: 'toolbar', 'data-needs': 'steer', on: { submit: save } }, name, saveButton,
        uploadButton, file);
    const body = h('tbody');
    const table = h('div', { class: 'scroll', tabindex: '0' }, h('table', { class: 'table checkpoints' },
        h('thead', {}, h('tr', {}, ['checkpoints.checkpoint', 'checkpoints.epoch', 'checkpoints.iteration',
        'checkpoints.size', 'checkpoints.time', null].map((key, i) =>
        h('th', { scope: 'col', class: i > 0 && i < 5 ? 'is-number' : '' },
            key ? t(key) : h('span', { class: 'unseen', text: t('checkpoints.actions') }))))), body));
    panel.body.append(form, table);

    async function save(event) {
        event.preventDefault();
        const wanted = name.value.trim();
        await reload();
        if (may('admin') && checkpoints.some((one) => one.name === wanted)) {
            confirm({ title: t('replace.title', { name: wanted }), text: t('replace.text'),
                accept: t('replace.accept'), act: () => write({ name: wanted, replace: true }) });
            return;
        }
        saveButton.disabled = true;
        try {
            await write(wanted ? { name: wanted } : {});
        } catch (error) {
            toastError(error);
        }
        saveButton.disabled = false;
    }

    async function write(fields) {
        const { file: written } = await command(panel.trainer(), 'save', fields);
        toast(t('checkpoints.saved', { name: written.replace(/\.safetensors$/, '') }));
        name.value = '';
        await reload();
    }

    async function send(chosen) {
        if (!chosen) return;
        const wanted = chosen.name.replace(/\.safetensors$/, '');
        file.value = '';
        uploadButton.disabled = true;
        panel.bar.hidden = false;
        try {
            await upload(`checkpoint/${encodeURIComponent(wanted)}`, { trainer: panel.trainer() }, chosen);
            toast(t('checkpoints.uploaded', { name: wanted }));
            await reload();
        } catch (error) {
            toastError(error);
        }
        panel.bar.hidden = true;
        uploadButton.disabled = false;
    }

    function restore(one) {
        const trainer = panel.trainer();
        return confirm({ title: t('restore.title', { name: one.name }),
            text: t('restore.text', { trainer, epoch: integer(one.epoch), iteration: integer(one.iteration) }),
            accept: t('restore.accept'), danger: false,
            act: async () => {
                await command(trainer, 'restore', { name: one.name });
                toast(t('restore.done', { trainer, name: one.name }));
                await reload();
            } });
    }

    function remove(one) {
        return confirm({ title: t('delete.title', { name: one.name }), text: t('delete.text'),
            accept: t('delete.accept'), act: async () => {
            await post('checkpoint-delete', { trainer: panel.trainer(), name: one.name });
            await reload();
        } });
    }

    async function fetchFile(one, pressed) {
        pressed.disabled = true;
        try {
            download(await get(`checkpoint/${encodeURIComponent(one.name)}`, { trainer: panel.trainer() }),
                `${one.name}.safetensors`);
        } catch (error) {
            toastError(error);
        }
        pressed.disabled = false;
    }

    function row(one) {
        const isKept = one.name === 'checkpoint';
        const fact = (key, text, more = '') => h('td', { class: `is-number ${more}`, data: { label: t(key) }, text });
        return h('tr', { data: { name: one.name } },
            h('td', {}, h('span', { class: 'checkpoint-name', text: one.name }),
            one.newest ? h('span', { class: 'badge is-accent', text: t('checkpoints.newest') }) : null),
            fact('checkpoints.epoch', integer(one.epoch)), fact('checkpoints.iteration', integer(one.iteration)),
                fact('checkpoints.size', bytes(one.bytes)), fact('checkpoints.time', moment(one.time), 'dim'),
            h('td', { class: 'row-actions' }, button(t('restore.short'), () => restore(one),
                { class: 'button is-quiet', 'data-needs': 'steer' }),
            button(t('branch.short'), () => branch(panel, one),
                { class: 'button is-quiet', 'data-needs': 'steer' }),
                iconButton('download', t('checkpoints.download', { name: one.name }),
                    (event) => fetchFile(one, event.currentTarget)),
                iconButton('trash', t(isKept ? 'delete.kept' : 'delete.title', { name: one.name }),
                    () => remove(one), { disabled: isKept, 'data-needs': 'admin' })));
    }

    function show() {
        const trainer = state.trainers.get(panel.present()), folder = Boolean(trainer?.folder);
        form.hidden = table.hidden = !trainer;
        panel.setNote(checkpoints.length > 0 ? integer(checkpoints.length) : '');
        const none = t(folder ? 'checkpoints.none' : 'checkpoints.no_folder');
        panel.empty(!trainer ? t('state.gone') : checkpoints.length === 0 ? none : null);
        keepFocus(body, () => fill(body, checkpoints.map(row)));
    }

    const reload = () => panel.load(async (signal) => {
        const trainer = panel.present();
        checkpoints = trainer !== null ? (await get('checkpoints', { trainer }, { signal })).checkpoints : [];
        checkpoints.sort((a, b) => b.time - a.time);
        show();
    });
    panel.on('trainer', reload);
    panel.on('trainers', reload);
    panel.on('reconnected', reload);
    panel.on('change', ({ trainer, identifier }) => {
        if (trainer === panel.trainer() && identifier === 'position') reload();
    });
    panel.every(5000, reload);
    reload();
    return { shown: reload };
}
