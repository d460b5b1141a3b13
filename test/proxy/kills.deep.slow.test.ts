/**
 * A farm of two halls under kills: three front ends of a pool over PostgreSQL and Redis, two proxies with 500 rigs and a real svc-miner each. Proxies, front
 * ends and the accountant are killed, and links are cut, at random. What the pool acknowledged is booked once; what a rig was
 * told is booked too, or the proxy says that it is not. Only at the deep level: a minute, or as long as SVC_TEST_FARM_SECONDS says.
 */
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createVerifier } from '../../kernels/verifier.ts';
import { OTHERS, type Receipt, type ReceiptHead, receiptRefusal } from '../../protocol/books/receipt.ts';
import { fromHex } from '../../protocol/bytes.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { Program } from '../bridge/program.ts';
import { addressOf } from '../bridge/stratum-client.ts';
import { seed } from '../level.ts';
import { Fleet, type Instance } from '../pool/fleet.ts';
import { svcPool } from '../pool/svc-pool.ts';
import { randomOf } from '../random.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { SimulatedRigs } from './simulated-rigs.ts';
import { Witness, WitnessDoor } from './witness-door.ts';

const HOST = '127.0.0.1';
const SECONDS = Number(process.env.SVC_TEST_FARM_SECONDS ?? 60);
/** Mean time between two events. */
const REST_SECONDS = SECONDS > 300 ? 30 : 6;
const RIGS = 500;
const HASHES_PER_SECOND = 8_000;
/** Easy and always the same, so that there are many: the more shares, the less luck is in the credit per hash. */
const SHARE_WORK = 100;
const NAMES = ['a', 'b', 'c'];
const HALLS = [
  { address: addressOf(77), order: ['a', 'b', 'c'] },
  { address: addressOf(78), order: ['b', 'c', 'a'] },
];
/** Each kill costs the shares in flight; in a short run they come one after another. */
const LEAST_CREDIT = SECONDS > 300 ? 0.995 : 0.95;

type PassedOn = Record<'sent' | 'accepted' | 'stale' | 'lost' | 'waiting', number> & {
  readonly rejected: Record<string, number>;
};

const seconds = (): string => new Date().toISOString().slice(11, 19);
const say = (text: string): void => console.log(`${seconds()} ${text}`);
const sum = (numbers: Iterable<number>): number => [...numbers].reduce((total, each) => total + each, 0);

/** A proxy with its miner. What a killed one had counted is kept, as it was when it was last asked. */
class Hall {
  readonly address: string;
  readonly port: number;
  readonly doors: readonly WitnessDoor[];
  readonly #stats: number;
  #program: Program | undefined;
  #now: PassedOn | undefined;
  readonly ended: { readonly counted: PassedOn; readonly askedMillis: number }[] = [];
  #askedMillis = 0;

