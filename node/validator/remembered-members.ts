/**
 * Addresses at which members proved their keys (consensus/reach/overlay-identities.ts), kept between runs in `consensus/members.json`: a
 * validator that starts again while strangers connect from addresses without end must still know its members' ones.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { RememberedMembers } from '../consensus/reach/overlay-identities.ts';

const fileOf = (dataDir: string): string => join(dataDir, 'consensus', 'members.json');

const isText = (value: unknown): value is string => typeof value === 'string';

/** If the file cannot be read, members count as new ones until they have proved their keys again. */
export function readMembers(dataDir: string, log: Logger): RememberedMembers {
  const file = fileOf(dataDir);
  try {
    const list: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (!Array.isArray(list)) throw new Error('it is no list');
    return list.flatMap((entry: { validator?: unknown; addresses?: unknown } | null) =>
      isText(entry?.validator) && Array.isArray(entry.addresses)
        ? [{ validator: entry.validator, addresses: entry.addresses.filter(isText) }]
        : [],
    );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      log.warn('addresses of members cannot be read', { file, error });
    return [];
  }
}

export function rememberMembers(dataDir: string, members: RememberedMembers, log: Logger): void {
  writeDurably(fileOf(dataDir), `${JSON.stringify(members, undefined, 1)}\n`).catch((error) =>
    log.warn('addresses of members cannot be remembered', { error }),
  );
}
