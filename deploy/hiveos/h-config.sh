# HiveOS reads this file when the miner is started, with the flight sheet in CUSTOM_URL, CUSTOM_TEMPLATE, CUSTOM_PASS and
# CUSTOM_USER_CONFIG. It writes two files: the settings, and the further options, one a line.
. "$(dirname "${BASH_SOURCE[0]}")/h-manifest.conf"

jq --null-input --arg pools "$CUSTOM_URL" --arg user "$CUSTOM_TEMPLATE" --arg password "$CUSTOM_PASS" --arg port "$CUSTOM_API_PORT" '
  { pool: ($pools | [splits("[\\s,]+")] | map(select(. != ""))), user: $user, "api-bind": "127.0.0.1:\($port)" }
  + if $password == "" then {} else { password: $password } end' > "$CUSTOM_CONFIG_FILENAME"
xargs --no-run-if-empty --max-args=1 printf '%s\n' <<< "$CUSTOM_USER_CONFIG" > "$(dirname "$CUSTOM_CONFIG_FILENAME")/options"
