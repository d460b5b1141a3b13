/** The commands that back up and restore the books. */
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { integer, path } from '../../runtime/command-line/command-line.ts';
import { logOptions, openLog } from '../../runtime/log/log.ts';
import { command, failureText } from '../../runtime/program.ts';
import { poolOptions } from '../options.ts';
import { backup, restore } from './backup.ts';

export const backupCommand = command(
  {
    name: 'svc-pool backup',
    summary:
      'Copies the embedded database and the key of the receipts to a new folder, also while the pool is running.',
    options: {
      dataDir: poolOptions.dataDir,
      to: path({
        help: 'where the copies go, each into a folder of its own',
        placeholder: 'DIR',
        default: '.data/backup',
      }),
      keep: integer({
        help: 'keep this many copies of this pool there, and delete older ones',
        min: 1,
        max: 100_000,
      }),
      ...logOptions,
    },
    examples: [
      {
        line: 'svc-pool backup --data-dir /var/lib/svc-pool --to /mnt/backup --keep 24',
        says: 'every hour, by a timer',
      },
    ],
  },
  async (values, _operands, terminal) => {
    const { log, close } = openLog('backup', values, terminal.env);
    try {
      terminal.out(`${await backup(values, log, steadyMillis())}\n`);
      return 0;
    } catch (error) {
      terminal.err(`svc-pool backup: ${failureText(error)}\n`);
      return 1;
    } finally {
      close();
    }
  },
);

export const restoreCommand = command(
  {
    name: 'svc-pool restore',
    summary: 'Replaces the embedded database of a stopped pool by a copy, keeps the old one, and pauses payouts.',
    operands: [{ name: 'COPY', help: 'folder that svc-pool backup made' }],
    options: { dataDir: poolOptions.dataDir, ...logOptions },
    examples: [
      {
        line: 'svc-pool restore /mnt/backup/books-20260102T030405Z --data-dir /var/lib/svc-pool',
        says: 'then start the pool',
      },
    ],
  },
  async (values, [from], terminal) => {
    const { log, close } = openLog('restore', values, terminal.env);
    try {
      const { poolAddress, kept } = await restore(from as string, values.dataDir, log, steadyMillis());
      const before = kept === undefined ? '' : `The previous database is now at ${kept}.\n`;
      terminal.out(
        `Restored the books of ${poolAddress}.\n${before}Payouts are paused. Start the pool, run svc-pool audit when it has caught up, and resume them on the operator page.\n`,
      );
      return 0;
    } catch (error) {
      terminal.err(`svc-pool restore: ${failureText(error)}\n`);
      return 1;
    } finally {
      close();
    }
  },
);
