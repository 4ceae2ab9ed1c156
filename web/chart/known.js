/* Which series there are, and recording more of them. Only what exists is asked for: a refusal is an error in the
 * browser's log. */
import { get, post } from '../api.js';
import { isPresent } from '../store.js';

const shortWhile = 800; /* several charts ask at the same time */
const answers = new Map();
const watched = new Set();

function shared(key, ask) {
    const known = answers.get(key);
    if (known && performance.now() - known.since < shortWhile) return known.promise;
    const promise = ask();
    answers.set(key, { promise, since: performance.now() });
    promise.catch(() => answers.delete(key));
    return promise;
}

/* Identifiers of all series that are recorded. */
export function recorded(trainer) {
    return shared(`list ${trainer}`, async () => (await get('series/list', { trainer })).series.map((one) => one.id));
}

async function numeric(trainer) {
    const tree = await shared(`tree ${trainer}`, () => get('tree', { trainer }));
    const isUsed = ({ settable, value }) => !settable || (value !== null && value !== undefined);
    return tree.entries.filter((one) => (one.kind === 'number' || one.kind === 'integer') && isUsed(one))
        .map((one) => one.identifier);
}

export function matcher(pattern) {
    const text = pattern.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace(/\*/g, '.*');
    return new RegExp(`^${text}$`);
}

/* Has values recorded from now on, if there are such. True if something new is. */
export async function watch(trainer, pattern) {
    if (watched.has(`${trainer} ${pattern}`) || !isPresent(trainer)) return false;
    const fits = matcher(pattern);
    if (!(await numeric(trainer)).some((id) => fits.test(id))) return false;
    watched.add(`${trainer} ${pattern}`);
    await post('watch', { trainer, identifier: pattern });
    answers.delete(`list ${trainer}`);
    return true;
}

/* Of a program that was started again. */
export function forget() {
    answers.clear();
    watched.clear();
}
