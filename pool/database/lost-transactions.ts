/**
 * Ends a transaction whose connection was lost between two of its statements. The driver (postgres 3.4.9) rejects it, but
 * lets its function go on: further statements, and its commit or rollback, then go to whatever transaction has the
 * connection next, or are written to null, which ends the process.
 */
import type postgres from 'postgres';
import { ConnectionCut } from './connection-socket.ts';

type Driver = postgres.Sql<{ bigint: bigint }>;
type Inside = postgres.TransactionSql<{ bigint: bigint }>;
type Work = (transaction: Inside) => unknown;
type Begin = (options: string, work: Work) => Promise<unknown>;

/** Statements that come too late are refused. */
function whileOpen(transaction: Inside, isOver: () => boolean): Inside {
  const insist = () => {
    if (isOver()) throw new ConnectionCut();
  };
  return new Proxy(transaction, {
    apply(target, self, values) {
      insist();
      return Reflect.apply(target as never, self, values);
    },
    get(target, name) {
      const value = Reflect.get(target, name);
      if (name !== 'unsafe') return value;
      return (...values: Parameters<Inside['unsafe']>) => {
        insist();
        return target.unsafe(...values);
      };
    },
  });
}

export function endLostTransactions(sql: Driver): Driver {
  const begin = sql.begin.bind(sql) as Begin;
  const guarded: Begin = (options, work) => {
    let isOver = false;
    const run = begin(options, (transaction) => {
      const made = async () => {
        const result = work(whileOpen(transaction, () => isOver));
        return Array.isArray(result) ? Promise.all(result) : result;
      };
      // Never settled once it is over: the driver would send a commit or a rollback.
      return new Promise((resolve, reject) => {
        made().then(
          (value) => isOver || resolve(value),
          // The loss of the connection is known a moment after the failure of the statement that it cut.
          (error) => setImmediate(() => isOver || reject(error)),
        );
      });
    });
    const over = () => {
      isOver = true;
    };
    run.then(over, over);
    return run;
  };
  return Object.assign(sql, {
    begin: (first: string | Work, work?: Work) =>
      typeof first === 'string' ? guarded(first, work as Work) : guarded('', first),
  });
}
