/** A mesh of which some are hostile (junk, answers just in time, false heights, identifiers of nothing, answers that are not read, thousands of streams): memory, delay and bans of the others, against the same mesh before they came. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { concat, toHex } from '../../../protocol/bytes.ts';
import { headOf, NetBed, type NetNode, until } from '../../network/peers.ts';
import { type Bench, percentile } from '../harness.ts';

const ATTACKERS = fileURLToPath(new URL('../../attack/hostile-peers-process.ts', import.meta.url));
const KINDS = ['junk', 'slow', 'height', 'ids', 'mute', 'streams', 'replay', 'length'] as const;
const MEBIBYTE = 1024 * 1024;
const CUTS = 20;

export type HostileMesh = {
  readonly honest: number;
  readonly hostile: number;
  readonly rounds: number;
  readonly maxSeconds: number;
};

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis));

/** Milliseconds until each of them has it. */
export async function arrivals(nodes: readonly NetNode[], has: (node: NetNode) => boolean): Promise<number[]> {
  const began = performance.now();
  return await Promise.all(
    nodes.map(async (node) => {
      while (!has(node)) await pause(1);
      return performance.now() - began;
    }),
  );
}

/** Each is configured with two that exist; they learn of the others. */
export async function meshOf(bed: NetBed, source: NetNode, count: number): Promise<NetNode[]> {
  const nodes = [source];
  for (let i = 1; i < count; i++) {
    const known = [nodes[i - 1], nodes[Math.floor((i - 1) / 2)]] as NetNode[];
    const bootstrap = known.map(({ view }) => view.addresses[0] as string);
    nodes.push(await bed.start(`node-${i}`, { bootstrap, follows: true }));
  }
  const { height } = source.node.chain.head();
  await until(() => nodes.every(({ node }) => node.chain.sync().synced && node.chain.head().height === height));
  return nodes;
}

class Delays {
  readonly blocks: number[] = [];
  readonly cuts: number[] = [];
  mostBytes = 0;

  async measure(bed: NetBed, nodes: readonly NetNode[], rounds: number, maxSeconds: number): Promise<number> {
    const [source] = nodes as [NetNode];
    const began = performance.now();
    let done = 0;
    for (; done < rounds && performance.now() - began < maxSeconds * 1_000; done++) {
      const id = await bed.mine((nodes[(done * 7) % nodes.length] as NetNode).node);
      this.blocks.push(...(await arrivals(nodes, ({ node }) => node.chain.block(id) !== undefined)));
      await bed.seal(source, 1);
      const { height } = source.node.chain.head();
      this.cuts.push(...(await arrivals(nodes, ({ node }) => node.chain.head().height >= height)));
      this.mostBytes = Math.max(this.mostBytes, process.memoryUsage().rss);
      await pause(250);
    }
    return done;
  }

  tell(b: Bench, name: string): void {
    for (const [what, values] of Object.entries({ block: this.blocks, cut: this.cuts }))
      for (const [part, share] of [
        ['p50', 0.5],
        ['p99', 0.99],
      ] as const)
        b.figure(`${name}-${what}-${part}`, percentile(values, share), 'ms');
  }
}

export async function measureHostile(b: Bench, { honest, hostile, rounds, maxSeconds }: HostileMesh): Promise<void> {
  const bed = new NetBed();
  let child: ChildProcess | undefined;
  try {
    const source = await bed.start('source', {});
    await bed.seal(source, CUTS, 1);
    const nodes = await meshOf(bed, source, honest);
    await pause(3_000);
    const before = new Delays();
    await before.measure(bed, nodes, Math.min(20, rounds), maxSeconds / 2);
    const kinds = Array.from({ length: hostile }, (_, i) => KINDS[i % KINDS.length] as string);
    const addresses = nodes.map(({ view }) => view.addresses[0]).join(',');
    const { chain } = source.node;
    const words = [addresses, toHex(chain.chainId), String(chain.head().height), ...kinds];
    child = spawn(process.execPath, [ATTACKERS, ...words], { stdio: ['pipe', 'pipe', 'inherit'] });
    for (let height = 1; height <= CUTS; height++) {
      const cut = chain.cut(height);
      if (cut !== undefined) child.stdin?.write(`${toHex(concat(cut.headerBytes, ...cut.blockIds))}\n`);
    }
    const joined = new Set<string>();
    createInterface(child.stdout as NodeJS.ReadableStream).on('line', (line) => {
      const { kind, joined: isIn } = JSON.parse(line) as { kind?: string; joined?: boolean };
      if (kind !== undefined && isIn === true) joined.add(kind);
    });
    await until(() => kinds.every((kind) => joined.has(kind)));
    const during = new Delays();
    const done = await during.measure(bed, nodes, rounds, maxSeconds);
    before.tell(b, 'quiet');
    during.tell(b, 'hostile');
    b.figure('hostile-memory', (during.mostBytes - before.mostBytes) / MEBIBYTE / honest, 'MiB/node');
    const barred = nodes.map(({ view }) => view.figures().barred);
    b.figure('hostile-bans', barred.reduce((sum, count) => sum + count, 0) / honest, 'of a node');
    await until(() => nodes.every((node) => headOf(node) === headOf(source)));
    const inStep = nodes.filter(({ node }) => node.chain.sync().synced).length;
    b.note(`${honest} nodes in one process and ${hostile} hostile peers of each (${kinds.join(', ')}) in another`);
    b.note(`${done} blocks and cuts at every node; ${inStep} of ${honest} nodes synced with the same state at the end`);
  } finally {
    child?.kill('SIGKILL');
    await bed.close();
  }
}
