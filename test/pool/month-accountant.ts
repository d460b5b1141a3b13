/**
 * An instance that keeps the books or is on standby, as a process of its own, for test/pool/month.slow.test.ts: the pool's own
 * TermRunner over PostgreSQL. Chain, wallet and journal are asked for from the process that started it.
 */
import type { Chain } from '../../pool/accountant/chain.ts';
import { TermRunner } from '../../pool/accountant/term-runner.ts';
import { connectDatabase } from '../../pool/database/connect.ts';
import { NOTHING } from '../../pool/feed/entry-source.ts';
import { SERVICES } from '../../pool/journal/journal-record.ts';
import type { CutStreamItem } from '../../protocol/api/client-events.ts';
import { fromHex } from '../../protocol/bytes.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { quietLog } from '../quiet-log.ts';
import { MONTH, type MonthAnswer, type MonthEdge } from './month-edge.ts';

const [holder = '', databaseUrl = '', poolAddress = ''] = process.argv.slice(2);
const waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
let lastId = 0;
let nowMillis = 0;

process.on('message', (answer: MonthAnswer) => {
  nowMillis = answer.nowMillis;
  const call = waiting.get(answer.id);
  waiting.delete(answer.id);
  if (answer.error === undefined) call?.resolve(answer.value as never);
  else call?.reject(new Error(answer.error));
});
process.on('disconnect', () => process.exit(0));

const call =
  <K extends keyof MonthEdge>(what: K) =>
  (...values: Parameters<MonthEdge[K]>): ReturnType<MonthEdge[K]> => {
    const id = ++lastId;
    const answered = new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
    process.send?.({ id, what, values });
    return answered as ReturnType<MonthEdge[K]>;
  };

const cutsAfter = call('cuts');
const take = call('take');
const committed = call('committed');

async function* cuts(after: number | undefined, signal: AbortSignal): AsyncGenerator<CutStreamItem> {
  let last = after ?? -1;
  while (!signal.aborted) {
    const { to, isMissed, paying } = await cutsAfter(last);
    if (isMissed) yield { type: 'missed', data: { from: last + 1, to } };
    else {
      const rewards = new Map(paying);
      for (let height = last + 1; height <= to && !signal.aborted; height++)
        yield { type: 'cut_finalized', data: { cut: { height }, rewards: rewards.get(height) ?? [] } } as never;
    }
    last = to;
  }
}

const chain: Chain = { cuts, targetAt: call('targetAt'), headHeight: call('headHeight'), block: call('block') };

// The clock is there before anything asks for it.
await chain.headHeight();
new TermRunner(
  {
    network: NETWORKS.development,
    poolAddress: fromHex(poolAddress),
    sliceCuts: MONTH.sliceCuts,
    windowThousandths: MONTH.windowBlocks * 1000n,
    services: SERVICES.map((_, number) => number),
    feePpm: new Map(SERVICES.map((service, number) => [number, MONTH.feePpm[service]])),
    databaseUrl,
    holder,
    payoutMin: MONTH.payoutMin,
    payoutIntervalMillis: 200,
    shareDays: MONTH.shareDays,
    chartDays: 90,
    silentMillis: 86_400_000,
    webhooks: { urls: [], secret: '' },
  },
  {
    sql: connectDatabase(databaseUrl, { max: 6 }),
    source: {
      begin: call('begin'),
      isCaughtUp: call('isCaughtUp'),
      mayTell: call('mayTell'),
      async take(maxEntries, waitMillis) {
        const entries = await take(maxEntries, waitMillis);
        const last = entries.at(-1);
        return last === undefined ? NOTHING : { entries, committed: () => committed(last.bootId, last.sequence) };
      },
      async close() {},
    },
    chain,
    wallet: {
      status: call('status'),
      sendMany: call('sendMany'),
      compound: call('compound'),
      fate: call('fate'),
      payment: call('payment'),
      payments: call('payments'),
      paidSince: call('paidSince'),
    },
    log: quietLog,
    now: () => nowMillis,
    wall: () => nowMillis,
  },
);
