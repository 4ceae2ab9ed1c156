/* Examples of the data, as GET /api/data gives them, for panels that show some. */
import { h } from '../elements.js';
import { integer, number, percent } from '../format.js';
import { t } from '../language.js';
import { flatten, imageShape, paint } from '../pixels.js';

/* Bytes, each a row of 256 with a one: a text. null: it is none. */
function textOf({ inputs }, shape) {
    if (shape.length !== 2 || shape[1] !== 256) return null;
    const bytes = new Uint8Array(Math.floor(inputs.length / 256));
    for (let row = 0; row < bytes.length; row++)
        bytes[row] = Math.max(0, inputs.slice(row * 256, (row + 1) * 256).indexOf(1));
    return new TextDecoder().decode(bytes);
}

/* What a class is called; a class that is none. */
export function nameOf(names, number) {
    return number === null || number === undefined ? '?' : names?.[number] ?? String(number);
}

/* An example as a picture if its inputs are one, else as numbers. */
export function drawExample(example, { shape, classes, names }) {
    const image = imageShape(shape), wrong = example.target !== example.prediction, written = textOf(example, shape);
    let picture;
    if (written !== null) return h('figure', { class: 'example is-text', title: t('confusion.example',
        { n: integer(example.index) }) }, h('pre', { class: 'example-text', text: written }));
    if (image) {
        picture = h('canvas', { class: 'example-picture', role: 'img', 'aria-label': t('confusion.example',
            { n: integer(example.index) }) });
        const values = flatten(example.inputs, image);
        paint(picture, values, image, Math.min(...values), Math.max(...values));
    } else picture = h('div', { class: 'example-numbers mono' }, example.inputs.slice(0, 12).map((value) =>
        h('span', { text: number(value, 3) })));
    const text = classes === null ? `${example.outputs.slice(0, 3).map((value) => number(value, 3)).join(' ')} · ${
        (example.targets ?? []).slice(0, 3).map((value) => number(value, 3)).join(' ')}`
        : `${nameOf(names, example.target)} → ${nameOf(names, example.prediction)}`;
    const sure = classes > 2 || example.outputs.length > 1 ? percent(example.outputs[example.prediction], 0) : '';
    return h('figure', { class: 'example', title: t('confusion.example', { n: integer(example.index) }) }, picture,
        h('figcaption', { class: classes !== null && wrong ? 'is-wrong' : '' }, h('b', { text, title: text }),
            classes === null ? null : h('span', { class: 'dim', text: sure })));
}
