#!/bin/bash
# sigma monitor: the runs of a folder, asked as a program asks.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

run 0 monitor --help
has out '^Usage: sigma monitor RUNS \[--port PORT\] \[--tokens FILE\]$'
run 2 monitor
has err 'expected one folder of runs, got 0 words'
run 2 monitor runs --port 70000
has err '--port: expected a whole number from 1 to 65535, got .70000.'
run 2 monitor runs --prot 9000
has err "unknown option '--prot' \(did you mean '--port'\?\)"
run 1 monitor missing
has err "^sigma monitor: the folder 'missing' cannot be opened: "

echo 'look 0123456789abcdef-LOOK0' >tokens.txt
mkdir none
for mode in 640 604 620 602; do
    chmod $mode tokens.txt
    run 1 monitor none --tokens tokens.txt
    has err "others may read or change the tokens in 'tokens.txt': 'chmod 600 tokens.txt' keeps them from it"
done
printf '# others\nlook short\n' >tokens.txt
chmod 600 tokens.txt
run 1 monitor none --tokens tokens.txt
has err "'tokens.txt': line 2 of the tokens: a token has 16 to 128 of the characters"
run 1 train "$examples/digits.yaml" --monitor --monitor-tokens tokens.txt --folder none
has err "'tokens.txt': line 2 of the tokens: a token has 16 to 128 of the characters"

run 0 train "$examples/digits.yaml" epochs=2 --folder runs/digits --quiet
"$sigma" monitor runs >page.out 2>page.err </dev/null &
process=$!
for _ in $(seq 200); do
    grep -q '^monitor: ' page.out && break
    sleep 0.05
done
has page.out '^monitor: http://127\.0\.0\.1:[0-9]+/\?token='
address=$(sed -nE 's,^monitor: (http://[^/]*)/.*,\1,p' page.out)
token=$(sed -nE 's,.*token=,,p' page.out)

# ask PATH [BODY]
ask()
{
    local more=()
    [ $# -lt 2 ] || more=(-H 'Content-Type: application/json' -d "$2")
    curl -s -H "Authorization: Bearer $token" "${more[@]}" "$address$1" >out 2>err
}

ask /api/runs
has out '"name": ?"digits"'
has out '"state": ?"finished"'
has out '"epochs": ?2[,}]'
has out '"optimiser\.type": ?"adam"'
has out '"optimiser\.learning_rate": ?0\.005'
has out '"optimiser\.schedule\.kind": ?"cosine"'
has out '"validation\.accuracy": ?0\.'
ask /api/run/digits
has out '"columns": ?\{.*"loss": ?\[[0-9.]+, ?[0-9.]+\]'
ask /api/run-interventions/digits
has out '"interventions": ?\[\], ?"can_replay": ?true, ?"replays": ?\[\]'
ask /api/run-replay '{"name":"digits"}'
has out '"into": ?"digits-again"'
for _ in $(seq 400); do
    ask /api/run-interventions/digits
    grep -q '"state": \?"running"' out || break
    sleep 0.05
done
has out '"into": ?"digits-again", ?"state": ?"ended"'
cmp runs/digits/checkpoint.safetensors runs/digits-again/checkpoint.safetensors
verdict "the replay has the same checkpoint" $?
ask /api/run-rename '{"name":"digits","to":"first"}'
[ -d runs/first ] && [ ! -e runs/digits ]
verdict "the run was renamed" $?
ask /api/run-delete '{"name":"first","confirmation":"first"}'
[ ! -e runs/first ]
verdict "the run was deleted" $?
[ "$(curl -s -o /dev/null -w '%{http_code}' "$address/api/runs")" = 401 ]
verdict "without the token there is no answer" $?

kill -TERM "$process"
wait "$process"
code 0 $? "the end by a signal"
process=
finish
