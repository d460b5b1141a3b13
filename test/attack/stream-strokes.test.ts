/** Clients that use a TCP connection of the stratum port badly, on handles and on sockets: each loses its own connection only, and nothing of it stays. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { ConnectionCount } from '../../bridge/connection/connection-count.ts';
import { Desk } from '../../bridge/connection/desk.ts';
import { encodeRequest } from '../../protocol/stratum/v1-request.ts';
import { clientFaults } from '../../runtime/clients/client-fault.ts';
import { type Bed, startBed } from '../bridge/bed.ts';
import { addressOf, mine, V1Client } from '../bridge/stratum-client.ts';
import { dial, type RawClient, socketsOf } from './raw-client.ts';

type Streams = 'handles' | 'sockets';
const BOTH: Streams[] = ['handles', 'sockets'];
const SUBSCRIBE = `${encodeRequest(1, { method: 'mining.subscribe', params: { agent: 'x/1', tag: '', session: null } })}\n`;
const PING = `${encodeRequest(7, { method: 'mining.ping' })}\n`;

async function dialled(port: number, first?: string | Uint8Array): Promise<RawClient> {
  const client = await dial(port, first);
  onTestFinished(() => void client.socket.destroy());
  return client;
}

const listener = async ({ server }: Bed) => (await server.figures()).listeners[0];
const places = async (bed: Bed): Promise<number | undefined> => (await listener(bed))?.byTransport.tcp;

/** The server still serves: a miner logs in and has a share accepted. */
async function insistMining({ port }: Bed): Promise<void> {
  const miner = await V1Client.open(port);
  await miner.login(`${addressOf(1)}.w`);
  const job = miner.jobs.at(-1)!;
  expect(await miner.submitCode(job.jobId, mine(job, miner.prefix).nonce)).toBe(0);
  miner.close();
}

test.each(BOTH)(
  '%s: resets and ends before, between and after words leave no place and no descriptor',
  async (streams) => {
    const bed = await startBed({ streams });
    const before = socketsOf();
    const words = [
      '',
      '{',
      SUBSCRIBE.slice(0, 30),
      SUBSCRIBE,
      SUBSCRIBE + PING.repeat(50),
      'GET / HTTP/1.1\r\n\r\n',
      '\u0016',
    ];
    for (let i = 0; i < 70; i++) {
      const client = await dial(bed.port, words[i % words.length]);
      if (i % 3 === 0) client.socket.resetAndDestroy();
      else if (i % 3 === 1) client.socket.destroy();
      else client.socket.end();
      client.socket.resume();
      if (i % 3 === 2) client.ended.then(() => client.socket.destroy());
    }
    await expect.poll(() => places(bed)).toBe(0);
    await expect.poll(() => socketsOf()).toBeLessThanOrEqual(before);
    expect((await listener(bed))?.connections).toBe(0);
    await insistMining(bed);
  },
);

test.each(BOTH)(
  '%s: half a connection is answered before it ends; a violation takes what follows it along',
  async (streams) => {
    const bed = await startBed({ streams });
    const half = await dialled(bed.port, SUBSCRIBE);
    half.socket.end();
    await half.ended;
    expect(half.text).toContain('"id":1');
    const rude = await dialled(bed.port, `${SUBSCRIBE}${'x'.repeat(100_000)}\n${PING.repeat(1_000)}`);
    await rude.ended;
    expect(rude.text).not.toContain('"id":7');
    rude.socket.destroy();
    half.socket.destroy();
    await expect.poll(() => places(bed)).toBe(0);
  },
);

test.each(BOTH)('%s: a PROXY header and a login, byte by byte', async (streams) => {
  const bed = await startBed({ streams, proxies: ['127.0.0.1/32'] });
  const client = await dialled(bed.port);
  client.socket.setNoDelay(true);
  for (const byte of `PROXY TCP4 203.0.113.9 192.0.2.1 5000 3333\r\n${SUBSCRIBE}`) {
    client.socket.write(byte);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await expect.poll(() => client.text).toContain('"id":1');
  const torn = await dialled(bed.port, 'PROXY TCP4 203.0.113.9 192.0.2');
  torn.socket.write('.1 5000 3333\r\n\u0000\u0001');
  await torn.ended;
  expect(torn.text).toBe('');
});

test.each(BOTH)(
  '%s: a defect while a connection is accepted, read or closed costs that connection only',
  async (streams) => {
    const bed = await startBed({ streams });
    const before = socketsOf();
    const defect = (): never => {
      throw new TypeError('a defect');
    };
    for (const [spied, first] of [
      [() => vi.spyOn(ConnectionCount.prototype, 'add'), undefined],
      [() => vi.spyOn(Desk.prototype, 'open'), SUBSCRIBE],
      [() => vi.spyOn(Desk.prototype, 'gone'), SUBSCRIBE],
    ] as const) {
      const spy = spied().mockImplementationOnce(defect);
      onTestFinished(() => void spy.mockRestore());
      const client = await dial(bed.port, first);
      if (first !== undefined) client.socket.end();
      await client.ended;
      client.socket.destroy();
      await expect.poll(() => clientFaults.total).toBe(1);
      spy.mockRestore();
      clientFaults.take();
    }
    await expect.poll(() => places(bed)).toBe(0);
    await expect.poll(() => socketsOf()).toBeLessThanOrEqual(before);
    await insistMining(bed);
  },
);

test.each(BOTH)(
  '%s: a server that is closed has closed its connections, whatever they are in the middle of',
  async (streams) => {
    const bed = await startBed({ streams });
    const clients = [
      await dialled(bed.port),
      await dialled(bed.port, SUBSCRIBE.slice(0, 20)),
      await dialled(bed.port, SUBSCRIBE),
    ];
    const miner = await V1Client.open(bed.port);
    await miner.login(`${addressOf(1)}.w`);
    await expect.poll(() => places(bed)).toBe(4);
    await bed.server.close();
    expect(await places(bed)).toBe(0);
    await Promise.all([miner.closed, ...clients.map(({ ended }) => ended)]);
  },
);
