/* Language and light, for the bars of both pages. */
import { h, iconButton, setIcon } from './elements.js';
import { language, languages, loadLanguage, t } from './language.js';
import { menu } from './overlays.js';
import { emit, state } from './store.js';
import { switchTheme } from './theme.js';

async function changeLanguage(name) {
    localStorage.setItem('sigma.language', name);
    await loadLanguage(name);
    emit('language', name);
}

export function languageButton() {
    const choices = () => Object.entries(languages).map(([name, label]) =>
        ({ label, checked: name === language, act: () => changeLanguage(name) }));
    const element = h('button', { type: 'button', class: 'icon-button bar-language', title: t('action.language'),
        'aria-label': t('action.language'), 'aria-haspopup': 'menu', text: language.toUpperCase(),
        on: { click: () => menu(element, choices()) } });
    return element;
}

const themeIcon = () => (state.theme === 'dark' ? 'sun' : 'moon');

export function themeButton() {
    return iconButton(themeIcon(), t('action.theme'), switchTheme);
}

export function showTheme(button) {
    setIcon(button, themeIcon());
}

/* With `act` it is a button. */
export function logo(act = null) {
    const image = h('img', { class: 'logo', src: 'icon.svg', alt: '', width: 24, height: 24 });
    return act === null ? image : h('button', { type: 'button', class: 'bar-about', title: t('about.title'),
        'aria-label': t('about.title'), 'aria-haspopup': 'dialog', on: { click: act } }, image);
}
