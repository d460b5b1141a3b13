# HiveOS reads this file every few seconds and takes two variables from it: khs, the hash rate in thousands, and stats.
. "$(dirname "${BASH_SOURCE[0]}")/h-manifest.conf"
khs=0
stats=
answer=$(curl --silent --max-time 5 "http://127.0.0.1:$CUSTOM_API_PORT/v1/stats")
if [ -n "$answer" ]; then
  khs=$(jq '(.hash_rate["60s"] // .hash_rate["10s"] // 0) / 1000' <<< "$answer")
  stats=$(jq --compact-output '{
    hs: [.devices[].hash_rate | (.["60s"] // .["10s"] // 0) / 1000], hs_units: "khs",
    temp: [.devices[].temperature_celsius // 0], fan: [.devices[] | 0],
    uptime: .uptime_seconds, ver: .version, ar: [.shares.accepted, .shares.rejected + .shares.stale], algo: "svc" }' <<< "$answer")
fi
