/** A validator that hears nothing of its neighbours takes cuts from peers, whatever its overlay does, and takes part again by itself. Real ledgers, stores, logs, signatures and peers; an overlay in memory. */
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { decodeMessage } from '../../node/consensus/driver/messages.ts';
import type { Message } from '../../node/consensus/engine/effects.ts';
import { isListening } from '../../node/consensus/engine/listening.ts';
import { MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { openNetwork, type PeerView } from '../../node/network/open-network.ts';
import { type Bytes, concat, toHex } from '../../protocol/bytes.ts';
import { decodeProposedCut } from '../../protocol/consensus/proposal.ts';
import type { Certificate } from '../../protocol/ledger/cut.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { hostHere } from '../network/host-here.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';
import { CUT_MILLIS, type Driven, DrivenNetwork, MEMBERS, mineOn } from './driven.ts';

const AWAY = 'm3';
let network: DrivenNetwork;
let views: PeerView[];
/** By height, round and kind: what the one that was away voted for. */
let voted: Map<string, Set<string>>;
let isApart: boolean;

beforeEach(() => {
  // In a short epoch one that is away loses its seat.
  network = new DrivenNetwork(1_440);
  views = [];
  voted = new Map();
  isApart = false;
  network.network.carries = (from, to, bytes) => {
    if (isApart && (from === AWAY || to === AWAY)) return false;
    if (from === AWAY && bytes[0] === MESSAGE_TYPES.vote) note(bytes);
    return true;
  };
});
afterEach(async () => {
  for (const view of views) await view.close();
  await network.close();
});

function note(bytes: Bytes): void {
  const { vote } = decodeMessage(bytes) as Message & { type: 'vote' };
  const self = network.running.get(AWAY)?.driver.state.self;
  if (vote.member !== self) return;
  const key = `${vote.height}/${vote.round}/${vote.kind}`;
  voted.set(key, (voted.get(key) ?? new Set()).add(vote.cut));
}

const heightOf = (name: string): number => network.running.get(name)?.node.chain.head().height ?? -1;
const lastVote = (): number => Math.max(-1, ...[...voted.keys()].map((key) => Number(key.split('/')[0])));

async function meet(name: string, { node, driver }: Driven, bootstrap: readonly string[]): Promise<PeerView> {
  const view = await openNetwork(
    { listen: ['/ip4/127.0.0.1/tcp/0'], announce: [], bootstrap, maxPeers: 50, follows: true },
    {
      node,
      dataDir: join(network.directory, name),
      cutMillis: CUT_MILLIS,
      release: '0.1.0',
      log: quietLog,
      now: (): number => steadyMillis(),
      openPeers: hostHere,
      overlay: { adopt: (cut, certificate) => driver.adopt(cut, certificate), reported: () => driver.reported() },
    },
  );
  views.push(view);
  return view;
}

test('with one peer and an overlay that brings nothing a validator follows to the head, with blocks, and signs again when it is heard', async () => {
  for (let member = 0; member < MEMBERS - 1; member++) await network.start(`m${member}`, member);
  const first = network.running.get('m0') as Driven;
  const { addresses } = await meet('m0', first, []);
  const mine = () => mineOn(first.node, developmentKey('alice').address);
  await mine();
  await until(() => heightOf('m0') >= 30);
  isApart = true;
  const away = await network.start(AWAY, MEMBERS - 1);
  const { chain } = away.node;
  await meet(AWAY, away, [addresses[0] as string]);
  expect(chain.sync().synced).toBe(false);
  await until(() => heightOf(AWAY) >= 30);
  await mine();
  const there = heightOf('m0');
  await until(() => heightOf(AWAY) >= there + 6 && chain.sync().synced);
  expect(chain.sync().peers?.bestPeerHeight).toBeGreaterThanOrEqual(there);
  expect([...voted.keys()]).toEqual([]);
  isApart = false;
  await until(() => !isListening(away.driver.state) && lastVote() > there);
  const both = Math.min(heightOf('m0'), heightOf(AWAY));
  expect(toHex(chain.cut(both)?.cutId as Bytes)).toBe(toHex(first.node.chain.cut(both)?.cutId as Bytes));
  expect([...voted.values()].filter((cuts) => cuts.size > 1)).toEqual([]);
});

test('a validator that restarts is told by members with more than a third of the stake how far it is behind, and by no fewer', async () => {
  for (let member = 0; member < MEMBERS; member++) await network.start(`m${member}`, member);
  await until(() => heightOf(AWAY) >= 3);
  await network.stop(AWAY);
  const left = heightOf('m0');
  await until(() => heightOf('m0') >= left + 8);
  const heard = new Set<string>(['m0']);
  let told = 0;
  network.network.carries = (from, to, bytes) => {
    if (to !== AWAY) return true;
    const isTold = bytes[0] === MESSAGE_TYPES.have && heard.has(String(from));
    if (isTold) told++;
    return isTold;
  };
  const { node, driver } = await network.start(AWAY, MEMBERS - 1);
  // Its own neighbours' answers come at every tick.
  await until(() => told >= 3);
  expect(driver.reported()).toBe(-1);
  heard.add('m1');
  await until(() => driver.reported() >= left + 8);
  // A vote or two that it has from before may have made one more cut final.
  expect(node.chain.head().height).toBeLessThan(left + 3);
});

test('cuts that peers bring at the same moment as neighbours are taken once; the validator votes on', async () => {
  for (let member = 0; member < MEMBERS; member++) await network.start(`m${member}`, member);
  const [{ node: first }, away] = ['m0', AWAY].map((name) => network.running.get(name)) as [Driven, Driven];
  await until(() => !isListening(away.driver.state) && lastVote() > 0);
  const adopted: unknown[] = [];
  const before = heightOf(AWAY);
  first.on('cut', ({ header: { height } }) => {
    const cut = first.chain.cut(height);
    if (cut === undefined) return;
    const proposed = decodeProposedCut(concat(cut.headerBytes, ...cut.blockIds));
    void away.driver
      .adopt(proposed, first.chain.certificate(height) as Certificate)
      .then((result) => adopted.push(result));
  });
  await until(() => heightOf(AWAY) >= before + 30 && lastVote() >= before + 30);
  expect(new Set(adopted)).toEqual(new Set(['final']));
  expect(adopted.length).toBeGreaterThan(20);
  expect([...voted.values()].filter((cuts) => cuts.size > 1)).toEqual([]);
});
