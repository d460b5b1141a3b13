/**
 * Bridge, pool and wallet as processes, each before a node that lies, which is a process as well: every lie is refused or held and named in
 * the log, nothing ends, and when the node tells the truth again work goes on and everything is paid once, as the chain has it.
 */
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createVerifier } from '../../kernels/verifier.ts';
import type { BlocksDocument, PaymentsDocument } from '../../pool/api/documents.ts';
import type { HeldRewardsDocument, OperatorStatus } from '../../pool/api/operator/operator-documents.ts';
import type { AddressBalance, BlockDocument } from '../../protocol/api/documents.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { runToEnd } from '../../stack/process.ts';
import { level } from '../level.ts';
import { Rig } from '../pool/rig.ts';
import { readJson, StackFixture, stackPorts } from '../stack/stack-fixture.ts';
import { keptFolder } from './kept-logs.ts';
import { Liar } from './liar.ts';

const WAIT = { interval: 100 };

type Part = 'bridge' | 'pool' | 'wallet';
/** A lie, its receivers, and what each then says in its log. */
type Told = {
  readonly lie: string;
  readonly by: 'api' | 'mining' | 'both';
  readonly says: Partial<Record<Part, RegExp>>;
  readonly deep?: true;
};

const broken = (reason: string): Told['says'] => ({
  bridge: new RegExp(`no template.*${reason}`),
  pool: new RegExp(`no template.*${reason}`),
  wallet: new RegExp(`node not usable.*${reason}`),
});

const LIES: readonly Told[] = [
  { lie: 'endless', by: 'both', says: broken('larger than') },
  { lie: 'redirects', by: 'both', says: broken('307'), deep: true },
  {
    lie: 'garbage',
    by: 'both',
    says: { bridge: /node is away/, pool: /node is away/, wallet: /node not usable/ },
    deep: true,
  },
  {
    lie: 'hangs',
    by: 'both',
    says: { bridge: /no node serves/, pool: /no node serves/, wallet: /node not usable/ },
    deep: true,
  },
  ...(['epochs', 'anchors'] as const).map(
    (lie): Told => ({ lie, by: 'mining', says: { bridge: /template refused/, pool: /template refused/ } }),
  ),
  { lie: 'targets', by: 'mining', says: { bridge: /block refused/, pool: /block refused/ }, deep: true },
  {
    lie: 'heights',
    by: 'both',
    says: { bridge: /too old: the head is 10000/, pool: /the books wait.*claims cut 10000/ },
    deep: true,
  },
  { lie: 'behind', by: 'both', says: { wallet: /node not usable.*the node is behind/ }, deep: true },
  { lie: 'disorder', by: 'both', says: { bridge: /node is away/, pool: /node is away/ }, deep: true },
  { lie: 'denies', by: 'both', says: { bridge: /block did not reach node/, pool: /block did not reach node/ } },
];

