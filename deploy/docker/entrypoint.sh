#!/bin/sh
# Run a command of manage.py. A secret NAME can be in the file that NAME_FILE names, so that it need not be in the
# definition of the container.
set -eu

# Other variables that end in _FILE, such as SSL_CERT_FILE, have a meaning of their own.
secrets="DATABASE_URL REDIS_URL SLUICE_CLUSTER_PASSWORD SLUICE_MAIL SLUICE_OIDC_CLIENT_SECRET SLUICE_PASSWORD
  SLUICE_TLS_PASSWORD SPARK_REMOTE"

for name in $secrets; do
  eval "file=\${${name}_FILE:-}"
  [ -n "$file" ] || continue
  if eval "[ -n \"\${$name+set}\" ]"; then
    echo "error: set either $name or ${name}_FILE, not both" >&2
    exit 1
  fi
  if [ ! -r "$file" ]; then
    echo "error: ${name}_FILE=$file cannot be read" >&2
    exit 1
  fi
  value=$(cat "$file")
  export "$name=$value"
done

# A node has no variable for its store, only an option.
if [ "${1:-}" = runbroker ] && [ -n "${REDIS_URL:-}" ]; then
  shift
  set -- runbroker --redis "$REDIS_URL" "$@"
fi
exec python "${SLUICE_HOME:-/opt/sluice}/manage.py" "$@"
