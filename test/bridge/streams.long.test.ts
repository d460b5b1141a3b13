/** What carries a TCP connection: the handle beneath a socket, or a socket of node:net. To conversations and miners both are the same. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { Peer } from '../../bridge/connection/conversation.ts';
import { HandleStream } from '../../bridge/connection/handle-stream.ts';
import { handleParts } from '../../bridge/connection/handles.ts';
import { StreamPeer } from '../../bridge/connection/peers.ts';
import { listenTcp } from '../../bridge/connection/tcp-server.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { TEST_CERTIFICATE } from '../miner/certificate.ts';
import { randomOf } from '../random.ts';
import { startBed } from './bed.ts';
import { addressOf, mine, V1Client } from './stratum-client.ts';

type Streams = 'handles' | 'sockets';
const BOTH: Streams[] = ['handles', 'sockets'];

type Pair = {
  readonly peer: Peer;
  readonly client: Socket;
  /** What the server has read. */
  readonly read: () => string;
  readonly closed: Promise<void>;
};

/** One connection, seen from both ends. */
async function pair(streams: Streams): Promise<Pair> {
  let text = '';
  let close = (): void => {};
  let accepted = (_peer: Peer): void => {};
  const closed = new Promise<void>((resolve) => {
    close = resolve;
  });
  const arrived = new Promise<Peer>((resolve) => {
    accepted = resolve;
  });
  const take = (chunk: Bytes): void => {
    text += Buffer.from(chunk).toString();
  };
  const { server, bound } = await listenTcp(
    { host: '127.0.0.1', port: 0 },
    { sharePorts: false, streams },
    {
      accept: (stream) => {
        if (stream instanceof HandleStream) {
          stream.start();
          accepted(stream);
          return;
        }
        stream
          .on('data', take)
          .on('close', close)
          .on('error', () => stream.destroy());
        accepted(new StreamPeer(stream));
      },
      refused: () => {},
      onData: take,
      onClose: close,
    },
  );
  const client = connect(bound.port, bound.host);
  client.on('error', () => {});
  await once(client, 'connect');
  const peer = await arrived;
  onTestFinished(() => {
    client.destroy();
    peer.destroy();
    server.close();
  });
  return { peer, client, read: () => text, closed };
}

async function readAll(client: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const ended = once(client, 'end');
  client.on('data', (chunk: Buffer) => void chunks.push(chunk));
  client.resume();
  await ended;
  return Buffer.concat(chunks);
}

test('handles serve on the Node that the tests run on, unless sockets are asked for', async () => {
  const { SVC_STREAMS: asked } = process.env;
  expect(handleParts !== null).toBe(asked !== 'sockets' && process.versions.node.startsWith('24.'));
  expect((await pair('handles')).peer instanceof HandleStream).toBe(handleParts !== null);
  expect((await pair('sockets')).peer).toBeInstanceOf(StreamPeer);
});

test.each(BOTH)(
  '%s: what a slow reader has not taken waits, is counted, and comes in order before the end',
  async (streams) => {
    const { peer, client, closed } = await pair(streams);
    client.pause();
    const random = randomOf(7);
    const sent: Buffer[] = [];
    const write = (size: number, kind: number): void => {
      const text = (kind === 2 ? '\u00e4\u20ac' : 'ab').repeat(size);
      sent.push(Buffer.from(text));
      if (kind === 0) peer.write(Buffer.from(text), false);
      else peer.write(text, kind === 2);
    };
    // As much as the system takes, and more.
    for (let i = 0; peer.queued === 0; i++) write(30_000, i % 3);
    for (let i = 0; i < 200; i++) write(1 + random(4_000), i % 3);
    const most = Buffer.concat(sent).length;
    expect(peer.queued).toBeGreaterThan(100_000);
    expect(peer.queued).toBeLessThanOrEqual(most);
    peer.end();
    peer.write('after the end', false);
    const all = await readAll(client);
    expect(all.equals(Buffer.concat(sent))).toBe(true);
    expect(peer.queued).toBe(0);
    client.end();
    await closed;
  },
);

