/** A pruned node as a process that begins with a snapshot of a peer, as `svcd run --storage pruned --trust HEIGHT:CUT_ID` does it. */
import { join } from 'node:path';
import { fetchSnapshot } from '../../node/network/snapshots/fetch-snapshot.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { installSnapshot } from '../../node/snapshot/install-snapshot.ts';
import { SnapshotShelf } from '../../node/snapshot/snapshot-shelf.ts';
import { SnapshotWriter } from '../../node/snapshot/snapshot-writer.ts';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { quietLog } from '../quiet-log.ts';
import { NodeProcess } from './child-node.ts';
import type { PayingChain } from './paying-chain.ts';
import type { NetNode } from './peers.ts';

/** Cuts after the snapshot, of which one is trusted. */
const LATER = 20;

const heightOf = ({ node }: NetNode): number => node.chain.head().height;

export class PrunedJoiner {
  readonly #paying: PayingChain;
  readonly #folder: string;
  shelf!: SnapshotShelf;
  source!: NetNode;

  constructor(paying: PayingChain) {
    this.#paying = paying;
    this.#folder = join(paying.bed.directory, 'snapshots');
  }

  async start(): Promise<NetNode> {
    this.source = await this.#paying.start((node: ConsensusNode) => {
      const cutIdOf = (height: number) => node.chain.cut(height)?.cutId;
      this.shelf = new SnapshotShelf({ directory: this.#folder, cutIdOf, steady: steadyMillis, log: quietLog });
      return { snapshots: this.shelf };
    });
    return this.source;
  }

  /** Its peer has a snapshot of the next cut that there can be one of. */
  async offer(): Promise<void> {
    const { node } = this.source;
    const writer = new SnapshotWriter({ directory: this.#folder, everyCuts: 96, node, log: quietLog });
    do await this.#paying.seal(this.source);
    while ((heightOf(this.source) + 1) % 96 !== 0 || heightOf(this.source) < 191);
    await writer.idle();
    await writer.stop();
    await this.shelf.look();
    for (let i = 0; i < LATER; i++) await this.#paying.seal(this.source);
  }

  /** Fetches it into the data directory of a process that is not started yet. `keeps`: cuts whose bodies it keeps. */
  async join(directory: string, keeps: number): Promise<{ readonly joiner: NodeProcess; readonly began: number }> {
    const { bed } = this.#paying;
    const { chain } = this.source.node;
    const { height, cutId } = chain.head();
    const bootstrap = [this.source.view.addresses[0] as string];
    const dataDir = join(directory, 'node');
    const peers = { listen: [], announce: [], bootstrap, maxPeers: 8 };
    const found = await fetchSnapshot(
      { dataDir, peers, trust: { height, cutId }, genesis: chain.genesis, release: '0.1.0' },
      { log: quietLog, now: () => bed.now, steady: steadyMillis, signal: new AbortController().signal },
    );
    const storeDirectory = join(dataDir, 'store');
    const { genesis } = chain;
    const of = { network: 'development', genesis, nowMillis: bed.now } as const;
    await installSnapshot({ ...of, file: found.file, trust: found.cutId, storeDirectory });
    const store = await LedgerStore.open(storeDirectory);
    const began = store.beganAt();
    await store.close();
    const words = [directory, bootstrap[0] as string, String(bed.now), '0', String(keeps)];
    return { joiner: new NodeProcess(words), began };
  }

  async close(): Promise<void> {
    await this.shelf.close();
    await this.#paying.bed.close();
  }
}
