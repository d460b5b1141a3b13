/**
 * A node of a NetBed's chain as a process of its own, to be killed or measured: follows the peer it is told, and prints a line of figures again and again. Words: directory, multiaddr, time of its clock in milliseconds, outputs of
 * the treasury's key that the genesis funds, and how many cuts a pruned node keeps (with `--storage pruned` 1,440).
 */
import { AutoPruning } from '../../node/chain/auto-pruning.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { quietLog } from '../quiet-log.ts';
import { FAULT, type NodeFigures } from './child-node.ts';
import { fundsOf, NetBed } from './peers.ts';

const TELL_MILLIS = 50;

const [directory = '', bootstrap = '', now = '0', funds = '0', keeps] = process.argv.slice(2);
const bed = new NetBed(fundsOf(Number(funds)), directory);
bed.now = Number(now);
let pruning: AutoPruning | undefined;
const { node, view } = await bed.start(
  'node',
  { bootstrap: [bootstrap], follows: true },
  // As svcd does it.
  (opened) => {
    if (keeps === undefined) return {};
    pruning = new AutoPruning({ node: opened, log: quietLog, steady: steadyMillis, keeps: Number(keeps) });
    pruning.begin();
    return { served: (peer, from) => pruning?.served(peer, from) };
  },
  keeps === undefined ? 'full' : 'pruned',
);
// It cannot go on, and svcd ends too.
node.on('fault', () => process.exit(FAULT));
setInterval(() => {
  const { user, system } = process.threadCpuUsage();
  const figures: NodeFigures = {
    height: node.chain.head().height,
    bodiesFrom: node.chain.bodiesFrom(),
    transactions: node.mempool.count,
    synced: node.chain.sync().synced,
    cpuMicros: user + system,
    receivedBytes: view.figures().receivedBytes,
  };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}, TELL_MILLIS);
// Without its parent it has nothing to do.
process.stdin.resume().on('end', () => process.exit(0));
