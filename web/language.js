/* Texts of the page: languages/NAME.json, keys such as "panel.chart"; {name} in a text is filled in. */
import { setLocale } from './format.js';

export const languages = { en: 'English', de: 'Deutsch' };
export let language = 'en';
let texts = {};

export async function loadLanguage(wanted) {
    const name = wanted in languages ? wanted : 'en';
    const response = await fetch(`/languages/${name}.json`);
    texts = await response.json();
    language = name;
    document.documentElement.lang = name;
    setLocale(name);
}

/* What was chosen here, else what the program says, else the browser's. */
export function preferredLanguage(ofProgram) {
    return localStorage.getItem('sigma.language') ?? ofProgram ?? navigator.language.slice(0, 2);
}

export function t(key, values = {}) {
    const text = texts[key];
    if (text === undefined) return key;
    return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

export function has(key) {
    return key in texts;
}
