/**
 * A rolling upgrade of two pool instances under miners, twice: first the accountant and then the other one, and to the release after it the other way
 * round. Both releases run at the same time each time, and blocks are found and paid throughout.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createVerifier } from '../../kernels/verifier.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { Fleet, type Instance } from '../pool/fleet.ts';
import { booksCaughtUp, expectShares, Rig } from '../pool/rig.ts';
import { svcPool } from '../pool/svc-pool.ts';
import { until } from '../until.ts';
import { nextRelease, OLDER_RELEASE } from './next-release.ts';

const NAMES = ['a', 'b'] as const;
type Name = (typeof NAMES)[number];
const RIGS = 8;
const REST_MILLIS = 300;
/** A share has 16: some of them are blocks. */
const BLOCK_WORK = 200;

test('two instances go to the next release one after the other, in both orders: no share is lost or twice, nothing is paid twice, and the older release is refused afterwards', async () => {
  const verifier = createVerifier({ network: NETWORKS.development, mode: 'light', threads: 1 });
  onTestFinished(() => verifier.close());
  await verifier.prepare(0);
  const releases = { '1.0.1': nextRelease('1.0.1', 1), '1.0.2': nextRelease('1.0.2', 2) };
  const fleet = await Fleet.start({
    blockWork: BLOCK_WORK,
    cutMillis: 500,
    payoutMin: '0.01',
    words: ['--payout-interval', '1s'],
  });
  const instances = {} as Record<Name, Instance>;
  for (const name of NAMES) instances[name] = await fleet.add(name, {}, { home: OLDER_RELEASE });
  const sql = fleet.books();
  const other = (name: Name): Name => (name === 'a' ? 'b' : 'a');
  const rigs = Array.from({ length: RIGS }, (_, number) => {
    const [service, form] = [number % 4 < 2 ? 'pplns' : 'solo', number < RIGS / 2 ? 'v1' : 'v2'] as const;
    const { ports } = instances[NAMES[number % 2] as Name];
    return new Rig({ number, service, form, restMillis: REST_MILLIS }, ports, verifier);
  });

  const finalPayouts = async (): Promise<number> => {
    const [row] = await sql<{ n: number }[]>`select count(*)::int as n from payouts where state = 'finalized'`;
    return row?.n ?? 0;
  };
  const headHeight = async (): Promise<number> => {
    const answer = await fetch(`${fleet.api}/v1/node/sync`);
    return ((await answer.json()) as { finalized_height: number }).finalized_height;
  };
  /** Everybody's shares are taken, and payouts become final. */
  const goesOn = async (): Promise<void> => {
    const [paid, before] = [await finalPayouts(), rigs.map((rig) => rig.accepted)];
    await until(() => rigs.every((rig, i) => rig.accepted > (before[i] as number) + 2));
    await until(async () => (await finalPayouts()) > paid);
  };
  const accountant = (): Promise<Name> =>
    until(async () => {
      const [term] = await sql<{ holder: string }[]>`select holder from term`;
      return NAMES.find((name) =>
        readdirSync(join(fleet.directory, name, 'journal')).some((boot) => term?.holder.endsWith(boot)),
      );
    });
  const upgrade = async (name: Name, version: keyof typeof releases): Promise<void> => {
    const { ports } = instances[other(name)];
    for (const rig of rigs) rig.turnTo(ports);
    expect(await instances[name].program.stop()).toBe(0);
    instances[name] = await fleet.add(name, {}, { home: releases[version] });
    for (const [i, rig] of rigs.entries()) if (NAMES[i % 2] === name) rig.turnTo(instances[name].ports);
    await goesOn();
  };

  await goesOn();
  const first = await accountant();
  await upgrade(first, '1.0.1');
  await upgrade(other(first), '1.0.1');
  const second = other(await accountant());
  await upgrade(second, '1.0.2');
  await upgrade(other(second), '1.0.2');

  await Promise.all(rigs.map((rig) => rig.stop()));
  await booksCaughtUp(sql, rigs);
  // Nothing that an instance of before left behind holds the books up.
  const top = await headHeight();
  await until(
    async () => {
      const [row] = await sql<{ value: string }[]>`select value from settings where name = 'chain_height'`;
      return Number(row?.value) >= top;
    },
    {
      why: () =>
        Object.values(instances)
          .map(({ program }) =>
            program.output
              .split('\n')
              .filter((line) => /WARN|wait/.test(line))
              .slice(-12)
              .join('\n'),
          )
          .join('\n--\n'),
    },
  );
  for (const { program } of Object.values(instances)) expect(await program.stop()).toBe(0);
  await expectShares(sql, rigs);
  const { code, out, err } = await svcPool(
    ...['audit', '--database', fleet.postgres.url, '--node-api', fleet.api],
    ...['--wallet', fleet.wallet.url, '--wallet-token-file', fleet.wallet.tokenFile],
  );
  // Rewards that their finders have to get are no difference.
  expect([0, 5], out + err).toContain(code);
  const [paid] = await sql<{ payouts: number; items: number }[]>`
    select (select count(*)::int from payouts where state = 'finalized') as payouts,
      (select count(*)::int from payout_items) as items`;
  const accepted = rigs.reduce((sum, rig) => sum + rig.accepted, 0);
  console.log(`${accepted} shares, ${paid?.payouts} final payouts with ${paid?.items} items, then: ${out.trim()}`);

  const back = await svcPool(
    ...['run', '--data-dir', join(fleet.directory, 'a'), '--database', fleet.postgres.url, '--redis', fleet.redis.url],
    ...['--node', fleet.mining, '--node-api', fleet.api, '--pplns-listen', '127.0.0.1:0', '--solo-listen', 'off'],
    ...['--pplns-listen-ws', 'off', '--web-bind', '127.0.0.1:0', '--threads', '0', '--pow-mode', 'light'],
  );
  expect(back.code).toBe(1);
  expect(back.err).toMatch(/run a newer release/);
});
