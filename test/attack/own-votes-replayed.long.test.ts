/**
 * What strangers can do to a validator that has just started and does not know what its key signed: be there and silent, so that it takes them for company, and send it its own old votes. Real ledgers, stores, logs,
 * signatures and, for the first, sockets.
 */
import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { decodeMessage, encodeMessage } from '../../node/consensus/driver/messages.ts';
import type { Message } from '../../node/consensus/engine/effects.ts';
import { PRECOMMIT, type Vote } from '../../node/consensus/engine/votes.ts';
import { FrameReader } from '../../node/consensus/link/frames.ts';
import { MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import { Overlay } from '../../node/consensus/reach/overlay.ts';
import { developmentKey, validatorName } from '../../node/genesis/development.ts';
import { signMessageAside } from '../../node/ml-dsa.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { CUT_MILLIS, DrivenNetwork, MEMBERS } from '../consensus/driven.ts';
import { RawEnd } from '../consensus/raw-end.ts';
import { silentLog } from '../node/bed.ts';
import { until } from '../until.ts';

let network: DrivenNetwork;
beforeEach(() => {
  network = new DrivenNetwork();
});
afterEach(async () => {
  await network.close();
});

const stateOf = (name: string) =>
  network.running.get(name)?.driver.state as NonNullable<ReturnType<typeof network.running.get>>['driver']['state'];

test('strangers that connect and are silent are no company: a validator that does not know what its key signed goes on listening until members come', async () => {
  const members = Array.from({ length: MEMBERS }, (_, member) => developmentKey(validatorName(member)));
  const { chainId } = network;
  const open = async (member: number, neighbours: readonly { host: string; port: number }[]) => {
    const { publicKey, privateKey } = members[member] as (typeof members)[number];
    const transport = new Overlay(
      { chainId, binds: [{ host: '127.0.0.1', port: 0 }], neighbours },
      {
        log: silentLog,
        steady: steadyMillis,
        members: () => members,
        signer: { publicKey, sign: (message) => signMessageAside(privateKey, message) },
      },
    );
    const [address] = await transport.listen();
    await network.start(`m${member}`, member, { transport });
    return { transport, address: address as { host: string; port: number } };
  };
  const { transport, address } = await open(0, []);
  const strangers = [1, 2, 3].map(() => {
    const socket = connect({ host: '127.0.0.1', port: address.port });
    const [end, reader] = [new RawEnd(chainId), new FrameReader()];
    socket
      .on('error', () => undefined)
      .on('connect', () => void socket.write(end.greeting))
      .on('data', (piece) => {
        if (end.isMet) return;
        for (const frame of reader.push(piece)) {
          socket.write(end.open(frame));
          return;
        }
      });
    return socket;
  });
  await until(() => transport.peers().length === strangers.length);
  const { ticks } = stateOf('m0').listening as { ticks: number };
  // Much longer than it listens to members.
  await sleep(20 * CUT_MILLIS);
  expect(stateOf('m0').listening?.ticks).toBe(ticks);
  expect(stateOf('m0').own.size).toBe(0);
  const addresses = [address];
  for (let member = 1; member < MEMBERS; member++) addresses.push((await open(member, [...addresses])).address);
  await until(() => [...network.running.values()].every(({ node }) => node.chain.head().height >= 3));
  for (const socket of strangers) socket.destroy();
});

test('a validator that lost its log is sent all that its key ever signed, at every height and again and again: it never votes twice, does not stop, and signs again', async () => {
  const votes: Vote[] = [];
  const cuts = new Map<string, Set<string>>();
  let stalledAt = Number.POSITIVE_INFINITY;
  /** The highest of which a precommit is on its way: it may become final, whatever is lost from now on. */
  let precommitted = 0;
  const noted = (from: unknown, { vote }: Message & { type: 'vote' }) => {
    const { height, round, kind, cut, member } = vote;
    const key = `${member}/${height}/${round}/${kind}`;
    cuts.set(key, (cuts.get(key) ?? new Set()).add(cut));
    // Others send it too, to whoever lacks it.
    if (from === 'm1' && member === stateOf('m1')?.self) votes.push(vote);
  };
  const carries = (from: unknown, _: unknown, bytes: Bytes) => {
    if (bytes[0] !== MESSAGE_TYPES.vote) return true;
    const message = decodeMessage(bytes) as Message & { type: 'vote' };
    if (from !== 'stranger') noted(from, message);
    if (message.vote.kind !== PRECOMMIT) return true;
    if (message.vote.height >= stalledAt) return false;
    precommitted = Math.max(precommitted, message.vote.height);
    return true;
  };
  network.network.carries = carries;
  for (let member = 0; member < MEMBERS; member++) await network.start(`m${member}`, member);
  await until(() => (network.running.get('m1')?.node.chain.head().height ?? 0) >= 3);
  // The chain stands still at a height for which the validator has voted.
  stalledAt = precommitted + 1;
  await until(() => votes.some(({ height }) => height === stalledAt));
  await network.stop('m1');
  rmSync(join(network.directory, 'm1', 'log'), { recursive: true });
  const old = [...votes];
  const stalled = stalledAt;
  votes.length = 0;

  const { driver } = await network.start('m1', 1);
  const stranger = network.network.transport('stranger');
  const replay = () => {
    for (const vote of old) stranger.send('m1', encodeMessage({ type: 'vote', vote }));
  };
  stranger.start({ joined: () => undefined, left: () => undefined, message: () => undefined });
  const again = setInterval(replay, CUT_MILLIS / 3);
  replay();
  try {
    await sleep(10 * CUT_MILLIS);
    stalledAt = Number.POSITIVE_INFINITY;
    // Now its precommit of the height that stood reaches it too.
    replay();
    await until(() => votes.filter(({ height }) => height > stalled).length > 8);
  } finally {
    clearInterval(again);
    await stranger.close();
  }
  expect(driver.state.stopped).toBe(false);
  // Of a height at which it may have voted it sends what it signed then, if it was given that, and nothing else.
  const signed = new Set(old.map((vote) => toHex(encodeMessage({ type: 'vote', vote }))));
  const unsigned = votes.filter(
    (vote) => vote.height <= stalled && !signed.has(toHex(encodeMessage({ type: 'vote', vote }))),
  );
  expect(unsigned).toEqual([]);
  expect([...cuts].filter(([, voted]) => voted.size > 1)).toEqual([]);
});
