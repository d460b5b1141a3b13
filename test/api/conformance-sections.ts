/**
 * Sections of the specification that have no table of the public API: conventions, economic rules, states, the wallet daemon, the mining listener and protocol, authentication, versioning. Each row names
 * the test that shows it, by its file and words of its title; a title that is gone fails here.
 */
import { type Row, titled } from './conformance-rows.ts';

type Shown = readonly [row: string, file: string, title: string];

const rowsOf = (table: string, shown: readonly Shown[]): Row[] =>
  shown.map(([row, file, title]) => titled(table, row, file, title));

const EMISSION = 'test/protocol/emission.test.ts';
const REWARDS = 'test/node/rewards.test.ts';
const STORY = 'test/staking/story.test.ts';
const RPC = 'test/wallet/rpc/specification.long.test.ts';
const SERVER = 'test/wallet/rpc/server.long.test.ts';
const PAYMENTS = 'test/wallet/payments/payments.long.test.ts';
const FOLLOWING = 'test/wallet/chain/following.long.test.ts';
const LISTENER = 'test/node/listener.test.ts';
const MEMPOOL = 'test/node/mempool.test.ts';
const STRATUM = 'test/protocol/stratum.test.ts';
const SUBMIT_VECTORS = 'the share of the vectors is a share, the block a block';
const LIFE =
  'genesis, register, delegate, earn with commission, redirect, rotate, miss windows, jailed, heartbeat, exit, withdraw';

