/** The process that svcd.deep.slow.test.ts kills: it fetches a snapshot from peers and kills itself after so many parts. Words: data directory, genesis document, trusted cut, its height, peers, parts. */
import { loadGenesis } from '../../node/genesis/make-genesis.ts';
import { fetchSnapshot } from '../../node/network/snapshots/fetch-snapshot.ts';
import { fromHex } from '../../protocol/bytes.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { quietLog } from '../quiet-log.ts';

const [dataDir = '', genesis = '', cutId = '', height = '', peers = '', last = ''] = process.argv.slice(2);

await fetchSnapshot(
  {
    dataDir,
    peers: { listen: [], announce: [], bootstrap: peers.split(','), maxPeers: 8 },
    trust: { cutId: fromHex(cutId), height: Number(height) },
    genesis: loadGenesis(genesis, 'development'),
    release: '0.1.0',
  },
  {
    log: quietLog,
    now: Date.now,
    steady: steadyMillis,
    signal: new AbortController().signal,
    onPart: (parts) => {
      if (parts === Number(last)) process.kill(process.pid, 'SIGKILL');
    },
  },
);
