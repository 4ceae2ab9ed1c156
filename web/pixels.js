/* Small pictures of numbers on a canvas: one square a value, from `least` (the ground) to `most` (the ink). */
import { colour } from './theme.js';

/* Shape of an image in a record: (rows, columns), (channels, rows, columns), (rows, columns, channels), or a
 * square number of values; null: it is none. */
export function imageShape(shape) {
    if (shape.length === 2) return { rows: shape[0], columns: shape[1], channels: 1, first: true };
    if (shape.length === 3 && shape[0] <= 4) return { rows: shape[1], columns: shape[2], channels: shape[0], first: true };
    if (shape.length === 3 && shape[2] <= 4) return { rows: shape[0], columns: shape[1], channels: shape[2], first: false };
    const side = shape.length === 1 ? Math.sqrt(shape[0]) : 0;
    return Number.isInteger(side) && side > 3 ? { rows: side, columns: side, channels: 1, first: true } : null;
}

/* The mean over the channels of each place. */
export function flatten(values, image) {
    const { rows, columns, channels, first } = image, places = rows * columns, flat = new Float64Array(places);
    for (let place = 0; place < places; place++)
        for (let channel = 0; channel < channels; channel++)
            flat[place] += values[first ? channel * places + place : place * channels + channel] / channels;
    return flat;
}

function parse(name) {
    const probe = document.createElement('canvas').getContext('2d');
    probe.fillStyle = colour(name);
    probe.fillRect(0, 0, 1, 1);
    return [...probe.getImageData(0, 0, 1, 1).data].slice(0, 3);
}

/* The canvas has a pixel for each value; CSS makes it large. */
export function paint(canvas, values, image, least, most) {
    const ground = parse('raised'), ink = parse('ink'), { rows, columns } = image;
    canvas.width = columns;
    canvas.height = rows;
    const context = canvas.getContext('2d'), data = context.createImageData(columns, rows);
    for (let i = 0; i < rows * columns; i++) {
        const share = Math.min(1, Math.max(0, (values[i] - least) / (most - least || 1)));
        for (let c = 0; c < 3; c++) data.data[4 * i + c] = ground[c] + share * (ink[c] - ground[c]);
        data.data[4 * i + 3] = 255;
    }
    context.putImageData(data, 0, 0);
}