export const SECTION_ROWS: readonly Row[] = [
  ...rowsOf('Conventions of the HTTP API', [
    [
      '1, 2, 3, 4, 5, 6. routes, `api_version`, JSON, atoms, identifiers, heights, times',
      'test/api/routes.test.ts',
      'every answer fits the schema of its route',
    ],
    ['7. the base URL lists the routes', 'test/api/http.test.ts', 'GET / is a list for programs and a page for people'],
    [
      '8. decimal strings in the protocol module',
      'test/module/functions.test.ts',
      'no function of the module gives a number',
    ],
    ['9. amounts of the wallet daemon', RPC, 'every method of the specification, row by row'],
  ]),
  ...rowsOf('Economic rules', [
    ['First interval: 15.625 coins per cut, 540,000 per day', EMISSION, '540,000 coins, 15.625 a cut'],
    [
      'Maximum supply, emission per interval, days of 50 % to 99.99 %, end on day 12,650',
      EMISSION,
      'the last atom on day 12,650',
    ],
    ['Rounding: the cuts of an interval add up to its amount', EMISSION, 'the cuts of any interval add up'],
    ['Split in halves', EMISSION, 'halves add up'],
    ['Fees: half to the block, once', REWARDS, 'half of the fees goes to the block that executes'],
    [
      'Work half 1, 3: equal shares; an anchor without work carries over',
      REWARDS,
      'an anchor without work carries over',
    ],
    [
      'Work half 2: paid 96 cuts after the cut',
      REWARDS,
      'a block is paid when its window closes, 96 cuts after its anchor',
    ],
    [
      'Work half 4, 5: a late block earns nothing; `paid` is final',
      'test/node/candidates.test.ts',
      'accepted until its window closes, and late afterwards',
    ],
    ['Work half, as tables', 'test/node/reward-vectors.test.ts', 'every anchor of the tables is paid as they say'],
    [
      'Stake half 1, 2: paid after the interval, to members that attended',
      'test/node/interval.long.test.ts',
      'the stake half of an interval is paid after it',
    ],
    [
      'Stake half 3: the rate at the start of an interval applies to the whole of it',
      'test/staking/changes-in-their-epochs.test.ts',
      'a new commission is charged from the 14th epoch after its announcement on, for whole intervals',
    ],
    ['Stake half 3: a validator keeps the full reward of its own bond', STORY, LIFE],
    [
      'Burns 1: equivocation',
      'test/staking/node.long.test.ts',
      'equivocation: the self-bond and a tenth of each delegation burn',
    ],
    ['Burns 2: outputs to the burn address', MEMPOOL, 'from mempool to finalized'],
    ['Burns 2: a reward to it is an output', REWARDS, 'blocks of one anchor share equally'],
    ['Value equation', 'test/node/simulation.long.test.ts', 'the equation holds at every cut'],
    ['Supply document: the invariant', 'test/api/routes.test.ts', 'the supply adds up'],
    ['Committee of 64', 'test/staking/committee.test.ts', 'of 70 validators the 64 with the most stake sit'],
  ]),
  ...rowsOf('Resources: transactions, wallet, mining, validator', [
    ['Transaction submission body', 'test/api/routes.test.ts', 'every answer fits the schema of its route'],
    [
      'Transaction body of the protocol module, with a staking operation',
      'test/module/functions.test.ts',
      'staking operations: the witness of the owner',
    ],
    ['Cut reference', 'test/api/routes.test.ts', 'every answer fits the schema of its route'],
    ['Send result, `duplicate`', PAYMENTS, 'its repetition is the first result'],
    ['Received payment: `payload_text`, `senders`, `indexed_height`', FOLLOWING, 'with its text and senders'],
    [
      'Received payment: `messenger`',
      'test/wallet/messenger/chats.long.test.ts',
      'a payload of the messenger on a larger payment hides nothing',
    ],
    ['Mining template', LISTENER, 'a template says what a bridge needs'],
    ['Stratum job: header of 312 bytes, block and share target', STRATUM, SUBMIT_VECTORS],
    [
      'Validator configuration, every field',
      'test/consensus/validator-config.test.ts',
      'sections of node.json as the specification has them',
    ],
    [
      'Key and password files that others can read are refused',
      'test/consensus/validator-config.test.ts',
      'files that others can read are refused',
    ],
  ]),
  ...rowsOf('States and transitions', [
    ['`processing`, `receiving`, `finalized`', MEMPOOL, 'from mempool to finalized'],
    [
      '`registered`',
      'test/node/status-during-commit.test.ts',
      'a transaction is registered while the certified cut is written',
    ],
    ['Node sync: `synced` of every role', 'test/node/tip.test.ts', 'never synced behind a proof'],
    [
      'Node sync: `synced` of a validator that was away',
      'test/consensus/followed-peers.long.test.ts',
      'a validator follows to the head, with blocks, and signs again when it is heard',
    ],
    ['`failed`: `conflict`', MEMPOOL, 'in blocks the first executed wins and the other is a conflict'],
    ['`failed`: `expired`', MEMPOOL, 'what no block took in time expires, and says so for good'],
    ['Block reward', REWARDS, 'a block is paid when its window closes'],
    [
      'Validator liveness: heartbeat per epoch, fee cap',
      'test/staking/heartbeats.long.test.ts',
      'that key pays, up to the cap',
    ],
    ['Validator liveness: lapsed, jailed, eligible, exit', STORY, LIFE],
    [
      '1. one commission change can be pending; it counts 14 epochs after it is scheduled',
      'test/staking/changes-in-their-epochs.test.ts',
      'a new commission is charged from the 14th epoch after its announcement on',
    ],
    [
      '2. a new endpoint takes effect two epochs later',
      'test/staking/changes-in-their-epochs.test.ts',
      'a new endpoint counts from the second epoch',
    ],
    [
      '3. a new consensus key signs from the second epoch after rotation',
      'test/staking/changes-in-their-epochs.test.ts',
      'a new key signs from the second epoch',
    ],
    ['4. a repeated `request_id`', PAYMENTS, 'its repetition is the first result'],
    ['5. template for 5 seconds', LISTENER, 'the same draw for five seconds'],
    ['5. a body serves one block', 'test/node/candidates.test.ts', 'a body is not used for a second block'],
  ]),
  ...rowsOf('Wallet daemon', [
    ['every method of every group, by name', RPC, 'every method of the specification, row by row'],
    ['params: an object, unknown fields refused', SERVER, 'requests that are none'],
    ['`send`: `compound_first`', PAYMENTS, 'compound_first merges in rounds and then pays'],
    ['`send_many`: seven recipients, `subtract_fee`', PAYMENTS, 'send_many pays seven in one transaction'],
    ['`sweep`, `burn`, `compound`', PAYMENTS, 'sweep, burn and compound'],
    [
      '`verify_address_proof`: multisig addresses cannot be proven',
      'test/wallet/multisig/methods.long.test.ts',
      'what the group holds is neither balance nor spendable',
    ],
    [
      '`init --generate-password`, `daemon`, `--file`, `--service`, `prove-address`',
      'test/wallet/end-to-end.long.test.ts',
      'commands for people, beside a daemon and without one',
    ],
    ['`prove-address` with the pool', 'test/dashboard/pages-in-process.slow.test.ts', 'by the commands it shows'],
    ['`--confirmations`', FOLLOWING, 'unconfirmed, then finalized, then confirmed'],
    ['`--allow-remote`: behind TLS', SERVER, 'beyond this machine only with --allow-remote'],
    [
      '`--allow-remote`: listens beyond loopback',
      'test/runtime/listen-address.test.ts',
      'on every interface with --allow-remote alone',
    ],
    ['`--auto-compound`, `--auto-sweep-to`', PAYMENTS, '--auto-compound and --auto-sweep-to'],
  ]),
  ...rowsOf('Evidence against a pool, beyond the specification', [
    [
      '`svc-pool-evidence-1`: receipts',
      'test/protocol/receipt.test.ts',
      'the vectors hold: each receipt under the key',
    ],
    [
      '`svc-pool-list-evidence-1`: two lists; exit code 4',
      'test/protocol/evidence-vectors.test.ts',
      'files about two lists of one slice',
    ],
    [
      '`svc-pool-unpaid-evidence-1`: credits that were not paid',
      'test/protocol/evidence-vectors.test.ts',
      'files about credits that were not paid',
    ],
    [
      '`svc-pool verify-evidence`: exit code 5',
      'test/attack/forged-unpaid.long.test.ts',
      'a pool that does not pay, or names what others paid, is shown',
    ],
    [
      '`svc-miner --payout-threshold`',
      'test/miner/payment-watch.test.ts',
      'a threshold that the pool raises is reported; the user’s own word decides',
    ],
  ]),
  ...rowsOf('News for miners, beyond the specification', [
    [
      '`miners/ADDRESS/webhook`',
      'test/pool/miner-webhooks.slow.test.ts',
      'the key of the address sets it; its own news come in order',
    ],
    [
      '`miners/ADDRESS/webhook`: `channel`',
      'test/pool/miner-webhooks.slow.test.ts',
      'a channel of Discord stands beside the webhook',
    ],
    [
      '`miners/ADDRESS/mail`, `mail/confirm`, `mail/stop`',
      'test/pool/miner-mails.slow.test.ts',
      'gets the news of its miner only after it was confirmed',
    ],
    ['`miners/ADDRESS/notifications`', 'test/pool/mail.test.ts', 'the state of a webhook says whether it works'],
    [
      '`--smtp-url`, `--smtp-url-file`, `--mail-from`',
      'test/pool/mail.test.ts',
      'options of mail that do not fit together are refused',
    ],
  ]),
  ...rowsOf('Events: wallet daemon', [
    [
      '`unconfirmed`, `removed`, `finalized`, `confirmations`, `settled`, `resync_required`',
      RPC,
      'every event of the specification exists',
    ],
    ['order, text and senders', FOLLOWING, 'unconfirmed, then finalized, then confirmed'],
    ['subscriptions', SERVER, 'events reach those who subscribed'],
  ]),
  ...rowsOf('Errors: wallet daemon JSON-RPC codes', [
    ['every code', RPC, 'every error code of the specification, row by row'],
    ['a lost answer', PAYMENTS, 'a lost answer is unknown until the node says'],
    ['node away, behind or on another chain', PAYMENTS, 'stops payments with its own code'],
  ]),
  ...rowsOf('Mining listener', [
    ['POST `/v1/mining/templates`', LISTENER, 'a template says what a bridge needs'],
    [
      'POST `/v1/mining/candidates`: `accepted`, `known`, 409',
      LISTENER,
      'a late block is answered with 409, a replay with known',
    ],
    ['GET `/v1/events`', LISTENER, 'events: a checkpoint, then every cut'],
    ['GET `/v1/node/sync`, `/v1/chain/rates`', LISTENER, 'health, sync and rates'],
    ['the same machine only', LISTENER, 'a peer that is neither loopback nor at the address it called is refused'],
    ['selection of transactions', MEMPOOL, 'selection: fee rate, own before relayed, the ageing rule, a random draw'],
  ]),
  ...rowsOf('Mining protocol', [
    ['`svc-mining-v1`, every message', STRATUM, 'v1 to server: $name'],
    ['`svc-mining-v2`, every message', STRATUM, 'v2 to server: $name'],
    [
      '1 to 5. subscribe, authorize, jobs, search, submit',
      'test/bridge/minimal-miner.long.test.ts',
      'the minimal miner of the documentation mines on the server',
    ],
    ['username `<address>.<worker>`', STRATUM, 'usernames and passwords'],
    ['the prefix is in the last bytes of the nonce', STRATUM, 'nonces carry the prefix last'],
    [
      'tag: characters and length',
      'test/protocol/tag.test.ts',
      'a tag has up to 20 characters: letters, digits, spaces',
    ],
    ['tag: a miner without a right one mines all the same', 'test/miner/session.test.ts', 'a tag that is not allowed'],
    [
      'WebSocket: origins and subprotocol',
      'test/bridge/abuse.slow.test.ts',
      'WebSocket: foreign origins, foreign subprotocols',
    ],
    [
      'share handling: budgets of a connection and of all',
      'test/bridge/submit.test.ts',
      'a verdict takes from the budgets what it uses',
    ],
  ]),
  ...rowsOf('Operator commands', [
    [
      'defaults: commission 500 basis points, rewards to the first address, key index 2147483647; at least 100,000 coins',
      'test/wallet/staking/operator-rows.long.test.ts',
      'Operator commands: `validator-register`',
    ],
    [
      'a rotated key needs an index from 2147418112 to 2147483647',
      'test/wallet/staking/key-files.long.test.ts',
      'Operator commands: `validator-key-export`',
    ],
    ['`--log-file`', 'test/node/metrics-bind.slow.test.ts', 'svcd run --metrics-bind'],
    ['`RUST_LOG` overrides levels per module', 'test/runtime/log.test.ts', 'RUST_LOG overrides levels per module'],
    [
      '`--metrics-bind <ip>` of either family',
      'test/runtime/listen-address.test.ts',
      'the metrics listener opens at ::1',
    ],
    [
      '`--route` stands for TCP and QUIC',
      'test/consensus/quic-routes.test.ts',
      'a registered route is tried over TCP, then over QUIC',
    ],
    [
      '`listen_addrs`: an address is listened on over TCP and QUIC, a multiaddr over the one that it names',
      'test/consensus/quic-routes.test.ts',
      'an address is listened on over TCP and QUIC of one port',
    ],
    [
      'Without the native package of QUIC: refused with a remedy, and TCP goes on',
      'test/network/quic-absent.test.ts',
      'the overlay of a validator goes on over TCP, and says so once',
    ],
  ]),
  ...rowsOf('Authentication', [
    ['2. token, `GET /health`', SERVER, 'health needs no token; everything else does'],
    ['2. the token file is private', SERVER, 'the token file is made once, private'],
    ['3. loopback, `--allow-remote` with TLS', SERVER, 'beyond this machine only with --allow-remote'],
    ['4. mining listener', LISTENER, 'the same machine: loopback, or the address that was called'],
    ['5. metrics listener', 'test/runtime/metrics.test.ts', 'the listener serves GET /metrics and nothing else'],
    ['6. stratum', STRATUM, 'usernames and passwords'],
    ['9. encrypted key files', 'test/consensus/validator-config.test.ts', 'a sealed key opens with its password'],
    [
      '9. ownership by challenge and answer',
      'test/module/functions.test.ts',
      'ownership: either side asks and answers',
    ],
    [
      '10. text of senders: direction of writing and ends of lines',
      'test/attack/multisig-signers.test.ts',
      'is shown with a mark in its place',
    ],
    [
      '10. text of senders: no line of its own on a terminal',
      'test/wallet/command/foreign-text.test.ts',
      'on a terminal of 40 columns neither payload, operation nor message draws a line of its own',
    ],
    [
      '10. text of others in a page is no HTML',
      'test/pool/first-page.test.ts',
      'nothing in the figures ends the element they are in, or begins another',
    ],
  ]),
  ...rowsOf('Errors: HTTP', [
    ['409 of `POST /v1/mining/candidates`', LISTENER, 'a late block is answered with 409'],
    [
      'validator log: `cannot fund validator heartbeat`, `validator heartbeat exceeds configured fee cap`',
      'test/staking/heartbeats.long.test.ts',
      'the two messages of the specification',
    ],
  ]),
  ...rowsOf('Limits', [
    ['`send_many` recipients: 7', PAYMENTS, 'send_many pays seven in one transaction'],
    ['amount precision: 8 decimals', RPC, 'every error code of the specification, row by row'],
    ['Template transactions kept: 5 seconds', LISTENER, 'the same draw for five seconds'],
    ['Validator routes: 4', 'test/protocol/staking-formats.test.ts', 'an endpoint has at most four routes'],
    ['`listen_addrs`: 8', 'test/consensus/validator-config.test.ts', 'what does not fit together is refused'],
  ]),
  titled(
    'Limits',
    'Minimum self-bond: 100,000 coins',
    'test/wallet/staking/operator-rows.long.test.ts',
    'validator-register',
  ),
  titled(
    'Limits',
    'Commission: 0 to 1,000 basis points in steps of 10; 14 epochs of delay',
    'test/wallet/staking/operator-changes.long.test.ts',
    'validator-commission',
  ),
  titled('Limits', 'Unbonding: 10 days', STORY, LIFE),
  titled(
    'Limits',
    'Wallet daemon default port: 28703',
    'test/runtime/listen-address.test.ts',
    'the wallet daemon listens',
  ),
  ...rowsOf('Limits: ports and metrics', [
    [
      '`/metrics` of the pool, unless `--no-metrics`',
      'test/pool/no-metrics.test.ts',
      '200 unless --no-metrics, then 404',
    ],
    [
      'ports where no option names another: API 28701, mining 28702, bridge 28792 and 28771, miner 28793 and 28770',
      'test/runtime/listen-address.test.ts',
      'without options %s listens on this machine at the port of the specification',
    ],
    [
      'ports where an address has none, metrics of the node 28790 among them',
      'test/runtime/listen-address.test.ts',
      '%s takes every form of an address',
    ],
    [
      'every metric of the node by its name is in [conformance](conformance.md); those of peers without peers too',
      'test/node/network-figures.test.ts',
      'without peers every metric of peers is there and is 0',
    ],
    ['prefixes of the metrics', 'test/runtime/metrics.test.ts', 'every metric of a program begins with'],
    [
      'overlay on every interface, of both families',
      'test/runtime/listen-address.test.ts',
      'listens on every interface, of IPv4 and of IPv6',
    ],
    [
      'ports of the metrics listeners',
      'test/deploy.long.test.ts',
      'Prometheus scrapes the ports at which the programs serve metrics',
    ],
    ['miner statistics and metrics', 'test/miner/svc-miner.slow.test.ts', 'figures and metrics say so'],
  ]),
  ...rowsOf('Validator reachability', [
    [
      'messages of validators without a direct connection are forwarded via two neighbours',
      'test/consensus/forwarding.test.ts',
      'one without asks two members, other ones each time, and names whom it lacks',
    ],
    [
      'members without a direct connection get the votes and proposals of each other',
      'test/consensus/driver-faults.long.test.ts',
      'two members without a connection get each other’s votes and proposals through a neighbour',
    ],
    [
      'members with more than one hop between them make one chain',
      'test/consensus/driver-faults.long.test.ts',
      'members in a line, each with its neighbours alone, make one chain',
    ],
    [
      'every validator and forwarder checks signatures',
      'test/consensus/driver.long.test.ts',
      'a neighbour that brings an invalid signature is dropped',
    ],
  ]),
  ...rowsOf('Validator reachability', [
    [
      'the lower validator ID dials, the other dials back after a few seconds; one without a route dials every validator with one',
      'test/consensus/registered-routes.long.test.ts',
      'of two with routes the lower identifier dials and the other dials back later; one without dials all that have one',
    ],
    [
      'a validator whose committee has no routes follows its peers to the head',
      'test/consensus/followed-peers.long.test.ts',
      'with one peer and an overlay that brings nothing a validator follows to the head',
    ],
    [
      'without an open port: a slot at two relays, a record signed with the overlay key; a changed public IP needs no transaction',
      'test/consensus/relayed.long.test.ts',
      'two validators without a route reach each other through a member with one; it ends, and the other relay takes over; one comes back elsewhere',
    ],
  ]),
  ...rowsOf('Versioning', [
    ['1. `/v1/`, `api_version`', 'test/api/routes.test.ts', 'every answer fits the schema of its route'],
    ['2. envelope version', 'test/api/http.test.ts', 'a signed answer is checked by a few lines'],
    ['3. subprotocols of WebSockets are versioned', 'test/api/events.long.test.ts', 'the subprotocol must be named'],
    ['4. mining protocols, `SVC_POW_V1`', STRATUM, SUBMIT_VECTORS],
    [
      '5. a body of another chain, version or rule set',
      'test/module/functions.test.ts',
      'another chain, protocol version, rule set',
    ],
    ['6. `update_required` stops the node', 'test/network/sync.long.test.ts', 'says that an update is required'],
    [
      '6. `update_announced`',
      'test/network/sync.long.test.ts',
      'a peer of other rules that this node chose announces an update before it is dropped',
    ],
    ['7. `release.json`', 'test/module/functions.test.ts', 'release.json has the SHA-256 of every file'],
  ]),
];
