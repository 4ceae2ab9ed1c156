/* Checks of the page's modules that need no page: run in the browser by test_web_modules.c, as the body of an
 * asynchronous function. What is wrong is thrown. */
const { Curve, Pieces, lowerBound, nearest, smooth } = await import('/chart/curve.js');
const { arrange, firstFree, narrowed } = await import('/grid.js');
const format = await import('/format.js');
const { centre } = await import('/centre.js');
const { logarithmicTicks } = await import('/chart/ticks.js');

function check(isTrue, what) {
    if (!isTrue) throw new Error(what);
}

/* Not one spike, and not one value that was none, is lost when pieces are joined. */
const pieces = new Pieces(100);
for (let i = 1; i <= 12345; i++)
    pieces.append(i, i === 777 ? 99 : i === 4000 ? -50 : i === 5000 ? null : Math.sin(i));
check(pieces.x.length <= 200, `pieces are joined: ${pieces.x.length}`);
check(pieces.x.at(-1) === 12345, 'the newest is the last');
check(pieces.x.every((x, i) => i === 0 || x > pieces.x[i - 1]), 'pieces stand in their order');
check(Math.max(...pieces.max) === 99, 'the maximum is kept');
check(Math.min(...pieces.min.filter((value) => value !== null)) === -50, 'the minimum is kept');
const [bad] = pieces.bad;
check(pieces.bad.size === 1 && pieces.x.includes(bad) && bad >= 5000 && bad < 5300, `none is where it was: ${bad}`);

/* Points that come while the answer is on its way; a run that goes back. */
const curve = new Curve('trainer', 'loss', 'iteration', 50);
curve.append([[8, 0.1, 0.5, 3], [9, 0.1, 0.6, 2]]);
curve.set({ x: [4, 8], min: [1, 3], max: [7, 3], last: [5, 3], count: 8 });
check(curve.whole.x.join() === '4,8,9' && curve.count === 9, `the answer, then what is newer: ${curve.whole.x}`);
check(curve.append([[10, 0.1, 0.7, 1]]) === true, 'one more');
check(curve.append([[3, 0, 0.8, 1]]) === false, 'the run went back');

check(nearest([1, 5, 9], 6) === 1 && nearest([1, 5, 9], 8) === 2 && nearest([], 1) === -1, 'nearest');
check(lowerBound([1, 2, 3], 4) === 3 && lowerBound([1, 2, 3], 2) === 1, 'lowerBound');
const mean = smooth({ x: [0, 1, 2, 3], last: [1, 1, null, 1] }, 0.5, 3);
check(mean[2] === null && [0, 1, 3].every((i) => Math.abs(mean[i] - 1) < 1e-9), `a mean of ones is one: ${mean}`);

const ramp = smooth({ x: [0, 1, 2, 3, 4], last: [0, 1, 2, 3, 4] }, 0.8, 4);
check(Math.abs(ramp[2] - 2) < 1e-9, `a mean lags behind neither side: ${ramp}`);

/* Ticks of logarithmic axes: never more than there is room for. */
const few = logarithmicTicks(1e-5, 3, 200, 30).map((tick) => tick.v);
check(few.join() === '0.00001,0.0001,0.001,0.01,0.1,1', `powers of ten: ${few}`);
check(logarithmicTicks(1, 100, 300, 30).map((tick) => tick.v).join() === '1,2,5,10,20,50,100', '1, 2, 5');
check(logarithmicTicks(1e-30, 1, 200, 30).length <= 8, 'many powers');

/* A stroke in a corner comes to the middle, as high as MNIST's digits are, and as dark. */
{
    const image = { rows: 28, columns: 28, channels: 1, first: true }, drawn = new Float32Array(784);
    for (let row = 1; row < 11; row++) drawn.fill(1, row * 28 + 2, row * 28 + 4);
    const placed = centre(drawn, image), dark = [...placed.keys()].filter((i) => placed[i] > 0.5);
    const rows = dark.map((i) => Math.floor(i / 28)), columns = dark.map((i) => i % 28);
    check(Math.min(...rows) === 4 && Math.max(...rows) === 23, `20 rows in the middle: ${Math.min(...rows)}`);
    check(Math.min(...columns) === 12 && Math.max(...columns) === 15, `4 columns: ${Math.min(...columns)}`);
    check(Math.abs(placed[14 * 28 + 14] - 1) < 1e-6, 'dark in the middle');
    const empty = new Float32Array(784);
    check(centre(empty, image) === empty, 'nothing stays nothing');
}

