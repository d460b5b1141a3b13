/** A worker thread that checks packed ML-DSA-65 signatures (signature-workers.ts) and answers one byte each. */
import { parentPort } from 'node:worker_threads';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../../protocol/transactions/transaction.ts';
import { verifyMessage } from '../ml-dsa.ts';

const RECORD = PUBLIC_KEY_BYTES + ID_BYTES + SIGNATURE_BYTES;

parentPort?.on('message', ({ batch, records }: { batch: number; records: Uint8Array }) => {
  const verdicts = new Uint8Array(records.length / RECORD);
  for (let i = 0; i < verdicts.length; i++) {
    const record = records.subarray(i * RECORD, (i + 1) * RECORD);
    const message = record.subarray(PUBLIC_KEY_BYTES, PUBLIC_KEY_BYTES + ID_BYTES);
    const signature = record.subarray(PUBLIC_KEY_BYTES + ID_BYTES);
    verdicts[i] = verifyMessage(record.subarray(0, PUBLIC_KEY_BYTES), message, signature) ? 1 : 0;
  }
  parentPort?.postMessage({ batch, verdicts });
});
