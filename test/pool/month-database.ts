/**
 * The PostgreSQL of the simulated month: a real server that is killed in every way. The accountants reach it through a
 * relay, because a server that comes back has another port.
 */
import { readFileSync } from 'node:fs';
import { createServer, connect as open, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectDatabase, type Sql } from '../../pool/database/connect.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../pool/database/embedded.ts';
import { migrate } from '../../pool/database/migrate.ts';
import { quietLog } from '../quiet-log.ts';
import { bringCluster } from './ready-cluster.ts';

const HOST = '127.0.0.1';
const START_ATTEMPTS = 60;
/** A tenth of a second apart: a server on a busy machine takes its time to come back. */
const ASK_ATTEMPTS = 6_000;

export class MonthDatabase {
  readonly #directory: string;
  readonly #relay: Server;
  readonly #sockets = new Set<Socket>();
  #server: EmbeddedPostgres | undefined;
  #sql: Sql | undefined;

  constructor(directory: string) {
    this.#directory = directory;
    this.#relay = createServer((socket) => this.#pass(socket));
  }

  async start(): Promise<void> {
    await bringCluster(this.#directory);
    await this.#startServer();
    await migrate(this.sql, quietLog);
    await new Promise<void>((resolve) => this.#relay.listen(0, HOST, resolve));
  }

  async #startServer(): Promise<void> {
    for (let attempt = 1; this.#server === undefined; attempt++)
      this.#server = await startEmbeddedPostgres(this.#directory, quietLog).catch(async (error: Error) => {
        if (attempt === START_ATTEMPTS) throw error;
        await sleep(1_000);
        return undefined;
      });
    this.#sql = connectDatabase(this.#server.url, { max: 2, name: 'month' });
  }

  /** The test's own connections, past the relay. */
  get sql(): Sql {
    return this.#sql as Sql;
  }

  /** The server itself. */
  get url(): string {
    return (this.#server as EmbeddedPostgres).url;
  }

  /** Where the accountants find it, however often it dies. */
  get relayUrl(): string {
    const url = new URL(this.url);
    url.port = String((this.#relay.address() as { port: number }).port);
    return url.href;
  }

  #pass(near: Socket): void {
    if (this.#server === undefined) return void near.destroy();
    const far = open(Number(new URL(this.url).port), HOST);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on('error', () => undefined);
      from.on('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  }

  /** Asks again until there is an answer: the server may be away. */
  async ask<T>(question: (sql: Sql) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++)
      try {
        return await question(this.sql);
      } catch (error) {
        if (attempt === ASK_ATTEMPTS) throw error;
        await sleep(100);
      }
  }

  #processes(): Promise<{ pid: number; name: string }[]> {
    return this.ask(
      (sql) => sql<{ pid: number; name: string }[]>`select pid, application_name as name from pg_stat_activity
        where application_name like 'svc-pool%' and backend_type = 'client backend' order by pid`,
    );
  }

  /** The server ends connections: those of elections only, or all of them. */
  async cut(which: 'elections' | 'all'): Promise<void> {
    const processes = await this.#processes();
    for (const { pid, name } of processes)
      if (which === 'all' || name === 'svc-pool-election')
        await this.ask((sql) => sql`select pg_terminate_backend(${pid})`);
  }

  /** kill -9 of one process of the server: it throws all others out and recovers from its log. */
  async killBackend(draw: (below: number) => number): Promise<void> {
    const processes = await this.#processes();
    const pid = processes[draw(processes.length)]?.pid;
    try {
      if (pid !== undefined) process.kill(pid, 'SIGKILL');
    } catch {
      // It ended by itself meanwhile.
    }
  }

  /** kill -9 of the server itself, and a new start. */
  async killServer(): Promise<void> {
    const server = this.#server as EmbeddedPostgres;
    const sql = this.sql;
    process.kill(
      Number(readFileSync(join(this.#directory, 'data', 'postmaster.pid'), 'utf8').split('\n')[0]),
      'SIGKILL',
    );
    await server.exited;
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    await sql.end({ timeout: 1 }).catch(() => undefined);
    await this.#startServer();
  }

  async close(): Promise<void> {
    await this.#sql?.end({ timeout: 1 }).catch(() => undefined);
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#relay.close(resolve));
    await this.#server?.stop();
  }
}
