/**
 * Miners whom nobody can pay: burn addresses and addresses of another network. They are refused at the door; and where the books hold some of them all the same, each
 * waits alone for the operator, and nobody else waits at all. PostgreSQL, wallet and node are real.
 */
import { expect, test } from 'vitest';
import type { PayoutAction, QueueDocument } from '../../pool/api/operator/operator-documents.ts';
import type { Exchange } from '../../pool/api/route.ts';
import { formatAddress } from '../../protocol/address.ts';
import { startBed } from '../bridge/bed.ts';
import { addressOf as minerAddress, V1Client, V2Client } from '../bridge/stratum-client.ts';
import { creditAccount } from '../faults/credit-account.ts';
import { PayoutBed } from '../faults/payout-bed.ts';
import { COIN } from '../wallet/wallet-bed.ts';
import { lasts } from '../watch/limits.ts';

const withKind = (kind: number, fill: number) => Uint8Array.of(kind, ...new Uint8Array(48).fill(fill));
const UNPAYABLE = {
  burn: formatAddress(withKind(2, 0), 'development'),
  'burn, with any hash': formatAddress(withKind(2, 77), 'development'),
  'another network': formatAddress(withKind(0, 7), 'mainnet'),
};

test.each(Object.entries(UNPAYABLE))(
  '%s: refused at authorize with 29 and a text that says why',
  async (_, address) => {
    const { port } = await startBed({ threads: 0 });
    const client = await V1Client.open(port);
    await client.subscribe();
    const call = { method: 'mining.authorize', params: { username: `${address}.rig`, password: '' } } as const;
    const answer = await client.ask(call);
    expect(answer).toMatchObject({ kind: 'error', error: { code: 29 } });
    expect(JSON.stringify(answer)).toMatch(/burn address|of mainnet/);
    // The same connection may name an address that can be paid.
    const payable = { username: `${minerAddress(1)}.rig`, password: '' };
    expect(await client.ask({ method: 'mining.authorize', params: payable })).toMatchObject({ kind: 'result' });
    client.close();
    const binary = await V2Client.open(port);
    binary.send({ type: 'subscribe', subscribe: { agent: 'test/2', tag: '', session: null } });
    binary.send({ type: 'authorize', authorize: { username: `${address}.rig`, password: '' } });
    expect(await binary.next('error')).toMatchObject({ error: { code: 29 } });
    binary.close();
  },
);

test(
  'twenty of them in the books, with more than anybody else: the others are paid, and each of them waits alone',
  lasts(120, 'a hundred payouts become final, cut by cut'),
  async () => {
    const bed = await PayoutBed.open();
    // As a release without the check at the door has left them.
    for (let i = 0; i < 20; i++) {
      const payload = withKind(i % 5 === 4 ? 0 : 2, 100 + i);
      const address = formatAddress(payload, i % 5 === 4 ? 'mainnet' : 'development');
      await creditAccount(bed.sql, { payload, address, amount: 50n * COIN + BigInt(i) });
    }
    for (let i = 0; i < 40; i++) bed.income.push({ account: i, amount: COIN + BigInt(i) });
    bed.startIncome();
    bed.startPool();
    const { payoutRoutes } = await import('../../pool/api/operator/payout-routes.ts');
    const routes = payoutRoutes({
      sql: bed.sql,
      wallet: bed.wallet(),
      note: async () => undefined,
      chain: () => undefined,
      pauseNote: async () => undefined,
    });
    const route = (path: string, id = '') =>
      routes
        .find((one) => one.path === `/operator${path}`)
        ?.handle({ params: { id }, query: {}, body: undefined }, {} as Exchange);
    const queue = async () => ((await route('/queue')) as QueueDocument).payouts;
    const act = (id: string, action: PayoutAction) => route(`/payouts/:id/${action}`, id);
    const setAside = async () => (await queue()).filter(({ needs_person }) => needs_person !== null);
    const paid = async () => {
      const [row] = await bed.sql<{ n: number }[]>`select count(*)::int as n from accounts where paid > 0`;
      return row?.n;
    };
    await expect.poll(paid).toBe(40);
    await bed.expectPaidOnce();

    await expect.poll(async () => (await setAside()).length).toBe(20);
    const waiting = await setAside();
    for (const payout of waiting) {
      expect(payout).toMatchObject({ state: 'reserved', recipients: 1, actions: ['release', 'void'] });
      expect(payout.items[0]?.address).toMatch(/^d?svc1/);
      // An address of another network is found by the audit already, before the wallet is asked.
      expect(payout.needs_person).toMatch(/burn|of mainnet|its address is not that of its payload/);
    }
    // Both buttons work, for every one of them. Asked again, the wallet refuses again; given back, the balance is due again: they wait alone once more.
    const ids = new Set(waiting.map(({ payout_id }) => payout_id));
    for (const { payout_id } of waiting.slice(0, 10)) await act(payout_id, 'release');
    for (const { payout_id } of waiting.slice(10)) await act(payout_id, 'void');
    await expect.poll(async () => (await setAside()).filter(({ payout_id }) => !ids.has(payout_id)).length).toBe(10);
    await expect.poll(async () => (await setAside()).length).toBe(20);
    // Newcomers do not wait for them.
    for (let i = 40; i < 50; i++) bed.income.push({ account: i, amount: COIN });
    await expect.poll(paid).toBe(50);
    await bed.expectPaidOnce();
  },
);
