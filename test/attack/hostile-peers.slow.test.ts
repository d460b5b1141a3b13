/**
 * A node among peers most of which are hostile: thousands of streams, lengths of a gibibyte, answers that are never read, junk, identifiers of nothing, cuts played again, heights that nobody has, and
 * many from one address. It stays in step with the one honest peer, and inside its memory.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { concat, toHex } from '../../protocol/bytes.ts';
import { count } from '../level.ts';
import { headOf, NetBed, type NetNode, until } from '../network/peers.ts';

const ATTACKER = fileURLToPath(new URL('./hostile-peers-process.ts', import.meta.url));
const CUTS = count({ full: 15, deep: 600 });
/** What the node may have more than before, in bytes: buffers of 50 connections, and what the collector leaves for later. */
const MORE_MEMORY = 160 * 1024 * 1024;

let bed: NetBed;
const children: ChildProcess[] = [];
beforeEach(() => {
  bed = new NetBed();
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await bed.close();
});

type Heard = { kind?: string; joined?: boolean; opened?: number; error?: string };

function attack(victim: NetNode, kinds: readonly string[]): { readonly heard: Heard[]; readonly child: ChildProcess } {
  const { chain } = victim.node;
  const words = [victim.view.addresses[0] as string, toHex(chain.chainId), String(chain.head().height), ...kinds];
  const child = spawn(process.execPath, [ATTACKER, ...words], { stdio: ['pipe', 'pipe', 'inherit'] });
  children.push(child);
  const heard: Heard[] = [];
  let rest = '';
  child.stdout.on('data', (part: Buffer) => {
    const lines = (rest + part).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) heard.push(JSON.parse(line) as Heard);
  });
  return { heard, child };
}

test('a node among hostile peers stays in step and inside its memory', async () => {
  const source = await bed.start('source', {});
  await bed.seal(source, 20, 1);
  const victim = await bed.start('victim', { bootstrap: [source.view.addresses[0] as string], follows: true });
  await until(() => victim.node.chain.sync().synced && victim.node.chain.head().height === 20);
  const before = process.memoryUsage().rss;
  const kinds = ['streams', 'length', 'mute', 'junk', 'ids', 'replay', 'height'];
  const { heard, child } = attack(victim, kinds);
  for (let height = 1; height <= 20; height++) {
    const cut = source.node.chain.cut(height);
    if (cut !== undefined) child.stdin?.write(`${toHex(concat(cut.headerBytes, ...cut.blockIds))}\n`);
  }
  await until(() => kinds.every((kind) => heard.some((line) => line.kind === kind && line.joined === true)));
  let most = 0;
  for (let i = 1; i <= CUTS; i++) {
    await bed.seal(source, 1, 1);
    await until(() => victim.node.chain.head().height === 20 + i);
    most = Math.max(most, process.memoryUsage().rss);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  expect(headOf(victim)).toBe(headOf(source));
  expect(victim.node.chain.sync()).toMatchObject({ synced: true, peers: { behindBy: 0 } });
  expect(most - before).toBeLessThan(MORE_MEMORY);
  // Peers that break rules again and again are barred; the honest peer never is.
  await until(() => victim.view.figures().barred > 0);
  expect(victim.view.figures().peers.some(({ direction }) => direction === 'outbound')).toBe(true);
  const opened = () => heard.flatMap((line) => line.opened ?? []);
  await until(() => opened().length > 0);
  // As many questions as one peer may ask at once.
  expect(Math.max(...opened())).toBeLessThanOrEqual(4);
});

test('of fifty peers at one address three find a place', async () => {
  const victim = await bed.start('victim', {}, () => ({ countsNear: true }));
  await bed.seal(victim, 2);
  const { heard } = attack(
    victim,
    Array.from({ length: 50 }, () => 'height'),
  );
  await until(() => heard.filter(({ error }) => error !== undefined).length >= 100);
  // Figures come once a second, and one that is being refused counts for a moment.
  const places = () => [victim.view.figures().connections, victim.view.figures().peers.length];
  await expect
    .poll(places)
    .toSatisfy(([connections = 0, peers = 0]) => connections > 0 && connections <= 3 && peers <= 3);
});
