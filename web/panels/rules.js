/* Rules as text, and all hooks that are attached. */
import { command } from '../api.js';
import { button, fill, h, iconButton } from '../elements.js';
import { integer, percent, shortTime } from '../format.js';
import { t } from '../language.js';
import { confirm, errorText, toast, toastError } from '../overlays.js';
import { notifySwitch } from '../notify.js';
import { definePanel } from '../panel.js';
import { state } from '../store.js';

const examples = [
    'if validation.loss stalls 5 epochs then stop',
    'every 1 epoch if validation.accuracy reaches maximum then save "best"',
    'if optimiser.loss increases 3 times then set optimiser.learning_rate *= 0.5',
    'after 10 epochs pause',
    'at epoch 3 unfreeze "1-dense.*"',
    'every 100 iterations value_reporter(training.loss)',
    'if external "go" then save "now"',
];

definePanel('rules', {
    icon: 'branch',
    tab: 'settings', order: 3,
    size: { w: 5, h: 10 }, minimum: { w: 3, h: 5 },
    create,
});

function create(panel) {
    let hooks = [];
    const input = h('input', { class: 'input mono', placeholder: examples[0], 'aria-label': t('rules.text'),
        autocomplete: 'off', spellcheck: 'false', list: 'rule-examples',
        on: { input: () => { problem.hidden = true; input.classList.remove('is-bad'); } } });
    const problem = h('p', { class: 'form-error', role: 'alert', hidden: true });
    const add = button(t('rules.attach'), null, { type: 'submit' });
    const form = h('form', { class: 'toolbar', 'data-needs': 'steer', on: { submit: attach } }, input, add);
    const body = h('tbody');
    const pressing = h('div', { class: 'toolbar rule-buttons', role: 'group', 'aria-label': t('rules.buttons'),
        hidden: true });
    let shown = '';
    panel.body.append(form, h('datalist', { id: 'rule-examples' }, examples.map((value) => h('option', { value }))),
        notifySwitch(), problem, pressing,
        h('div', { class: 'scroll', tabindex: '0' }, h('table', { class: 'table hooks' },
            h('thead', {}, h('tr', {}, h('th', { scope: 'col', text: t('rules.hook') }),
            h('th', { scope: 'col', class: 'is-number', text: t('rules.runs') }),
                h('th', { scope: 'col', class: 'is-number', text: t('rules.cost'), title: t('rules.cost_tip') }),
            h('th', {}, h('span', { class: 'unseen', text: t('rules.detach') })))), body)));

    async function attach(event) {
        event.preventDefault();
        const text = input.value.trim();
        if (text === '') return;
        add.disabled = true;
        try {
            const answer = await command(panel.trainer(), 'attach', { hook: text });
            toast(t('rules.attached', { name: answer.name ?? '' }));
            if (input.value.trim() === text) input.value = ''; /* what was typed meanwhile stays */
            await reload();
        } catch (error) {
            problem.textContent = errorText(error);
            problem.hidden = false;
            input.classList.add('is-bad');
        }
        add.disabled = false;
    }

    function detach(hook) {
        const trainer = panel.trainer();
        return confirm({ title: t('rules.detach_title', { name: hook.name }), text: hook.text || hook.when,
            accept: t('rules.detach'), act: async () => {
            await command(trainer, 'detach', { name: hook.name });
            await reload();
        } });
    }

    async function press(name) {
        try {
            await command(panel.trainer(), 'press', { name });
            toast(t('rules.pressed', { name }));
            await reload();
        } catch (error) {
            toastError(error);
        }
    }

    /* A button for each criterion `external`, also where several rules wait for the same. They stay as they are,
     * with the keyboard's focus, as long as there are no others. */
    function showButtons() {
        const names = [...new Set(hooks.flatMap((hook) => hook.buttons ?? []))], now = JSON.stringify(names);
        if (now === shown) return;
        shown = now;
        pressing.hidden = names.length === 0;
        fill(pressing, names.map((name) => button(name, () => press(name), { title: t('rules.press', { name }),
            'data-needs': 'steer' })));
    }

    /* The share of the whole time says more than the time of one run. */
    function cost(hook) {
        const seconds = state.trainers.get(panel.trainer())?.seconds;
        const share = seconds > 0 ? (hook.seconds * hook.runs) / seconds : 0;
        return share >= 0.001 ? `${shortTime(hook.seconds)} · ${percent(share)}` : shortTime(hook.seconds);
    }

    function row(hook) {
        const when = [hook.when, hook.condition].filter(Boolean).join(', ');
        return h('tr', {}, h('td', {}, h('div', { class: 'hook-name' }, h('b', { text: hook.name }), hook.background
            ? h('span', { class: 'badge', text: t('rules.background') }) : null),
            h('div', { class: hook.text ? 'hook-text mono' : 'hook-text', text: hook.text || when })),
        h('td', { class: 'is-number', text: integer(hook.runs) }),
            h('td', { class: 'is-number dim', text: hook.runs > 0 ? cost(hook) : '' }),
        h('td', { class: 'is-number' }, iconButton('close', t('rules.detach_title', { name: hook.name }),
            () => detach(hook), { 'data-needs': 'steer' })));
    }

    function show() {
        panel.setNote(hooks.length > 0 ? integer(hooks.length) : '');
        showButtons();
        if (body.contains(document.activeElement)) return;
        fill(body, hooks.map(row));
        if (hooks.length === 0) body.append(h('tr', {}, h('td', { class: 'dim', colspan: 4, text: t('rules.none',
            { example: examples[3] }) })));
    }

    async function refresh() {
        const trainer = panel.present();
        if (trainer === null) return;
        hooks = (await command(trainer, 'hooks')).hooks ?? [];
        show();
    }

    const reload = () => panel.load(refresh);
    panel.on('trainer', reload);
    panel.on('change', ({ trainer, identifier }) => {
        if (trainer === panel.trainer() && identifier.startsWith('hook ')) refresh().catch(() => {});
    });
    panel.on('reconnected', reload);
    panel.every(3000, () => refresh().catch(() => {}));
    reload();
}
