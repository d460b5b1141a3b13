/**
 * Commands of the documents that the flows of test/documented do not run, each with the reason and with what stands in for it. Lines of docs/validator.md are run by
 * test/stack/validator-page.deep.slow.test.ts, which fails where one is left out.
 */
export type NotRun = { readonly what: RegExp; readonly why: string; readonly instead?: string };

const SYSTEM = 'changes the users, folders and services of the machine';
const UNITS = 'test/units.slow.test.ts';

export const NOT_RUN: readonly NotRun[] = [
  { what: /^(?:systemctl|install|runuser) |useradd /, why: SYSTEM, instead: UNITS },
  { what: /^(?:git clone|cd|npm ci|npm run build)\b/, why: 'the tests run in a checkout that this was done for' },
  {
    what: /^(?:npm install -g|npx --package|sha256sum --check|svc-miner --version)/,
    why: 'needs a release',
    instead: 'test/scripts/npm-package.slow.test.ts',
  },
  { what: /^apt install /, why: SYSTEM, instead: 'test/scripts/debian-packages.slow.test.ts' },
  {
    what: /^svc-(?:proxy|miner) -o stratum2?\+t(?:cp|ls):\/\/(?:pool|proxy|a)\.example/,
    why: 'needs a pool of its own',
    instead: 'test/proxy/processes.slow.test.ts',
  },
  {
    what: /^(?:svcd (?:launch|join)|svc-wallet faucet) |^svc-wallet init --network testnet|\/var\/lib\/svc\/harbour|^svcd run --config node\.json$/,
    why: 'needs five machines',
    instead: 'test/stack/launch.deep.slow.test.ts',
  },
  { what: /^curl .*\/operator\/pause$/, why: 'stops the payouts of a pool', instead: 'test/pool/api.slow.test.ts' },
  { what: /^npm start$/, why: 'has a test of its own', instead: 'test/stack/start.slow.test.ts' },
];

/** Commands in the text. */
export const NAMED_ONLY: readonly NotRun[] = [
  {
    what: /^svc-pool verify-evidence/,
    why: 'needs a pool that cheats',
    instead: 'test/attack/forged-evidence.long.test.ts',
  },
  {
    what: /^svcd --(?:man|completions)\b/,
    why: 'writes for a shell',
    instead: 'test/runtime/described-program.long.test.ts',
  },
  { what: /^svc-wallet prove-address/, why: 'needs a request', instead: 'test/wallet/end-to-end.long.test.ts' },
  { what: /^svc\S* doctor/, why: 'its findings depend on the machine', instead: 'test/runtime/doctor.long.test.ts' },
  { what: /^svc-proxy --help/, why: 'names an option', instead: 'test/proxy/processes.slow.test.ts' },
  { what: /^svc-miner self-test/, why: 'takes minutes', instead: 'test/miner/selftest.slow.test.ts' },
  { what: /--benchmark 20 --retune/, why: 'measures a graphics card', instead: 'test/miner/benchmark.test.ts' },
  { what: /--anchors best/, why: 'names an option', instead: 'test/bridge/best-anchors.long.test.ts' },
  { what: /^svc-miner --payout-threshold/, why: 'names an option', instead: 'test/miner/payment-watch.test.ts' },
  { what: /^svcd run --(?:initial-work|pow-mode light)/, why: 'names an option: most nodes of the tests have it' },
];
