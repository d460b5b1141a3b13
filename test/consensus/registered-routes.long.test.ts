/** Validators that know each other by the routes in the chain alone: who dials whom, over real sockets, and where nobody is dialled. */
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Peer } from '../../node/consensus/engine/effects.ts';
import { COVERED_TICKS } from '../../node/consensus/engine/listening.ts';
import { tickMillis } from '../../node/consensus/engine/pace.ts';
import { LOOK_MILLIS } from '../../node/consensus/reach/dialler.ts';
import { Overlay } from '../../node/consensus/reach/overlay.ts';
import {
  developmentGenesis,
  developmentKey,
  developmentValidator,
  validatorName,
} from '../../node/genesis/development.ts';
import { signMessageAside } from '../../node/ml-dsa.ts';
import { type ConsensusNode, createNode } from '../../node/node.ts';
import { openConsensus } from '../../node/open-consensus.ts';
import { DIAL_AFTER_MILLIS, DIAL_BACK_AFTER_MILLIS, dialPlan, type Reachable } from '../../node/validator/dial-plan.ts';
import { overlayKey } from '../../node/validator/overlay-key.ts';
import { mayDial, reachableValidators } from '../../node/validator/reachable-validators.ts';
import { type Bytes, equalBytes, utf8 } from '../../protocol/bytes.ts';
import { decodeEndpoint, encodeEndpoint, type Route } from '../../protocol/staking/endpoint.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { freePorts } from '../../runtime/free-port.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { Bed, quickHash, silentLog } from '../node/bed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';

const MEMBERS = 4;
const CUT_MILLIS = 150;
const CHAIN = new Uint8Array(48).fill(7);
const local = (port: number): Route => ({ kind: 'ipv4', host: Uint8Array.of(127, 0, 0, 1), port });

function validatorAt(member: number, routes: readonly Route[]) {
  const validator = developmentValidator(member);
  const { overlayKey } = decodeEndpoint(validator.endpoint);
  return { ...validator, endpoint: encodeEndpoint({ overlayKey, routes }) };
}

test('of two with routes the lower identifier dials and the other dials back later; one without dials all that have one', () => {
  const one = (first: number, routes: number): Reachable => ({
    id: new Uint8Array(48).fill(first),
    publicKey: new Uint8Array(1952).fill(first),
    routes: Array.from({ length: routes }, (_, i) => ({ host: '192.0.2.1', port: 1 + i })),
  });
  const all = [one(1, 1), one(2, 2), one(3, 0), one(4, 1)];
  const plan = (own: Reachable) =>
    dialPlan(own, all).map(({ validator, afterMillis }) => [validator.id[0], afterMillis]);
  const [now, later] = [DIAL_AFTER_MILLIS, DIAL_BACK_AFTER_MILLIS];
  expect(plan(one(2, 2))).toEqual([
    [1, later],
    [4, now],
  ]);
  expect(plan(one(3, 0))).toEqual([
    [1, now],
    [2, now],
    [4, now],
  ]);
  expect(plan(one(9, 0)).map(([first]) => first)).toEqual([1, 2, 4]);
});

test('one that dials back is there before the shortest time of listening ends', () => {
  expect(DIAL_BACK_AFTER_MILLIS + LOOK_MILLIS).toBeLessThan(COVERED_TICKS * tickMillis());
});

test('addresses of private networks and of this machine are dialled only by those that are there themselves', () => {
  const at = (host: string) => [{ host, port: 1 }];
  const dialled = (own: Parameters<typeof mayDial>[0], isDevelopment = false) =>
    ['8.8.8.8', '10.0.0.1', '127.0.0.1', '::ffff:127.0.0.1', '169.254.169.254', '0.0.0.0', 'fe80::1', '2a00::1'].filter(
      mayDial(own, isDevelopment),
    );
  expect(dialled([])).toEqual(['8.8.8.8', '2a00::1']);
  expect(dialled(at('203.0.113.7'))).toEqual(['8.8.8.8', '2a00::1']);
  expect(dialled(at('validator.example.org'))).toEqual(['8.8.8.8', '2a00::1']);
  expect(dialled(at('192.168.3.4'))).toEqual(['8.8.8.8', '10.0.0.1', '2a00::1']);
  expect(dialled(at('169.254.169.254'))).toEqual(['8.8.8.8', '2a00::1']);
  expect(dialled([], true)).toEqual(['8.8.8.8', '10.0.0.1', '127.0.0.1', '::ffff:127.0.0.1', '2a00::1']);
});

test('routes that may not be dialled are left out, names stay; candidates of the next committee come in the last window of an epoch', async () => {
  const routes: Route[] = [local(7), { kind: 'name', host: utf8('a.example.org'), port: 9 }];
  const intervalCuts = 24;
  const bed = await Bed.open({ genesis: { validators: 2, intervalCuts } });
  const staking = bed.node.chain.staking();
  const [record] = [...staking.activeValidators()];
  const { endpoint } = validatorAt(0, routes);
  const added = Array.from({ length: 100 }, (_, i) => ({
    ...(record as NonNullable<typeof record>),
    id: new Uint8Array(48).fill(i),
    key: new Uint8Array(1952).fill(i),
    stake: BigInt(i),
    endpoint,
  }));
  const more = { ...staking, activeValidators: () => added };
  const found = (height: number) => reachableValidators(more, height, mayDial([], false));
  expect(found(20)).toHaveLength(2);
  const last = found(21);
  expect(last).toHaveLength(2 + 96);
  expect(last[2]).toMatchObject({ id: added[99]?.id, routes: [{ host: 'a.example.org', port: 9 }] });
  expect(found(23)).toHaveLength(2);
  // A member with another endpoint in the next epoch is where it is now; records of either overlay key count.
  const nextOverlayKey = new Uint8Array(32).fill(9);
  const next = encodeEndpoint({ overlayKey: nextOverlayKey, routes });
  const moved = [{ ...(record as NonNullable<typeof record>), endpoint: next }];
  const [now] = found(20).filter(({ publicKey }) => equalBytes(publicKey, moved[0]?.key as Bytes));
  const near = reachableValidators({ ...staking, activeValidators: () => moved }, 21, mayDial([], false));
  expect(near).toHaveLength(2);
  expect(near).toContainEqual({ ...now, routes: [], nextOverlayKey });
});

