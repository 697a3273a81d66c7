#!/bin/sh
# Run a command of manage.py. Each variable NAME_FILE is replaced by NAME with the content of that file, so that secrets
# need not be in the environment of the container's definition.
set -eu

for name in $(env | sed -n 's/^\([A-Z][A-Z0-9_]*\)_FILE=.*/\1/p'); do
  eval "file=\$${name}_FILE"
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
  unset "${name}_FILE"
done

# Words such as $(REDIS_URL) are not replaced by Docker: a node takes the store from the variable here.
if [ "${1:-}" = runbroker ] && [ -n "${REDIS_URL:-}" ]; then
  shift
  set -- runbroker --redis "$REDIS_URL" "$@"
fi
exec python /opt/sluice/manage.py "$@"