  constructor(address: string, ports: readonly [number, number], doors: readonly WitnessDoor[]) {
    this.address = address;
    [this.port, this.#stats] = ports;
    this.doors = doors;
  }

  async start(): Promise<void> {
    this.#now = undefined;
    this.#program = new Program('svc-proxy', [
      ...this.doors.flatMap(({ port }) => ['-o', `stratum2+tcp://${HOST}:${port}`]),
      ...['-u', this.address, '--listen', `${HOST}:${this.port}`, '--listen-ws', 'off', '--web-bind', 'off'],
      ...['--metrics-bind', 'off'],
      ...['--stats-bind', `${HOST}:${this.#stats}`, '--threads', '1', '--verify-threads', '1', '--pow-mode', 'light'],
      ...['--min-work', '1', '--upstream-shares', '20', '--data-dir', temporaryDirectory()],
    ]);
    await this.#program.until(/stratum listener kind=tcp/);
  }

  startMiner(): Program {
    return new Program('svc-miner', [
      ...['-o', `stratum+tcp://${HOST}:${this.port}`, '-u', `${this.address}.cpu`, '--no-gpu', '--cpu-threads', '1'],
      ...['--throttle', '5', '--light', '--api-bind', 'off', '--metrics-bind', 'off', '--no-check-books'],
      ...['--data-dir', temporaryDirectory()],
    ]);
  }

  async ask(): Promise<PassedOn | undefined> {
    const asked = Date.now();
    const answer = await fetch(`http://${HOST}:${this.#stats}/v1/stats`).catch(() => undefined);
    const stats = (await answer?.json().catch(() => undefined)) as { passed_on: PassedOn } | undefined;
    if (stats === undefined) return undefined;
    this.#askedMillis = asked;
    this.#now = stats.passed_on;
    return this.#now;
  }

  #close(): void {
    if (this.#now !== undefined) this.ended.push({ counted: this.#now, askedMillis: this.#askedMillis });
  }

  async kill(): Promise<void> {
    await this.ask();
    await this.#program?.stop('SIGKILL');
    this.#close();
  }

  async stop(): Promise<number | null | undefined> {
    await until(async () => (await this.ask())?.waiting === 0, { why: () => JSON.stringify(this.#now) });
    this.#close();
    return await this.#program?.stop();
  }
}

/** Runs `svc-pool audit` and says what it found where it is not content. */
async function audit(...words: string[]): Promise<string> {
  const { code, out, err } = await svcPool('audit', ...words);
  expect(code, out + err).toBe(0);
  return out;
}

test('a farm under kills: nothing acknowledged is lost, and what is lost is said', async () => {
  const verifier = createVerifier({ network: NETWORKS.development, mode: 'full', threads: 1 });
  onTestFinished(() => verifier.close());
  await verifier.prepare(0);
  const random = randomOf(seed);
  const fleet = await Fleet.start({
    blockWork: 300_000,
    cutMillis: 2_500,
    payoutMin: '0.01',
    words: ['--payout-interval', '30s'],
  });
  const fixed = await freePorts(NAMES.length * 2);
  const instances = new Map<string, Instance>();
  const startInstance = async (name: string): Promise<void> => {
    const at = NAMES.indexOf(name) * 2;
    instances.set(
      name,
      await fleet.add(name, { web: fixed[at + 1] as number, words: ['--fixed-work', `${fixed[at]}=${SHARE_WORK}`] }),
    );
  };
  for (const name of NAMES) {
    if (instances.size > 0) {
      mkdirSync(join(fleet.directory, name), { recursive: true });
      copyFileSync(join(fleet.directory, 'a', 'pool.key'), join(fleet.directory, name, 'pool.key'));
    }
    await startInstance(name);
  }
  const sql = fleet.books();
  const witness = new Witness();
  const halls: Hall[] = [];
  for (const { address, order } of HALLS) {
    const doors: WitnessDoor[] = [];
    for (const name of order)
      doors.push(await WitnessDoor.open(() => fixed[NAMES.indexOf(name) * 2] as number, witness));
    onTestFinished(() => {
      for (const door of doors) door.close();
    });
    const hall = new Hall(address, (await freePorts(2)) as [number, number], doors);
    halls.push(hall);
    await hall.start();
  }
  const miners = halls.map((hall) => hall.startMiner());
  const rigs = new SimulatedRigs(
    halls.map(({ port }, i) => ({ port, prefix: `hall-${i}.` })),
    RIGS,
    HASHES_PER_SECOND,
    verifier,
  );
  onTestFinished(() => rigs.stop());
  await until(() => rigs.connected === rigs.rigs.length, { seen: () => rigs.connected });
  say(`all ${rigs.connected} rigs are connected`);

  const events: Record<string, number> = {};
  const busy = new Set<string>();
  const accountant = async (): Promise<string | undefined> => {
    // A database that does not answer within its time names nobody: the next event asks again.
    const [term] = await sql<{ holder: string }[]>`select holder from term`.catch(() => []);
    return NAMES.find((name) =>
      readdirSync(join(fleet.directory, name, 'journal')).some((boot) => term?.holder.endsWith(boot)),
    );
  };
  const happen = async (what: string, key: string, act: () => Promise<void>): Promise<void> => {
    if (busy.has(key)) return;
    busy.add(key);
    events[what] = (events[what] ?? 0) + 1;
    say(`${what}: ${key}`);
    await act();
    busy.delete(key);
  };
  const killInstance = (what: string, name: string): Promise<void> =>
    // One of three is always there: a pool that is away altogether is another test.
    NAMES.filter((each) => busy.has(each)).length > 0
      ? Promise.resolve()
      : happen(what, name, async () => {
          await instances.get(name)?.program.stop('SIGKILL');
          await sleep(random(5_000));
          await startInstance(name);
        });
  const pending = new Set<Promise<void>>();
  const failures: unknown[] = [];
  const oneEvent = async (): Promise<void> => {
    const kind = random(10);
    const hall = halls[random(2)] as Hall;
    if (kind < 4) {
      const door = random(2);
      await happen('cut', `${halls.indexOf(hall)}/${door}`, async () => {
        hall.doors[door]?.cut();
        await sleep(random(3) === 0 ? random(20_000) : random(2_000));
        hall.doors[door]?.mend();
      });
    } else if (kind < 6)
      await happen('kill proxy', `proxy ${halls.indexOf(hall)}`, async () => {
        await hall.kill();
        await sleep(random(3_000));
        await hall.start();
      });
    else if (kind < 8) await killInstance('kill front end', NAMES[random(NAMES.length)] as string);
    else {
      const name = await accountant();
      if (name !== undefined) await killInstance('kill accountant', name);
    }
  };
  const end = Date.now() + SECONDS * 1_000;
  for (let saidMillis = Date.now(); Date.now() < end; ) {
    await sleep(REST_SECONDS * (500 + random(1_000)));
    const one = oneEvent().catch((error: unknown) => void failures.push(error));
    pending.add(one);
    void one.then(() => pending.delete(one));
    if (failures.length > 0) break;
    for (const [i, hall] of halls.entries())
      if (!busy.has(`proxy ${i}`) && (await hall.ask()) !== undefined && Date.now() - saidMillis > 60_000) {
        saidMillis = Date.now();
        const memory = Math.round(process.memoryUsage().rss / 2 ** 20);
        say(`${rigs.connected} rigs, ${rigs.shares.size} shares, ${witness.passed.size} passed on, ${memory} MiB`);
      }
  }
  await Promise.all(pending);
  expect(failures).toEqual([]);

  say('the end begins');
  await until(() => rigs.connected === rigs.rigs.length, { seen: () => rigs.connected });
  await rigs.rest();
  for (const miner of miners) await miner.stop();
  for (const hall of halls) expect(await hall.stop()).toBe(0);
  await rigs.stop();

  type Booked = { identity: string; work: string; name: string; address: string; slice: number };
  const books = () => sql<
    Booked[]
  >`select encode(s.identity, 'hex') as identity, s.work::text, w.name, a.address, s.slice
    from shares s join workers w on w.id = s.worker_id join accounts a on a.id = w.account_id`;
  const acknowledged = [...witness.passed].filter(([, { fate }]) => fate === 'accepted').map(([identity]) => identity);
  const lacking = async (): Promise<string[]> => {
    const inBooks = new Set((await books()).map(({ identity }) => identity));
    return acknowledged.filter((identity) => !inBooks.has(identity));
  };
  // The books are behind by what the accountant has not read yet.
  let missing = await lacking();
  for (let tries = 0; missing.length > 0 && tries < 60; tries++) {
    await sleep(1_000);
    missing = await lacking();
  }
  const booked = new Map((await books()).map((row) => [row.identity, row]));
  const rows = (await books()).length;
  const found = [...rigs.shares];
  const told = found.filter(([, { code }]) => code === 0);
  const unbooked = told.filter(([identity]) => !booked.has(identity));
  const fates: Record<string, number> = {};
  for (const [identity] of unbooked) {
    const fate = String(witness.passed.get(identity)?.fate ?? 'never passed on');
    fates[fate] = (fates[fate] ?? 0) + 1;
  }
  const counted = halls.flatMap(({ ended }) => ended.map((each) => each.counted));
  const notCredited = ({ stale, lost, waiting, rejected }: PassedOn): number =>
    stale + lost + waiting + sum(Object.values(rejected));
  // A killed proxy said nothing more after it was last asked.
  const afterLastWord = unbooked.filter(([, { proxy, atMillis }]) => {
    const { ended } = halls[proxy] as Hall;
    const next = ended.find(
      ({ askedMillis }, i) => askedMillis <= atMillis && i < ended.length - 1 && atMillis < askedMillis + 5_000,
    );
    return next !== undefined;
  }).length;
  const works = (shares: Iterable<readonly [string, { readonly work: bigint }]>): number =>
    sum([...shares].map(([, { work }]) => Number(work)));
  const credited = sum(found.map(([identity]) => Number(booked.get(identity)?.work ?? 0)));
  // Shares are found by luck: the work found differs from the hashes made by about this much of them.
  const sigma = Math.sqrt(sum(found.map(([, { work }]) => Number(work) ** 2))) / rigs.hashes;
  const codes: Record<string, number> = {};
  for (const [, { code }] of found) codes[String(code)] = (codes[String(code)] ?? 0) + 1;
  const report = {
    seconds: SECONDS,
    events,
    hashes: rigs.hashes,
    shares_found_by_rigs: found.length,
    answers_to_rigs: codes,
    logins_of_rigs: sum(rigs.rigs.map(({ logins }) => logins)),
    passed_on: witness.passed.size,
    passed_on_again: witness.again,
    acknowledged_by_pool: acknowledged.length,
    refused_by_pool: Object.fromEntries(witness.refused),
    unanswered_by_pool: witness.count('unanswered'),
    booked: rows,
    acknowledged_not_booked: missing.length,
    told_rig_not_booked: unbooked.length,
    their_fates: fates,
    proxies_counted: counted.reduce((total, each) => total + notCredited(each), 0),
    proxies_lost: sum(counted.map(({ lost }) => lost)),
    proxies_stale: sum(counted.map(({ stale }) => stale)),
    proxies_waiting_when_killed: sum(counted.map(({ waiting }) => waiting)),
    after_last_word: afterLastWord,
    receipt_frames: witness.receipts,
    work_found: works(found),
    work_credited: credited,
    credited_per_work_found: credited / works(found),
    credited_per_hash: credited / rigs.hashes,
    sigma_of_credited_per_hash: sigma,
  };
  say(JSON.stringify(report, undefined, 1));

  expect(witness.faults).toEqual([]);
  expect(missing).toEqual([]);
  expect(booked.size).toBe(rows);
  for (const [identity, { work }] of witness.passed)
    if (booked.has(identity)) expect(BigInt(booked.get(identity)?.work as string)).toBe(work);
  // For the address of its proxy, under the name of the rig, or of all rigs with little work (docs/statistics.md).
  for (const [identity, { rig, proxy }] of found) {
    const row = booked.get(identity);
    if (row === undefined) continue;
    expect(row.address).toBe(halls[proxy]?.address);
    expect([rig, OTHERS]).toContain(row.name);
  }
  expect(unbooked.length).toBeLessThanOrEqual(report.proxies_counted + afterLastWord);
  await expectReceipts(
    instances.get('a') as Instance,
    [...booked].map(([identity, row]) => ({ ...row, name: rigs.shares.get(identity)?.rig ?? 'cpu' })),
  );
  say(await audit('--public', (instances.get('a') as Instance).web, '--node-api', fleet.api));
  for (const { program } of instances.values()) expect(await program.stop()).toBe(0);
  await sql.end({ timeout: 1 });
  say(await audit('--database', fleet.postgres.url, '--node-api', fleet.api));
  expect(report.credited_per_work_found).toBeGreaterThanOrEqual(LEAST_CREDIT);
  expect(report.credited_per_hash).toBeGreaterThanOrEqual(LEAST_CREDIT - 3 * sigma);
});

type ReceiptPage = {
  readonly more: boolean;
  readonly through: number;
  readonly next_cursor?: string;
  readonly slices: readonly {
    readonly sheets: readonly (Omit<ReceiptHead, 'receipts'> & {
      readonly count: number;
      readonly signature: string;
      readonly receipts: readonly Pick<Receipt, 'worker' | 'work'>[];
    })[];
  }[];
};

/** Receipts are signed by the pool, and those of a closed slice and a rig are what the books have of it. */
async function expectReceipts(
  { web }: Instance,
  booked: readonly { readonly name: string; readonly address: string; readonly slice: number; readonly work: string }[],
): Promise<void> {
  const key = fromHex(((await (await fetch(`${web}/api/v1/terms`)).json()) as { pool_key: string }).pool_key);
  const works = new Map<string, bigint>();
  let newest = 0;
  let all = 0;
  const heads = new Set<string>();
  for (const { address } of HALLS)
    for (let path: string | undefined = ''; path !== undefined; ) {
      const answer = await fetch(`${web}/api/v1/miners/${address}/receipt-sheets?${path}`);
      if (answer.status === 429) {
        await sleep(1_000);
        continue;
      }
      expect(answer.status).toBe(200);
      const page = (await answer.json()) as ReceiptPage;
      for (const { count, receipts, ...head } of page.slices.flatMap(({ sheets }) => sheets))
        for (const leaf of receipts) {
          all++;
          // A signature takes long, and is over the head of all of them.
          const receipt = { ...head, ...leaf, receipts: count } as Receipt;
          const verify = heads.has(head.signature) ? () => true : undefined;
          expect(receiptRefusal(receipt, key, verify)).toBeUndefined();
          heads.add(head.signature);
          const name = `${head.slice} ${address} ${leaf.worker}`;
          works.set(name, (works.get(name) ?? 0n) + BigInt(leaf.work));
          newest = Math.max(newest, head.slice);
        }
      const cursor = page.next_cursor === undefined ? '' : `&cursor=${encodeURIComponent(page.next_cursor)}`;
      path = page.more ? `after=${page.through}${cursor}` : undefined;
    }
  const inBooks = new Map<string, bigint>();
  for (const { slice, address, name, work } of booked)
    if (slice <= newest) {
      const id = `${slice} ${address} ${name}`;
      inBooks.set(id, (inBooks.get(id) ?? 0n) + BigInt(work));
    }
  const wrong = [...inBooks]
    .filter(([id, work]) => works.get(id) !== work)
    .map(([id, work]) => [id, work, works.get(id)]);
  say(
    `${all} receipts under ${heads.size} signatures through slice ${newest}; ${inBooks.size} of rigs and slices in the books, ${wrong.length} differ`,
  );
  expect(wrong).toEqual([]);
  for (const [id, work] of works) if (work > 0n) expect(inBooks.get(id), id).toBe(work);
}
