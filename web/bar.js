/* The bar at the top: which run, how it goes, the buttons that are always at hand. */
import { post } from './api.js';
import { showAbout } from './about.js';
import { accentDot, accentOf, showAccents } from './accents.js';
import { languageButton, logo, showTheme, themeButton } from './appearance.js';
import { add, button, fill, h, icon, iconButton, select, setIcon, setText } from './elements.js';
import { count, integer, percent, roughly, steady } from './format.js';
import { showHelp } from './keys.js';
import { t } from './language.js';
import { toastError } from './overlays.js';
import { emit, hasEnded, on, select as selectTrainer, state } from './store.js';
import { may, role } from './role.js';
import { pendingOf, playOrPause, step } from './transport.js';

let parts = {};

export function initBar(bar, notice) {
    const build = () => { buildBar(bar); update(); };
    on('session', () => { buildBar(bar); update(); showConnection(notice); });
    on('trainers', build);
    on('trainer', build);
    on('progress', (trainer) => { if (trainer.name === state.current) update(); });
    on('pending', update);
    on('theme', () => { if (parts.theme) showTheme(parts.theme); showAccent(); });
    on('colours', showAccent);
    on('language', () => { build(); showConnection(notice); });
    on('connection', () => { showConnection(notice); update(); });
    buildBar(bar);
    showConnection(notice);
}

/* Which trainer is looked at, and its colour: a button that shows those of all. */
function trainerChoice() {
    const names = [...state.trainers.keys()];
    if (names.length < 2) return null;
    const choice = select(names.map((name) => [name, name]), state.current, selectTrainer,
        { class: 'input bar-trainer', 'aria-label': t('bar.trainer') });
    parts.accent = accentDot(state.current);
    const colours = h('button', { type: 'button', class: 'icon-button bar-colours', title: t('colours.title'),
        'aria-label': t('colours.title'), 'aria-haspopup': 'dialog', on: { click: () => showAccents(colours) } },
    parts.accent);
    return [choice, colours];
}

function showAccent() {
    if (parts.accent) parts.accent.style.background = accentOf(state.current);
}

function buildBar(bar) {
    const title = state.session?.title || state.session?.name || 'Sigma';
    parts = {
        play: iconButton('play', t('action.play'), () => playOrPause(),
            { class: 'icon-button bar-play', 'data-needs': 'steer' }),
        step: iconButton('step', t('action.step'), () => step(1), { 'data-needs': 'steer' }),
        dot: h('span', { class: 'state-dot' }), state: h('span', { class: 'bar-state-text' }),
        epoch: h('b'), iteration: h('b'), loss: h('b'), left: h('b'), track: h('div', { class: 'bar-track-fill' }),
        theme: themeButton(),
    };
    parts.figures = [figure('bar.epoch', parts.epoch), figure('bar.iteration', parts.iteration),
        figure('bar.loss', parts.loss), figure('bar.left', parts.left)];
    fill(bar, h('div', { class: 'bar-brand' }, logo(showAbout), h('h1', { text: title, title }),
        trainerChoice()),
        h('div', { class: 'bar-transport', role: 'group', 'aria-label': t('panel.control') }, parts.play, parts.step,
            h('span', { class: 'bar-state', role: 'status' }, parts.dot, parts.state)),
        h('dl', { class: 'bar-figures' }, parts.figures),
        h('div', { class: 'bar-end' }, languageButton(), parts.theme, iconButton('help', t('keys.title'), showHelp)),
        h('div', { class: 'bar-track', 'aria-hidden': 'true' }, parts.track));
}

function figure(key, value) {
    return h('div', { class: `bar-figure is-${key.slice(4)}` }, h('dt', { text: t(key) }), h('dd', {}, value));
}

/* Epochs and batches as one share, if the run has an end. */
export function progressOf(trainer) {
    if (!trainer?.epochs) return null;
    return Math.min(1, (trainer.epoch + (trainer.batches ? trainer.batch / trainer.batches : 0)) / trainer.epochs);
}

function update() {
    const trainer = state.trainers.get(state.current), running = trainer?.state === 'running';
    const label = t(running ? 'action.pause' : 'action.play');
    setIcon(parts.play, running ? 'pause' : 'play');
    if (parts.play.title !== label) {
        parts.play.title = label;
        parts.play.setAttribute('aria-label', label);
    }
    const busy = !trainer || trainer.state === 'idle' || state.connection !== 'open';
    parts.play.disabled = parts.step.disabled = busy;
    parts.play.classList.toggle('is-pending', pendingOf(state.current) !== null);
    parts.dot.dataset.state = trainer?.state ?? 'idle';
    setText(parts.state, trainer ? t(`state.${trainer.state}`) : t('state.none'));
    for (const element of parts.figures) element.hidden = !trainer;
    if (!trainer) return;
    setText(parts.epoch, trainer.epochs ? `${integer(trainer.epoch)} / ${count(trainer.epochs)}`
        : integer(trainer.epoch));
    setText(parts.iteration, integer(trainer.iteration));
    setText(parts.loss, steady(trainer.loss));
    setText(parts.left, roughly(trainer.state === 'idle' ? null : trainer.seconds_left));
    const share = progressOf(trainer);
    parts.track.style.transform = `scaleX(${share ?? 0})`;
    const sign = { running: '▶', paused: '❚❚' }[trainer.state] ?? '■';
    const far = share === null ? integer(trainer.iteration) : percent(Math.floor(share * 100) / 100, 0);
    document.title = `${sign} ${far} · ${state.session?.title || state.session?.name} · Sigma`;
}

async function finish() {
    await post('finish', {}).then(() => { state.session.waiting = false; emit('session', state.session); }, toastError);
}

/* Below the bar: that the connection is lost, or that the program waits. */
function showConnection(notice) {
    const lost = state.connection === 'lost' || state.connection === 'refused';
    document.body.classList.toggle('is-lost', lost);
    fill(notice);
    notice.classList.toggle('is-calm', !lost || (hasEnded() && state.connection === 'lost'));
    if (lost) add(notice, [icon('warning'), h('span',
        { text: t(`connection.${hasEnded() && state.connection === 'lost' ? 'ended' : state.connection}`) })]);
    else if (state.session?.waiting) add(notice, [icon('check'), h('span', { text: t('finish.text') }),
        button(t('finish.accept'), finish, { 'data-needs': 'steer' })]);
    else if (!may('admin')) add(notice, [icon('eye'), h('span', { text: t(`role.${role()}`) })]);
}
