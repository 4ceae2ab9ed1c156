/* Elements without markup in strings: data only ever becomes text. */

/* Properties: class, text, on (listeners), data; any other is an attribute (true: empty, null and false: none). */
export function h(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
        if (value === null || value === undefined || value === false) continue;
        if (name === 'class') element.className = value;
        else if (name === 'text') element.textContent = value;
        else if (name === 'value') element.value = value;
        else if (name === 'on') for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
        else if (name === 'data') Object.assign(element.dataset, value);
        else element.setAttribute(name, value === true ? '' : value);
    }
    add(element, children);
    return element;
}

export function add(element, children) {
    for (const child of children.flat()) if (child !== null && child !== undefined
        && child !== false) element.append(child);
    return element;
}

/* Replaces what is in an element. */
export function fill(element, ...children) {
    element.replaceChildren();
    return add(element, children);
}

/* Writes only what differs: layout and screen readers are left in peace. */
export function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
}

/* On a grid of 16; strokes unless the name is in `filled`. */
const shapes = {
    none: '',
    play: 'M5 3.2v9.6l7.5-4.8z',
    pause: 'M4.5 3h2.5v10h-2.5zM9 3h2.5v10h-2.5z',
    stop: 'M4 4h8v8h-8z',
    step: 'M3.5 3.5v9l6.5-4.5zM11 3.5h2v9h-2z',
    rewind: 'M12.5 3.5v9l-6.5-4.5zM3 3.5h2v9h-2z',
    more: 'M8 3.2v.01M8 8v.01M8 12.8v.01',
    close: 'M4 4l8 8M12 4l-8 8',
    plus: 'M8 3v10M3 8h10',
    search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3l3.2 3.2',
    sun: 'M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2'
        + 'M3.4 3.4l.85.85M11.750 11.750l.85.85M3.4 12.6l.85-.85M11.750 4.250l.85-.85',
    moon: 'M13 9.6A5.5 5.5 0 1 1 6.4 3a4.4 4.4 0 0 0 6.6 6.6z',
    help: 'M6 6.1a2 2 0 1 1 2.8 1.850c-.5.25-.8.6-.8 1.250v.3M8 12v.01M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13z',
    sliders: 'M2.5 4.5h6M12 4.5h1.5M2.5 11.5h1.5M7.5 11.5h6M10.3 6.3a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6z'
        + 'M5.7 13.3a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6z',
    expand: 'M9.5 2.5h4v4M6.5 13.5h-4v-4M13.5 2.5l-4.5 4.5M2.5 13.5l4.5-4.5',
    shrink: 'M13.5 6.5h-4v-4M2.5 9.5h4v4M9.5 6.5l4-4M6.5 9.5l-4 4',
    undo: 'M5.5 3l-3 3 3 3M2.5 6h7a3.5 3.5 0 0 1 0 7h-3',
    check: 'M3 8.5l3.2 3.2L13 4.8',
    warning: 'M8 2.2l6.3 11.3H1.7zM8 6.5v3M8 11.6v.01',
    down: 'M4 6l4 4 4-4',
    right: 'M6 4l4 4-4 4',
    download: 'M8 2.5v7.5M4.8 7L8 10.2 11.2 7M3 13.5h10',
    trash: 'M3 4.5h10M6.5 4.5v-1.5h3v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5',
    branch: 'M4.5 5.8v4.4M4.5 5.8a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4z'
        + 'M4.5 13.6a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4zM11.5 6.8a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4z'
        + 'M11.5 6.8c0 2.4-3 2.8-6.6 3.6',
    restore: 'M3 3v3.5h3.5M3.3 6.3a5.3 5.3 0 1 1-.5 3M8 5.2V8.3l2 1.3',
    save: 'M3 2.8h8l2.2 2.2v8.2H3zM5.5 2.8v3.5h4.5v-3.5M5 13v-3.8h6V13',
    chart: 'M2.5 2.5v11h11M5 10l2.5-3.5 2.3 2L13 4.5',
    table: 'M2.5 3.5h11v9h-11zM2.5 6.5h11M6.5 6.5v6',
    eye: 'M1.8 8S4 3.8 8 3.8 14.2 8 14.2 8 12 12.2 8 12.2 1.8 8 1.8 8zM8 9.9a1.9 1.9 0 1 0 0-3.8 1.9 1.9 0 0 0 0 3.8z',
    reset: 'M13 3v3.5H9.5M12.7 6.3a5.3 5.3 0 1 0 .5 3',
    copy: 'M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z',
    star: 'M8 2l1.85 3.75 4.15.6-3 2.9.7 4.100-3.7-1.950-3.7 1.950.7-4.100-3-2.900 4.150-.6z',
    starred: 'M8 2l1.85 3.75 4.15.6-3 2.9.7 4.100-3.7-1.950-3.7 1.950.7-4.100-3-2.900 4.150-.6z',
    text: 'M3 3.500h10M3 6.500h10M3 9.500h10M3 12.500h6',
    archive: 'M2.5 3h11v3h-11zM3.5 6v7h9V6M6.5 8.700h3',
    pencil: 'M3 13l.6-2.8 7.4-7.4 2.2 2.2-7.4 7.4zM9.6 4.2l2.2 2.2',
};
const filled = new Set(['play', 'pause', 'stop', 'step', 'rewind', 'starred']);

export function icon(name) {
    const space = 'http://www.w3.org/2000/svg';
    const svg = document.createElementNS(space, 'svg');
    const path = document.createElementNS(space, 'path');
    svg.setAttribute('viewBox', '0 0 16 16');
    svg.setAttribute('class', filled.has(name) ? 'icon icon-filled' : 'icon');
    svg.setAttribute('aria-hidden', 'true');
    path.setAttribute('d', shapes[name] ?? shapes.help);
    svg.append(path);
    return svg;
}

export function setIcon(button, name) {
    if (button.dataset.icon === name) return;
    button.dataset.icon = name;
    button.querySelector('svg')?.replaceWith(icon(name));
}

/* A button with an icon; `label` is its name, and its tip. */
export function iconButton(name, label, act, more = {}) {
    return h('button', { type: 'button', class: 'icon-button', title: label, 'aria-label': label,
        data: { icon: name }, on: { click: act }, ...more }, icon(name));
}

export function button(label, act, more = {}) {
    return h('button', { type: 'button', class: 'button', on: { click: act }, ...more }, label);
}

export function labelled(label, control, more = {}) {
    return h('label', { class: 'field', ...more }, h('span', { class: 'field-label', text: label }), control);
}

/* Choices are [value, label] pairs. */
export function select(choices, value, act, more = {}) {
    const element = h('select', { class: 'input', on: { change: () => act(element.value) }, ...more },
        choices.map(([key, label]) => h('option',
            { value: key, text: label, selected: String(key) === String(value) })));
    return element;
}

/* A role, not a checkbox: screen readers say on and off. */
export function toggle(label, on, act, more = {}) {
    const element = h('button', { type: 'button', class: 'switch', role: 'switch', 'aria-checked': String(on),
        'aria-label': label, on: { click: () => { setToggle(element, element.getAttribute('aria-checked') !== 'true');
            act(element.getAttribute('aria-checked') === 'true'); } }, ...more });
    return element;
}

export function setToggle(element, on) {
    element.setAttribute('aria-checked', String(on));
}

let lastNumber = 0;
export function freshId(prefix) {
    return `${prefix}-${++lastNumber}`;
}
