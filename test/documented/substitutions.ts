/**
 * All that a line of the documents is changed in before a test runs it: host names of examples, ports, pace, and how much of the machine a
 * program takes. What stands in capitals is filled in by the flow.
 */

/** Milliseconds from cut to cut, where a page has its own pace or the usual one of 2.5 seconds. */
const CUT_MILLIS = 250;
const HERE = '127.0.0.1';

const REPLACED: readonly (readonly [RegExp, string])[] = [
  [/\b(?:POOL-MACHINE|YOUR-NODE|pool\.example)\b/g, HERE],
  [/(--cut-millis) \d+/g, `$1 ${CUT_MILLIS}`],
  [/(--metrics-bind) 127\.0\.0\.1(?!:)/g, `$1 ${HERE}:28790`],
];

const NODE_PORTS = [`--api-bind ${HERE}:28701`, `--mining-bind ${HERE}:28702`];
const SERVER_THREADS = ['--threads 0', '--verify-threads 1', '--pow-mode light'];
const SMALL_NODE = ['--pow-mode light', '--signature-threads 1'];
/** A chain follows its miners to four blocks a cut, and each block costs every program something. */
const FEW_BLOCKS = ['--initial-work 20000', '--minimum-work 20000'];

/** Options that are added where the line does not have them: the usual ports may be another program's. The first rule that fits counts. */
const ADDED: readonly (readonly [RegExp, readonly string[]])[] = [
  [/--help/, []],
  [/^svcd run .*--config/, [...NODE_PORTS, '--signature-threads 1']],
  [/^svcd run .*--network testnet/, [...NODE_PORTS, ...SMALL_NODE, '--p2p off']],
  [/^svcd run .*--fund/, [...NODE_PORTS, ...SMALL_NODE, ...FEW_BLOCKS]],
  [/^svcd run/, [...NODE_PORTS, ...SMALL_NODE, `--cut-millis ${CUT_MILLIS}`]],
  [
    /^svc-bridge/,
    [
      `--listen ${HERE}:28710`,
      `--listen-ws ${HERE}:28711`,
      `--stats-bind ${HERE}:28771`,
      '--metrics-bind off',
      ...SERVER_THREADS,
    ],
  ],
  [
    /^svc-pool run/,
    [
      `--pplns-listen ${HERE}:28720`,
      `--pplns-listen-ws ${HERE}:28721`,
      `--solo-listen ${HERE}:28730`,
      `--solo-listen-ws ${HERE}:28731`,
      `--web-bind ${HERE}:28740`,
      ...SERVER_THREADS,
    ],
  ],
  [/^svc-pool repair-payouts/, [`--node-api http://${HERE}:28701`]],
  [/^svc-miner (?:self-test|--list-devices|--benchmark)/, []],
  [/^svc-miner/, [`--api-bind ${HERE}:28770`, '--metrics-bind off', '--cpu-threads 1', '--throttle 10', '--no-gpu']],
  [/^svc-wallet daemon/, [`--service http://${HERE}:28701`, `--listen ${HERE}:28703`]],
  [/^svc-wallet (?:init|restore|multisig combine|validator-[a-z-]*(?:export|registration))/, []],
  [/^svc-wallet/, [`--service http://${HERE}:28701`, `--rpc ${HERE}:28703`]],
];

/** A line of a page as it can be run here. */
export function runnable(line: string, portFor: (usual: string) => number): string {
  const replaced = REPLACED.reduce((text, [what, by]) => text.replace(what, by), line);
  const named = replaced.replace(/^bin\//, '');
  const [, added = []] = ADDED.find(([what]) => what.test(named)) ?? [];
  const lacking = added.filter((option) => !named.includes(`${option.split(' ')[0]} `));
  return [replaced, ...lacking].join(' ').replace(/\b28[678]\d\d\b|\b2890\d\b/g, (usual) => String(portFor(usual)));
}
