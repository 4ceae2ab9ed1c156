/* Learns to play tic-tac-toe from perfect games, then plays against chance: tictactoe (a second)
 * Each position in which x is to move is an example: the board (1 x, -1 o, 0 free), and of each field the
 * share that it has of the best moves, which are found by playing all games to their end. The short way of
 * calls: a model. */
#include <sigma/sigma.h>
#include <stdio.h>
#include <stdlib.h>

static float boards[6000][9], moves[6000][9];
static int64_t positions;
static bool seen[19683]; /* 3^9 */

static int winner(const int *b)
{
    static const int lines[8][3] = {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {0, 3, 6},
                                    {1, 4, 7}, {2, 5, 8}, {0, 4, 8}, {2, 4, 6}};
    for (int i = 0; i < 8; i++)
        if (b[lines[i][0]] != 0 && b[lines[i][0]] == b[lines[i][1]] && b[lines[i][0]] == b[lines[i][2]])
            return b[lines[i][0]];
    return 0;
}

/* What the game is worth for `player`, who is to move; notes the best moves of x. */
static int worth(int *b, int player, int left)
{
    int best = -2, values[9], ties = 0, number = 0;
    if (winner(b) != 0 || left == 0)
        return winner(b) * player;
    for (int i = 0; i < 9; i++) {
        number = 3 * number + b[i] + 1;
        values[i] = -3;
        if (b[i] != 0)
            continue;
        b[i] = player;
        values[i] = -worth(b, -player, left - 1);
        b[i] = 0;
        ties = values[i] > best ? 1 : ties + (values[i] == best);
        best = values[i] > best ? values[i] : best;
    }
    for (int i = 0; i < 9 && player == 1 && !seen[number]; i++) {
        boards[positions][i] = (float)b[i];
        moves[positions][i] = values[i] == best ? 1 / (float)ties : 0;
    }
    positions += player == 1 && !seen[number];
    seen[number] |= player == 1;
    return best;
}

static int best_move(sgm_model *model, sgm_tensor *board, const int *b)
{
    for (int64_t i = 0; i < 9; i++)
        sgm_tensor_set(board, (const int64_t[]){0, i}, b[i]);
    sgm_tensor *prediction = sgm_model_predict(model, board);
    const float *chances = prediction != NULL ? sgm_tensor_const_data(prediction) : boards[0];
    int best = 0;
    for (int i = 0; i < 9; i++)
        if (b[best] != 0 || (b[i] == 0 && chances[i] > chances[best]))
            best = i;
    sgm_tensor_free(prediction);
    return best;
}

int main(void)
{
    int won = 0, lost = 0, start[9] = {0};
    worth(start, 1, 9), worth(start, -1, 9); /* x begins, or o */
    sgm_shape all = sgm_shape_of(positions, 9), one = sgm_shape_of(1, 9);
    sgm_tensor *inputs = sgm_tensor_create_from(SGM_FLOAT32, &all, boards),
               *board = sgm_tensor_create(SGM_FLOAT32, &one),
               *targets = sgm_tensor_create_from(SGM_FLOAT32, &all, moves);
    sgm_env *env = sgm_env_create("tictactoe", .seed = 1);
    sgm_model *model = sgm_sequential(env, sgm_dense(.size = 128, .activation = "relu"),
                                      sgm_dense(.size = 128, .activation = "relu"), sgm_dense(.size = 9),
                                      sgm_softmax_cross_entropy());
    sgm_status status =
        sgm_model_train(model, inputs, targets, .epochs = 60, .batch = 64,
                        .optimiser = sgm_adam(.learning_rate = 0.003, .schedule = {.kind = SGM_COSINE}));

    for (int game = 0; game < 500 && status == SGM_OK; game++) {
        int b[9] = {0}, player = game % 2 == 0 ? 1 : -1, left = 9;
        for (; left > 0 && winner(b) == 0; left--, player = -player) {
            int field = player == 1 ? best_move(model, board, b) : rand() % 9;
            while (b[field] != 0)
                field = rand() % 9;
            b[field] = player;
        }
        won += winner(b) == 1, lost += winner(b) == -1;
        for (int i = 0; i < 9 && game == 0; i++)
            printf("%c%s", "o.x"[b[i] + 1], i % 3 == 2 ? "\n" : " ");
    }
    if (status != SGM_OK)
        fprintf(stderr, "tictactoe: %s\n", sgm_last_error());
    else
        printf("x learnt %lld positions; of 500 games against chance it won %d, drew %d, lost %d\n",
               (long long)positions, won, 500 - won - lost, lost);
    sgm_env_free(env);
    sgm_tensor_free(board), sgm_tensor_free(targets), sgm_tensor_free(inputs);
    return won < 400 || lost > 10;
}