/* Panels never lie on each other, whatever is done with them. */
function isApart(places, columns) {
    return places.every((a) => a.x >= 0 && a.y >= 0 && a.x + a.w <= columns && places.every((b) =>
        a === b || a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y));
}
let seed = 7;
const random = (end) => (seed = (seed * 16807) % 2147483647) % end;
for (let round = 0; round < 200; round++) {
    const places = [];
    for (let i = 0; i < 8; i++) places.push(firstFree(places, 2 + random(8), 2 + random(8)));
    for (let i = 0; i < 10; i++) {
        const to = random(2) === 0 ? { x: random(14) - 1, y: random(30) } : { w: 1 + random(13), h: 1 + random(12) };
        arrange(places, places[random(8)], to);
        check(isApart(places, 12), `round ${round}: ${JSON.stringify(places)}`);
    }
    for (const columns of [6, 1]) check(isApart([...narrowed(places, columns).values()], columns), `${columns} columns`);
}

/* A table: every point of a curve that has few, and of the others so many that it does not grow. */
const { tablePlaces } = await import('/chart/export.js');
const places = tablePlaces([Array.from({ length: 1000 }, (_, i) => i), [3, 500, 996]], 50);
check(places.length <= 52 && [3, 500, 996].every((x) => places.includes(x)), `places of a table: ${places}`);
check(places[0] === 999 && places.every((x, i) => i === 0 || x < places[i - 1]), 'newest first');

/* Runs: the columns they begin with are those that differ, and what is filtered. */
const { csvOf, filtered, defaultColumns } = await import('/runs/columns.js');
const runs = [0.001, 0.01].map((rate, i) => ({ name: `run ${i}`, state: 'finished', tags: [], note: '',
    metrics: { loss: i, learning_rate: 0 }, minimum: {}, maximum: {}, epochs: 3, configuration: { 'a.switch': true, 'optimiser.learning_rate': rate } }));
runs.push({ ...runs[0], name: 'a program', configuration: {} });
const columns = defaultColumns(runs).join();
check(columns.includes('configuration:optimiser.learning_rate') && !columns.includes('switch'), `columns: ${columns}`);
const namesOf = (text) => filtered(runs, text, {}).map((run) => run.name).join();
check(namesOf('learning_rate > 0.002') === 'run 1', `filtered: ${namesOf('learning_rate > 0.002')}`);
check(namesOf('loss=0 state = finished') === 'run 0,a program', 'two words');
check(csvOf(runs, ['name']).startsWith('name,') && csvOf(runs, ['name']).includes('configuration.a.switch'), 'all columns');

/* What is styled as a panel of a kind is one. */
const { panelKinds } = await import('/panel.js'), kinds = panelKinds().map((kind) => kind.kind);
const styled = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).map((rule) =>
    /^\.panel-(\w+) \.panel-body$/.exec(rule.selectorText ?? '')?.[1]).filter(Boolean);
check(styled.length > 3 && styled.every((kind) => kinds.includes(kind)), `styled are ${styled}, there are ${kinds}`);

/* A picture of runs has a title, a legend and a curve. */
{
    const { exportSvg } = await import('/runs/plot.js'), original = URL.createObjectURL, blobs = [];
    URL.createObjectURL = (blob) => original.call(URL, blobs[blobs.push(blob) - 1]);
    exportSvg({ metric: 'training.loss', axis: 'epoch', log: false,
        curves: [{ name: 'the first', index: 0, points: [{ x: 0, y: 1 }, { x: 1, y: 3 }] }] });
    URL.createObjectURL = original;
    const svg = new DOMParser().parseFromString(await blobs[0].text(), 'image/svg+xml');
    const words = [...svg.querySelectorAll('text')].map((text) => text.textContent);
    check(words.includes('training.loss') && words.includes('the first'), `title and legend: ${words}`);
    check(svg.querySelector('polyline, path') !== null, 'a curve');
}

