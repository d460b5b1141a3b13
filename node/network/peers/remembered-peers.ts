/** Addresses of peers that answered, kept between runs in `network/peers.json`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeDurably } from '../../../runtime/files/durable-file.ts';
import type { Logger } from '../../../runtime/log/log.ts';
import { isDialable } from './peer-address.ts';
import { networkDirectory } from './peer-key.ts';

export type Remembered = readonly { readonly address: string; readonly lastGood: number }[];

const fileOf = (dataDir: string): string => join(networkDirectory(dataDir), 'peers.json');

/** If the file cannot be read, only a few addresses are lost. */
export function readRemembered(dataDir: string, log: Logger): Remembered {
  const file = fileOf(dataDir);
  try {
    const list: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (!Array.isArray(list)) throw new Error('it is no list');
    return list.flatMap((entry: { address?: unknown; lastGood?: unknown }) =>
      typeof entry?.address === 'string' && isDialable(entry.address) && Number.isSafeInteger(entry.lastGood)
        ? [{ address: entry.address, lastGood: entry.lastGood as number }]
        : [],
    );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      log.warn('remembered peers cannot be read', { file, error });
    return [];
  }
}

export function remember(dataDir: string, addresses: Remembered, log: Logger): void {
  writeDurably(fileOf(dataDir), `${JSON.stringify(addresses, undefined, 1)}\n`).catch((error) =>
    log.warn('peers cannot be remembered', { error }),
  );
}
