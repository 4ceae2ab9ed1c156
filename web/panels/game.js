/* Tic-tac-toe against a network that learns from finished boards (x 1, o -1, empty 0) who has won: x, o or nobody.
 * It plays o, or both signs, and takes the move whose board it thinks best for the one it plays: share of a draw +
 * 2 * share of that one's win. */
import { get, post } from '../api.js';
import { button, h } from '../elements.js';
import { t } from '../language.js';
import { definePanel } from '../panel.js';

const lines = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]];
const pause = 350; /* milliseconds between moves that it makes alone */
const signs = { '1': '×', '-1': '○', '0': '' };

definePanel('game', {
    icon: 'table',
    default: [{ tab: 'play', order: 3, options: { onlyWhereItFits: true } }],
    fits: (about) => about.input.length === 1 && about.input[0] === 9 && about.output[0] === 3,
    size: { w: 6, h: 9 }, minimum: { w: 3, h: 7 }, heights: { 6: 9, 1: 11 },
    create,
});

const winner = (board) => {
    for (const [a, b, c] of lines)
        if (board[a] !== 0 && board[a] === board[b] && board[b] === board[c]) return board[a];
    return board.includes(0) ? null : 0;
};

function create(panel) {
    let board = Array(9).fill(0), waits = false, game = 0; /* one that ended stops the moves of its own */
    const cells = Array.from({ length: 9 }, (_, i) =>
        h('button', { type: 'button', class: 'game-cell', on: { click: () => play(i) } }));
    const move = button(t('game.move'), () => answer());
    const alone = button(t('game.alone'), () => playAlone());
    const told = h('p', { class: 'game-told', role: 'status' });
    const field = h('div', { class: 'game-field', role: 'group', 'aria-label': t('panel.game') }, cells);
    const holder = h('div', { class: 'game', hidden: true }, field, h('div', { class: 'game-side' }, told,
        move, alone, button(t('game.again'), () => begin())));
    panel.body.append(holder);

    function show(scores = []) {
        const end = winner(board);
        cells.forEach((cell, i) => {
            cell.textContent = signs[board[i]];
            cell.disabled = board[i] !== 0 || end !== null || waits;
            cell.style.setProperty('--score', scores[i] ?? 0);
            cell.setAttribute('aria-label', t('game.cell', { n: i + 1, sign: signs[board[i]] || t('game.empty') }));
        });
        move.disabled = alone.disabled = end !== null || waits;
        told.textContent = t(end === 1 ? 'game.you' : end === -1 ? 'game.network' : end === 0 ? 'game.draw'
            : 'game.turn');
    }

    function begin() {
        board = Array(9).fill(0);
        game++;
        waits = false;
        show();
    }

    async function play(i) {
        if (board[i] !== 0 || waits || winner(board) !== null) return;
        board[i] = 1;
        await answer();
    }

    /* The best of all moves of a sign; the board of a game that has ended meanwhile is left alone. */
    async function put(sign, own) {
        const free = board.flatMap((one, i) => (one === 0 ? [i] : []));
        const boards = free.map((i) => board.map((one, k) => (k === i ? sign : one)));
        const { outputs } = await post('predict', { trainer: panel.trainer(), inputs: boards });
        const scores = outputs.map(([x, o, nobody]) => nobody + 2 * (sign === 1 ? x : o));
        if (own === game) board[free[scores.indexOf(Math.max(...scores))]] = sign;
    }

    async function moves(act) {
        if (waits || winner(board) !== null) return show();
        const own = game;
        waits = true;
        show();
        await panel.load(() => act(own));
        if (own !== game) return undefined;
        waits = false;
        return show();
    }

    const answer = () => moves((own) => put(-1, own));

    /* Whose turn it is follows from what stands there. */
    const playAlone = () => moves(async (own) => {
        while (own === game && winner(board) === null) {
            await put(board.reduce((sum, sign) => sum + sign, 0) > 0 ? -1 : 1, own);
            show();
            await new Promise((resolve) => { setTimeout(resolve, pause); });
        }
    });

    const reload = () => panel.load(async (signal) => {
        const about = await get('play', { trainer: panel.trainer() }, { signal });
        const fits = panel.kind.fits(about);
        holder.hidden = !fits;
        panel.suit(fits, t('game.none'));
        begin();
    });
    panel.on('trainer', reload);
    show();
    reload();
}
