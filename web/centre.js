/* What is drawn as MNIST's digits are: as large as fits 20 of 28 parts of the image, its centre of mass in the middle
 * (LeCun, Cortes, Burges: the MNIST database). */
import { flatten } from './pixels.js';

const part = 20 / 28, faint = 0.05;

/* The box of what is drawn, and its centre of mass; null: nothing is. */
function measure(ink, { rows, columns }) {
    let top = rows, left = columns, bottom = -1, right = -1, sum = 0, row = 0, column = 0;
    for (let y = 0; y < rows; y++)
        for (let x = 0; x < columns; x++) {
            const amount = ink[y * columns + x];
            if (amount < faint) continue;
            top = Math.min(top, y), bottom = Math.max(bottom, y), left = Math.min(left, x), right = Math.max(right, x);
            sum += amount, row += amount * y, column += amount * x;
        }
    return sum > 0 ? { height: bottom - top + 1, width: right - left + 1, row: row / sum, column: column / sum } : null;
}

/* Between four places; outside is empty. */
function sample(values, { rows, columns, channels, first }, channel, row, column) {
    const y = Math.floor(row), x = Math.floor(column), places = rows * columns;
    let sum = 0;
    for (let i = y; i <= y + 1; i++)
        for (let k = x; k <= x + 1; k++) {
            if (i < 0 || k < 0 || i >= rows || k >= columns) continue;
            const place = i * columns + k, at = first ? channel * places + place : place * channels + channel;
            sum += values[at] * (1 - Math.abs(row - i)) * (1 - Math.abs(column - k));
        }
    return sum;
}

/* A new array of the same size; `values` where nothing is drawn. */
export function centre(values, image) {
    const { rows, columns, channels, first } = image, found = measure(flatten(values, image), image);
    if (!found) return values;
    const scale = Math.min(part * rows / found.height, part * columns / found.width), places = rows * columns;
    const made = new Float32Array(values.length);
    for (let y = 0; y < rows; y++)
        for (let x = 0; x < columns; x++) {
            const row = (y - (rows - 1) / 2) / scale + found.row;
            const column = (x - (columns - 1) / 2) / scale + found.column;
            for (let channel = 0; channel < channels; channel++) {
                const place = y * columns + x, at = first ? channel * places + place : place * channels + channel;
                made[at] = sample(values, image, channel, row, column);
            }
        }
    return made;
}
