#!/bin/sh
# Restarts the API processes one by one without losing a request. Each leaves nginx, stops, starts, and returns when it is ready.
# If a process does not become ready, it stays out of nginx, and the script exits with 1.
# usage: rolling-restart.sh systemd|compose
set -eu
here=$(cd "$(dirname "$0")" && pwd)

case ${1-} in
systemd)
  upstream=${UPSTREAM:-/etc/nginx/trust/api.upstream}
  reload() { systemctl reload nginx; }
  restart() { systemctl restart "trust-api@${1##*:}"; }
  is_ready() { curl --silent --fail --output /dev/null "http://$1/ready"; }
  ;;
compose)
  upstream=$here/nginx/api.upstream
  compose() { docker compose --file "$here/compose.yaml" "$@"; }
  reload() { compose exec -T nginx nginx -s reload; }
  restart() { compose up --detach --no-deps --force-recreate "${1%%:*}"; }
  is_ready() { compose exec -T nginx curl --silent --fail --output /dev/null "http://$1/ready"; }
  ;;
*)
  echo "usage: $0 systemd|compose" >&2
  exit 2
  ;;
esac

# Rewrite the file in place, so that a container sees the same file.
edit() {
  changed=$(sed "$1" "$upstream")
  printf '%s\n' "$changed" >"$upstream"
  reload
}

servers=$(sed -n 's/^server \([^ ;]*\).*/\1/p' "$upstream")
if [ "$(echo "$servers" | wc -w)" -lt 2 ]; then
  echo "$upstream names fewer than two servers, so none would serve while one restarts." >&2
  exit 1
fi
for server in $servers; do
  echo "$server leaves nginx and restarts"
  edit "s/^server $server;/server $server down;/"
  restart "$server"
  tries=0
  until is_ready "$server"; do
    tries=$((tries + 1))
    if [ "$tries" -gt 120 ]; then
      echo "$server is not ready after two minutes. It stays out of nginx: see $upstream." >&2
      exit 1
    fi
    sleep 1
  done
  edit "s/^server $server down;/server $server;/"
  echo "$server is ready and back"
done
