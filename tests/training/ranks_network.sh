#!/bin/bash
# Ranks on hosts that are network namespaces, with links of a given speed: tests/training/ranks_network.sh
#     [-n HOSTS] [-r RATE] [-d DELAY] COMMAND...
# runs COMMAND as one rank on each of 2 hosts, whose links carry 1e9 bits a second, with 100e-6 seconds of delay one
# way, by a switch of our own (ranks_link.c): many kernels cannot delay. Needs the rights of root, iproute2 and Open
# MPI; not a part of `make test`, as it measures times. Exit code 77: not here.
set -u
hosts=2 rate=1e9 delay=100e-6
while getopts n:r:d: option; do
    case $option in
    n) hosts=$OPTARG ;;
    r) rate=$OPTARG ;;
    d) delay=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))

skip()
{
    echo "ranks_network: skipped: $1" >&2
    exit 77
}

for program in ip mpirun cc; do
    command -v $program >/dev/null || skip "there is no $program here (Debian: iproute2, openmpi-bin, gcc)"
done
name=sgm$$ switch=
folder=$(mktemp -d) || exit 1
clean_up()
{
    exec 3>&- # the switch ends with its input
    [ -z "$switch" ] || wait "$switch"
    for i in $(seq "$hosts"); do
        ip netns del "$name-$i" 2>/dev/null
    done
    rm -rf "$folder"
}
trap clean_up EXIT
list=
for i in $(seq "$hosts"); do
    ip netns add "$name-$i" || skip "no network namespace can be made"
    list+=${list:+,}$name-$i
done
cc -O2 -o "$folder/link" "${0%/*}/ranks_link.c" || exit 1
mkfifo "$folder/input"
# shellcheck disable=SC2086 # one word for each host
"$folder/link" "$rate" "$delay" . ${list//,/ } <"$folder/input" >"$folder/output" &
switch=$!
exec 3>"$folder/input"
for _ in $(seq 50); do
    grep -qs ready "$folder/output" && break
    kill -0 $switch 2>/dev/null || skip "there are no TAP devices here"
    sleep 0.1
done
ip link set sgm0 mtu 9000 up && ip addr add 10.213.77.254/24 dev sgm0 || exit 1
for i in $(seq "$hosts"); do
    ip -n "$name-$i" addr add "10.213.77.$i/24" dev sgm0
    ip -n "$name-$i" link set sgm0 mtu 9000 up
    ip -n "$name-$i" link set lo up
done

# What mpirun calls instead of ssh: HOST COMMAND...
cat >"$folder/agent" <<'END'
#!/bin/bash
host=$1
shift
exec ip netns exec "$host" unshare --uts bash -c "hostname $host; $*"
END
chmod +x "$folder/agent"

passed=()
for variable in SIGMA_PLUGIN_PATH SIGMA_DATA_DIR; do
    [ -z "${!variable:-}" ] || passed+=(-x "$variable")
done
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --host "$list" -n "$hosts" --map-by node --bind-to none \
    --mca plm_rsh_agent "$folder/agent" --mca plm_rsh_no_tree_spawn 1 --mca oob_tcp_if_include 10.213.77.0/24 \
    --mca btl tcp,self --mca btl_tcp_if_include 10.213.77.0/24 "${passed[@]}" "$@"
