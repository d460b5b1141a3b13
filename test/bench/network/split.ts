/** Two halves of four validators and two nodes that follow, parted for minutes and healed: when the chain goes on, and whether all have the same one. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Halves } from '../../network/halves.ts';
import type { Bench } from '../harness.ts';

export async function measureSplit(b: Bench, seconds: number, cutMillis: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-split-'));
  let halves: Halves | undefined;
  try {
    halves = await Halves.prepare(directory, { validators: 4, cutMillis });
    await halves.start();
    const { height, firstCutMillis, bothBlocksMillis, wholeMillis } = await halves.split(seconds * 1_000);
    b.note(
      `parted for ${seconds} s after cut ${height}, no cut meanwhile; a cut every ${cutMillis} ms before and after`,
    );
    b.figure('split-first-cut', firstCutMillis / 1_000, 's');
    b.figure('split-both-blocks', bothBlocksMillis / 1_000, 's');
    b.figure('split-whole', wholeMillis / 1_000, 's');
    b.note(`one chain and the same state roots of six processes up to cut ${await halves.compare()}`);
  } finally {
    await halves?.close();
    rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}
