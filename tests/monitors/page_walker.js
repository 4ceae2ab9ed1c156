/* What of a page cannot be read: texts whose contrast with what lies behind them is below 4.5 (3 where they are large),
 * as a list of texts. Controls that cannot be used are left out, as WCAG 2 has it. */
const canvas = document.createElement('canvas');
canvas.width = canvas.height = 1;
const context = canvas.getContext('2d', { willReadFrequently: true });
const known = new Map();

/* [red, green, blue, alpha] of 0 to 1, whatever notation the browser uses. */
function rgba(text) {
    if (!known.has(text)) {
        context.clearRect(0, 0, 1, 1);
        context.fillStyle = text;
        context.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
        known.set(text, [r / 255, g / 255, b / 255, a / 255]);
    }
    return known.get(text);
}

const over = (top, below, alpha) => [0, 1, 2].map((i) => top[i] * alpha + below[i] * (1 - alpha));
const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
};

/* What is painted behind an element's text: its own ground over those of what it lies in, each as opaque as it is. */
function ground(element) {
    if (!element) return rgba(getComputedStyle(document.documentElement).backgroundColor).slice(0, 3);
    const style = getComputedStyle(element), own = rgba(style.backgroundColor);
    if (own[3] === 1 && style.opacity === '1') return own.slice(0, 3);
    return over(own, ground(element.parentElement), own[3] * Number(style.opacity));
}

function opacity(element) {
    let all = 1;
    for (let at = element; at; at = at.parentElement) all *= Number(getComputedStyle(at).opacity);
    return all;
}

const isShown = (element) => element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true })
    && !element.closest('.unseen, noscript, script, style, option, :disabled, [aria-disabled="true"]')
    && element.getBoundingClientRect().width > 1 && element.getBoundingClientRect().bottom > 0;
const nameOf = (element) => `${element.tagName.toLowerCase()}.${String(element.className).replaceAll(' ', '.')}`;

const wrong = new Set();
function look(element, text, colour, enough = 4.5) {
    const clear = opacity(element);
    if (clear === 0 || !isShown(element)) return;
    const behind = ground(element), own = rgba(colour), { fontSize, fontWeight } = getComputedStyle(element);
    const found = contrast(over(own, behind, own[3] * clear), behind), size = parseFloat(fontSize);
    const needed = size >= 24 || (size >= 18.66 && Number(fontWeight) >= 700) ? 3 : enough;
    if (found < needed) wrong.add(`${found.toFixed(2)} "${text.trim().slice(0, 30)}" in ${nameOf(element)}`);
}

const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node; (node = texts.nextNode());) {
    const element = node.parentElement;
    if (node.data.trim() !== '') look(element, node.data, getComputedStyle(element).color);
}
for (const field of document.querySelectorAll('input, select, textarea')) {
    if (['checkbox', 'radio', 'range', 'color', 'file'].includes(field.type)) continue;
    const isEmpty = field.value === '' && field.placeholder;
    look(field, field.value || field.placeholder || '',
        getComputedStyle(field, isEmpty ? '::placeholder' : null).color);
}

/* Pictures that say what a button does. */
for (const icon of document.querySelectorAll('button svg.icon, summary svg.icon')) {
    const rgb = getComputedStyle(icon).color;
    if (icon.firstChild?.getAttribute('d')) look(icon.parentElement, `icon of ${icon.parentElement.title}`, rgb, 3);
}

/* What a reader is told twice or not at all. */
const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => wrong.add(`the id ${id} is there twice`));
for (const attribute of ['aria-labelledby', 'aria-describedby', 'aria-controls'])
    for (const element of document.querySelectorAll(`[${attribute}]`))
        for (const id of element.getAttribute(attribute).split(/\s+/))
            if (!document.getElementById(id)) wrong.add(`${nameOf(element)} has ${attribute} ${id}, which is not there`);
const homes = { tab: 'tablist', option: 'listbox', menuitem: 'menu', menuitemcheckbox: 'menu', row: 'table, grid' };
for (const [role, home] of Object.entries(homes))
    for (const element of document.querySelectorAll(`[role="${role}"]`))
        if (!element.closest(home.split(', ').map((one) => `[role="${one}"]`).join()))
            wrong.add(`${nameOf(element)} is a ${role} outside of a ${home}`);
for (const image of document.querySelectorAll('img:not([alt])')) wrong.add(`${nameOf(image)} has no alt`);
if (!document.querySelector('main')) wrong.add('there is no main');
if (!document.documentElement.lang) wrong.add('the language is not told');
return [...wrong].join('\n');