/* The eight colours of series, in both themes: whoever sees no red, green or blue tells them apart, and they stand out
 * from the ground. Simulations: Machado, Oliveira and Fernandes 2009, severity 1; distances in Oklab, times 100. */
{
    const views = { all: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
        tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]] };
    const times = (matrix, vector) => matrix.map((row) => row.reduce((sum, k, i) => sum + k * vector[i], 0));
    const linear = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
        .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    const oklab = (rgb) => times([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.808675766]], times([[0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]], rgb).map(Math.cbrt));
    const luminance = (rgb) => times([[0.2126, 0.7152, 0.0722]], rgb)[0];
    const root = document.documentElement, before = root.dataset.theme;
    for (const theme of ['dark', 'light']) {
        root.dataset.theme = theme;
        const of = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
        const hex = (text) => (text.length === 4 ? text.replace(/[^#]/g, '$&$&') : text);
        const colours = Array.from({ length: 8 }, (_, i) => linear(hex(of(`series-${i + 1}`))));
        const ground = luminance(linear(hex(of('surface'))));
        colours.forEach((rgb, i) => {
            const [low, high] = [luminance(rgb), ground].sort((a, b) => a - b), contrast = (high + 0.05) / (low + 0.05);
            check(contrast >= 3, `${theme}: series-${i + 1} has a contrast of ${contrast}`);
        });
        for (const [view, matrix] of Object.entries(views)) {
            const seen = colours.map((rgb) => oklab(times(matrix, rgb).map((v) => Math.min(1, Math.max(0, v)))));
            const apart = (i, j) => 100 * Math.hypot(...seen[i].map((v, k) => v - seen[j][k]));
            for (let i = 0; i < 8; i++) {
                check(apart(i, (i + 1) % 8) >= 14, `${theme}, ${view}: ${i + 1} and the next: ${apart(i, (i + 1) % 8)}`);
                for (let j = 0; j < i; j++)
                    check(apart(i, j) >= 9, `${theme}, ${view}: ${j + 1} and ${i + 1}: ${apart(i, j)}`);
            }
        }
    }
    root.dataset.theme = before;
}

/* The colour of a trainer: by its place, the program's, a person's; one that was taken back is the former. */
{
    const { accentChoice, chooseAccent } = await import('/accents.js'), { state } = await import('/store.js');
    const before = { ...state };
    state.session = { name: 'colours', colours: { second: '#123456' } };
    state.trainers = new Map(['first', 'second', 'third'].map((name) => [name, { name }]));
    const choices = () => [...state.trainers.keys()].map(accentChoice).join();
    check(choices() === '1,#123456,3', `by place, by the program: ${choices()}`);
    chooseAccent('second', 7);
    chooseAccent('third', '#abcdef');
    check(choices() === '1,7,#abcdef', `chosen: ${choices()}`);
    chooseAccent('second', null);
    check(choices() === '1,#123456,#abcdef', `taken back: ${choices()}`);
    localStorage.removeItem('sigma.colours.colours');
    Object.assign(state, before);
}

/* Editors of the kinds of values: what a person does in them is what is set, as text. */
{
    const { editorOf } = await import('/editors.js'), sent = [];
    const edit = (entry) => {
        const editor = editorOf({ identifier: 'a.value', settable: true, ...entry }, (text) => sent.push(text));
        document.body.append(editor.element);
        return editor;
    };
    const ends = (text) => check(sent.splice(0).join() === text, `set: ${text}`);
    const lever = edit({ kind: 'boolean', value: false });
    check(lever.element.getAttribute('role') === 'switch', 'a switch');
    lever.element.click();
    ends('true');
    lever.update({ value: false });
    check(lever.element.getAttribute('aria-checked') === 'false', 'what was refused goes back');
    const choice = edit({ kind: 'text', value: 'b', choices: ['a', 'b', 'c'] });
    check([...choice.element.options].map((one) => one.value).join() === 'a,b,c', 'choices');
    choice.element.value = 'c';
    choice.element.dispatchEvent(new Event('change'));
    ends('c');
    const share = edit({ kind: 'number', value: 0.25, minimum: 0, maximum: 1 });
    const slider = share.element.querySelector('[type="range"]'), field = share.element.querySelector('.is-number');
    check(slider.value === '250' && !slider.hidden, `a slider from end to end: ${slider.value}`);
    slider.value = 500;
    slider.dispatchEvent(new Event('input'));
    check(field.value === '0.5' && sent.length === 0, 'moving it shows, and sets nothing yet');
    slider.dispatchEvent(new Event('change'));
    ends('0.5');
    const rate = edit({ kind: 'number', value: 0.01, minimum: 0 }).element.querySelector('[type="range"]');
    check(rate.value === '500', `no ends: decades on both sides: ${rate.value}`);
    const text = edit({ kind: 'text', value: 'before' }).element;
    text.value = 'after';
    text.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
    ends('after');
    const shown = edit({ kind: 'number', value: 1.5, settable: false }).element;
    check(shown.matches('span') && shown.textContent.startsWith('1.5'), `only shown: ${shown.outerHTML}`);
    document.querySelectorAll('body > .switch, body > select, body > .editor-number, body > input, body > .value')
        .forEach((element) => element.remove());
}

/* Principal components: of points in directions that are known; of wide data, found by iteration. */
{
    const { eigen, pca } = await import('/projector/pca.js'), { normalFrom } = await import('/random.js');
    const { inSlices } = await import('/projector/slices.js');
    const near = (a, b, by) => Math.abs(a - b) <= by;
    const { values, vectors } = eigen([[2, 1, 0], [1, 2, 0], [0, 0, 5]]); /* 5, 3 and 1 */
    check(values.every((value, i) => near(value, [5, 3, 1][i], 1e-12)), `eigenvalues: ${values}`);
    check(near(Math.abs(vectors[1][0] + vectors[1][1]), Math.SQRT2, 1e-12), `an eigenvector: ${vectors[1]}`);

    /* 3 and 1 along (0.6, 0.8) and (-0.8, 0.6), each to both sides, about (10, 20). */
    const flat = [[3, 0], [-3, 0], [0, 1], [0, -1]].flatMap(([a, b]) =>
        [10 + 0.6 * a - 0.8 * b, 20 + 0.8 * a + 0.6 * b]);
    const small = await inSlices(pca(Float64Array.from(flat), 4, 2, 2));
    check(near(small.vectors[0][0], 0.6, 1e-9) && near(small.vectors[0][1], 0.8, 1e-9), `first: ${small.vectors[0]}`);
    check(near(small.variances[0], 6, 1e-9) && near(small.variances[1], 2 / 3, 1e-9), `variances: ${small.variances}`);
    check(near(small.shares[0], 0.9, 1e-9), `share: ${small.shares}`);
    check(near(small.scores[0][1], -3, 1e-9) && near(Math.abs(small.scores[1][2]), 1, 1e-9), 'scores');

    /* Two directions among 200: patterns of ones that are orthogonal, with scores that are. */
    const rows = 64, columns = 200, wide = new Float64Array(rows * columns);
    for (let i = 0; i < rows; i++)
        for (let k = 0; k < columns; k++)
            wide[i * columns + k] = 7 + (i % 2 ? 3 : -3) * (k % 2 ? 1 : -1) + (i % 4 < 2 ? 1 : -1) * (k < 100 ? 1 : -1);
    const found = await inSlices(pca(wide, rows, columns, 3));
    check(near(found.variances[0], 9 * columns * rows / (rows - 1), 1e-6), `wide: ${found.variances}`);
    check(near(found.variances[1], columns * rows / (rows - 1), 1e-6), `wide: ${found.variances}`);
    check(near(found.variances[2] ?? 0, 0, 1e-6) && near(found.shares[0], 0.9, 1e-9), `wide: ${found.shares}`);
    check(found.vectors[0].every((value, k) => near(value * (k % 2 ? 1 : -1), found.vectors[0][1], 1e-9)), 'ones');
    check(near(Math.abs(found.vectors[1][0]), Math.sqrt(1 / columns), 1e-9), 'of length 1');

    /* t-SNE: five groups of forty in ten dimensions, which overlap in none of them; the same each time. */
    const { affinities, gradientOf, tsne } = await import('/projector/tsne.js'), next = normalFrom(3);
    const groups = 5, each = 40, n = groups * each, x = Float64Array.from({ length: n * 10 }, (_, k) =>
        next() + (k % 10 === Math.floor(k / 10) % groups ? 12 : 0));
    const points = await inSlices(tsne(x, n, 10)), again = await inSlices(tsne(x, n, 10));
    check(points.join() === again.join(), 'the same seed gives the same points');
    let right = 0;
    for (let i = 0; i < n; i++) {
        const apart = Array.from({ length: n }, (_, j) => (i === j ? Infinity
            : Math.hypot(points[2 * i] - points[2 * j], points[2 * i + 1] - points[2 * j + 1])));
        right += Number(apart.indexOf(Math.min(...apart)) % groups === i % groups);
    }
    check(right >= 0.99 * n, `neighbours keep their class: ${right} of ${n}`);

    /* The gradient is that of the divergence, by differences. */
    const p = await inSlices(affinities(x, n, 10));
    check(near(p.reduce((sum, value) => sum + value, 0), 1, 1e-6), 'the shares of all are 1');
    const y = Float64Array.from({ length: 2 * n }, next), gradient = new Float64Array(2 * n), q = new Float64Array(n * n);
    await inSlices(gradientOf(p, y, n, 1, gradient, q));
    const divergence = (at) => {
        let sum = 0, cross = 0;
        for (let i = 0; i < n; i++)
            for (let j = 0; j < n; j++) {
                if (i === j) continue;
                const near2 = 1 / (1 + (at[2 * i] - at[2 * j]) ** 2 + (at[2 * i + 1] - at[2 * j + 1]) ** 2);
                sum += near2;
                cross -= p[i * n + j] * Math.log(near2);
            }
        return cross + Math.log(sum);
    };
    for (const k of [0, 7, 100]) {
        const to = (step) => divergence(y.map((value, i) => (i === k ? value + step : value)));
        check(near((to(1e-5) - to(-1e-5)) / 2e-5, gradient[k], 1e-6), `gradient ${k}: ${gradient[k]}`);
    }

    /* What was turned or mirrored lies as before. */
    const { mirrored, turned } = await import('/projector/align.js');
    const former = [1, 2, -3, 0.5, 2, -2.5], [c, s] = [Math.cos(2), Math.sin(2)];
    for (const flip of [1, -1]) {
        const away = former.map((value, k) => (k % 2 === 0 ? c * value - s * former[k + 1]
            : flip * (s * former[k - 1] + c * value)));
        check(turned(away, former).every((value, k) => near(value, former[k], 1e-9)), `turned back, ${flip}`);
    }
    check(mirrored(former.map((value, k) => (k % 2 ? -value : value)), former).join() === former.join(), 'mirrored');

    /* Work that is ended early. */
    const abort = new AbortController();
    abort.abort();
    const ended = await inSlices(tsne(x, n, 10), abort.signal).then(() => '', (error) => error.name);
    check(ended === 'AbortError', `ended: ${ended}`);
}

/* Examples that got worse and better; one that is new, has no loss or hardly moved is neither. */
{
    const { lessons } = await import('/inspect/lessons.js');
    const before = [[0, 1, 1, 1], [1, 1, 1, 2], [2, 1, 1, 0.5], [3, 1, 1, 1], [4, 1, 1, null], [5, 1, 1, 3]];
    const now = [[0, 1, 1, 3], [1, 1, 1, 0.5], [2, 1, 1, 1], [3, 1, 1, 1.0001], [4, 1, 1, 1], [5, 1, 1, 1], [6, 1, 1, 9]];
    const { worse, better } = lessons(before, now, 8);
    check(worse.map(({ index }) => index).join() === '0,2', `worse: ${JSON.stringify(worse)}`);
    check(better.map(({ index }) => index).join() === '5,1', `better: ${JSON.stringify(better)}`);
    check(worse[0].from === 1 && worse[0].to === 3 && lessons(before, now, 1).better.length === 1, 'the first');
}

/* Numbers for people. */
format.setLocale('en');
const texts = [[format.number(0.00012345), '0.0001235'], [format.number(1.2e-5), '1.20e-5'], [format.number(1234.5678), '1,235'], [format.number(null), '–'],
    [format.duration(3723), '1:02:03'], [format.duration(0.5), '0.50 s'], [format.bytes(1234567), '1.23 MB'],
    [format.count(16900), '16.9 k'], [format.count(9999), '9,999'], [format.count(1e6), '1.00 M'],
    [format.count(999600), '1.00 M'], [format.count(999499), '999 k'], [format.percent(0.915), '91.5%'], [format.plain(0.1 + 0.2), '0.3'],
    [format.steady(0), '0'], [format.steady(0.5), '0.5000']];
for (const [text, expected] of texts) check(text === expected, `${text} is not ${expected}`);
format.setLocale('de');
check(format.number(1.25e-5) === '1,25e-5' && format.number(0.0125) === '0,0125', `German: ${format.number(1.25e-5)}`);
format.setLocale('en');
check(format.parse('1,5') === 1.5 && format.parse('1e-3') === 0.001 && Number.isNaN(format.parse('')), 'parse');
