/** svc-pool as a process of its own for the benchmark: a library call, so that hashing can be taken out. */
import { createVerifier } from '../../../kernels/verifier.ts';
import { poolOptions } from '../../../pool/options.ts';
import { createPool } from '../../../pool/pool.ts';
import { NETWORKS } from '../../../protocol/network.ts';
import { parseCommandLine } from '../../../runtime/command-line/command-line.ts';
import { quietLog } from '../../quiet-log.ts';
import { answerAsked } from '../stratum/asked.ts';
import { withoutHashing } from '../stratum/without-hashing.ts';

const [hashing = 'none', ...words] = process.argv.slice(2);
const parsed = parseCommandLine({ name: 'pool', summary: '', options: poolOptions }, words, () => '');
if (parsed.kind !== 'run') throw new Error(`the options of the pool are wrong: ${JSON.stringify(parsed)}`);
const verifier =
  hashing === 'none' ? withoutHashing() : createVerifier({ network: NETWORKS.development, mode: 'full', threads: 2 });
const stops: (() => Promise<void> | void)[] = [() => verifier.close()];
const pool = await createPool(parsed.values, {
  log: quietLog,
  version: 'bench',
  started: (_, stop) => void stops.push(stop),
  fault: (reason) => {
    throw new Error(reason);
  },
  verifier,
});
while (!(await pool.stratum.figures()).ready || !pool.isAccountant())
  await new Promise((resolve) => setTimeout(resolve, 20));

answerAsked({
  port: async () =>
    pool.stratum.addresses.find(({ service, kind }) => service === 'pplns' && kind === 'tcp')?.port ?? 0,
  memory: async () => {
    globalThis.gc?.();
    return process.memoryUsage().rss;
  },
  cpu: async () => process.cpuUsage().user + process.cpuUsage().system,
  stop: async () => {
    for (const stop of stops.reverse()) await stop();
  },
});