test('four validators without named neighbours, two of them without a route, make cuts; those two are reached through relays', async () => {
  const directory = temporaryDirectory();
  const ports = await freePorts(MEMBERS);
  const hasRoute = (i: number) => i > 1;
  const validators = await Promise.all(
    ports.map(async (port, i) => ({
      ...developmentValidator(i),
      endpoint: encodeEndpoint({
        overlayKey: await overlayKey(join(directory, String(i))),
        routes: hasRoute(i) ? [local(port)] : [],
      }),
    })),
  );
  const joined = new Map<number, string[]>();
  const logOf = (i: number): Logger => {
    joined.set(i, []);
    const log: Logger = {
      ...silentLog,
      child: () => log,
      debug: (message, fields) => {
        if (message === 'a neighbour joined') joined.get(i)?.push(String(fields?.peer));
      },
    };
    return log;
  };
  const genesis = { ...developmentGenesis({ timestampMillis: steadyMillis(), validators: MEMBERS }), validators };
  const nodes: ConsensusNode[] = [];
  for (const [i, port] of ports.entries()) {
    const dataDir = join(directory, String(i));
    const node = await createNode(
      { storeDirectory: join(dataDir, 'store'), genesis, cutMillis: CUT_MILLIS, makesCuts: false },
      {
        verifier: { prepare: async () => undefined, hash: async (_, header) => quickHash(header) },
        certify: async () => ({ round: 0, signatures: [] }),
        now: (): number => steadyMillis(),
        random: (limit) => Math.floor(limit / 2),
        log: silentLog,
      },
    );
    const stops: (() => Promise<void> | void)[] = [];
    const key = developmentKey(validatorName(i));
    await openConsensus(
      {
        dataDir,
        cutMillis: CUT_MILLIS,
        key,
        neighbours: [],
        binds: [{ host: '127.0.0.1', port: hasRoute(i) ? port : 0 }],
      },
      { node, log: logOf(i), now: (): number => steadyMillis(), started: (_, stop) => stops.push(stop) },
    );
    nodes.push(node);
    onTestFinished(async () => {
      for (const stop of stops.reverse()) await stop();
      await node.close();
    });
  }
  await until(() => nodes.every(({ chain }) => chain.head().height >= 3));
  const isRelayed = (i: number) => joined.get(i)?.some((peer) => peer.startsWith('relayed '));
  await until(() => isRelayed(0) && isRelayed(1));
  expect([isRelayed(2), isRelayed(3)]).toEqual([false, false]);
});

test('somebody else at a registered route is left, the next route is tried, and an order that is taken back ends it', async () => {
  const [own, other] = [developmentKey('dora'), developmentKey('bert')];
  const open = async (key: typeof own | undefined) => {
    const joined: Peer[] = [];
    const transport = new Overlay(
      { chainId: CHAIN, binds: [{ host: '127.0.0.1', port: 0 }], neighbours: [] },
      {
        log: silentLog,
        steady: steadyMillis,
        ...(key && {
          signer: { publicKey: key.publicKey, sign: (message) => signMessageAside(key.privateKey, message) },
        }),
      },
    );
    onTestFinished(() => transport.close());
    const [address] = await transport.listen();
    transport.start({ joined: (peer) => joined.push(peer), left: () => undefined, message: () => undefined });
    return { transport, joined, address: address as NonNullable<typeof address> };
  };
  const [dialler, impostor, right] = [await open(own), await open(own), await open(other)];
  let knocks = 0;
  const door = createServer((socket) => {
    knocks++;
    const behind = connect(impostor.address);
    for (const end of [socket, behind]) end.on('error', () => undefined);
    socket.pipe(behind).pipe(socket);
  });
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void door.close());
  const wrong = { host: '127.0.0.1', port: (door.address() as AddressInfo).port };
  const id = validatorId(other.publicKey);
  const validator = { id, publicKey: other.publicKey, routes: [wrong, right.address] };
  dialler.transport.reach([{ validator, afterMillis: 0 }]);
  await until(() => dialler.joined.length === 1);
  expect(dialler.transport.proven(dialler.joined[0] as Peer)?.key).toEqual(other.publicKey);
  expect(knocks).toBe(1);
  dialler.transport.reach([]);
  await right.transport.close();
  await until(() => dialler.transport.peers().length === 0);
  dialler.transport.reach([{ validator: { ...validator, routes: [wrong] }, afterMillis: 0 }]);
  await until(() => knocks > 1);
  // Whoever is there is not told who dials.
  expect([dialler.joined.length, impostor.joined.length]).toEqual([1, 0]);
});
