/** The thread of an audit that a running pool makes of its own books: what `svc-pool audit` does, beside the thread that answers miners. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { parseAddress } from '../../../protocol/address.ts';
import { createApiClient } from '../../../protocol/api/client.ts';
import { steadyMillis } from '../../../runtime/clock/clock.ts';
import { useNativeSha384 } from '../../../runtime/native/native-sha384.ts';
import { pinOf } from '../../../runtime/node-client/node-identity.ts';
import { nodeTransport } from '../../../runtime/node-client/node-transport.ts';
import { audit } from '../../audit/audit.ts';
import { booksOf } from '../../audit/books-of.ts';
import { connectDatabase } from '../../database/connect.ts';
import { payoutSeries } from '../../payout/payout-series.ts';
import { createWalletClient } from '../../payout/wallet-client.ts';
import type { AuditMessage, AuditPlace } from './run-audit.ts';

/** The thread that is told has miners to answer. */
const TELL_MILLIS = 200;

const { databaseUrl, node, wallet } = workerData as AuditPlace;
const send = (message: AuditMessage): void => (parentPort as MessagePort).postMessage(message);
let told = 0;
useNativeSha384();
const sql = connectDatabase(databaseUrl, { max: 2, name: 'svc-pool-audit' });
try {
  const { network, poolAddress } = await booksOf(sql);
  const report = await audit(sql, {
    network,
    onProgress: (part, done, of) => {
      if (done > 0 && steadyMillis() - told < TELL_MILLIS) return;
      told = steadyMillis();
      send({ kind: 'progress', part, done, of });
    },
    ...(node === undefined
      ? {}
      : {
          ledger: {
            node: createApiClient({ baseUrl: node.url, attempts: 3, pin: pinOf(node.identity) }, nodeTransport()),
            poolAddress,
          },
        }),
    ...(wallet === undefined
      ? {}
      : { wallet: { reads: createWalletClient(wallet), series: payoutSeries(parseAddress(poolAddress).payload) } }),
  });
  send({ kind: 'report', report });
} finally {
  await sql.end({ timeout: 5 });
}
