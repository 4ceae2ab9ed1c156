#!/bin/bash
# What the command takes from around it: folders, variables, and commands before a run begins.
set -u
passed=0 failed=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
sigma=$SIGMA_BUILD_DIR/sigma
cd "$folder" || exit 1

# has PATTERN WHAT: a line of the output matches.
has()
{
    if grep -qE -- "$1" out; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'test_surroundings.sh: FAILED: %s: nothing matches "%s":\n' "$2" "$1"
        cat out
    fi
}

unset SIGMA_DATA_DIR SIGMA_CACHE_DIR XDG_DATA_HOME XDG_CACHE_HOME http_proxy SIGMA_LOG
HOME=/home/ada "$sigma" info >out
has '^  /home/ada/.local/share/sigma$' 'data below the home folder'
has '^  /home/ada/.cache/sigma \(what was fetched\)$' 'cache below the home folder'
XDG_DATA_HOME=/data XDG_CACHE_HOME=relative HOME=/home/ada "$sigma" info >out
has '^  /data/sigma$' 'XDG_DATA_HOME'
has '^  /home/ada/.cache/sigma ' 'a relative XDG_CACHE_HOME is ignored'
SIGMA_DATA_DIR=own SIGMA_CACHE_DIR=/own/cache XDG_DATA_HOME=/data "$sigma" info >out
has '^  own$' 'SIGMA_DATA_DIR'
has '^  /own/cache ' 'SIGMA_CACHE_DIR'
has '^  SIGMA_DATA_DIR=own$' 'the variable itself'
env -u HOME "$sigma" info >out
has '^  \(HOME is not set\)$' 'no home'
http_proxy=http://ada:secret@proxy:80 SIGMA_LOG=error "$sigma" info >out
has '^  http_proxy=\*\*\*@proxy:80$' 'a proxy without its password'
has '^  SIGMA_LOG=error$' 'SIGMA_LOG'

# --- beginning paused ---
export SIGMA_DATA_DIR=$SIGMA_SOURCE_DIR/data
"$sigma" train "$SIGMA_SOURCE_DIR/examples/iris.yaml" epochs=3 --folder paused --paused >train.out 2>&1 </dev/null &
process=$!
for _ in $(seq 200); do
    "$sigma" ctl paused status >out 2>/dev/null && grep -q paused out && break
    sleep 0.05
done
has 'paused' 'a run that begins paused'
cp train.out out
has '^paused; go on with: sigma ctl paused resume$' 'what to do next'
"$sigma" ctl paused resume >/dev/null
wait "$process" && echo 'ended well' >>train.out
cp train.out out
has '^checkpoint: paused/checkpoint.safetensors$' 'it goes on'
has '^ended well$' 'its exit code'

# --- what is said when all is asked for ---
"$sigma" train "$SIGMA_SOURCE_DIR/examples/iris.yaml" epochs=1 --folder told --log-level debug >train.out 2>out </dev/null
has "^[0-9:.]{12} debug iris: saved 'told/checkpoint.safetensors'$" 'debug messages'

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
