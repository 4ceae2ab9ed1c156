/* Places on a grid of columns: {x, y, w, h}. Nothing here touches the page. */
const columns = 12;

function collide(a, b) {
    return a !== b && a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

function byPlace(a, b) {
    return a.y - b.y || a.x - b.x;
}

/* Moves all up as far as they go, in their order; `fixed` stays. */
export function compact(places, fixed = null) {
    const done = fixed ? [fixed] : [];
    for (const place of [...places].sort(byPlace)) {
        if (place === fixed) continue;
        while (place.y > 0 && !done.some((other) => collide({ ...place, y: place.y - 1 }, other) )) place.y--;
        while (done.some((other) => collide(place, other))) place.y++;
        done.push(place);
    }
    return places;
}

/* One moves or grows: those in its way go down, then all go up again. */
export function arrange(places, moved, to) {
    Object.assign(moved, to);
    moved.w = Math.max(1, Math.min(columns, moved.w));
    moved.h = Math.max(1, moved.h);
    moved.x = Math.max(0, Math.min(columns - moved.w, moved.x));
    moved.y = Math.max(0, moved.y);
    compact(places, moved);
    return compact(places);
}

/* The first free place, row by row. */
export function firstFree(places, w, h) {
    for (let y = 0; ; y++)
        for (let x = 0; x + w <= columns; x++)
            if (!places.some((other) => collide({ x, y, w, h }, other))) return { x, y, w, h };
}

/* The same order with fewer columns: narrow ones side by side, wide ones on a line of their own. `heightOf(place)`:
 * other heights than theirs. */
export function narrowed(places, count, heightOf = (place) => place.h) {
    const result = new Map();
    let x = 0, y = 0, height = 0;
    let row = [];
    const end = () => { /* a line is filled by what stands in it */
        if (row.length > 0) result.get(row.at(-1)).w += count - x;
        for (const place of row) result.get(place).h = Math.max(result.get(place).h, row.length > 1 ? height : 0);
        y += height;
        x = height = 0;
        row = [];
    };
    for (const place of [...places].sort(byPlace)) {
        const w = count === 1 ? 1 : Math.min(count, Math.max(Math.ceil(count / 2),
            Math.round((place.w * count) / columns)));
        if (x + w > count) end();
        const h = heightOf(place);
        result.set(place, { x, y, w, h });
        row.push(place);
        x += w;
        height = Math.max(height, h);
    }
    end();
    return result;
}
