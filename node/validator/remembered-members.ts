/**
 * Addresses at which members proved their keys (consensus/reach/overlay-identities.ts), kept between runs in `consensus/members.json`: a
 * validator that starts again while strangers connect from addresses without end must still know its members' ones.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import type { Logger } from '../../runtime/log/log.ts';

const fileOf = (dataDir: string): string => join(dataDir, 'consensus', 'members.json');

/** By the identifier of a key, the addresses as limits know them, the last one first. */
export type RememberedMembers = readonly { readonly validator: string; readonly addresses: readonly string[] }[];

type RememberedMember = RememberedMembers[number];

const ID = /^[0-9a-f]{96}$/;

function isMember(entry: unknown): entry is RememberedMember {
  const { validator, addresses } = (entry ?? {}) as { validator?: unknown; addresses?: unknown };
  const isId = typeof validator === 'string' && ID.test(validator);
  return isId && Array.isArray(addresses) && addresses.every((address) => typeof address === 'string');
}

/** If the file or an entry cannot be read, members count as new ones until they have proved their keys again. */
export function readMembers(dataDir: string, log: Logger): RememberedMembers {
  const file = fileOf(dataDir);
  try {
    const list: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (!Array.isArray(list)) throw new Error('it is no list');
    const members = list.filter(isMember);
    const lost = list.length - members.length;
    if (lost > 0) log.warn('addresses of some members cannot be read', { file, members: lost });
    return members;
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
