/** A real miner that sends its shares and keeps its blocks is named to the operator; an honest one beside it is not. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { WithholdingDocument } from '../../pool/api/operator/operator-documents.ts';
import { addressOf } from '../bridge/stratum-client.ts';
import { MAIN, RunningMiner } from '../miner/running-miner.ts';
import { KillableStack } from '../pool/killable.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';

const WITHHOLDING = fileURLToPath(new URL('./withholding-miner.ts', import.meta.url));
/** A block in many shares: while a job is replaced after a block, a second one on the same body would count for nobody. */
const BLOCK_WORK = 20_000;
const SHARE_WORK = 1_000;

test('a miner that keeps all of its blocks is named, and an honest one beside it is not', async () => {
  const stack = new KillableStack({ cutMillis: 500, initialWork: BLOCK_WORK, minimumWork: BLOCK_WORK });
  await stack.start();
  const started = (program: string, user: string) =>
    new RunningMiner(
      [
        ...['-o', `stratum+tcp://127.0.0.1:${stack.ports.pplns}`, '-u', user, '-p', `d=${SHARE_WORK}`, '--no-gpu'],
        ...['--cpu-threads', '1', '--throttle', '5', '--data-dir', temporaryDirectory(), '--metrics-bind', 'off'],
      ],
      { program: [process.execPath, program] },
    );
  const [thief, honest] = [addressOf(1), addressOf(2)];
  const withholding = started(WITHHOLDING, `${thief}.rig`);
  started(MAIN, `${honest}.rig`);
  const token = readFileSync(join(stack.poolDirectory, 'operator.token'), 'utf8').trim();
  const suspects = async () => {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${stack.web}/api/v1/operator/withholding`, { headers });
    expect(answer.status).toBe(200);
    return ((await answer.json()) as WithholdingDocument).suspects;
  };
  // As long as it is not named, it does more.
  const named = await until(async () => (await suspects()).find(({ address }) => address === thief));
  expect(named).toMatchObject({ found: 0 });
  expect(named.evidence).toBeGreaterThanOrEqual(10_000);
  expect((await suspects()).map(({ address }) => address)).not.toContain(honest);
  const kept = Number(withholding.err.match(/withheld \d+/g)?.length);
  expect(kept).toBeGreaterThan(0);
  const sql = stack.books();
  const [row] = await sql<{ work: string; expected: number; found: number }[]>`select l.work::text as work, l.expected,
    l.found from luck l join accounts a on a.id = l.account_id where a.address = ${honest}`;
  process.stdout.write(`${JSON.stringify({ withheldBlocks: kept, named, honest: row })}\n`);
});
