/* Play, pause, step, stop, rewind of the trainer that is looked at: for the bar, the control panel, and keys. */
import { command } from './api.js';
import { t } from './language.js';
import { announce, confirm, toast, toastError } from './overlays.js';
import { emit, state } from './store.js';

const pending = new Map(); /* trainer -> the command that is on its way */

export function pendingOf(name) {
    return pending.get(name) ?? null;
}

/* Fails with a message on the page; true if it was done. */
export async function send(name, what, fields = {}, silent = false) {
    if (name === null || pending.has(name)) return false;
    pending.set(name, what);
    emit('pending', name);
    try {
        await command(name, what, fields);
        if (!silent) announce(t(`done.${what}`, { name, n: fields.iterations ?? '' }));
        return true;
    } catch (error) {
        toastError(error);
        return false;
    } finally {
        pending.delete(name);
        emit('pending', name);
    }
}

export function playOrPause(name = state.current) {
    const trainer = state.trainers.get(name);
    if (!trainer || trainer.state === 'idle') return;
    send(name, trainer.state === 'running' ? 'pause' : 'resume');
}

export function step(iterations = 1, name = state.current) {
    const trainer = state.trainers.get(name);
    if (!trainer || trainer.state === 'idle') return;
    send(name, 'step', { iterations });
}

export function stop(name = state.current) {
    return confirm({ title: t('stop.title', { name }), text: t('stop.text'), accept: t('action.stop'),
        act: async () => {
        await command(name, 'stop', { reason: t('stop.reason') });
        toast(t('done.stop', { name }));
    } });
}

export function rewind(name = state.current) {
    return confirm({ title: t('rewind.title', { name }), text: t('rewind.text'), accept: t('action.rewind'),
        act: async () => {
        await command(name, 'reset');
        toast(t('done.reset', { name }));
    } });
}
