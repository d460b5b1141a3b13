/**
 * A signature takes milliseconds of one of a few threads. A client that asks for hundreds, within its allowance or beyond, keeps neither other clients nor the
 * bridges of the node's own machine from theirs: those would get no templates.
 */

import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { newIdentity } from '../../node/api/identity.ts';
import { ApiBed, identity } from '../api/api-bed.ts';

const NONCE = 'ab'.repeat(32);
const CONNECTIONS = 50;
const EACH = 8;

/** All at once, from an address of its own; the answers are not waited for. */
function flood(port: number, localAddress: string): Promise<void>[] {
  const one = `GET /v1/chain/head HTTP/1.1\r\nhost: 127.0.0.1\r\nx-svc-request-nonce: ${NONCE}\r\n\r\n`;
  return Array.from({ length: CONNECTIONS }, () => {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined);
    socket.resume();
    return new Promise((resolve) => socket.on('connect', () => socket.write(one.repeat(EACH), () => resolve())));
  });
}

const ask = (port: number, localAddress: string): Promise<{ status: number; isSigned: boolean }> =>
  new Promise((resolve, reject) => {
    const headers = { 'x-svc-request-nonce': NONCE };
    httpRequest(
      { host: '127.0.0.1', localAddress, port, path: '/v1/chain/head', agent: false, headers },
      (response) => {
        const isSigned = response.headers['x-svc-signature'] !== undefined;
        response.resume().once('end', () => resolve({ status: response.statusCode ?? 0, isSigned }));
      },
    )
      .on('error', reject)
      .end();
  });

test('one client that asks for a thousand signatures leaves room for others, and they do not wait for its last', async () => {
  const many = newIdentity();
  const done: string[] = [];
  const sign = async (name: string, client?: string): Promise<boolean> => {
    const place = many.place(client);
    await place?.sign(new Uint8Array(48));
    place?.leave();
    done.push(name);
    return place !== undefined;
  };
  const flood = Array.from({ length: 1_000 }, () => sign('a', '192.0.2.1'));
  const others = [sign('b', '192.0.2.2'), sign('own')];
  expect(await Promise.all(others)).toEqual([true, true]);
  const signed = (await Promise.all(flood)).filter(Boolean).length;
  expect(signed).toBeGreaterThan(16);
  // The refusals come at once; of those that are signed, both come before most.
  expect(done.lastIndexOf('a')).toBeGreaterThan(Math.max(done.indexOf('b'), done.indexOf('own')) + 16);
});

test('others and the node’s own machine get their signatures while one client asks for hundreds', async () => {
  const bed = await ApiBed.forTest({ api: { public: true } });
  const { port } = bed.api.address;
  await Promise.all(flood(port, '127.0.0.2'));
  for (let i = 0; i < 10; i++) {
    const place = identity.place();
    const own = place?.sign(new Uint8Array(48)).finally(place.leave);
    expect(await ask(port, '127.0.0.3')).toEqual({ status: 200, isSigned: true });
    expect(await own).toBeDefined();
  }
});

test('a signature costs more than the answer, and a blocked client gets none', async () => {
  const bed = await ApiBed.forTest({ api: { public: true } });
  const { port } = bed.api.address;
  const counts = { served: 0, refused: 0, unsigned: 0 };
  for (let i = 0; i < 230; i++) {
    const { status, isSigned } = await ask(port, '127.0.0.2');
    if (status === 200) counts.served++;
    else if (isSigned) counts.refused++;
    else counts.unsigned++;
  }
  // Five units each of 500; then a hundred refusals, the last of which blocks.
  expect(counts).toEqual({ served: 100, refused: 99, unsigned: 31 });
  expect(await ask(port, '127.0.0.3')).toEqual({ status: 200, isSigned: true });
});
