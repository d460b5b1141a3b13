/**
 * A real node behind a front that answers 429 with `retry_after_millis`, or 503, as often as the test says: the wallet
 * waits as long as the node asks, pays once, and says that it does not know rather than that it failed.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { formatAddress } from '../../../protocol/address.ts';
import { WalletRoot } from '../../../wallet/keys/derivation.ts';
import { Keyring } from '../../../wallet/keys/keyring.ts';
import { phraseOfEntropy } from '../../../wallet/keys/phrase.ts';
import { nodeClient } from '../../../wallet/open.ts';
import { openTestWallet, secretsOf, type TestWallet } from '../open-wallet.ts';
import { ChainBed, COIN } from '../wallet-bed.ts';

const NAME = 'unwilling node';
const stranger = formatAddress(new Uint8Array(49).fill(7, 1), 'development');

type Refusal = { readonly status: 429 | 503; readonly retryMillis?: number };

/** Passes calls on to a node, but the next ones of a path get these refusals. */
class Front {
  readonly refusals: { path: string; refusal: Refusal }[] = [];
  /** When calls to submit came, and what they were answered. */
  readonly submissions: { at: number; status: number; wire: string }[] = [];
  readonly #server: Server;

  constructor(base: string) {
    this.#server = createServer(async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const body = Buffer.concat(parts);
      const next = this.refusals.findIndex(({ path }) => request.url === path);
      const [refused] = next < 0 ? [] : this.refusals.splice(next, 1);
      const at = performance.now();
      let status: number;
      let text: string;
      if (refused !== undefined) {
        const { retryMillis } = refused.refusal;
        status = refused.refusal.status;
        const error = { code: status === 429 ? 'too_many_requests' : 'not_ready', message: 'not now' };
        text = JSON.stringify({
          api_version: 1,
          error,
          ...(retryMillis === undefined ? {} : { retry_after_millis: retryMillis }),
        });
      } else {
        const answer = await fetch(`${base}${request.url}`, {
          method: request.method ?? 'GET',
          headers: { 'content-type': 'application/json' },
          ...(body.length > 0 ? { body } : {}),
        });
        status = answer.status;
        text = await answer.text();
      }
      if (request.url === '/v1/transactions') this.submissions.push({ at, status, wire: body.toString() });
      response.writeHead(status, { 'content-type': 'application/json' }).end(text);
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  refuse(path: string, ...refusals: Refusal[]): void {
    this.refusals.push(...refusals.map((refusal) => ({ path, refusal })));
  }
}

async function openBehind(answerMillis = 30_000): Promise<{ chain: ChainBed; front: Front; opened: TestWallet }> {
  const root = new WalletRoot(phraseOfEntropy(secretsOf(NAME).entropy), '', 'development');
  const { address } = new Keyring(root).addressRecord('receive', 0, 0);
  const chain = await ChainBed.open(address, { outputs: 4, each: 10n * COIN });
  onTestFinished(() => chain.close());
  const front = new Front(chain.base);
  onTestFinished(() => front.close());
  const client = nodeClient(await front.listen());
  const opened = await openTestWallet({ client }, { name: NAME, answerMillis });
  await chain.beat();
  await opened.turn();
  return { chain, front, opened };
}

const paidTo = async (chain: ChainBed): Promise<string> =>
  (await chain.api.client.addressBalance({ address: stranger })).balance;

test('a submission is sent again when the wait has passed, the same bytes, and paid once', async () => {
  const { chain, front, opened } = await openBehind();
  for (const [i, refusal] of [{ status: 429, retryMillis: 700 } as const, { status: 503 } as const].entries()) {
    front.submissions.length = 0;
    front.refuse('/v1/transactions', refusal);
    const result = await opened.call('send', { to: stranger, amount: '1', request_id: `r${i}` });
    expect(result).toMatchObject({ submitted: true, duplicate: false, state: 'pending' });
    const [first, second, ...more] = front.submissions;
    expect([first?.status, second?.status, more.length]).toEqual([refusal.status, 200, 0]);
    expect(second?.wire).toBe(first?.wire);
    // Timers may be a hair early, never more.
    if (refusal.status === 429) expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThan(650);
  }
  await chain.beat();
  expect(await paidTo(chain)).toBe((2n * COIN).toString());
});

test('a node that keeps refusing leaves the outcome unknown; the same request is paid once when it relents', async () => {
  const { chain, front, opened } = await openBehind(200);
  const params = { to: stranger, amount: '1', request_id: 'r' };
  // Longer than any wait of the client; then an attempt that is busy twice: both end without the node having it.
  front.refuse('/v1/transactions', { status: 429, retryMillis: 3_600_000 }, { status: 503 }, { status: 503 });
  expect(await opened.refusal('send', params)).toMatchObject({ code: -32002, word: 'outcome_unknown' });
  await expect.poll(() => front.submissions.map(({ status }) => status)).toEqual([429]);
  expect(await opened.call('balance')).toMatchObject({ balance: '40.00000000', reserved: '10.00000000' });
  // The loop keeps sending the same bytes; nothing was refused in the wallet's eyes.
  await expect
    .poll(
      async () => {
        await opened.turn();
        return front.submissions.at(-1)?.status;
      },
      { interval: 200 },
    )
    .toBe(200);
  expect(front.submissions.map(({ status }) => status)).toEqual([429, 503, 503, 200]);
  expect(new Set(front.submissions.map(({ wire }) => wire)).size).toBe(1);
  expect(await opened.call('send', params)).toMatchObject({ duplicate: true, submitted: true });
  await chain.beat();
  await opened.turn();
  expect(await paidTo(chain)).toBe(COIN.toString());
  expect(await opened.call('send', params)).toMatchObject({ duplicate: true, state: 'finalized' });
});

test('reads that are refused stop payments with -32001 and nothing else; they go on when the node answers', async () => {
  const { front, opened } = await openBehind();
  for (const refusal of [
    { status: 429, retryMillis: 3_600_000 },
    { status: 503, retryMillis: 3_600_000 },
  ] as const) {
    front.refuse('/v1/node/sync', refusal);
    await opened.turn();
    expect(await opened.call('status')).toMatchObject({ node_reachable: false, node_trouble: 'node_unreachable' });
    expect(await opened.refusal('send', { to: stranger, amount: '1', request_id: 'never' })).toMatchObject({
      code: -32001,
      word: 'node_unreachable',
    });
    expect(await opened.call('balance')).toMatchObject({ balance: '40.00000000', spendable: '40.00000000' });
    await opened.turn();
    expect(await opened.call('status')).toMatchObject({ node_reachable: true, node_trouble: null });
  }
  expect(front.submissions).toEqual([]);
});
