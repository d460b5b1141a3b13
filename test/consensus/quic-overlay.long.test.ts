/** The overlay of validators over QUIC: registered routes stand for it too, and the bounds are those of TCP. */
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Peer } from '../../node/consensus/engine/effects.ts';
import { LINK_LIMITS } from '../../node/consensus/link/overlay-link.ts';
import { PLACES } from '../../node/consensus/reach/inbound-places.ts';
import { Overlay } from '../../node/consensus/reach/overlay.ts';
import type { OverlayAddress } from '../../node/consensus/reach/overlay-listeners.ts';
import { OverlayQuic } from '../../node/consensus/reach/overlay-quic.ts';
import {
  developmentGenesis,
  developmentKey,
  developmentValidator,
  validatorName,
} from '../../node/genesis/development.ts';
import { signMessageAside } from '../../node/ml-dsa.ts';
import { type ConsensusNode, createNode } from '../../node/node.ts';
import { openConsensus } from '../../node/open-consensus.ts';
import { overlayKey } from '../../node/validator/overlay-key.ts';
import { encodeEndpoint } from '../../protocol/staking/endpoint.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import type { BindAddress } from '../../runtime/listen-address.ts';
import type { Logger } from '../../runtime/log/log.ts';
import {
  absenceTest,
  client,
  freeUdpPort,
  halfHandshakes,
  malformed,
  native,
  quicTest,
  send,
} from '../network/quic.ts';
import { quickHash, silentLog } from '../node/bed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';

const MEMBERS = 3;
const CUT_MILLIS = 150;
const CHAIN = new Uint8Array(48).fill(7);

absenceTest();

quicTest('validators that listen on QUIC alone make cuts by their registered routes', async () => {
  const directory = temporaryDirectory();
  const ports = await Promise.all(Array.from({ length: MEMBERS }, freeUdpPort));
  const validators = await Promise.all(
    ports.map(async (port, i) => ({
      ...developmentValidator(i),
      endpoint: encodeEndpoint({
        overlayKey: await overlayKey(join(directory, String(i))),
        routes: [{ kind: 'ipv4', host: Uint8Array.of(127, 0, 0, 1), port }],
      }),
    })),
  );
  const overlays: unknown[] = [];
  const log: Logger = {
    ...silentLog,
    child: () => log,
    info: (message, fields) => void (message === 'validator overlay' && overlays.push(fields?.over)),
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
    const binds: BindAddress[] = [{ host: '127.0.0.1', port, way: 'quic' }];
    await openConsensus(
      { dataDir, cutMillis: CUT_MILLIS, key: developmentKey(validatorName(i)), neighbours: [], binds },
      { node, log, now: (): number => steadyMillis(), started: (_, stop) => stops.push(stop) },
    );
    nodes.push(node);
    onTestFinished(async () => {
      for (const stop of stops.reverse()) await stop();
      await node.close();
    });
  }
  expect(overlays).toEqual(['quic', 'quic', 'quic']);
  await until(() => nodes.every(({ chain }) => chain.head().height >= 3));
});

async function open(binds: readonly BindAddress[], name?: string, isFar = false) {
  const key = name === undefined ? undefined : developmentKey(name);
  const [joined, heard]: [Peer[], Uint8Array[]] = [[], []];
  const transport = new Overlay(
    { chainId: CHAIN, binds, neighbours: [] },
    {
      log: silentLog,
      steady: steadyMillis,
      quic: await OverlayQuic.open(native()),
      ...(key && {
        signer: { publicKey: key.publicKey, sign: (message) => signMessageAside(key.privateKey, message) },
      }),
      ...(isFar && { isNear: () => false }),
    },
  );
  onTestFinished(() => transport.close());
  const addresses = await transport.listen();
  transport.start({
    joined: (peer) => joined.push(peer),
    left: () => undefined,
    message: (_, bytes) => void heard.push(bytes),
  });
  const orderFor = ({ host, port }: OverlayAddress, name: string) => {
    const { publicKey } = developmentKey(name);
    return [{ validator: { id: validatorId(publicKey), publicKey, routes: [{ host, port }] }, afterMillis: 0 }];
  };
  return { transport, joined, heard, addresses, orderFor };
}

quicTest('an address without a way is listened on over both, on one port', async () => {
  const both = (await open([{ host: '::', port: 0 }])).addresses;
  expect(both.map(({ way }) => way)).toEqual(['tcp', 'quic']);
  expect(new Set(both.map(({ port }) => port)).size).toBe(1);
  const tcp = (await open([{ host: '127.0.0.1', port: 0, way: 'tcp' }])).addresses;
  expect(tcp.map(({ way }) => way)).toEqual(['tcp']);
  const name = (await open([{ host: 'localhost', port: 0, way: 'quic', family: 4 }])).addresses;
  expect(name).toMatchObject([{ host: '127.0.0.1', way: 'quic' }]);
  const [taken] = name as [OverlayAddress];
  await expect(open([taken])).rejects.toMatchObject({ code: 'listen_failed', message: /over QUIC/ });
});

quicTest('messages of every size cross in order, and each side notices the end of the other', async () => {
  const [right, dialler] = [await open([{ host: '127.0.0.1', port: 0, way: 'quic' }], 'bert'), await open([], 'dora')];
  const [address] = right.addresses as [OverlayAddress];
  dialler.transport.reach(dialler.orderFor(address, 'bert'));
  await until(() => dialler.joined.length === 1 && right.joined.length === 1);
  expect(dialler.transport.proven(dialler.joined[0] as Peer)?.key).toEqual(developmentKey('bert').publicKey);
  const sizes = [1, 1_000, 65_535, 65_536, 65_537, 1_000_000];
  for (const [i, size] of sizes.entries())
    dialler.transport.send(dialler.joined[0] as Peer, new Uint8Array(size).fill(100 + i));
  await until(() => right.heard.length === sizes.length);
  expect(right.heard.map((bytes) => [bytes.length, bytes.at(-1)])).toEqual(sizes.map((size, i) => [size, 100 + i]));
  // The other side notices the end.
  await right.transport.close();
  await until(() => dialler.transport.peers().length === 0);
});

quicTest('one that says nothing has as few places and as little time as over TCP', async () => {
  const { addresses } = await open([{ host: '127.0.0.1', port: 0, way: 'quic' }], 'bert', true);
  const [{ port }] = addresses as [OverlayAddress];
  const dialler = await client();
  const begun = steadyMillis();
  const ended: number[] = [];
  const count = PLACES.waitingPerAddress + 3;
  for (let i = 0; i < count; i++) {
    const connection = await dialler.outboundConnection('127.0.0.1', port);
    void connection.closed().then(() => ended.push(steadyMillis() - begun));
  }
  await until(() => ended.length >= 3);
  expect(ended[2]).toBeLessThan(LINK_LIMITS.helloMillis);
  await until(() => ended.length === count);
  expect(ended.filter((millis) => millis >= LINK_LIMITS.helloMillis)).toHaveLength(PLACES.waitingPerAddress);
});

quicTest('packets that mean nothing and half handshakes keep nobody out, nor the end up', async () => {
  const right = await open([{ host: '127.0.0.1', port: 0, way: 'quic' }], 'bert');
  const [address] = right.addresses as [OverlayAddress];
  const begun = await halfHandshakes(60);
  await send([...malformed(3_000, begun), ...begun], address.port);
  const dialler = await open([], 'dora');
  dialler.transport.reach(dialler.orderFor(address, 'bert'));
  await until(() => dialler.joined.length === 1);
  const before = steadyMillis();
  await right.transport.close();
  expect(steadyMillis() - before).toBeLessThan(2_000);
});
