/* What the page knows, and who wants to hear of it.
 * Topics: session, trainers (the list), trainer (another one is looked at), progress (one moved: its object), points,
 * log, task, change, approvals, system, dropped, connection, reconnected, theme, colours (of trainers),
 * language, layout. */
import { setRole } from './role.js';

const listeners = new Map();

export const state = {
    session: null,
    trainers: new Map(), /* by name, in the server's order */
    current: null,       /* name of the trainer that panels show which are bound to none */
    connection: 'connecting', /* open | lost | refused */
    theme: 'dark',
};

export function on(topic, act) {
    if (!listeners.has(topic)) listeners.set(topic, new Set());
    listeners.get(topic).add(act);
    return () => listeners.get(topic).delete(act);
}

export function emit(topic, data) {
    for (const act of [...(listeners.get(topic) ?? [])]) {
        try {
            act(data);
        } catch (error) {
            console.error(`${topic}:`, error); /* of one listener: the others still hear */
        }
    }
}

/* A run that has ended no longer tells its figures: those it told last stay. */
function withFigures(trainer) {
    const before = state.trainers.get(trainer.name);
    if (trainer.state !== 'idle' || !before) return trainer;
    return { ...trainer, loss: trainer.loss ?? before.loss, accuracy: trainer.accuracy ?? before.accuracy };
}

export function setSession(session) {
    state.session = session;
    setRole(session.role);
    state.trainers = new Map(session.trainers.map((trainer) => [trainer.name, withFigures(trainer)]));
    emit('session', session);
    emit('trainers', state.trainers);
    if (isPresent(state.current)) return;
    const shown = session.trainers.find((trainer) => !trainer.unscheduled && !trainer.gone);
    if (shown || !state.trainers.has(state.current)) select((shown ?? session.trainers[0])?.name ?? null);
}

/* Trainers that are gone left their curves; they have no values any more. */
export function isPresent(name) {
    return state.trainers.has(name) && !state.trainers.get(name).gone;
}

export function select(name) {
    if (state.current === name) return;
    state.current = name;
    emit('trainer', name);
}

export function hasEnded() {
    return state.trainers.size > 0 && [...state.trainers.values()].every((trainer) => trainer.state === 'idle');
}

export function progress(trainer) {
    if (!state.trainers.has(trainer.name)) return; /* the list will tell */
    const shown = withFigures(trainer);
    state.trainers.set(trainer.name, shown);
    emit('progress', shown);
}

export function setConnection(connection) {
    if (state.connection === connection) return;
    state.connection = connection;
    emit('connection', connection);
}
