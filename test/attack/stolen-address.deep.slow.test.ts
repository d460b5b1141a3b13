/**
 * Somebody with a hand in the database of a running pool makes an account's address a thief's. Node, wallet, pool and PostgreSQL are real processes: not an atom
 * reaches the thief, the others are paid on, also by a pool that starts anew, and the audit names the row.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { parseAddress } from '../../protocol/address.ts';
import { addressOf, mine, V1Client } from '../bridge/stratum-client.ts';
import { KillableStack } from '../pool/killable.ts';
import { svcPool } from '../pool/svc-pool.ts';
import { lasts } from '../watch/limits.ts';

const [VICTIM, OTHER, THIEF] = [1, 2, 3];
const LOGIN_MILLIS = 20_000;
const SOON = { interval: 250 };

/** Mines until the signal, through restarts of the pool. */
async function mining(stack: KillableStack, account: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const client = await V1Client.open(stack.ports.pplns).catch(() => undefined);
    await (client === undefined ? sleep(100) : Promise.race([work(client, account, signal), client.closed])).catch(
      () => undefined,
    );
    client?.close();
  }
}

async function work(client: V1Client, account: number, signal: AbortSignal): Promise<void> {
  // While the pool is away its port may be another program's, which never answers.
  const login = client.login(`${addressOf(account)}.rig`, 'd=4');
  await Promise.race([login, sleep(LOGIN_MILLIS).then(() => Promise.reject(new Error('no answer')))]);
  for (let from = 0n; !signal.aborted; await sleep(40)) {
    const job = client.jobs.at(-1) as (typeof client.jobs)[number];
    const { nonce, next } = mine(job, client.prefix, from);
    from = next;
    await client.submitCode(job.jobId, nonce);
  }
}

test(
  'an account whose address was changed to a thief’s is not paid, the others are, and the audit names it',
  lasts(600, 'books of a whole pool are changed and audited several times'),
  async () => {
    const stack = new KillableStack({ cutMillis: 150 });
    await stack.start();
    const done = new AbortController();
    const miners = [VICTIM, OTHER].map((account) => mining(stack, account, done.signal));
    const balanceOf = async (account: number) => {
      const answer = await fetch(`${stack.api}/v1/address/${addressOf(account)}/balance`);
      return BigInt(((await answer.json()) as { balance?: string }).balance ?? 0);
    };
    await expect.poll(async () => (await balanceOf(VICTIM)) > 0n && (await balanceOf(OTHER)) > 0n, SOON).toBe(true);

    let sql = stack.books();
    await sql`alter table accounts disable trigger user`;
    const [stolen] = await sql<{ id: number; at: Date }[]>`update accounts set address = ${addressOf(THIEF)},
      payload = ${Buffer.from(parseAddress(addressOf(THIEF)).payload)}
    where address = ${addressOf(VICTIM)} returning id, now() as at`;
    const { id, at } = stolen as { id: number; at: Date };
    // A payment that was with the wallet already goes to the victim. From then on the other one is paid, and this one waits for the operator.
    const paidOn = async () => {
      const before = await balanceOf(OTHER);
      await expect.poll(async () => (await balanceOf(OTHER)) > before, SOON).toBe(true);
    };
    const waiting = () => sql<{ why: string }[]>`select p.needs_person as why from payouts p
    join payout_items i on i.payout_id = p.id where i.account_id = ${id} and p.needs_person is not null`;
    await paidOn();
    await expect.poll(async () => (await waiting()).map(({ why }) => why).join(), SOON).toContain(`account ${id}`);
    await sql.end({ timeout: 1 });
    await stack.kill('pool');
    sql = stack.books();
    // A list over slices from before and after the restart, with the victim's work of both, is made too: the books go on.
    for (let i = 0; i < 3; i++) await paidOn();
    const owners = await sql`select payload from account_names group by payload having count(*) > 1`;
    expect(owners.length).toBe(0);
    expect(await balanceOf(THIEF)).toBe(0n);
    expect((await waiting()).length).toBeGreaterThan(0);
    const sent = await sql`select p.id from payouts p join payout_items i on i.payout_id = p.id
    where i.account_id = ${id} and p.created_at > ${at} and p.state <> 'reserved'`;
    expect(sent.length).toBe(0);

    done.abort();
    await Promise.all(miners);
    await sql.end({ timeout: 1 });
    await stack.stopPool();
    const audited = await svcPool('audit', '--data-dir', stack.poolDirectory, '--node-api', stack.api);
    expect(audited.code).toBe(1);
    expect(audited.out).toMatch(new RegExp(`account ${id}: payload: the books say \\S+, computed`));
  },
);
