/**
 * Four validators as processes, perturbed (test/consensus/perturbations.ts): one killed `kills=N` times (200) at random instants, `partitions=N` (10), all killed at once `all=N` times (10), blocks found meanwhile. Ends with an error where cuts or states
 * differ, or somebody voted twice. `seed=N` chooses the instants, `millis=N` the pace of cuts.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { perturb } from '../consensus/perturbations.ts';
import { ValidatorProcesses } from '../consensus/processes.ts';
import { bench } from './harness.ts';

export default bench('four validators killed, parted and hung: one chain, and nobody votes twice', async (b) => {
  const number = (key: string, otherwise: number): number =>
    Number(b.words.find((word) => word.startsWith(`${key}=`))?.slice(key.length + 1) ?? otherwise);
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-kills-'));
  const processes = new ValidatorProcesses(directory);
  const cutMillis = number('millis', 400);
  try {
    await processes.prepare(cutMillis);
    for (const process of processes.all) process.start();
    await processes.reached(2);
    const began = performance.now();
    const { cuts, votes, ofVictim } = await perturb(
      processes,
      {
        cutMillis,
        kills: number('kills', 200),
        blocks: number('blocks', 30),
        partitions: number('partitions', 10),
        killsOfAll: number('all', 10),
        seed: number('seed', 1),
      },
      (line) => b.note(line),
    );
    b.note('one chain, one state, no second vote');
    b.figure('cuts', cuts, 'cuts');
    b.figure('votes', votes, 'votes');
    b.figure('votes-of-the-killed', ofVictim, 'votes');
    b.figure('took', (performance.now() - began) / 1_000, 's');
  } finally {
    await processes.close();
    rmSync(directory, { recursive: true, force: true });
  }
});
