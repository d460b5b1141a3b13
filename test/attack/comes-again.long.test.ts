/**
 * A member that ends its connection and comes again, as often as it is let: what it may send is counted by its key, so it has no more of it than one that stays. The
 * clock of its victim stands still, so nothing is given back meanwhile.
 */
import { afterEach, expect, test } from 'vitest';
import { LINK_LIMITS } from '../../node/consensus/link/overlay-link.ts';
import { Overlay } from '../../node/consensus/reach/overlay.ts';
import { developmentKey, validatorName } from '../../node/genesis/development.ts';
import { signMessage } from '../../node/ml-dsa.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { silentLog } from '../node/bed.ts';
import { until } from '../until.ts';

const CHAIN = new Uint8Array(48).fill(7);
const members = [0, 1, 2].map((member) => developmentKey(validatorName(member)));
const [VICTIM, LIAR, HONEST] = [0, 1, 2];
/** What is beyond is read in an hour, so not in this test. */
const messages = { perSecond: 1 / 3_600, burst: 100 };

/** No more than a few are read at once, and a hundred fit the queue of a connection. */
const LARGE = 60_000;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function open(member: number, port: number, neighbours: readonly ListenAddress[], steady = steadyMillis) {
  const { publicKey, privateKey } = members[member] as (typeof members)[number];
  const transport = new Overlay(
    { chainId: CHAIN, binds: [{ host: '127.0.0.1', port }], neighbours, limits: { ...LINK_LIMITS, messages } },
    {
      log: silentLog,
      steady,
      members: () => members,
      signer: { publicKey, sign: async (message: Bytes) => signMessage(privateKey, message) },
    },
  );
  await transport.listen();
  /** By the first byte of the messages. */
  const heard = new Map<number, number>();
  const seen = { transport, heard: (of: number) => heard.get(of) ?? 0, joined: 0, left: 0 };
  transport.start({
    joined: () => void seen.joined++,
    left: () => void seen.left++,
    message: (_, [first = 0]) => void heard.set(first, (heard.get(first) ?? 0) + 1),
  });
  closing.push(() => transport.close());
  const say = (times: number, length: number) => {
    for (let i = 0; i < times; i++) {
      const [peer] = transport.peers();
      if (peer !== undefined) transport.send(peer, new Uint8Array(length).fill(100 + member));
    }
  };
  return { seen, say };
}

test.each(['dials', 'is dialled'])('a member that %s again has what is left of its allowance', async (way) => {
  const [port, liarPort, honestPort] = (await freePorts(3)) as [number, number, number];
  const at = (of: number) => [{ host: '127.0.0.1', port: of }];
  const now = steadyMillis();
  const { seen: victim } = await open(VICTIM, port, way === 'dials' ? [] : at(liarPort), () => now);
  const come = async () => {
    const before = victim.joined;
    const liar = await open(LIAR, liarPort, way === 'dials' ? at(port) : []);
    await until(() => victim.joined === before + 1 && liar.seen.joined === 1);
    return liar;
  };
  const first = await come();
  first.say(messages.burst, 1);
  await until(() => victim.heard(101) === messages.burst);
  await first.seen.transport.close();
  await until(() => victim.left === 1);
  const second = await come();
  second.say(messages.burst, LARGE);
  // Others are heard meanwhile.
  const { say, seen } = await open(HONEST, honestPort, at(port));
  await until(() => seen.joined === 1);
  say(1, 1);
  await until(() => victim.heard(102) === 1);
  expect(victim.heard(101)).toBeLessThan(1.5 * messages.burst);
});
