/* A page over one network: what it is, and an input to try. */
import { get, post } from '../api.js';
import { button, fill, h, setText } from '../elements.js';
import { integer } from '../format.js';
import { loadLanguage, preferredLanguage, t } from '../language.js';
import { initTheme } from '../theme.js';

const root = document.getElementById('serve');

/* An example of zeros, in lists of lists. */
function zeros(shape) {
    if (shape.length === 0) return 0;
    return Array.from({ length: shape[0] }, () => zeros(shape.slice(1)));
}

function layerTable(layers) {
    return h('table', {},
        h('thead', {}, h('tr', {}, h('th', { text: t('serve.layer') }), h('th', { text: t('serve.parameters') }))),
        h('tbody', {}, layers.map((layer) => h('tr', {}, h('td', { text: layer.name }),
            h('td', { text: layer.parameters > 0 ? integer(layer.parameters) : '' })))));
}

function show(model) {
    const input = h('textarea', { id: 'input', spellcheck: 'false', 'aria-label': t('serve.input'),
        value: JSON.stringify({ input: [model.texts ? 'Hello' : model.row ?? zeros(model.input)] }) });
    const prediction = h('pre', { id: 'prediction', role: 'status' });
    const predict = async () => {
        try {
            const made = await post('predict', JSON.parse(input.value));
            prediction.classList.remove('bad');
            setText(prediction, JSON.stringify(made));
        } catch (error) {
            prediction.classList.add('bad');
            setText(prediction, error.message);
        }
    };
    const shape = (dims) => `(${dims.join(', ')})`;
    fill(root, h('h1', { text: t('serve.title') }), h('p', { text: model.network }),
        h('p', { text: t('serve.shapes', { input: shape(model.input), output: shape(model.output),
            n: integer(model.maximum_examples) }) }),
        model.layers.length > 0 ? layerTable(model.layers) : null, input,
        button(t('serve.predict'), predict), prediction,
        h('p', { text: t('serve.curl') }),
        h('pre', { text: `curl -H 'Authorization: Bearer TOKEN' -H 'Content-Type: application/json' \\\n`
            + `    -d '{"input": [EXAMPLE, ...]}' ${location.origin}/api/predict` }));
}

async function start() {
    initTheme();
    await loadLanguage(preferredLanguage(null));
    try {
        show(await get('model'));
    } catch (error) {
        fill(root, h('pre', { class: 'bad', text: error.message }));
    }
}

start();
