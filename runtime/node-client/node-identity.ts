/** The option by which bridge, pool and wallet pin the nodes they trust (docs/operations.md). */
import type { Pin } from '../../protocol/api/pinned-node.ts';
import { parsed, repeated } from '../command-line/command-line.ts';

export const nodeIdentityOption = (group?: string) =>
  repeated(
    parsed(
      {
        help: 'identity of a node (GET /v1/node/identity); with it only answers signed by one of these are accepted',
        placeholder: 'ID',
        ...(group === undefined ? {} : { group }),
      },
      (word) => {
        if (!/^[0-9a-f]{96}$/.test(word)) throw new Error('must be 96 characters of 0-9 and a-f');
        return word;
      },
    ),
  );

export const pinOf = (identities: readonly string[]): Pin | undefined =>
  identities.length === 0 ? undefined : { identity: identities };