test.each(BOTH)(
  '%s: memory that was written is free once nothing is queued, whatever is in it then',
  async (streams) => {
    const { peer, client } = await pair(streams);
    const shared = Buffer.alloc(500);
    let sent = '';
    for (let i = 0; i < 300; i++) {
      shared.fill(97 + (i % 26));
      sent += shared.toString('latin1');
      peer.write(peer.queued === 0 ? shared : Buffer.from(shared), false);
      if (peer.queued > 0) await expect.poll(() => peer.queued).toBe(0);
    }
    peer.end();
    expect((await readAll(client)).toString('latin1')).toBe(sent);
  },
);

test.each(BOTH)('%s: bytes come in as they were sent, in pieces of any size', async (streams) => {
  const { peer, client, read, closed } = await pair(streams);
  const text = Array.from({ length: 40_000 }, (_, i) => `line ${i}\n`).join('');
  for (let from = 0, size = 1; from < text.length; from += size, size = Math.min(200_000, size * 3))
    client.write(text.slice(from, from + size));
  // The end of what the miner sends ends the connection, and what it is owed still comes.
  client.end();
  await expect.poll(() => read().length).toBe(text.length);
  expect(read()).toBe(text);
  client.resume();
  await closed;
  peer.write('gone', false);
  peer.end();
  expect(peer.queued).toBe(0);
});

test.each(BOTH)('%s: while it is paused nothing is read, and nothing is lost', async (streams) => {
  const { peer, client, read } = await pair(streams);
  peer.pause();
  client.write('first ');
  // Another connection is served meanwhile.
  const other = await pair(streams);
  other.client.write('other');
  await expect.poll(other.read).toBe('other');
  expect(read()).toBe('');
  peer.resume();
  client.write('second');
  await expect.poll(read).toBe('first second');
});

test.each(BOTH)('%s: cut off or reset while much is queued, it closes once and takes no more', async (streams) => {
  for (const kind of ['cut off', 'reset'] as const) {
    const { peer, client, closed } = await pair(streams);
    client.pause();
    while (peer.queued < 1_000_000) peer.write(Buffer.alloc(100_000), false);
    if (kind === 'cut off') {
      peer.destroy();
      peer.destroy();
    } else client.resetAndDestroy();
    await closed;
    peer.write('more', false);
    peer.end();
  }
});

test.each(BOTH)('%s: a line that comes in halves stays its own while others send theirs', async (streams) => {
  const { port } = await startBed({ streams });
  const halves = (name: string) => {
    const line = `{"jsonrpc":"2.0","id":"${name}","method":"mining.subscribe","params":{"agent":"x/1"}}\n`;
    return [line.slice(0, 40), line.slice(40)] as const;
  };
  const names = ['one', 'two', 'three'];
  const clients = await Promise.all(
    names.map(async () => {
      const client = connect(port, '127.0.0.1');
      let text = '';
      client.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      onTestFinished(() => void client.destroy());
      await once(client, 'connect');
      return { client, text: () => text };
    }),
  );
  const one = clients[0]!;
  one.client.write(halves('one')[0]);
  // The answers to the others show that the server has read after the first half came.
  for (const [i, { client, text }] of clients.entries())
    if (i > 0) {
      client.write(halves(names[i]!).join(''));
      await expect.poll(text).toContain(`"id":"${names[i]}","result"`);
    }
  one.client.write(halves('one')[1]);
  await expect.poll(one.text).toContain('"id":"one","result"');
});

test.each(BOTH)(
  '%s: miners log in and mine, in the clear and by TLS, and their places are given back',
  async (streams) => {
    for (const secure of [false, true]) {
      const { port, server } = await startBed({ streams, certificate: TEST_CERTIFICATE });
      const miner = await V1Client.open(port, secure ? 'tls' : 'tcp');
      await miner.login(`${addressOf(1)}.w`);
      const job = miner.jobs.at(-1)!;
      expect(await miner.submitCode(job.jobId, mine(job, miner.prefix).nonce)).toBe(0);
      const [listener] = (await server.figures()).listeners;
      expect(listener?.byTransport).toMatchObject(secure ? { tcp: 0, tls: 1 } : { tcp: 1, tls: 0 });
      miner.close();
      await expect
        .poll(async () => (await server.figures()).listeners[0])
        .toMatchObject({ connections: 0, byTransport: { tcp: 0, tls: 0 } });
    }
  },
);
