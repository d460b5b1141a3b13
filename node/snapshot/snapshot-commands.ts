/** `svcd snapshot create` and `svcd snapshot verify`. */
import { toHex } from '../../protocol/bytes.ts';
import { flag, path } from '../../runtime/command-line/command-line.ts';
import { lockDirectory } from '../../runtime/files/directory-lock.ts';
import { command, commandTable } from '../../runtime/program.ts';
import { LedgerStore } from '../store/ledger-store.ts';
import { storeDirectory } from '../store/storage-mode.ts';
import { createSnapshot } from './create-snapshot.ts';
import { readSnapshot, type SnapshotFigures } from './read-snapshot.ts';
import { trustOption } from './snapshot-options.ts';

const createOptions = {
  dataDir: path({ help: 'where the chain is kept', default: '.data/node', placeholder: 'DIR' }),
  out: path({ help: 'file to write', required: true, placeholder: 'FILE' }),
} as const;

const createCommand = command(
  {
    name: 'svcd snapshot create',
    summary: 'Writes the state of a stopped node to a file, if its newest cut is one that snapshots are made of.',
    options: createOptions,
    examples: [
      { line: 'svcd snapshot create --data-dir .data/node --out snapshot', says: 'a running node: --write-snapshots' },
    ],
  },
  async ({ dataDir, out }, _operands, terminal) => {
    const lock = lockDirectory(dataDir);
    try {
      const store = await LedgerStore.open(storeDirectory(dataDir));
      const frozen = store.frozen();
      try {
        const { height, cutId, bytes } = await createSnapshot(frozen, out);
        terminal.out(`cut ${height}, ${bytes} bytes\n--trust ${toHex(cutId)}\n`);
      } finally {
        await frozen.close();
        await store.close();
      }
    } finally {
      lock.release();
    }
    return 0;
  },
);

const verifyOptions = {
  trust: trustOption,
  json: flag({ help: 'as JSON' }),
} as const;

const documentOf = ({ head, pieces }: SnapshotFigures) => ({
  network: head.genesis.network,
  chain_id: toHex(head.state.chainId),
  height: head.state.height,
  cut_id: toHex(head.cut.cutId),
  state_root: toHex(head.cut.header.stateRoot),
  finalized_at: new Date(head.cut.header.timestampMillis).toISOString(),
  outputs: head.state.outputs.count,
  keys: head.state.keys.count,
  validators: head.state.validators.count,
  positions: head.state.positions.count,
  pieces,
});

const nothing = (): void => undefined;

const verifyCommand = command(
  {
    name: 'svcd snapshot verify',
    summary:
      'Checks every part of a snapshot and shows which cut it belongs to. Without --trust only its consistency is checked.',
    options: verifyOptions,
    operands: [{ name: 'FILE', help: 'the snapshot' }],
    examples: [{ line: 'svcd snapshot verify snapshot', says: 'compare the cut id with that of nodes that you trust' }],
  },
  async ({ trust, json }, [file = ''], terminal) => {
    const document = documentOf(
      await readSnapshot(file, trust?.cutId, { head: nothing, work: nothing, piece: nothing }),
    );
    const lines = Object.entries(document).map(([name, value]) => `${name.padEnd(13)} ${value}\n`);
    terminal.out(json ? `${JSON.stringify(document, null, 2)}\n` : lines.join(''));
    return 0;
  },
);

export const snapshotCommands = commandTable('svcd snapshot', 'Snapshots of the state.', [
  createCommand,
  verifyCommand,
]);
