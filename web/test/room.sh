#!/usr/bin/env bash
# A room for the tests of the page, in namespaces of its own: a pool in a file, ddb and ducks, and a bridge for machines.
# room.ts runs it, and speaks to it through standard input and output.
set -euo pipefail
bin=$1 dir=$2
cd "$dir"
mount -t tmpfs tmpfs /run
mount -t sysfs sysfs /sys
mkdir /run/ducks
ip link set lo up
ip link add br0 address 02:00:00:00:00:01 type bridge
ip addr add 10.77.0.1/24 dev br0
ip link set br0 up
mkdir pool loaders
touch loaders/undionly.kpxe loaders/ipxe.efi # machines that are none load them, and do not run them
truncate -s 512M file
mkfs.btrfs -q file
mount -o loop,compress-force=zstd:1 file pool
end() {
	for p in $(jobs -p); do kill "$p" 2>/dev/null || true; done
	wait || true # tgtd and the mounts go with the namespaces
}
trap end EXIT
wait_for() {
	for _ in $(seq 300); do
		grep -q "$1" "$2" && return
		sleep 0.1
	done
	cat "$2" >&2
	return 1
}
"$bin/ddb" serve --data-dir data --http-addr 127.0.0.1:8080 --tcp-addr 127.0.0.1:5555 --set ducks.url=http://127.0.0.1:8091 >ddb.log 2>&1 &
wait_for "msg=ready" ddb.log
"$bin/ducks" serve --data-dir /run/ducks --pool "btrfs:$PWD/pool" --dhcp br0 --boot-files loaders --ddb 127.0.0.1:5555 >ducks.log 2>&1 &
wait_for "ducks serves" ducks.log
export DUCKS_TOKEN_FILE=/run/ducks/first-token
echo "ready $(cat "$DUCKS_TOKEN_FILE")"
# Each line is a command of ducks; its output ends with a line "done" and its status.
while read -r line; do
	status=0
	eval "\"$bin/ducks\" $line" 2>&1 || status=$?
	echo "done $status"
done
