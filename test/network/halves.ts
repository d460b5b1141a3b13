/**
 * Validators as processes and two nodes that follow, in two halves with nothing between them but forwarders of the test: overlay links between validators, and one link between the followers. Neither half can make a cut alone. Each
 * follower knows a validator of its half and the other follower, by addresses that nodes do not pass on.
 */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { developmentFiles, writeDevelopmentNetwork } from '../../node/genesis/development-network.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { findBlock } from './find-block.ts';
import { Forwarder } from './forwarder.ts';
import { until } from './peers.ts';
import { rootsOf } from './stored-chain.ts';
import { Svcd, untold } from './svcd.ts';

type HalvesPlan = { readonly validators: 2 | 4; readonly cutMillis: number };
type Block = { readonly registered_cut: { readonly height: number } | null };

export type Split = {
  /** The last cut before it. */
  readonly height: number;
  /** From healing to the next cut at every node. */
  readonly firstCutMillis: number;
  /** To the cuts with the blocks of both halves at every node. */
  readonly bothBlocksMillis: number;
  /** Until the followers have both peers again. */
  readonly wholeMillis: number;
};

export class Halves {
  readonly all: readonly Svcd[];
  readonly #followers: readonly [Svcd, Svcd];
  readonly #miningPorts: readonly [number, number];
  readonly #links: readonly Forwarder[];
  readonly #stores: readonly string[];
  #found = 0;

  private constructor(
    all: readonly Svcd[],
    miningPorts: readonly [number, number],
    links: readonly Forwarder[],
    stores: readonly string[],
  ) {
    this.all = all;
    this.#followers = all.slice(-2) as [Svcd, Svcd];
    this.#miningPorts = miningPorts;
    this.#links = links;
    this.#stores = stores;
  }

  static async prepare(directory: string, { validators, cutMillis }: HalvesPlan): Promise<Halves> {
    const network = join(directory, 'network');
    // Every hash is a block.
    const work = { initialWork: 1n, minimumWork: 1n };
    await writeDevelopmentNetwork(network, { timestampMillis: steadyMillis(), validators, ...work });
    const files = developmentFiles(network);
    const take = await portsOf(4 * (validators + 2) + validators ** 2);
    const members = Array.from({ length: validators }, (_, member) => member);
    const overlays = members.map(take);
    const [leftPort, rightPort] = [take(), take()];
    const between = { overlay: [] as Forwarder[], port: take(), leftFollower: take() };
    const isLeft = (member: number) => member < validators / 2;
    const common = (name: string) => [
      '--data-dir',
      join(directory, name),
      '--genesis',
      files.genesis,
      '--cut-millis',
      String(cutMillis),
    ];
    const listens = (port: number) => ['--p2p-listen', `127.0.0.1:${port}`, '--p2p-announce', untold(port)];
    const all: Svcd[] = [];
    for (const member of members) {
      const neighbours: string[] = [];
      for (const other of members.slice(member + 1)) {
        const port = isLeft(member) === isLeft(other) ? (overlays[other] as number) : take();
        if (port !== overlays[other]) between.overlay.push(await Forwarder.open(port, overlays[other] as number));
        neighbours.push('--neighbour', `127.0.0.1:${port}`);
      }
      const key = ['--consensus-key-file', files.key(member), '--consensus-password-file', files.password];
      const overlay = ['--overlay-listen', `127.0.0.1:${overlays[member]}`, ...neighbours];
      const peers = member === 0 ? listens(leftPort) : member === validators / 2 ? listens(rightPort) : [];
      const ports = { api: take(), mining: take() };
      all.push(new Svcd(ports, [...common(`validator-${member}`), ...key, ...overlay, ...peers]));
    }
    const mining = [take(), take()] as const;
    const left = [...listens(between.leftFollower), '--bootstrap', untold(leftPort)];
    const right = ['--bootstrap', untold(rightPort), '--bootstrap', untold(between.port)];
    all.push(new Svcd({ api: take(), mining: mining[0] }, [...common('left'), ...left]));
    all.push(new Svcd({ api: take(), mining: mining[1] }, [...common('right'), ...right]));
    const links = [...between.overlay, await Forwarder.open(between.port, between.leftFollower)];
    const names = [...members.map((member) => `validator-${member}`), 'left', 'right'];
    return new Halves(
      all,
      mining,
      links,
      names.map((name) => join(directory, name, 'store')),
    );
  }

  /** Until the chain goes on and both followers have their two peers. */
  async start(): Promise<void> {
    for (const svcd of this.all) svcd.start();
    await until(async () => (await this.#lowest()) >= 2);
    await this.#joined();
  }

  async #joined(): Promise<void> {
    await until(async () => {
      const found = await Promise.all(this.#followers.map((follower) => follower.sync()));
      return found.every((sync) => sync?.synced === true && sync.peers === 2);
    });
  }

  async #lowest(): Promise<number> {
    return Math.min(...(await Promise.all(this.all.map((svcd) => svcd.height()))));
  }

  async #highest(): Promise<number> {
    return Math.max(...(await Promise.all(this.all.map((svcd) => svcd.height()))));
  }

  /** Parted for so long; a block is found in each half meanwhile, and both must be in the chain in the end. */
  async split(millis: number): Promise<Split> {
    for (const link of this.#links) link.part('silent');
    const ends = performance.now() + millis;
    const before = await this.#highest();
    const blocks = [await this.#find(0), await this.#find(1)] as const;
    await sleep(Math.max(0, ends - performance.now()));
    const height = await this.#highest();
    // What was on its way may have become final.
    if (height > before + 1) throw new Error(`halves without a quorum made cuts ${before + 1} to ${height}`);
    for (const svcd of this.all)
      for (const id of blocks)
        if ((await svcd.get<Block>(`/v1/blocks/${id}`))?.registered_cut)
          throw new Error('a half without a quorum registered a block');
    const healed = performance.now();
    for (const link of this.#links) link.heal();
    await until(async () => (await this.#lowest()) > height);
    const firstCutMillis = performance.now() - healed;
    for (const svcd of this.all)
      for (const id of blocks)
        await until(async () => Boolean((await svcd.get<Block>(`/v1/blocks/${id}`))?.registered_cut));
    const bothBlocksMillis = performance.now() - healed;
    await this.#joined();
    return { height, firstCutMillis, bothBlocksMillis, wholeMillis: performance.now() - healed };
  }

  #find(side: 0 | 1): Promise<string> {
    return findBlock(this.#miningPorts[side], ++this.#found);
  }

  /** Ends all, and returns the cuts that all have; throws where two nodes have different ones. */
  async compare(): Promise<number> {
    await Promise.all(this.all.map((svcd) => svcd.end('SIGTERM')));
    const chains = await Promise.all(this.#stores.map(rootsOf));
    const lowest = Math.min(...chains.map((chain) => chain.length));
    const [first, ...others] = chains.map((chain) => chain.slice(0, lowest).join('\n'));
    if (others.some((other) => other !== first)) throw new Error('the halves have different cuts');
    return lowest - 1;
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((svcd) => svcd.end('SIGKILL')));
    await Promise.all(this.#links.map((link) => link.close()));
  }
}

async function portsOf(count: number): Promise<() => number> {
  const ports = await freePorts(count);
  return () => ports.pop() as number;
}
