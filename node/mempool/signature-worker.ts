/** A worker thread that checks packed ML-DSA-65 signatures (signature-workers.ts) and answers one byte each. */
import type { KeyObject } from 'node:crypto';
import { verify } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import { ID_BYTES } from '../../protocol/identifier.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../../protocol/transaction.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import { importPublicKey } from '../ml-dsa.ts';

const RECORD = PUBLIC_KEY_BYTES + ID_BYTES + SIGNATURE_BYTES;
/** A cache: importing a key costs nearly as much as a check, and payers pay repeatedly. */
const CACHED_KEYS = 1_024;
const keys = new BoundedMap<string, KeyObject>(CACHED_KEYS);

function keyOf(raw: Uint8Array): KeyObject {
  const name = Buffer.from(raw.buffer, raw.byteOffset, 64).toString('latin1');
  const known = keys.get(name);
  if (known !== undefined && rawOf.get(known)?.equals(raw)) return known;
  const key = importPublicKey(raw);
  keys.set(name, key);
  rawOf.set(key, Buffer.from(raw));
  return key;
}

const rawOf = new WeakMap<KeyObject, Buffer>();

parentPort?.on('message', ({ batch, records }: { batch: number; records: Uint8Array }) => {
  const verdicts = new Uint8Array(records.length / RECORD);
  for (let i = 0; i < verdicts.length; i++) {
    const record = records.subarray(i * RECORD, (i + 1) * RECORD);
    try {
      const message = record.subarray(PUBLIC_KEY_BYTES, PUBLIC_KEY_BYTES + ID_BYTES);
      const signature = record.subarray(PUBLIC_KEY_BYTES + ID_BYTES);
      verdicts[i] = verify(null, message, keyOf(record.subarray(0, PUBLIC_KEY_BYTES)), signature) ? 1 : 0;
    } catch {
      // Not a valid public key.
      verdicts[i] = 0;
    }
  }
  parentPort?.postMessage({ batch, verdicts });
});
