/** Strangers with some addresses open WebSockets until all places of a door are taken: they answer pings, so nothing ends them, and others are served all the same. */
import { request } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { LiveHub } from '../../pool/api/public/live.ts';
import { WEB_LIMITS } from '../../pool/api/web.ts';
import { Opened } from '../../runtime/door/opened.ts';
import { webBed } from '../pool/web-bed.ts';
import { quietLog } from '../quiet-log.ts';

const OF_CLIENT = 6;
const PLACES = 2 * OF_CLIENT;
const PROXY = '127.0.0.9';

type Client = { readonly from: string; readonly named?: string };

async function openPool() {
  const live = new LiveHub({}, { first: () => undefined, log: quietLog });
  onTestFinished(() => live.close());
  const port = await webBed(
    [PROXY],
    { live: (...asked) => live.upgrade(...asked) },
    { limits: { ...WEB_LIMITS, connections: PLACES, perClient: OF_CLIENT, reserved: 0 } },
  );
  const headersOf = ({ named }: Client) => (named === undefined ? {} : { 'x-forwarded-for': named });
  /** Resolves with whether it was opened. */
  const open = (client: Client): Promise<boolean> =>
    new Promise((resolve) => {
      const options = { localAddress: client.from, headers: headersOf(client) };
      const page = new WebSocket(`ws://127.0.0.1:${port}/api/v1/live`, options);
      onTestFinished(() => page.terminate());
      page.on('open', () => resolve(true)).on('error', () => resolve(false));
    });
  const ask = (client: Client): Promise<number | undefined> =>
    new Promise((resolve) => {
      const asked = { host: '127.0.0.1', port, path: '/health', agent: false };
      request({ ...asked, localAddress: client.from, headers: headersOf(client) }, (answer) =>
        answer.resume().once('end', () => resolve(answer.statusCode)),
      )
        .on('error', () => resolve(undefined))
        .end();
    });
  return { live, open, ask };
}

test.each([
  ['directly', (i: number) => ({ from: `127.0.${i}.1` })],
  ['behind a proxy', (i: number) => ({ from: PROXY, named: `192.0.${i}.1` })],
])('two strangers hold all places with pages, %s: another has an answer and a page', async (_, client) => {
  const { live, open, ask } = await openPool();
  const held = await Promise.all(Array.from({ length: PLACES }, (_, n) => open(client(2 + (n % 2)))));
  expect(held).not.toContain(false);
  expect(live.pages).toBe(PLACES);
  expect(await ask(client(4))).toBe(200);
  expect(await open(client(4))).toBe(true);
  expect(await ask(client(5))).toBe(200);
});

test('those who hold few keep them', async () => {
  const { live, open, ask } = await openPool();
  const held = await Promise.all(Array.from({ length: PLACES }, (_, i) => open({ from: `127.0.${10 + (i % 6)}.1` })));
  expect(held).not.toContain(false);
  expect(await ask({ from: '127.0.4.1' })).toBe(undefined);
  expect(live.pages).toBe(PLACES);
});

test('the oldest of who holds most goes, none of a program of this machine for another machine, and nothing is kept of those that closed', () => {
  const opened = new Opened<{ readonly isNear: boolean }>();
  const of = (client: string, count: number, isNear = false) => {
    const own = Array.from({ length: count }, () => ({ isNear }));
    for (const one of own) opened.add(one, client);
    return own;
  };
  const near = of('10.0.1.1', 20, true);
  const some = of('10.0.2.1', 8);
  // A network of one owner.
  const most = [...of('2001:db8:1:1::/64', 4), ...of('2001:db8:1:2::/64', 5)];
  expect(opened.ofMany('192.0.2.1', false)).toBe(most[0]);
  expect(opened.ofMany('192.0.2.1', true)).toBe(near[0]);
  expect(opened.ofMany('2001:db8:1:3::/64', false)).toBe(undefined);
  opened.delete(most[0] as (typeof most)[0]);
  opened.delete(most[1] as (typeof most)[0]);
  expect(opened.ofMany('192.0.2.1', false)).toBe(some[0]);
  // Strangers with very many addresses are looked at in turn.
  for (let i = 0; i < 1_000; i++) of(`10.${100 + (i >> 8)}.${i & 255}.1`, 1);
  const looks = Array.from({ length: 16 }, () => opened.ofMany('192.0.2.1', false));
  expect(looks).toContain(some[0]);
  for (const one of [...near, ...some, ...most]) opened.delete(one);
  expect(opened.ofMany('192.0.2.1', true)).toBe(undefined);
});
