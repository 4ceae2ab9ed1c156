/* Shares of correct predictions, in percent, with the first few guesses if they are counted. */
import { definePanel, panelKind } from '../panel.js';
import { createChart } from './chart.js';

definePanel('accuracy', {
    icon: 'check',
    order: 3,
    size: { w: 4, h: 8 }, minimum: { w: 3, h: 5 }, heights: { 6: 8, 1: 8 },
    default: [{ tab: 'training', order: 4, w: 8, h: 9, options: { onlyWithValues: true } }],
    options: { ...panelKind('chart').options, percent: true, series: ['training.accuracy', 'validation.accuracy',
        '*.top*'] },
    settings: (panel) => panelKind('chart').settings(panel),
    create: createChart,
});
