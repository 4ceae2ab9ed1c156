/* Dark or light: as the system has it, until the user says otherwise. */
import { emit, state } from './store.js';

const dark = matchMedia('(prefers-color-scheme: dark)');

function apply() {
    state.theme = localStorage.getItem('sigma.theme') ?? (dark.matches ? 'dark' : 'light');
    document.documentElement.dataset.theme = state.theme;
    emit('theme', state.theme);
}

export function initTheme() {
    const asked = new URLSearchParams(location.search).get('theme');
    if (asked === 'dark' || asked === 'light') localStorage.setItem('sigma.theme', asked);
    apply();
    dark.addEventListener('change', apply);
}

export function switchTheme() {
    localStorage.setItem('sigma.theme', state.theme === 'dark' ? 'light' : 'dark');
    apply();
}

/* A colour of styles/base.css, for canvases. */
export function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export const paletteSize = 8;

/* Eight that are told apart well, then around the circle. From 1 on. */
export function seriesColour(number) {
    return number <= paletteSize ? colour(`series-${number}`)
        : `hsl(${Math.round((number * 137.508) % 360)} ${state.theme === 'light' ? '55% 42%' : '60% 66%'})`;
}
