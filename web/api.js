/* The server: requests, and what it pushes. */
import { emit, progress, setConnection, setSession, state } from './store.js';

const token = document.querySelector('meta[name="sigma-token"]')?.content ?? '';

/* `message` is for a person; code 0: the server did not answer. */
class ApiError extends Error {
    constructor(message, code) {
        super(message);
        this.code = code;
    }
}

/* Values that are arrays are repeated, those that are null left out. */
export function path(route, query = {}) {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
        for (const one of Array.isArray(value) ? value : [value])
            if (one !== null && one !== undefined) parameters.append(name, one);
    const text = parameters.toString();
    return `/api/${route}${text ? `?${text}` : ''}`;
}

async function answer(url, options) {
    let response;
    try {
        response = await fetch(url, { cache: 'no-store', credentials: 'same-origin', ...options });
    } catch (error) {
        if (error.name === 'AbortError') throw error;
        throw new ApiError('', 0);
    }
    const type = response.headers.get('Content-Type') ?? '';
    const body = type.includes('json') ? await response.json().catch((error) => {
        if (error.name === 'AbortError') throw error; /* given up in the middle: no answer */
        return null;
    }) : {};
    if (!response.ok) throw new ApiError(body?.error ?? `${response.status} ${response.statusText}`, response.status);
    if (body === null) throw new ApiError('', 0); /* cut off */
    return body;
}

export function get(route, query, options = {}) {
    return answer(path(route, query), options);
}

export function post(route, body, query) {
    return answer(path(route, query), { method: 'POST', body: JSON.stringify(body),
        headers: { 'Content-Type': 'application/json', 'X-Sigma-Token': token } });
}

export function upload(route, query, bytes) {
    return answer(path(route, query), { method: 'POST', body: bytes,
        headers: { 'Content-Type': 'application/octet-stream', 'X-Sigma-Token': token } });
}

export function command(trainer, name, fields = {}) {
    return post('command', { trainer, command: name, ...fields });
}

/* --- pushed events --- */

const longestSilence = 15000; /* the server says how the system is every 2 s */
let source = null, lastHeard = 0, tries = 0, timer = 0;

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
    system: (data) => emit('system', data),
    dropped: (data) => emit('dropped', data),
};

export async function refresh() {
    setSession(await get('session'));
}

export function connect() {
    clearTimeout(timer);
    source?.close();
    source = new EventSource('/api/events');
    lastHeard = Date.now();
    source.addEventListener('open', opened);
    source.addEventListener('error', lost);
    for (const [name, act] of Object.entries(acts))
        source.addEventListener(name, (event) => {
            lastHeard = Date.now();
            act(JSON.parse(event.data));
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

async function lost() {
    source.close();
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
