/* What a layer gives for examples, in two dimensions. */
import { mirrored, turned } from './align.js';
import { pca } from './pca.js';
import { inSlices } from './slices.js';
import { tsne } from './tsne.js';

const kept = 30; /* components that t-SNE gets: what is beyond them is mostly noise */

function together(scores, rows, columns) {
    const values = new Float64Array(rows * columns);
    scores.slice(0, columns).forEach((column, k) => column.forEach((value, i) => { values[i * columns + k] = value; }));
    return values;
}

/* `items`: each with `values`. `former`: points of the same examples, null: there are none; the new ones lie the same
 * way. Gives `points`, [x0, y0, x1, y1, ...], and the `share` of the variance that they show (null: t-SNE). */
export async function project(items, method, former, signal, shown) {
    const rows = items.length, columns = items[0]?.values.length ?? 0, values = new Float64Array(rows * columns);
    items.forEach((item, i) => item.values.forEach((value, k) => { values[i * columns + k] = value ?? 0; }));
    const found = await inSlices(pca(values, rows, columns, method === 'pca' ? 2 : kept), signal);
    const most = method === 'pca' ? 2 : found.scores.length, near = together(found.scores, rows, most);
    if (method === 'pca') return { points: former ? mirrored(near, former) : near,
        share: found.shares.reduce((sum, share) => sum + share, 0) };
    const points = await inSlices(tsne(near, rows, most), signal, former ? undefined : shown);
    return { points: former ? turned(points, former) : points, share: null };
}
