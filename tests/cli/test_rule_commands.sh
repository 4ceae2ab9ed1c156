#!/bin/bash
# Programs that rules run: allowed by the file alone.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

# file NAME LINES...: a training with these lines.
file()
{
    local name=$1
    shift
    {
        echo 'network: input(8, 8) + dense(10) + softmax_cross_entropy'
        echo 'data: {training: digits, batch: 32}'
        echo 'optimiser: {type: adam, learning_rate: 0.01}'
        echo 'epochs: 3'
        printf '%s\n' "$@"
    } >"$name"
}
cat >tell <<'END'
#!/bin/sh
echo "epoch $SIGMA_EPOCH of $SIGMA_TRAINER: $*" >>told
END
chmod +x tell

# --- the file ---
rule="  - every epoch run \"./tell 'a b' \$HOME;x\""
file without.yaml 'rules:' "$rule"
run 2 train without.yaml --folder without
has err "without.yaml:6:3: rules: 'every epoch run .*' runs a command, which must be allowed: allow_commands: true"
[ ! -e told ]
verdict "nothing was run" $?
file with.yaml 'allow_commands: true' 'rules:' "$rule" "  - at epoch 2 run \"sh -c 'echo \$SIGMA_ITERATION here'\""
run 0 train with.yaml --folder run
has told '^epoch 1 of with: a b \$HOME;x$'
has told '^epoch 3 of with: a b \$HOME;x$'
[ "$(wc -l <told)" = 3 ]
verdict "once an epoch" $? told
has run/log.txt 'run .sh -c .*: 94 here$'
has run/config.yaml '^allow_commands: true$'
run 2 train with.yaml --folder no command_seconds=0
has err 'command_seconds'

# --- limits ---
file slow.yaml 'allow_commands: true' 'command_seconds: 0.2' 'rules:' '  - at start run "sleep 20"'
run 0 train slow.yaml --folder slow
has slow/log.txt "run 'sleep 20' was killed: it took longer than 0.2 s"

# --- a replay ---
rm told
run 0 replay run --into again
has out 'bit for bit'
[ ! -e told ]
verdict "a replay runs nothing" $?

# --- webhooks: only to addresses that the file names ---
hook='  - at stop webhook "http://127.0.0.1:9/x" "over"'
file send.yaml 'rules:' "$hook"
run 2 train send.yaml --folder send
has err "send.yaml:6:3: rules: a rule sends to 'http://127.0.0.1:9/x', which must be named: webhooks: \\[.http://127.0.0.1:9/x.\\]"
file send.yaml 'webhooks: ["http://127.0.0.1:9/x"]' 'rules:' "$hook"
run 0 train send.yaml --folder send # nobody listens there
has send/log.txt 'webhook 127.0.0.1:9 failed: '
has send/config.yaml '^webhooks: \["?http://127.0.0.1:9/x"?\]$'
run 2 train send.yaml 'webhooks=["ftp://a/"]' --folder no
has err "'ftp://a/' is no address of a webhook"

# --- from another process ---
file idle.yaml
"$sigma" train idle.yaml --folder idle --paused >train.out 2>&1 </dev/null &
process=$!
for _ in $(seq 400); do
    "$sigma" ctl idle status >out 2>err && grep -qE '^state +paused$' out && break
    sleep 0.05
done
run 1 ctl idle attach 'every epoch run "./tell x"'
has err 'does not allow: say allow_commands: true in its file'
run 1 ctl idle set allow_commands true
run 0 ctl idle stop
wait "$process"
process=
[ ! -e told ]
verdict "nothing was run from outside" $?
finish
