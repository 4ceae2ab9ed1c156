#!/bin/bash
# What the command takes from around it: folders, variables, and commands before a run begins.
# shellcheck source=tests/cli/check.sh
. "$SIGMA_SOURCE_DIR/tests/cli/check.sh"

unset SIGMA_DATA_DIR SIGMA_CACHE_DIR XDG_DATA_HOME XDG_CACHE_HOME http_proxy SIGMA_LOG
HOME=/home/ada "$sigma" info >out
has out '^  /home/ada/.local/share/sigma$'
has out '^  /home/ada/.cache/sigma \(what was fetched\)$'
XDG_DATA_HOME=/data XDG_CACHE_HOME=relative HOME=/home/ada "$sigma" info >out
has out '^  /data/sigma$'
has out '^  /home/ada/.cache/sigma '
SIGMA_DATA_DIR=own SIGMA_CACHE_DIR=/own/cache XDG_DATA_HOME=/data "$sigma" info >out
has out '^  own$'
has out '^  /own/cache '
has out '^  SIGMA_DATA_DIR=own$'
env -u HOME "$sigma" info >out
has out '^  \(HOME is not set\)$'
http_proxy=http://ada:secret@proxy:80 SIGMA_LOG=error "$sigma" info >out
has out '^  http_proxy=\*\*\*@proxy:80$'
has out '^  SIGMA_LOG=error$'

# --- beginning paused ---
export SIGMA_DATA_DIR=$SIGMA_SOURCE_DIR/data
"$sigma" train "$SIGMA_SOURCE_DIR/examples/iris.yaml" epochs=3 --folder paused --paused >train.out 2>&1 </dev/null &
process=$!
for _ in $(seq 200); do
    "$sigma" ctl paused status >out 2>/dev/null && grep -q paused out && break
    sleep 0.05
done
has out 'paused'
cp train.out out
has out '^paused; go on with: sigma ctl paused resume$'
"$sigma" ctl paused resume >/dev/null
wait "$process" && echo 'ended well' >>train.out
process=
cp train.out out
has out '^checkpoint: paused/checkpoint.safetensors$'
has out '^ended well$'

# --- the monitor in the browser ---
"$sigma" train "$SIGMA_SOURCE_DIR/examples/iris.yaml" epochs=2 --folder watched --quiet --monitor >out 2>&1 </dev/null
has out '^monitor: http://127.0.0.1:[0-9]+/\?token=[0-9a-f]{32}$'
"$sigma" train "$SIGMA_SOURCE_DIR/examples/iris.yaml" epochs=2 --folder refused --monitor=0 >out 2>&1 </dev/null
has out '^sigma train: --monitor: expected a port from 1 to 65535'
"$sigma" train "$SIGMA_SOURCE_DIR/examples/iris.yaml" epochs=2 --folder waiting --monitor-wait >train.out 2>&1 </dev/null &
process=$!
for _ in $(seq 400); do
    grep -q '^monitor: stays' train.out && break
    sleep 0.05
done
kill -TERM "$process"
wait "$process" && echo 'ended well' >>train.out
process=
cp train.out out
has out '^checkpoint: waiting/checkpoint.safetensors$'
has out '^monitor: stays until you end it on the page, or with Ctrl-C$'
has out '^ended well$'

# --- what is said when all is asked for ---
"$sigma" train "$SIGMA_SOURCE_DIR/examples/iris.yaml" epochs=1 --folder told --log-level debug >train.out 2>out </dev/null
has out "^[0-9:.]{12} debug iris: saved 'told/checkpoint.safetensors'$"

finish
