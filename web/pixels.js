/* Canvases: as sharp as the screen, or small pictures of numbers, one square a value. */
import { colour } from './theme.js';

/* A canvas as sharp as the screen; gives its context and size in CSS pixels, null: it cannot be seen. */
export function context2d(canvas) {
    const ratio = devicePixelRatio || 1, { clientWidth: width, clientHeight: height } = canvas;
    if (width === 0 || height === 0) return null;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return { context, width, height };
}

/* Shape of an image in an example: (rows, columns), (channels, rows, columns), (rows, columns, channels), or a
 * square number of values; null: it is none. */
export function imageShape(shape) {
    const [a, b, c] = shape;
    if (shape.length === 2) return { rows: a, columns: b, channels: 1, first: true };
    if (shape.length === 3 && a <= 4) return { rows: b, columns: c, channels: a, first: true };
    if (shape.length === 3 && c <= 4) return { rows: a, columns: b, channels: c, first: false };
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

function rgb(name) {
    const probe = document.createElement('canvas').getContext('2d');
    probe.fillStyle = colour(name);
    probe.fillRect(0, 0, 1, 1);
    return probe.getImageData(0, 0, 1, 1).data;
}

/* The canvas has a pixel for each value; CSS makes it large. `mix(i)`: how much of which ink lies on the ground. */
function fillPixels(canvas, { rows, columns }, mix) {
    canvas.width = columns;
    canvas.height = rows;
    const context = canvas.getContext('2d'), data = context.createImageData(columns, rows), ground = rgb('raised');
    for (let i = 0; i < rows * columns; i++) {
        const [share, ink] = mix(i);
        for (let c = 0; c < 3; c++) data.data[4 * i + c] = ground[c] + share * (ink[c] - ground[c]);
        data.data[4 * i + 3] = 255;
    }
    context.putImageData(data, 0, 0);
}

/* From `minimum`, the ground, to `maximum`, the ink. */
export function paint(canvas, values, image, minimum, maximum) {
    const ink = rgb('ink'), span = maximum - minimum || 1;
    fillPixels(canvas, image, (i) => [Math.min(1, Math.max(0, (values[i] - minimum) / span)), ink]);
}

/* One colour for what is below zero and one for what is above, strong where it is far from it. */
export function paintSigned(canvas, values, image, peak) {
    const above = rgb('series-1'), below = rgb('series-3');
    fillPixels(canvas, image, (i) => [Math.sqrt(Math.min(1, Math.abs(values[i] ?? 0) / peak)),
        values[i] < 0 ? below : above]);
}
