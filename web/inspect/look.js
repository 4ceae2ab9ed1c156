/* A tensor that was chosen somewhere: panels that show tensors turn to it. */
import { emit } from '../store.js';

export function look(trainer, identifier) {
    emit('look', { trainer, identifier });
}
