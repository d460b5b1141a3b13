/** A real PostgreSQL for tests of several programs: one address for its whole life; it can be killed, started again and frozen. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../pool/database/embedded.ts';
import { freePort } from '../../runtime/free-port.ts';
import { quietLog } from '../quiet-log.ts';
import { bringCluster, deadlocksOf } from './ready-cluster.ts';

export type PostgresServer = {
  readonly url: string;
  /** Its data lies in `data` below it; nothing there may be changed while the server runs. */
  readonly directory: string;
  /** Ends it at once, as a crash would; its data stays. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** It answers nobody and closes nothing, until `thaw`. */
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
};

/** Each child of the server leads a group of its own, so they are found by their parent. */
function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent;
      } catch {
        return false;
      }
    })
    .map(Number);
}

export async function startPostgresServer(
  connections: number,
  /** On a disk of the caller's. */
  given?: string,
): Promise<PostgresServer> {
  const directory = given ?? mkdtempSync(join(tmpdir(), 'svc-postgres-'));
  const port = await freePort();
  let server: EmbeddedPostgres | undefined;
  let frozen: number[] = [];
  const start = async () => {
    server = await startEmbeddedPostgres(directory, quietLog, { port, connections });
  };
  const signal = (pid: number, name: NodeJS.Signals) => {
    try {
      process.kill(pid, name);
    } catch {
      // A child that ended meanwhile.
    }
  };
  const thaw = () => {
    for (const pid of frozen.splice(0)) signal(pid, 'SIGCONT');
  };
  if (given === undefined) await bringCluster(directory);
  await start();
  const { url } = server as unknown as EmbeddedPostgres;
  return {
    url,
    directory,
    start,
    thaw,
    freeze() {
      const { pid } = server as EmbeddedPostgres;
      process.kill(pid, 'SIGSTOP');
      frozen = [pid, ...childrenOf(pid)];
      for (const child of frozen.slice(1)) signal(child, 'SIGSTOP');
    },
    async kill() {
      const running = server as EmbeddedPostgres;
      // It may have ended by itself, on a full disk.
      signal(running.pid, 'SIGQUIT');
      await running.exited;
    },
    async stop() {
      thaw();
      const found = await deadlocksOf(url);
      await server?.stop();
      if (found > 0) throw new Error(`PostgreSQL ended ${found} transactions that waited for each other`);
      if (given === undefined) rmSync(directory, { recursive: true, force: true });
    },
  };
}
