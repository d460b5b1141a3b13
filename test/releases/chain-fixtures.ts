/** Files of a node: its store, a snapshot of its state, and the log of a validator. */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { certifyWith } from '../../node/chain/certificate.ts';
import { ConsensusLog } from '../../node/consensus/log/log-file.ts';
import type { FullNode } from '../../node/full-node.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { addressIndex } from '../../node/index/address-index.ts';
import { INDEX_NAME } from '../../node/index/index-keys.ts';
import { IndexReader } from '../../node/index/index-reader.ts';
import { createNode } from '../../node/node.ts';
import { createSnapshot } from '../../node/snapshot/create-snapshot.ts';
import { readSnapshot } from '../../node/snapshot/read-snapshot.ts';
import { FIRST_SNAPSHOT } from '../../node/snapshot/snapshot-head.ts';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import { decodeGenesis } from '../../protocol/ledger/genesis.ts';
import { LOG_OWNER, lockedMember } from '../consensus/locked-member.ts';
import { Bed, developmentKeys, quickHash, START_MILLIS, silentLog } from '../node/bed.ts';
import { type Fixture, plain } from './fixture.ts';

const [ALICE, BOB] = [developmentKey('alice').address, developmentKey('bob').address];
const CUTS = 8;

async function play(bed: Bed, cuts: number): Promise<void> {
  for (let i = 0; i < cuts; i++) {
    if (i < CUTS) {
      await bed.pay([bed.treasury(i)], [{ address: i % 2 === 0 ? ALICE : BOB, amount: 1_000_000n + BigInt(i) }]);
      bed.now += 6_000;
      await bed.mine(ALICE, 1_000, i % 16);
    }
    await bed.seal();
  }
}

const opened = (): Promise<Bed> => Bed.open({ dependencies: { indexers: [addressIndex] } });

async function factsOf(node: FullNode): Promise<unknown> {
  const { chain } = node;
  const index = new IndexReader(chain.reader(INDEX_NAME), () => chain.head().height);
  const cuts = Array.from({ length: chain.head().height }, (_, i) => chain.cut(i + 1));
  return plain({
    chain: chain.chainId,
    head: chain.head(),
    cuts: cuts.map((cut) => ({ id: cut?.cutId, blocks: cut?.blockIds })),
    supply: chain.supply(),
    epoch: chain.staking().epoch,
    alice: index.balance(ALICE).value,
    bob: index.balance(BOB).value,
    outputs: (await index.unspent(BOB, undefined, 100)).value,
  });
}

const chain: Fixture = {
  name: 'node-store',
  async write(folder) {
    const bed = await opened();
    await play(bed, CUTS + 2);
    await bed.node.close();
    cpSync(join(bed.directory, 'store'), join(folder, 'store'), { recursive: true });
    rmSync(bed.directory, { recursive: true });
  },
  async read(folder) {
    const storeDirectory = join(folder, 'store');
    const store = await LedgerStore.open(storeDirectory);
    const genesis = decodeGenesis(store.genesis() as Uint8Array);
    await store.close();
    const node = await createNode(
      { storeDirectory, genesis, cutMillis: 0 },
      {
        verifier: { prepare: async () => undefined, hash: async (_, header) => quickHash(header) },
        certify: certifyWith(developmentKeys(genesis.validators.length)),
        now: () => START_MILLIS + 3_600_000,
        random: () => 0,
        log: silentLog,
        indexers: [addressIndex],
      },
    );
    try {
      const facts = await factsOf(node);
      // It goes on from there.
      await node.seal();
      return { facts, next: node.chain.head().height };
    } finally {
      await node.close();
    }
  },
};

const snapshot: Fixture = {
  name: 'node-snapshot',
  async write(folder) {
    const bed = await opened();
    await play(bed, FIRST_SNAPSHOT);
    await bed.node.close();
    const store = await LedgerStore.open(join(bed.directory, 'store'));
    const frozen = store.frozen();
    await createSnapshot(frozen, join(folder, 'snapshot'));
    await frozen.close();
    await store.close();
    rmSync(bed.directory, { recursive: true });
  },
  async read(folder) {
    const outputs: unknown[] = [];
    const { head, pieces } = await readSnapshot(join(folder, 'snapshot'), undefined, {
      head: () => undefined,
      work: () => undefined,
      piece: ({ entries }) => void outputs.push(entries.length),
    });
    return plain({ cut: head.cut.cutId, height: head.state.height, pieces, outputs });
  },
};

const log: Fixture = {
  name: 'consensus-log',
  async write(folder) {
    const { log } = await ConsensusLog.open(join(folder, 'log'), LOG_OWNER);
    for (const record of lockedMember()) await log.append(record);
    await log.close();
  },
  async read(folder) {
    const { log, recovered } = await ConsensusLog.open(join(folder, 'log'), LOG_OWNER);
    await log.close();
    return plain(recovered);
  },
};

export const CHAIN_FIXTURES: readonly Fixture[] = [chain, snapshot, log];
