/* Where the layers of a network stand: rows from the input down, branches side by side. */

/* `layers`: {name, inputs}; gives boxes by name: {layer, row, column, x, y}, edges and the whole size. */
export function arrange(given, { width, height, gap, space }) {
    const layers = inOrder(given), boxes = new Map();
    for (const layer of layers) {
        const above = layer.inputs.map((name) => boxes.get(name)).filter(Boolean);
        boxes.set(layer.name, { layer, row: above.length === 0 ? 0 : 1 + Math.max(...above.map((box) => box.row)) });
    }
    pullDown(layers, boxes);
    const rows = [];
    for (const box of boxes.values()) (rows[box.row] ??= []).push(box);
    rows.forEach((row) => placeRow(row, boxes));
    const columns = [...boxes.values()].map((box) => box.column), minimum = Math.min(...columns);
    for (const box of boxes.values()) {
        box.x = (box.column - minimum) * (width + gap);
        box.y = box.row * (height + space);
    }
    const edges = layers.flatMap((layer) => layer.inputs.map((name) => [boxes.get(name), boxes.get(layer.name)]))
        .filter(([from]) => from);
    return { boxes: [...boxes.values()], edges, width: (Math.max(...columns) - minimum) * (width + gap) + width,
        height: rows.length * (height + space) - space };
}

/* Each behind all that it gets: what joins branches is written before them. */
function inOrder(layers) {
    const known = new Map(layers.map((layer) => [layer.name, layer])), done = new Set();
    const visit = (layer) => {
        if (!layer || done.has(layer)) return;
        layer.inputs.forEach((name) => visit(known.get(name)));
        done.add(layer);
    };
    layers.forEach(visit);
    return [...done];
}

/* Inputs stand right above what they go into, however late that is. */
function pullDown(layers, boxes) {
    for (const layer of [...layers].reverse()) {
        const box = boxes.get(layer.name);
        if (layer.inputs.length > 0 && box.row > 0) continue;
        const below = layers.filter((other) => other.inputs.includes(layer.name)).map((other) =>
            boxes.get(other.name).row);
        if (below.length > 0) box.row = Math.min(...below) - 1;
    }
}

/* Below the middle of what goes in; neighbours keep their distance and the row its middle. */
function placeRow(row, boxes) {
    for (const box of row) {
        const above = box.layer.inputs.map((name) => boxes.get(name)?.column).filter((column) => column !== undefined);
        box.wanted = above.length === 0 ? 0 : above.reduce((sum, column) => sum + column, 0) / above.length;
    }
    row.sort((a, b) => a.wanted - b.wanted);
    row.forEach((box, i) => { box.column = i === 0 ? box.wanted : Math.max(box.wanted, row[i - 1].column + 1); });
    const shift = row.reduce((sum, box) => sum + box.column - box.wanted, 0) / row.length;
    for (const box of row) box.column -= shift;
}
