/** `svc-pool new-key` (docs/pool-api.md): a stopped pool forgets the key of its receipts, and makes another one at its next start. */
import { join } from 'node:path';
import { parsed } from '../../runtime/command-line/command-line.ts';
import { logOptions, openLog } from '../../runtime/log/log.ts';
import { command, failureText } from '../../runtime/program.ts';
import { openBooks } from '../database/open-books.ts';
import { poolOptions } from '../options.ts';
import { lockOutInstances } from '../start/one-instance.ts';
import { forgetPoolKey, POOL_KEY_FILE } from './pool-key.ts';

export const newKeyCommand = command(
  {
    name: 'svc-pool new-key',
    summary:
      'For a key of the receipts that was lost or stolen, with all instances stopped: the next start makes another one.',
    options: {
      dataDir: poolOptions.dataDir,
      database: parsed({ help: 'PostgreSQL server; without one the embedded one', placeholder: 'URL' }, (word) => word),
      poolKeyFile: poolOptions.poolKeyFile,
      ...logOptions,
    },
    examples: [{ line: 'svc-pool new-key --data-dir /var/lib/svc-pool', says: 'with the pool stopped' }],
  },
  async (values, _operands, terminal) => {
    const { log, close } = openLog('new-key', values, terminal.env);
    try {
      const { dataDir, database, poolKeyFile: path = join(dataDir, POOL_KEY_FILE) } = values;
      const books = await openBooks({ dataDir, database, locksDirectory: true }, 'svc-pool-new-key', log);
      try {
        const { key, kept } = await books.sql.begin(async (transaction) => {
          await lockOutInstances(transaction);
          return forgetPoolKey(transaction, path);
        });
        const forgot = key === undefined ? 'The books had no key' : `Forgot the key ${key}`;
        terminal.out(
          `${forgot}${kept === undefined ? '' : `; its file is now ${kept}`}.\n` +
            'The next start makes another one and logs its name ("receipts are signed"). Tell it to your miners, for --pool-key: they take another key for that of another pool.\n',
        );
        return 0;
      } finally {
        await books.close();
      }
    } catch (error) {
      terminal.err(`svc-pool new-key: ${failureText(error)}\n`);
      return 1;
    } finally {
      close();
    }
  },
);
