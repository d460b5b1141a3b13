/** The only way to connect to PostgreSQL: exact integers both ways, timeouts, and no notices. */
import postgres from 'postgres';
import { DatabaseSocket } from './connection-socket.ts';
import { endLostTransactions } from './lost-transactions.ts';

export type Sql = postgres.Sql<{ bigint: bigint }>;
export type Transaction = postgres.TransactionSql<{ bigint: bigint }>;

/**
 * Array types by their number in PostgreSQL. The driver can ask the server for them on every connection, but a
 * connection that is lost during that query ends the process; these are all that the pool uses.
 */
const ARRAYS = { int2Array: 1005, int4Array: 1007, textArray: 1009, int8Array: 1016, numericArray: 1231 };

/**
 * In seconds and probes: the server ends the connection of a machine that lost its power after 14 s. The default is two
 * hours, during which the locks of that machine would block its successor.
 */
const LOST_CLIENT = { tcp_keepalives_idle: 5, tcp_keepalives_interval: 3, tcp_keepalives_count: 3 };

const arrayElement = (value: unknown): string => {
  if (typeof value === 'number') return String(value);
  return value === null ? 'null' : `"${String(value).replace(/[\\"]/g, '\\$&')}"`;
};
const arrayLiteral = (values: readonly unknown[]): string => `{${values.map(arrayElement).join(',')}}`;

/** Arrays come back as texts; only arrays of numbers are ever read, so nothing in them is quoted. */
const readArray = (text: string): (string | null)[] =>
  text === '{}'
    ? []
    : text
        .slice(1, -1)
        .split(',')
        .map((value) => (value === 'NULL' ? null : value));

const arrayTypes = Object.fromEntries(
  Object.entries(ARRAYS).map(([name, oid]) => [
    name,
    { to: oid, from: [oid], serialize: arrayLiteral, parse: readArray },
  ]),
);

export type ConnectOptions = {
  readonly max?: number;
  readonly name?: string;
  /** The server ends a transaction in which the program does nothing for so long; default: never. */
  readonly idleTransactionMillis?: number;
};

export const connectDatabase = (url: string, options: ConnectOptions = {}): Sql =>
  endLostTransactions(
    postgres(url, {
      max: options.max ?? 8,
      types: { ...arrayTypes, bigint: postgres.BigInt },
      fetch_types: false,
      connection: {
        application_name: options.name ?? 'svc-pool',
        statement_timeout: 60_000,
        lock_timeout: 20_000,
        idle_in_transaction_session_timeout: options.idleTransactionMillis ?? 0,
        ...LOST_CLIENT,
      },
      connect_timeout: 5,
      idle_timeout: 60,
      max_lifetime: null,
      onnotice: () => undefined,
      socket: ({ host, port, path }: { host: string[]; port: number[]; path: string | false }) => {
        const socket = new DatabaseSocket();
        return path ? socket.connect(path) : socket.connect(port[0] as number, host[0] as string);
      },
    } as postgres.Options<{ bigint: postgres.PostgresType<bigint> }>),
  );

/** A hundred thousand integers as an array parameter, to be written as `${integerArray(list)}::text::bigint[]`: nothing in them needs a quote. */
export const integerArray = (values: readonly (number | bigint)[]): string => `{${values.join(',')}}`;

/** Byte strings for an array parameter, to be written as `${byteaTexts(list)}::text[]::bytea[]`: the driver takes an array of buffers for one. */
export const byteaTexts = (hex: readonly string[]): string[] => hex.map((text) => `\\x${text}`);
