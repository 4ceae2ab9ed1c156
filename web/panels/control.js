/* The music player of a training: its buttons, and its figures. */
import { get } from '../api.js';
import { progressOf } from '../bar.js';
import { button, h, iconButton, setIcon, setText } from '../elements.js';
import { count, duration, integer, percent, roughly, steady } from '../format.js';
import { t } from '../language.js';
import { definePanel } from '../panel.js';
import { state } from '../store.js';
import { pendingOf, playOrPause, rewind, send, step, stop } from '../transport.js';

/* What the trainer's object says; the rest comes from its registry, seldom. */
const figures = [
    ['time', (trainer) => duration(trainer.seconds)],
    ['left', (trainer) => roughly(trainer.state === 'idle' ? null : trainer.seconds_left)],
    ['epoch', (trainer) => (trainer.epochs ? `${count(trainer.epoch)} / ${count(trainer.epochs)}`
        : integer(trainer.epoch))],
    ['iteration', (trainer) => integer(trainer.iteration)],
    ['loss', (trainer) => steady(trainer.loss)],
    ['accuracy', (trainer) => (trainer.accuracy === null ? null : percent(trainer.accuracy))],
    ['rate', (trainer) => t('unit.per_second', { n: count(trainer.rate) })],
    ['learning_rate', (trainer) => steady(trainer.learning_rate)],
    ['data', (trainer, seldom) => seldom.data],
    ['optimiser', (trainer, seldom) => seldom.optimiser],
    ['operator', (trainer, seldom) => seldom.operator],
    ['parameters', (trainer) => integer(trainer.parameters)],
    ['handler', (trainer, seldom) => seldom.handler],
];

definePanel('control', {
    icon: 'play',
    tab: 'training', order: 1,
    size: { w: 4, h: 10 }, minimum: { w: 3, h: 5 }, heights: { 6: 9, 1: 12 },
    create,
});

function progressRow(name) {
    const fillOf = h('div', { class: 'progress-fill' }), text = h('span', { class: 'dim' });
    const track = h('div', { class: 'progress', role: 'progressbar', 'aria-label': t(`control.${name}`),
        'aria-valuemin': 0, 'aria-valuemax': 100 }, fillOf);
    const row = h('div', { class: 'control-progress' }, h('span', { text: t(`control.${name}`) }), track, text);
    return { row, show(share, label) {
        row.hidden = share === null;
        if (share === null) return;
        fillOf.style.transform = `scaleX(${share})`;
        track.setAttribute('aria-valuenow', Math.round(share * 100));
        setText(text, label);
    } };
}

function create(panel) {
    const play = iconButton('play', t('action.play'), () => playOrPause(panel.trainer()),
        { class: 'icon-button control-play' });
    const back = iconButton('rewind', t('action.rewind'), () => rewind(panel.trainer()));
    const end = iconButton('stop', t('action.stop'), () => stop(panel.trainer()));
    const one = iconButton('step', t('action.step'), () => step(1, panel.trainer()));
    const times = h('input', { class: 'input is-number', type: 'number', min: 1, max: 1e9, step: 1, required: true,
        value: panel.options.run ?? 100, 'aria-label': t('control.run_count') });
    const run = button(t('control.run'), null, { type: 'submit' });
    const form = h('form', { class: 'control-run', 'data-needs': 'steer',
        on: { submit: (event) => { event.preventDefault(); runSome(); } } },
        times, h('span', { class: 'control-run-after', text: t('control.run_after') }), run);
    const values = new Map(figures.map(([name]) => [name, h('dd')]));
    const epoch = progressRow('this_epoch'), total = progressRow('whole');
    const reason = h('p', { class: 'control-reason', hidden: true });
    let seldom = {};
    panel.body.classList.add('scroll');
    panel.body.append(h('div', { class: 'control-buttons', role: 'group', 'data-needs': 'steer',
        'aria-label': t('panel.control') }, back, end,
        play, one),
        h('div', { class: 'control-bars' }, epoch.row, total.row), reason, form,
        h('dl', { class: 'figures' }, figures.map(([name]) => h('div', { data: { name } },
            h('dt', { text: t(`figure.${name}`) }), values.get(name)))));

    async function runSome() {
        const iterations = Math.max(1, Math.floor(Number(times.value) || 1));
        panel.setOption('run', iterations);
        await send(panel.trainer(), 'step', { iterations });
    }

    async function loadSeldom() {
        const trainer = panel.trainer();
        seldom = { handler: [state.session?.handler, state.session?.precision].filter(Boolean).join(', ') };
        if (panel.present() === null) return;
        const found = await get('tree', { trainer }).catch(() => null);
        const value = (identifier) => found?.entries.find((entry) => entry.identifier === identifier)?.value ?? null;
        seldom.data = value('iterator.dataset');
        seldom.optimiser = value('optimiser.type');
        const workers = value('operator.workers');
        seldom.operator = workers === null ? null : t('control.workers', { n: integer(workers) });
        show();
    }

    function show() {
        const trainer = state.trainers.get(panel.trainer());
        panel.empty(trainer ? null : t('state.none'));
        if (!trainer) return;
        const running = trainer.state === 'running', idle = trainer.state === 'idle';
        const pending = pendingOf(trainer.name), label = t(running ? 'action.pause' : 'action.play');
        setIcon(play, running ? 'pause' : 'play');
        play.title = label;
        play.setAttribute('aria-label', label);
        play.classList.toggle('is-pending', pending !== null);
        for (const control of [play, back, end, one, run]) control.disabled = idle || state.connection !== 'open';
        panel.setNote(state.trainers.size > 1 ? `${trainer.name} · ${t(`state.${trainer.state}`)}`
            : t(`state.${trainer.state}`));
        panel.note.dataset.state = trainer.state;
        form.hidden = idle;
        const held = trainer.held ? t('control.held', { held: trainer.held }) : '';
        reason.hidden = !trainer.reason && !held;
        setText(reason, trainer.reason ? t('control.reason', { reason: trainer.reason }) : held);
        /* A run that ended with an epoch is in none: no batch of it is to come, and none of a next one. */
        const between = idle && (trainer.batch === 0 || trainer.batch === trainer.batches);
        epoch.show(trainer.batches && !between ? trainer.batch / trainer.batches : null,
            `${integer(trainer.batch)} / ${integer(trainer.batches)}`);
        const share = progressOf(trainer);
        total.show(share, percent(share, 0));
        for (const [name, text] of figures) {
            const value = text(trainer, seldom);
            setText(values.get(name), value || '');
            values.get(name).parentElement.hidden = !value;
        }
    }

    panel.on('progress', (trainer) => { if (trainer.name === panel.trainer() && panel.visible) show(); });
    panel.on('pending', show);
    panel.on('connection', show);
    panel.on('trainers', show);
    panel.on('trainer', () => { loadSeldom(); show(); });
    show();
    loadSeldom();
    return { shown: show };
}
