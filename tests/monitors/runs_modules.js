/* Checks of the modules of the page over a folder of runs: run in the browser by test_web_modules.c, as the body of an
 * asynchronous function. What is wrong is thrown. */
const { importanceOf, rankCorrelation } = await import('/runs/explore/forest.js');
const { uniformFrom } = await import('/random.js');
const { differencesOf, groupsBySeed, summary } = await import('/runs/explore/groups.js');
const { isInRanges } = await import('/runs/explore/parallel.js');
const { scaleOf } = await import('/runs/explore/scale.js');
const { rankSettings } = await import('/runs/explore/importance.js');
const { smoothed } = await import('/runs/smooth.js');
const { filtered } = await import('/runs/columns.js');
const { tagsOf } = await import('/runs/notes.js');

function check(isTrue, what) {
    if (!isTrue) throw new Error(what);
}
const near = (value, wanted, bound) => Math.abs(value - wanted) <= bound;

/* --- means over seeds --- */
{
    /* 2.1380899 is the sample's deviation of these, by hand: the squares' sum is 32, of 8 values. */
    const { n, mean, deviation } = summary([2, 4, 4, 4, 5, 5, 7, 9, null, 'x']);
    check(n === 8 && mean === 5 && near(deviation, Math.sqrt(32 / 7), 1e-12), `summary: ${n} ${mean} ${deviation}`);
    check(summary([3]).deviation === null && summary([]).mean === null, 'one value has no deviation, none no mean');

    const run = (name, configuration) => ({ name, configuration });
    const groups = groupsBySeed([run('a', { rate: 1, seed: 1 }), run('b', { seed: 2, rate: 1, name: 'b' }),
        run('c', { rate: 2, seed: 1 }), run('d', {}), run('e', { rate: 1, 'data.seed': 4 }), run('f', { rate: '1' })]);
    check(groups.map((group) => group.runs.map((one) => one.name).join('')).join() === 'abe,c,f',
        `groups: ${groups.map((group) => group.runs.map((one) => one.name).join('')).join()}`);
    check([...differencesOf(groups)].join() === 'rate,1', 'what most groups have');
}

/* --- smoothing: by hand, with weight 1/2: 1, (1/4 + 1) / (3/4), (5/8 + 3/2) / (7/8) --- */
{
    const points = [1, 2, 3].map((y, x) => ({ x, y }));
    const means = smoothed(points, 0.5).map((point) => point.y);
    check(near(means[0], 1, 1e-12) && near(means[1], 5 / 3, 1e-12) && near(means[2], 17 / 7, 1e-12), `means: ${means}`);
    check(smoothed(points, 0) === points, 'weight 0 changes nothing');
    const ones = smoothed(Array.from({ length: 50 }, (_, x) => ({ x, y: 1 })), 0.99);
    check(ones.every(({ y }) => near(y, 1, 1e-12)), 'a mean of ones is one from its first point on');
}

/* --- rank correlation: the first is scipy.stats.spearmanr's example, with ties --- */
check(near(rankCorrelation([1, 2, 3, 4, 5], [5, 6, 7, 8, 7]), 0.82078268166812329, 1e-12), 'ties');
check(near(rankCorrelation([1, 10, 100], [3, 2, 1]), -1, 1e-12), 'only the order counts');
check(rankCorrelation([1, 1, 1], [1, 2, 3]) === null && rankCorrelation(['a', 1], [1, 2]) === null, 'none');

