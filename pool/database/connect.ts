/** The one way to PostgreSQL: exact integers both ways, bounded waits, and quiet notices. */
import postgres from 'postgres';

export type Sql = postgres.Sql<{ bigint: bigint }>;
export type Transaction = postgres.TransactionSql<{ bigint: bigint }>;

export const connectDatabase = (url: string, options: { max?: number; name?: string } = {}): Sql =>
  postgres(url, {
    max: options.max ?? 8,
    types: { bigint: postgres.BigInt },
    connection: { application_name: options.name ?? 'svc-pool', statement_timeout: 60_000, lock_timeout: 20_000 },
    connect_timeout: 5,
    idle_timeout: 60,
    max_lifetime: null,
    onnotice: () => undefined,
  });

/** Byte strings for an array parameter, to be written as `${byteaTexts(list)}::text[]::bytea[]`: the driver takes an array of buffers for one. */
export const byteaTexts = (hex: readonly string[]): string[] => hex.map((text) => `\\x${text}`);
