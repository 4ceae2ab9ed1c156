/* The server: requests, and what it pushes. Each request carries the page token: other ports of this machine are
 * sent the page's cookie, but cannot read the storage of its origin. */
import { t } from './language.js';
import { emit, progress, setConnection, setSession, state } from './store.js';

const storedToken = 'sigma.page-token';

/* The address that the program printed leads to one with the page token, which is put away at once: it is in the
 * address bar no longer, and there when the page is loaded again, or in another tab. In a browser that
 * stores nothing for pages it is lost when the page is loaded again. */
function takeToken() {
    const address = new URL(location.href), given = address.searchParams.get('page-token');
    try {
        if (given === null) return localStorage.getItem(storedToken) ?? '';
        localStorage.setItem(storedToken, given);
    } catch (error) {
        console.warn(error);
    }
    address.searchParams.delete('page-token');
    history.replaceState(null, '', address);
    return given ?? '';
}

const token = takeToken();

/* `message` is for a person; code 0: the server did not answer. */
class ApiError extends Error {
    constructor(message, code) {
        super(message);
        this.code = code;
    }
}

/* Values that are arrays are repeated, those that are null left out. */
function path(route, query = {}) {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
        for (const one of Array.isArray(value) ? value : [value])
            if (one !== null && one !== undefined) parameters.append(name, one);
    const text = parameters.toString();
    return `/api/${route}${text ? `?${text}` : ''}`;
}

async function ask(url, { headers = {}, ...options } = {}) {
    try {
        return await fetch(url, { cache: 'no-store', credentials: 'same-origin', ...options,
            headers: { 'X-Sigma-Token': token, ...headers } });
    } catch (error) {
        if (error.name === 'AbortError') throw error;
        throw new ApiError('', 0);
    }
}

async function answer(url, options) {
    const response = await ask(url, options);
    const type = response.headers.get('Content-Type') ?? '';
    const body = await (type.includes('json') ? response.json() : response.blob()).catch((error) => {
        if (error.name === 'AbortError') throw error; /* given up in the middle: no answer */
        return null;
    });
    if (!response.ok) throw new ApiError(body?.error ?? `${response.status} ${response.statusText}`, response.status);
    if (body === null) throw new ApiError('', 0); /* cut off */
    return body;
}

/* What is no JSON is a Blob. */
export function get(route, query, options = {}) {
    return answer(path(route, query), options);
}

export function post(route, body, query) {
    return answer(path(route, query), { method: 'POST', body: JSON.stringify(body),
        headers: { 'Content-Type': 'application/json' } });
}

export function upload(route, query, bytes) {
    return answer(path(route, query), { method: 'POST', body: bytes,
        headers: { 'Content-Type': 'application/octet-stream' } });
}

/* What waits for approval is not done, and so no answer that a caller could show. */
export async function command(trainer, name, fields = {}) {
    const made = await post('command', { trainer, command: name, ...fields });
    if (made.pending) throw new ApiError(t('approval.waits', { n: made.pending }), 202);
    return made;
}

/* --- pushed events, which are read by fetch: an EventSource cannot send the page token --- */

const longestSilence = 15000; /* the server says how the system is every 2 s */
let stream = null, lastHeard = 0, tries = 0, timer = 0;

/* A program whose training has ended may wait for those who watch: the session says so. */
let looking = 0;
function progressed(trainer) {
    progress(trainer);
    if (trainer.state !== 'idle' || state.session?.waiting) return;
    clearTimeout(looking);
    looking = setTimeout(() => refresh().catch(() => {}), 1500);
}

const acts = {
    progress: progressed,
    trainers: () => refresh().catch(() => {}),
    points: (data) => emit('points', data),
    log: (data) => emit('log', data),
    task: (data) => emit('task', data),
    change: (data) => emit('change', data),
    pending: (data) => emit('approvals', data),
    system: (data) => emit('system', data),
    dropped: (data) => emit('dropped', data),
};

export async function refresh() {
    setSession(await get('session'));
}

/* The lines of one event: its name, and its data, which may have several. Those of comments and others are left out. */
function hear(lines) {
    let name = '';
    const data = [];
    for (const line of lines)
        if (line.startsWith('event: ')) name = line.slice(7);
        else if (line.startsWith('data: ')) data.push(line.slice(6));
    try {
        acts[name]?.(JSON.parse(data.join('\n')));
    } catch (error) {
        reportError(error); /* the events behind it are heard all the same */
    }
}

/* Until the stream ends. */
async function listen(signal) {
    const response = await ask('/api/events', { signal });
    if (!response.ok) throw new ApiError('', response.status);
    opened();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ''; ;) {
        const { value, done } = await reader.read();
        if (done) return;
        lastHeard = Date.now();
        const events = (rest + value).split('\n\n');
        rest = events.pop();
        for (const event of events) hear(event.split('\n'));
    }
}

export function connect() {
    clearTimeout(timer);
    stream?.abort();
    const own = new AbortController();
    stream = own;
    lastHeard = Date.now();
    listen(own.signal).catch(() => {}).then(() => {
        if (stream === own) lost();
    });
}

async function opened() {
    const again = tries > 0 || state.connection === 'lost';
    tries = 0;
    lastHeard = Date.now();
    if (again) await refresh().catch(() => {});
    setConnection('open');
    if (again) emit('reconnected');
}

function lost() {
    stream?.abort();
    stream = null;
    clearTimeout(timer);
    setConnection('lost');
    timer = setTimeout(tryAgain, Math.min(10000, 500 * 2 ** tries++));
}

/* A refusal is no lost connection: another try would not help. */
async function tryAgain() {
    try {
        await get('session');
        connect();
    } catch (error) {
        if (error.code === 401 || error.code === 403) setConnection('refused');
        else lost();
    }
}

setInterval(() => {
    if (state.connection === 'open' && !document.hidden && Date.now() - lastHeard > longestSilence) lost();
}, 3000);
document.addEventListener('visibilitychange', () => {
    if (!document.hidden) lastHeard = Date.now(); /* timers and events slept with the tab */
});