/* --- importance, where the answer is known --- */
{
    const random = uniformFrom(5), n = 200, column = (make) => Array.from({ length: n }, make);
    const a = column(() => random()), b = column(() => random()), idle = column(() => random());
    const kind = column(() => ['x', 'y', 'z'][Math.floor(random() * 3)]);

    /* One setting alone decides: near 2, which it is for perfect predictions; the others nothing. */
    const alone = importanceOf([a, idle], a.map((value) => 3 * value + 1));
    check(near(alone.importance[0], 2, 0.25) && alone.importance[1] < 0.02, `alone: ${alone.importance}`);
    check(alone.explained > 0.95, `alone: explains ${alone.explained}`);

    /* Two of equal weight share it; the variance of the sum is halved between them. */
    const two = importanceOf([a, b, idle], a.map((value, i) => value + b[i])).importance;
    check(near(two[0], two[1], 0.25) && two[0] > 0.6 && two[2] < 0.05, `two: ${two}`);

    /* A text decides, in no order of its letters; a number works a little, and neither by its size alone. */
    const level = { x: 0, y: 5, z: 1 }, mixed = importanceOf([kind, a, idle], a.map((value, i) => level[kind[i]] + value));
    check(mixed.importance[0] > 1.4 && mixed.importance[1] > 0.005 && mixed.importance[1] < 0.15
        && mixed.importance[2] < 0.02, `mixed: ${mixed.importance}`);

    /* What no rank correlation shows: the middle is best. */
    const bowl = a.map((value) => (value - 0.5) ** 2);
    check(Math.abs(rankCorrelation(a, bowl)) < 0.15, 'no direction');
    check(importanceOf([a, idle], bowl).importance[0] > 1.5, 'and yet it matters');

    /* Noise explains nothing, and is the same each time. */
    const noise = importanceOf([a, b], idle);
    check(noise.explained < 0.1 && Math.max(...noise.importance) < 0.3, `noise: ${noise.explained} ${noise.importance}`);
    check(importanceOf([a, b], idle).importance.join() === noise.importance.join(), 'the draws are the same each time');
    check(importanceOf([[1, 2]], [1, 2]) === null && importanceOf([a], a.map(() => 1)) === null, 'too few');

    /* Runs that lack the setting are a value of their own. */
    const gaps = a.map((value, i) => (i % 2 ? null : value));
    check(importanceOf([gaps, idle], gaps.map((value) => (value === null ? 4 : 0))).importance[0] > 1.5, 'gaps');

    const runs = a.map((value, i) => ({ name: `${i}`, configuration: { rate: value, idle: idle[i] },
        minimum: i === 0 ? {} : { loss: 1 - value } }));
    const ranked = rankSettings(runs, ['configuration:idle', 'configuration:rate'], 'minimum:loss');
    check(ranked.runs === n - 1 && ranked.list[0].key === 'configuration:rate', 'the most important first');
    check(near(ranked.list[0].correlation, -1, 1e-12), `its direction: ${ranked.list[0].correlation}`);
}

/* --- axes --- */
{
    const runs = [0.001, 0.01, 0.1, null].map((rate, i) => ({ name: `${i}`, configuration: { rate, kind: 'ba'[i % 2] } }));
    const scale = scaleOf(runs, 'configuration:rate'), kinds = scaleOf(runs, 'configuration:kind');
    check(scale.log && near(scale.share(0.01), 0.5, 1e-12) && scale.share(null) === null, 'a logarithmic axis');
    check(!scaleOf([{ configuration: { x: 1 } }, { configuration: { x: 3 } }], 'configuration:x').log, 'a plain one');
    check(!kinds.isNumeric && kinds.share('a') === 0 && kinds.share('b') === 1, 'texts');
    check(scaleOf(runs, 'configuration:other') === null, 'no values');
    const inside = (ranges) => runs.filter((run) => isInRanges(run, new Map(ranges),
        new Map([['configuration:rate', scale], ['configuration:kind', kinds]]))).map((run) => run.name).join();
    check(inside([]) === '0,1,2,3', 'without ranges all are in');
    check(inside([['configuration:rate', [0.5, 1]]]) === '1,2', 'a run without the value is out');
    check(inside([['configuration:rate', [0.5, 1]], ['configuration:kind', [1, 1]]]) === '2', 'both must hold');
}

/* --- filter --- */
{
    const runs = [{ name: 'a', tags: ['best', 'x'], note: 'Too slow', starred: true, archived: false },
        { name: 'b', tags: ['bester'], note: '', starred: false, archived: true }]
        .map((run) => ({ state: 'finished', configuration: {}, metrics: {}, ...run }));
    const found = (text, more = { withArchived: true, onlyStarred: false }) =>
        filtered(runs, text, more).map((run) => run.name).join();
    check(found('tag=best') === 'a' && found('best') === 'a,b' && found('slow') === 'a', 'tags and notes');
    check(found('starred=true') === 'a' && found('archived=true') === 'b', 'stars and archive');
    check(found('', { withArchived: false, onlyStarred: false }) === 'a', 'archived ones are away');
    check(found('', { withArchived: true, onlyStarred: true }) === 'a', 'starred ones only');
    check(tagsOf(' a, b  a,,c ').join('|') === 'a|b|c', 'tags');
}
