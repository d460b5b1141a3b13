/** The process that snapshot.slow.test.ts kills: it reads a snapshot and kills itself after so many pieces. Words: file, trusted cut, store directory, pieces. */
import { installSnapshot } from '../../node/snapshot/install-snapshot.ts';
import { fromHex } from '../../protocol/bytes.ts';
import { START_MILLIS } from '../node/bed.ts';

const [file = '', trust = '', storeDirectory = '', last = ''] = process.argv.slice(2);

await installSnapshot({
  file,
  trust: fromHex(trust),
  storeDirectory,
  network: 'development',
  nowMillis: START_MILLIS,
  onPiece: (pieces) => {
    if (pieces === Number(last)) process.kill(process.pid, 'SIGKILL');
  },
});
