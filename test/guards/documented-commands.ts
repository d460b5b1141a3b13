/** Which shell lines of the documents test/stack/documented-commands.slow.test.ts runs as they are written, and why the others are only parsed. */

/** In this order, from one fresh folder. */
export const EXECUTED: readonly string[] = [
  'svc-wallet init --generate-password',
  'svc-wallet new-address',
  'svc-wallet new-address --label "customer 17"',
  'svcd development-network --out .data/try --validators 1 --interval-cuts 24 --initial-work 256 --fund ADDRESS=1000000',
  'svcd run --data-dir .data/node',
  'svc-wallet balance',
  'svcd prune --data-dir .data/node --keep-cuts 34560',
];

const ROOT_NEEDED = 'needs root, and systemd or users of its own; test/units.slow.test.ts follows that page';
const SYSTEM_FOLDER = 'reads or writes a folder of the system';
const CHANGES_CHECKOUT = 'changes the checkout that the tests run in';
const OTHER_MACHINE = 'names another machine, a server or a certificate that the test does not have';
const OWN_TEST = 'as a whole in a test of its own: ';

export const NOT_EXECUTED: readonly (readonly [RegExp, string])[] = [
  [/^(?:systemctl|install|runuser|for name in svc|tar) /, ROOT_NEEDED],
  [/^(?:git clone|cd|npm ci|npm run build)/, CHANGES_CHECKOUT],
  [/^npm test$/, 'is this suite'],
  [/^npm start$/, `${OWN_TEST}test/stack/start.slow.test.ts`],
  [/ \/(?:var|etc)\//, SYSTEM_FOLDER],
  [/--network (?:mainnet|testnet)/, 'a network with validators of others'],
  [/pool\.example|POOL-MACHINE|--tls-cert|--redis/, OTHER_MACHINE],
  [
    /^svc-pool (?:run|audit)/,
    `${OWN_TEST}test/pool/audit-command.slow.test.ts, test/pool/silent-mistakes.slow.test.ts`,
  ],
  [/^svc-(?:bridge|miner)/, `${OWN_TEST}test/miner/svc-miner.slow.test.ts, test/stack/whole-path.slow.test.ts`],
  [
    /^svcd (?:run .*--(?:genesis|bootstrap|write-snapshots|overlay-listen)|snapshot|genesis)/,
    `${OWN_TEST}test/snapshot, test/network`,
  ],
  [/^svcd run .*--cut-millis/, 'the node of the first line with other settings'],
  [
    /^svc-wallet (?:validator|reward-address|stake|unstake|withdraw|positions)/,
    `${OWN_TEST}test/stack/validators.slow.test.ts`,
  ],
  [/^svc-wallet (?:daemon|send)/, `${OWN_TEST}test/stack/whole-path.slow.test.ts`],
  [/^svc-wallet multisig/, `${OWN_TEST}test/wallet/multisig.slow.test.ts`],
  [/^svc-wallet chat/, `${OWN_TEST}test/wallet/messenger/conversation.slow.test.ts`],
];
