/**
 * Hostile peers as a process of their own: real libp2p hosts that say a proper hello to the peers at the addresses they are given, and then do what hurts. Started with ADDRESS[,ADDRESS...] CHAIN_ID HEIGHT KIND...;
 * ends when it is killed. Prints what it got through as lines of JSON.
 */
import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import type { Connection, Stream } from '@libp2p/interface';
import { lpStream } from '@libp2p/utils';
import { multiaddr } from '@multiformats/multiaddr';
import { encodeHello, MAX_HELLO_BYTES } from '../../node/network/peers/hello.ts';
import { encodeBatch } from '../../node/network/relay/relay-messages.ts';
import { encodeCutsAnswer, encodeSyncQuestion } from '../../node/network/sync/sync-messages.ts';
import { answerStream, ask } from '../../node/network/thread/asking.ts';
import { createHost, type Host } from '../../node/network/thread/create-host.ts';
import { PROTOCOLS, TOPIC_VERSIONS } from '../../node/network/thread/host-types.ts';
import { fromHex } from '../../protocol/bytes.ts';

const [addresses = '', chainHex = '', heightText = '0', ...kinds] = process.argv.slice(2);
const chainId = fromHex(chainHex);
const height = Number(heightText);
const TOPICS = (['cuts', 'blocks', 'transactions'] as const).map(
  (name) => `/svc/${chainHex.slice(0, 32)}/${name}/${TOPIC_VERSIONS[name]}`,
);
const say = (fields: object) => console.log(JSON.stringify(fields));
const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis));

type Act = (connection: Connection, host: Host) => Promise<void>;

/** Recorded announcements that the test hands in by standard input, to be played again. */
const recorded: Uint8Array[] = [];
createInterface({ input: process.stdin }).on('line', (line) => recorded.push(fromHex(line)));

const SYNC = PROTOCOLS.sync.name;

const ACTS: Record<string, Act> = {
  /** As many streams as it can open, none of them used. */
  streams: async (connection) => {
    const streams: Stream[] = [];
    for (let i = 0; i < 10_000 && connection.status === 'open'; i++) {
      const stream = connection.newStream(SYNC, { signal: AbortSignal.timeout(2_000), maxOutboundStreams: 20_000 });
      await stream.then((opened) => streams.push(opened)).catch(() => undefined);
      // Without the newest: its reset may be on the way, those of all before it have arrived.
      const settled = streams.slice(0, -1).filter(({ status }) => status === 'open');
      if (i % 100 === 99) say({ kind: 'streams', opened: settled.length });
    }
  },
  /** A question of a gibibyte, by its length. */
  length: async (connection) => {
    for (let i = 0; i < 200; i++) {
      const stream = await connection.newStream(SYNC, { signal: AbortSignal.timeout(2_000) });
      stream.send(Uint8Array.of(0x80, 0x80, 0x80, 0x80, 0x04));
      for (let sent = 0; sent < 64 && stream.status === 'open'; sent++) stream.send(new Uint8Array(65_536));
      await pause(20);
    }
  },
  /** Questions whose answers are never read. */
  mute: async (connection) => {
    const held: Stream[] = [];
    const question = encodeSyncQuestion({ type: 'cuts', from: 1, count: 96 });
    for (let i = 0; i < 5_000 && connection.status === 'open'; i++) {
      try {
        const signal = AbortSignal.timeout(2_000);
        const stream = await connection.newStream(SYNC, { signal, maxOutboundStreams: 20_000 });
        stream.pause();
        await lpStream(stream).write(question);
        held.push(stream);
      } catch {
        // Those beyond the limit are reset; the first ones stay.
      }
      await pause(10);
    }
    say({ kind: 'mute', held: held.length });
  },
  /** Bytes that are nothing, as questions and as gossip. */
  junk: async (connection, host) => {
    for (let i = 0; i < 2_000; i++) {
      await host.services.gossip.publish(TOPICS[i % 3] as string, randomBytes(1 + (i % 4_000)));
      await ask(connection, SYNC, randomBytes(40), { bytes: 100, millis: 500 }).catch(() => undefined);
    }
  },
  /** Identifiers of transactions that nobody has. */
  ids: async (_, host) => {
    for (let i = 0; i < 5_000; i++) {
      await host.services.gossip.publish(
        TOPICS[2] as string,
        encodeBatch(
          new Uint8Array(8),
          Array.from({ length: 256 }, () => randomBytes(48)),
        ),
      );
      await pause(5);
    }
  },
  replay: async (_, host) => {
    for (let i = 0; i < 5_000; i++) {
      const old = recorded[i % Math.max(1, recorded.length)];
      if (old !== undefined) await host.services.gossip.publish(TOPICS[0] as string, old).catch(() => undefined);
      await pause(10);
    }
  },
  /** Its hello names a height that nobody has; it answers every question with nothing. */
  height: async () => void (await pause(3_600_000)),
  /** Answers every question just before it is too late. */
  slow: async () => void (await pause(3_600_000)),
};

const SLOW_MILLIS = 15_000;

async function attack(kind: string): Promise<void> {
  const settings = {
    seed: randomBytes(32),
    chainId,
    ruleSet: 1,
    release: '0.1.0',
    height,
    listen: [],
    announce: [],
    bootstrap: [],
    remembered: [],
    maxPeers: 50,
  };
  const host = await createHost(settings, TOPICS, { denyDialMultiaddr: () => false });
  await host.handle(SYNC, async (stream) => {
    await answerStream(stream, { bytes: 8_192, millis: 2 * SLOW_MILLIS }, async () => {
      if (kind === 'slow') await pause(SLOW_MILLIS);
      return encodeCutsAnswer({ head: kind === 'height' ? 1e12 : height, bodiesFrom: 0 }, [], []);
    });
  });
  await host.start();
  for (const name of TOPICS) host.services.gossip.subscribe(name);
  for (const address of addresses.split(',')) void attackOne(kind, address, host);
}

async function attackOne(kind: string, address: string, host: Host): Promise<void> {
  for (;;) {
    try {
      const connection = await host.dial(multiaddr(address), { signal: AbortSignal.timeout(3_000) });
      const hello = encodeHello({ chainId, ruleSet: 1, release: '0.1.0', height: kind === 'height' ? 1e12 : height });
      await ask(connection, '/svc/hello/1', hello, { bytes: MAX_HELLO_BYTES, millis: 3_000 });
      say({ kind, joined: true });
      await ACTS[kind]?.(connection, host);
    } catch (error) {
      say({ kind, error: (error as Error).message });
    }
    await pause(500);
  }
}

process.on('uncaughtException', (error) => say({ uncaught: error.message }));
for (const kind of kinds) void attack(kind);
