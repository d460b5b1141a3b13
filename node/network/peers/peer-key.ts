/**
 * The key that names this node to its peers: Ed25519, made once, `network/peer.key` of the data directory. Losing it
 * only changes the node's name.
 */
import { randomBytes } from 'node:crypto';
import { dirname, join } from 'node:path';
import { fromHex, toHex } from '../../../protocol/bytes.ts';
import { createDurably } from '../../../runtime/files/durable-file.ts';
import { makeDirectory } from '../../../runtime/files/make-directory.ts';
import { PRIVATE_MODE, privateText } from '../../../runtime/files/private-file.ts';
import { NetworkError } from '../network-error.ts';

export const networkDirectory = (dataDir: string): string => join(dataDir, 'network');

/** The seed of the key. */
export async function loadPeerKey(dataDir: string): Promise<Uint8Array<ArrayBuffer>> {
  const file = join(networkDirectory(dataDir), 'peer.key');
  makeDirectory(dirname(file), 0o700);
  // An existing key is kept.
  await createDurably(file, `${toHex(randomBytes(32))}\n`, PRIVATE_MODE);
  const text = privateText(file, 'peer key').trim();
  if (!/^[0-9a-f]{64}$/.test(text))
    throw new NetworkError('peer_key_damaged', `${file} is no peer key: remove it to get a new one`);
  return fromHex(text);
}
