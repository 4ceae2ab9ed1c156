/* Choosing a tensor of the network, as panels do that show one. */
import { get } from '../api.js';
import { h } from '../elements.js';

/* A select of all parameters, by layer; `act` gets the name of a tensor: "2-dense.weights". */
export class TensorChoice {
    constructor(label, act) {
        this.element = h('select', { class: 'input tensor-choice', 'aria-label': label,
            on: { change: () => act(this.element.value) } });
        this.tensors = [];
    }

    /* Gives the name that counts: the wanted one if there is such a tensor, or the first weights. */
    async load(trainer, wanted, signal) {
        const { layers } = await get('network', { trainer }, { signal });
        this.layers = layers;
        this.tensors = layers.flatMap((layer) => layer.tensors);
        const names = this.tensors.map((tensor) => tensor.name), first = this.tensors.find((tensor) =>
            tensor.shape.length > 1) ?? this.tensors[0];
        const value = names.includes(wanted) ? wanted : first?.name ?? null;
        this.element.replaceChildren(...names.map((name) => h('option', { value: name, text: name })));
        if (value !== null) this.element.value = value;
        this.element.hidden = names.length === 0;
        return value;
    }

    has(name) {
        return this.tensors.some((tensor) => tensor.name === name);
    }
}

/* "2-dense.weights" of an identifier of the registry; null: it is no parameter's. */
export function tensorOf(identifier) {
    const match = /^(?:network\.layers|optimiser\.gradients|optimiser\.updates)\.(.+)$/.exec(identifier ?? '');
    return match ? match[1] : null;
}
