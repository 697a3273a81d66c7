#!/bin/sh
# Make the secrets that compose.yaml mounts, in secrets/ beside it. What exists is kept.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets

new_password() {
  python3 -c 'import secrets; print(secrets.token_urlsafe(32), end="")'
}

[ -e secrets/database-password ] || new_password > secrets/database-password
[ -e secrets/store-password ] || new_password > secrets/store-password
[ -e secrets/database-url ] ||
  printf 'postgres://sluice:%s@database/sluice' "$(cat secrets/database-password)" > secrets/database-url
# Both servers: Sluice finds out which one is the primary.
[ -e secrets/store-url ] ||
  printf 'redis://:%s@store:6379,store-replica:6379/0' "$(cat secrets/store-password)" > secrets/store-url
# Every write is on disk before it is answered, and nothing is ever evicted.
[ -e secrets/store-config ] || cat > secrets/store-config <<EOF
requirepass $(cat secrets/store-password)
masterauth $(cat secrets/store-password)
appendonly yes
appendfsync always
save ""
maxmemory-policy noeviction
dir /data
EOF
# Compose mounts files as they are: the users in the containers must be able to read them. The folder keeps others out.
chmod 644 secrets/*
echo "made deploy/compose/secrets; it belongs in your backup, and in no repository"
