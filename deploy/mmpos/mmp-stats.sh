#!/usr/bin/env bash
# mmpOS runs this every few seconds, with the number of devices and the log file, and reads one JSON document: processors first, then
# graphics cards by their number. `air` is accepted, invalid and rejected shares.
answer=$(curl --silent --max-time 5 "http://127.0.0.1:${SVC_MINER_API_PORT:-28770}/v1/stats")
if [ -z "$answer" ]; then
  echo "svc-miner does not answer on its API port"
  exit 1
fi
jq --compact-output '(.devices | sort_by(.kind != "wasm")) as $devices | {
  busid: [$devices[] | if .kind == "wasm" then "cpu" else .number end],
  hash: [$devices[].hash_rate | .["60s"] // .["10s"] // 0], units: "hs",
  air: [.shares.accepted, .shares.bad, .shares.rejected + .shares.stale | tostring],
  shares: { accepted: [$devices[].shares.accepted], invalid: [$devices[].shares.bad], rejected: [$devices[].shares | .rejected + .stale] },
  miner_name: "svc-miner", miner_version: .version }' <<< "$answer"