test('a lying node is refused or held, and named; nothing ends; the truth is paid', async () => {
  const ports = await stackPorts();
  const stack = new StackFixture(ports, {
    pace: { cutMillis: 80 },
    nodeSeenAt: async () => ({ api: api.port, mining: mining.port }),
  });
  symlinkSync(keptFolder(), stack.files.logs);
  const [api, mining] = (await Promise.all(
    [ports.api, ports.mining].map((at) => Liar.before(`http://127.0.0.1:${at}`)),
  )) as [Liar, Liar];
  onTestFinished(async () => {
    await stack.stop();
    api.stop();
    mining.stop();
  });
  await stack.start();
  await stack.startBridge();
  const verifier = createVerifier({ network: NETWORKS.development, mode: 'full', threads: 1 });
  await verifier.prepare(0);
  const rig = (number: number, port: number) =>
    new Rig({ number, form: 'v2', service: 'pplns', restMillis: 400 }, { pplns: port, solo: 0 }, verifier);
  const rigs = [rig(1, ports.pplns), rig(2, ports.bridge)] as const;
  const miner = rigs[0].account;
  onTestFinished(async () => {
    await Promise.all(rigs.map((each) => each.stop()));
    await verifier.close();
  });
  const log = (part: Part) => readFileSync(join(stack.files.logs, `${part}.log`), 'utf8');
  const says = (part: Part, what: RegExp, from: number) =>
    expect.poll(() => what.test(log(part).slice(from)), { ...WAIT, message: `${part}: ${what}` }).toBe(true);
  const web = <T>(path: string) => readJson<T>(`${stack.webUrl}/api/v1/${path}`);
  const blocks = async () => (await web<BlocksDocument>('blocks?limit=100')).blocks;
  const head = async () =>
    (await readJson<{ finalized_height: number }>(`${stack.apiUrl}/v1/node/sync`)).finalized_height;
  /** The bridge is where the node was a moment ago. Pool and wallet show it at the end, by what they book and pay. */
  const works = async () => {
    const height = await head();
    const isThere = async () => {
      const bridge = await readJson<{ ready: boolean; finalized_height: number }>(
        `http://127.0.0.1:${ports.bridgeStats}/v1/stats`,
      );
      return bridge.ready && bridge.finalized_height >= height;
    };
    await expect.poll(() => isThere().catch(() => false), { ...WAIT, message: 'the bridge' }).toBe(true);
  };
  await expect.poll(async () => (await blocks()).length, WAIT).toBeGreaterThan(0);
  const tell = async (lie: string, by: Told['by'], expected: Told['says']) => {
    const parts = Object.keys(expected) as Part[];
    const from = new Map(parts.map((part) => [part, log(part).length]));
    const liars = [...(by === 'mining' ? [] : [api]), ...(by === 'api' ? [] : [mining])];
    await Promise.all(liars.map((liar) => liar.say(lie)));
    await Promise.all(parts.map((part) => says(part, expected[part] as RegExp, from.get(part) as number)));
    await Promise.all(liars.map((liar) => liar.say('truth')));
  };
  for (const { lie, by, says: expected, deep } of LIES) {
    if (deep && level !== 'deep') continue;
    await tell(lie, by, expected);
    await works();
  }
  const { pool_address: address } = await web<{ pool_address: string }>('pool');
  await tell('amounts', 'api', { pool: /a reward is held/ });
  if (level === 'deep') {
    await tell(`never-sent ${address}`, 'api', { pool: /does not prove it.*block=e{20}/ });
    await tell(`another-miner ${address}`, 'api', { pool: /does not prove it.*pays somebody else/ });
    await tell('rolled-back', 'api', {
      pool: /the books wait.*the books were kept by/,
      wallet: /payments are stopped/,
    });
    const wallet = ['--file', stack.files.poolWallet, '--rpc', `127.0.0.1:${ports.wallet}`];
    await runToEnd('svc-wallet', ['call', ...wallet, 'rescan']);
  }

  // Nothing has ended, and work that is done now is paid.
  expect(stack.ended).toEqual([]);
  const height = await head();
  const operator = async <T>(path: string, body?: object) => {
    const token = readFileSync(`${stack.files.pool}/operator.token`, 'utf8').trim();
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const request = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) };
    return (await (await fetch(`${stack.webUrl}/api/v1/operator/${path}`, request)).json()) as T;
  };
  /** A cut that named more blocks than it paid leaves doubt about what each of them was due: a person looks at the chain and accepts it. */
  const acceptHeld = async () => {
    for (const { block_id: id, accepted } of (await operator<HeldRewardsDocument>('rewards')).rewards) {
      const { reward } = await readJson<BlockDocument>(`${stack.apiUrl}/v1/blocks/${id}`);
      if (accepted === null && reward.amount !== null)
        await operator(`rewards/${id}/accept`, { amount: reward.amount });
    }
  };
  const settled = async () => {
    if (level === 'deep') await acceptHeld();
    const found = await blocks();
    const isLate = found.some(({ state, anchor_height: at }) => state === 'paid' && at > height);
    return isLate && found.every(({ state }) => state !== 'held');
  };
  await expect.poll(settled, { interval: 500 }).toBe(true);
  // Everything that is in the books is as the chain has it.
  for (const { block_id: id, state, reward } of await blocks()) {
    if (state !== 'paid') continue;
    const document = await readJson<BlockDocument>(`${stack.apiUrl}/v1/blocks/${id}`);
    expect({ payout: document.payout, amount: document.reward.amount }).toEqual({ payout: address, amount: reward });
  }
  // What was paid arrived once, and nothing else did.
  await rigs[0].stop();
  const paid = async () => {
    const { payments } = await web<PaymentsDocument>(`payments?address=${miner}&limit=100`);
    const { balance } = await readJson<AddressBalance>(`${stack.apiUrl}/v1/address/${miner}/balance`);
    const booked = payments.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
    return payments.some(({ state }) => state === 'finalized') && BigInt(balance) === booked;
  };
  await expect.poll(paid, { ...WAIT, message: 'payments' }).toBe(true);
  expect((await operator<OperatorStatus>('status')).sheet).toMatchObject({ gap: '0' });
  expect(stack.ended).toEqual([]);
});
