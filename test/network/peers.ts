/** Nodes of one chain in one process, each with its own store and the real network, over sockets of this machine. Cuts of the first are made by hand. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { certifyWith } from '../../node/chain/certificate.ts';
import { type DevelopmentGenesis, developmentGenesis, developmentKey } from '../../node/genesis/development.ts';
import {
  type NetworkDependencies,
  type NetworkSettings,
  openNetwork,
  type PeerView,
} from '../../node/network/open-network.ts';
import { type ConsensusNode, createNode } from '../../node/node.ts';
import type { StorageMode } from '../../node/store/storage-mode.ts';
import { toHex } from '../../protocol/bytes.ts';
import { genesisOutpoint } from '../../protocol/ledger/genesis.ts';
import type { Output } from '../../protocol/transactions/transaction.ts';
import { developmentKeys, KNOWN_SEED, quickHash, START_MILLIS, searchNonce } from '../node/bed.ts';
import { quietLog } from '../quiet-log.ts';
import { randomOf } from '../random.ts';
import { hostHere } from './host-here.ts';

const VALIDATORS = 2;
const ALICE = developmentKey('alice').address;
const TREASURY = developmentKey('treasury').address;

export type NetNode = {
  readonly node: ConsensusNode;
  view: PeerView;
  readonly directory: string;
  close(): Promise<void>;
};

export class NetBed {
  readonly directory: string;
  readonly running: NetNode[] = [];
  readonly #genesis: ReturnType<typeof developmentGenesis>;
  now = START_MILLIS;
  #mined = 0;

  /** In a folder of its own, unless one is named: other processes open the same chain in theirs. */
  constructor(genesis: Partial<DevelopmentGenesis> = {}, directory = mkdtempSync(join(tmpdir(), 'svc-net-'))) {
    this.directory = directory;
    this.#genesis = developmentGenesis({
      timestampMillis: START_MILLIS,
      seed: KNOWN_SEED,
      initialWork: 1n,
      minimumWork: 1n,
      validators: VALIDATORS,
      ...genesis,
    });
  }

  async openChain(name: string, makesCuts = false, storage: StorageMode = 'full'): Promise<ConsensusNode> {
    const storeDirectory = join(this.directory, name, 'store');
    return await createNode(
      // Many nodes share a machine: one thread for signatures each.
      { storeDirectory, genesis: this.#genesis, cutMillis: 0, makesCuts, storage, signatureThreads: 1 },
      {
        verifier: { prepare: async () => undefined, hash: async (_, header) => quickHash(header) },
        certify: certifyWith(developmentKeys(VALIDATORS)),
        now: () => this.now,
        random: randomOf(1),
        log: quietLog,
      },
    );
  }

  /** `plan.follows` decides whether cuts come from peers. The same name opens the same store again. */
  async start(
    name: string,
    plan: Partial<NetworkSettings>,
    alter: (node: ConsensusNode) => Partial<NetworkDependencies> = () => ({}),
    storage: StorageMode = 'full',
  ): Promise<NetNode> {
    const node = await this.openChain(name, false, storage);
    const directory = join(this.directory, name);
    const view = await openNetwork(
      { listen: ['/ip4/127.0.0.1/tcp/0'], announce: [], bootstrap: [], maxPeers: 50, follows: false, ...plan },
      {
        node,
        dataDir: directory,
        cutMillis: 100,
        release: '0.1.0',
        log: quietLog,
        now: () => this.now,
        openPeers: hostHere,
        ...alter(node),
      },
    );
    const started: NetNode = {
      node,
      view,
      directory,
      close: async () => {
        this.running.splice(this.running.indexOf(started), 1);
        await view.close();
        await node.close();
      },
    };
    this.running.push(started);
    return started;
  }

  /** Cuts with so many blocks each. */
  async seal({ node }: Pick<NetNode, 'node'>, cuts: number, blocks = 0): Promise<void> {
    for (let i = 0; i < cuts; i++) {
      for (let draw = 0; draw < blocks; draw++) await this.mine(node, draw);
      this.now += 2_500;
      await node.seal();
    }
  }

  async mine(node: ConsensusNode, draw = 0): Promise<Uint8Array> {
    const extranonce = Buffer.alloc(5);
    extranonce.writeUInt32LE(++this.#mined, 1);
    const template = node.template({ payout: ALICE, maxTransactions: 100, draw, extranonce });
    const outcome = await node.submitBlock(searchNonce(template.header, template.target), template.body);
    if (outcome.status === 'refused') throw new Error(outcome.error.message);
    return outcome.id;
  }

  async close(): Promise<void> {
    for (const started of [...this.running]) await started.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Until it holds. The test's time limit is the limit. */
export { until } from '../until.ts';

export const headOf = ({ node }: Pick<NetNode, 'node'>): string => {
  const { height, cutId, stateRoot } = node.chain.head();
  return `${height} ${toHex(cutId)} ${toHex(stateRoot)}`;
};

/** An output of the treasury's key in the genesis. */
export function treasuryOutput(
  { genesis, chainId }: Pick<ConsensusNode['chain'], 'genesis' | 'chainId'>,
  index: number,
) {
  const place = genesis.outputs.length - 64 + index;
  const source = 'genesis' as const;
  return { outpoint: genesisOutpoint(chainId, place), ...(genesis.outputs[place] as Output), source };
}

/** The same node with some reads of its chain replaced: what a peer that lies would serve. */
export const lying = (node: ConsensusNode, lies: Partial<ConsensusNode['chain']>): ConsensusNode => {
  const over = (target: object, instead: object) =>
    new Proxy(target, {
      get: (of, key) => {
        const value: unknown = Reflect.get(key in instead ? instead : of, key);
        return typeof value === 'function' ? value.bind(key in instead ? instead : of) : value;
      },
    });
  return over(node, { chain: over(node.chain, lies) }) as ConsensusNode;
};

/** A genesis with so many outputs of the treasury's key beside its own 64, ten coins each. */
export const fundsOf = (count: number): Partial<DevelopmentGenesis> => ({
  fund: Array.from({ length: count }, () => ({ address: TREASURY, amount: 1_000_000_000n })),
});
