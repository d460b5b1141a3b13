/** svcd: the full node as a separate program. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { steadyMillis } from '../runtime/clock/clock.ts';
import { doctorCommand } from '../runtime/doctor/doctor.ts';
import { lockDirectory } from '../runtime/files/directory-lock.ts';
import { openLog } from '../runtime/log/log.ts';
import { visible } from '../runtime/log/visible.ts';
import { command, commandTable, mistakeText, runProgram, type Terminal, version } from '../runtime/program.ts';
import { DEFAULT_SHUTDOWN_LIMIT_MS, Shutdown } from '../runtime/shutdown.ts';
import { runDaemon } from './daemon.ts';
import { nodeDoctor } from './doctor.ts';
import { developmentNetworkCommand } from './genesis/development-network.ts';
import { makeGenesis, writeGenesis } from './genesis/make-genesis.ts';
import { rebuildIndex } from './index/rebuild.ts';
import { joinCommand, launchCommand } from './launch/launch-commands.ts';
import { genesisOptions, pruneOptions, rebuildOptions, runOptions } from './node-options.ts';
import { snapshotCommands } from './snapshot/snapshot-commands.ts';
import { LedgerStore } from './store/ledger-store.ts';
import { storeDirectory } from './store/storage-mode.ts';
import { validatorCommands } from './validator/validator-commands.ts';

/** A failure with a code is printed in one line; anything else is a bug and is printed with its stack. */
function failed(name: string, error: unknown, terminal: Terminal): number {
  const says = mistakeText(error) ?? (error instanceof RangeError ? visible(error.message) : undefined);
  if (says === undefined) throw error;
  terminal.err(`${name}: ${says}\n`);
  return 1;
}

const runCommand = command(
  {
    name: 'svcd run',
    summary: 'Runs the node: chain, public API, mining listener.',
    options: runOptions,
    examples: [
      { line: 'svcd run --data-dir .data/node', says: 'a development chain with all listeners on this machine' },
      {
        line: 'svcd run --cut-millis 500 --fund dsvc1...=1000 --metrics-bind 127.0.0.1',
        says: 'faster, with coins and metrics',
      },
    ],
  },
  async (values, _operands, terminal) => {
    const { log, close } = openLog('node', values, terminal.env);
    const shutdown = new Shutdown({ limitMs: DEFAULT_SHUTDOWN_LIMIT_MS }, { log, process, now: steadyMillis });
    shutdown.add('log', close);
    return await shutdown.run(
      () => runDaemon(values, { log, shutdown, version: version() }),
      (error) => failed('svcd run', error, terminal),
    );
  },
);

const pruneCommand = command(
  {
    name: 'svcd prune',
    summary: 'Deletes bodies of old blocks; headers, cuts, rewards and the state stay.',
    options: pruneOptions,
    examples: [{ line: 'svcd prune --data-dir .data/node --keep-cuts 34560', says: 'keep the bodies of the last day' }],
  },
  async ({ dataDir, keepCuts }, _operands, terminal) => {
    try {
      const lock = lockDirectory(dataDir);
      const store = await LedgerStore.open(storeDirectory(dataDir));
      try {
        const pruned = await store.pruneBodies(store.state().height - keepCuts);
        terminal.out(`${pruned} bodies deleted\n`);
      } finally {
        await store.close();
        lock.release();
      }
      return 0;
    } catch (error) {
      return failed('svcd prune', error, terminal);
    }
  },
);

const rebuildCommand = command(
  {
    name: 'svcd rebuild-index',
    summary: 'Rebuilds the index of the public API by executing the whole chain again.',
    options: rebuildOptions,
    examples: [{ line: 'svcd rebuild-index --data-dir .data/node', says: 'with the node stopped' }],
  },
  async ({ dataDir }, _operands, terminal) => {
    const scratchDirectory = join(dataDir, 'rebuild');
    try {
      const lock = lockDirectory(dataDir);
      rmSync(scratchDirectory, { recursive: true, force: true });
      const store = await LedgerStore.open(storeDirectory(dataDir));
      const scratch = await LedgerStore.open(scratchDirectory, { durable: false });
      try {
        const height = await rebuildIndex(store, scratch, (done, of) => {
          if (done % 10_000 === 0) terminal.out(`${done} of ${of} cuts\n`);
        });
        terminal.out(`the index is at cut ${height}\n`);
      } finally {
        await scratch.close();
        await store.close();
        rmSync(scratchDirectory, { recursive: true, force: true });
        lock.release();
      }
      return 0;
    } catch (error) {
      return failed('svcd rebuild-index', error, terminal);
    }
  },
);

const genesisCommand = command(
  {
    name: 'svcd genesis',
    summary: 'Makes the genesis document of a new chain from registrations and funded addresses.',
    options: genesisOptions,
    examples: [
      {
        line: 'svcd genesis --network testnet --validator a.json --validator b.json --fund tsvc1...=19000000 --out genesis.json',
        says: 'principals and funds must add up to 20,000,000 coins',
      },
    ],
  },
  async (values, _operands, terminal) => {
    try {
      const { out, validator, timestampMillis, initialWork, minimumWork, ...rest } = values;
      const genesis = makeGenesis({
        ...rest,
        timestampMillis: timestampMillis === 0 ? steadyMillis() : timestampMillis,
        initialWork: BigInt(initialWork),
        minimumWork: BigInt(minimumWork),
        registrations: validator.map((file) => readFileSync(file, 'utf8')),
      });
      terminal.out(`chain ${writeGenesis(out, genesis)}\n`);
      return 0;
    } catch (error) {
      return failed('svcd genesis', error, terminal);
    }
  },
);

await runProgram(
  commandTable('svcd', 'A full node of the ledger.', [
    runCommand,
    genesisCommand,
    launchCommand,
    joinCommand,
    developmentNetworkCommand,
    pruneCommand,
    rebuildCommand,
    snapshotCommands,
    ...validatorCommands,
    doctorCommand('svcd', runOptions, (values) => nodeDoctor(values, steadyMillis)),
  ]),
);
