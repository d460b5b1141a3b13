/** A reader that is cut off at random hundreds of times has seen every cut once and in order. */

import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { followCuts, followTransaction } from '../../protocol/api/client-events.ts';
import { apiClientDependencies } from '../../runtime/node-client/api-client.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { ApiBed } from './api-bed.ts';

/** A wire between client and node that can be torn, in the middle of a frame or of a handshake. */
class Wire {
  readonly #server: Server;
  readonly #pairs = new Set<[Socket, Socket]>();
  torn = 0;

  constructor(target: () => number) {
    this.#server = createServer((near) => {
      const far = connect(target(), '127.0.0.1');
      const pair: [Socket, Socket] = [near, far];
      this.#pairs.add(pair);
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        from.on('data', (data) => to.write(data));
        from.on('error', () => undefined);
        from.on('close', () => {
          to.destroy();
          this.#pairs.delete(pair);
        });
      }
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', () => resolve()));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Part of what is under way may still arrive, as on a real wire. */
  tear(halfFrame: boolean): void {
    for (const [near, far] of this.#pairs) {
      if (halfFrame) near.write(Buffer.from([0x81, 0x7e, 0x10]));
      near.destroySoon();
      far.destroy();
      this.torn++;
    }
  }

  close(): void {
    this.tear(false);
    this.#server.close();
  }
}

test('random disconnections and a restart lose no cut and repeat none', async () => {
  const cuts = count({ full: 300, deep: 2_000 });
  const disconnections = count({ full: 150, deep: 1_000 });
  const bed = await ApiBed.forTest();
  const wire = new Wire(() => bed.api.address.port);
  onTestFinished(() => wire.close());
  const random = randomOf(seed);
  const stop = new AbortController();
  const seen: number[] = [];
  const dependencies = {
    ...apiClientDependencies(),
    sleep: (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, Math.min(millis, 2))),
  };
  const reading = (async () => {
    const stream = followCuts({ baseUrl: await wire.listen(), afterHeight: 0, signal: stop.signal }, dependencies);
    for await (const item of stream) {
      expect(item.type).toBe('cut_finalized');
      if (item.type === 'cut_finalized') seen.push(item.data.cut.height);
      if (seen.length === cuts) break;
    }
  })();
  for (let i = 1; i <= cuts; i++) {
    await bed.bed.seal();
    if (i === Math.floor(cuts / 2)) await bed.restart();
    while (wire.torn < (i * disconnections) / cuts) {
      await new Promise((resolve) => setTimeout(resolve, random(12)));
      wire.tear(random(2) === 0);
    }
  }
  await reading;
  stop.abort();
  expect(wire.torn).toBeGreaterThanOrEqual(disconnections);
  expect(seen).toEqual(Array.from({ length: cuts }, (_, i) => i + 1));
});

test('a reader that was away for more than an hour gets the cuts to read over HTTP', async () => {
  const bed = await ApiBed.forTest();
  await bed.bed.seal(5);
  bed.bed.now += 4_000_000;
  await bed.bed.seal(2);
  const stop = new AbortController();
  const items: string[] = [];
  const stream = followCuts({ baseUrl: bed.base, afterHeight: 2, signal: stop.signal }, apiClientDependencies());
  for await (const item of stream) {
    items.push(item.type === 'missed' ? `${item.data.from}-${item.data.to}` : String(item.data.cut.height));
    if (item.type === 'missed') await bed.bed.seal();
    else break;
  }
  stop.abort();
  expect(items).toEqual(['3-7', '8']);
});

test('a transaction is followed from the mempool to its final status', async () => {
  const bed = await ApiBed.forTest();
  const id = await bed.pay(0, 'alice', 500n);
  const seen: string[] = [];
  for await (const status of followTransaction({ baseUrl: bed.base, id }, apiClientDependencies())) {
    seen.push(status.lifecycle);
    if (status.lifecycle === 'processing') await bed.bed.mine(developmentKey('miner').address);
    if (status.lifecycle === 'receiving') await bed.bed.seal();
  }
  expect(seen).toEqual(['processing', 'receiving', 'finalized']);
});
