/**
 * The node of the wallet's benchmark, a process of its own: everything real but the PoW, which is a plain hash, so that
 * nobody has to mine beside the measurement. Every 2.5 s a block takes what waits and a cut executes it.
 * Words: the address that genesis funds, the number of its outputs, the amount of each in atoms.
 */
import { startApi } from '../../node/api/api.ts';
import { newIdentity } from '../../node/api/identity.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { addressIndex } from '../../node/index/address-index.ts';
import { parseAddress } from '../../protocol/address.ts';
import { Bed, silentLog } from '../node/bed.ts';

const CUT_MILLIS = 2_500;

const [address = '', outputs = '', each = ''] = process.argv.slice(2);
const { payload } = parseAddress(address, 'development');
const fund = Array.from({ length: Number(outputs) }, () => ({ address: payload, amount: BigInt(each) }));
const bed = await Bed.open({ genesis: { fund }, dependencies: { indexers: [addressIndex] } });
const api = await startApi(
  { bind: { host: '127.0.0.1', port: 0 }, version: 'bench', network: 'development' },
  { identity: newIdentity(), now: () => bed.now, log: silentLog },
);
api.serve(bed.node);
process.stderr.write(`public API address=127.0.0.1:${api.address.port} \n`);

let draw = 0;
let cutting = Promise.resolve();
const beat = setInterval(() => {
  cutting = cutting.then(async () => {
    await bed.mine(developmentKey('miner of the benchmark').address, 1_000, draw++ % 16);
    await bed.seal();
  });
}, CUT_MILLIS);

process.once('SIGTERM', async () => {
  clearInterval(beat);
  await cutting;
  await api.close();
  await bed.close();
});
