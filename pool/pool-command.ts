/** svc-pool: `run` is the pool, `audit` recomputes its books, `repair-payouts` compares them with the wallet, `backup` and `restore` copy them, `verify-evidence` judges a miner's complaint. */
import { parseAddress } from '../protocol/address.ts';
import { createApiClient } from '../protocol/api/client.ts';
import { steadyMillis } from '../runtime/clock/clock.ts';
import { flag, parsed, path } from '../runtime/command-line/command-line.ts';
import { doctorCommand } from '../runtime/doctor/doctor.ts';
import { logOptions, openLog } from '../runtime/log/log.ts';
import { nodeTransport } from '../runtime/node-client/node-transport.ts';
import { command, commandTable, failureText, serve, type Terminal } from '../runtime/program.ts';
import { audit } from './audit/audit.ts';
import { auditPublic } from './audit/public.ts';
import { newerAnswers, publicPool } from './audit/public-reads.ts';
import { OWED_EXIT, publicReportText, reportJson, reportText, toldProgress } from './audit/report.ts';
import { backupCommand, restoreCommand } from './backup/backup-commands.ts';
import { type OpenBooks, openBooks } from './database/open-books.ts';
import { verifyEvidence } from './evidence/verify-evidence.ts';
import { poolOptions } from './options.ts';
import { payoutSeries } from './payout/payout-series.ts';
import { repairPayouts } from './payout/repair.ts';
import { createWalletClient } from './payout/wallet-client.ts';
import { PoolError } from './pool-error.ts';
import { newKeyCommand } from './receipts/new-key-command.ts';
import { poolDoctor } from './start/doctor.ts';
import { openWalletLink } from './start/wallet-link.ts';

const failed = (name: string, error: unknown, terminal: Terminal): void =>
  terminal.err(`${name}: ${failureText(error)}\n`);

const runCommand = command(
  {
    name: 'svc-pool run',
    summary: 'Runs the pool: stratum for PPLNS and solo, books, payouts, API and dashboard.',
    options: poolOptions,
    examples: [
      { line: 'svc-pool run', says: 'everything embedded, on the development network' },
      {
        line: 'svc-pool run --node http://127.0.0.1:28702 --wallet http://127.0.0.1:28703 --wallet-token-file wallet.token',
        says: 'with a node and a wallet of their own',
      },
      {
        line: 'svc-pool run --database postgres://pool:secret@db/pool --redis redis://cache:6379',
        says: 'one of several instances',
      },
    ],
  },
  async (values, _operands, terminal) => {
    return await serve('svc-pool run', values, terminal, async ({ log, shutdown, version }) => {
      // Loaded only here: the other commands start in half the time without it.
      const { createPool } = await import('./pool.ts');
      await createPool(values, {
        log,
        version,
        started: (name, stop) => shutdown.add(name, stop),
        fault: (reason) => shutdown.request(reason, 1),
      });
    });
  },
);

async function writeReport(path: string, report: object): Promise<void> {
  const { writeDurably } = await import('../runtime/files/durable-file.ts');
  await writeDurably(path, `${JSON.stringify(report, undefined, 2)}\n`);
}

const PUBLIC_EXITS = { holds: 0, false: 1, unchecked: 3, suspicious: 4 } as const;
const AUDIT_EXITS = [
  {
    code: PUBLIC_EXITS.holds,
    says: 'no difference was found; without --public and --node-api only the books were checked, not the ledger, and the report says so',
  },
  { code: PUBLIC_EXITS.false, says: 'a difference was found; without --public also: the audit could not be made' },
  { code: 2, says: 'the command line is wrong' },
  {
    code: PUBLIC_EXITS.unchecked,
    says: 'with --public: nothing wrong was found, but not everything could be checked: no --node-api, a node that lacks something, or no answer from the pool',
  },
  {
    code: PUBLIC_EXITS.suspicious,
    says: 'with --public: the same, and the pool has held rewards, or been behind the ledger, for longer than an honest pool needs',
  },
  {
    code: OWED_EXIT,
    says: 'without --public: no difference, and rewards that the operator has to pass on to their finders',
  },
];

const auditCommand = command(
  {
    name: 'svc-pool audit',
    summary:
      'Recomputes the books from shares, slices, blocks and payments, and with --node-api from the ledger; exits with 1 on a difference of a single atom.',
    exits: AUDIT_EXITS,
    options: {
      dataDir: poolOptions.dataDir,
      database: parsed(
        { help: 'PostgreSQL server; without one the embedded one of the data directory', placeholder: 'URL' },
        (word) => word,
      ),
      nodeApi: parsed(
        {
          help: 'public API of a node; without one rewards and payments are not compared with the ledger',
          placeholder: 'URL',
        },
        (word) => word,
      ),
      wallet: parsed(
        { help: 'wallet that pays; without one payouts are not compared with its record', placeholder: 'URL' },
        (word) => word,
      ),
      walletTokenFile: poolOptions.walletTokenFile,
      public: parsed(
        {
          help: 'audit what the pool at this address publishes, without its database: slices, roots, W, fees, lists, commitments; with --node-api against the ledger too',
          placeholder: 'URL',
        },
        (word) => word,
      ),
      json: flag({ help: 'print the report as JSON' }),
      report: path({ help: 'write the findings to this file as well, as JSON', placeholder: 'FILE' }),
      ...logOptions,
    },
    examples: [
      {
        line: 'svc-pool audit --data-dir .data/pool',
        says: 'with the embedded database, whether or not the pool is running',
      },
      {
        line: 'svc-pool audit --database postgres://pool:secret@db/pool --node-api http://127.0.0.1:28701',
        says: 'with a server of its own, against the ledger too',
      },
      {
        line: 'svc-pool audit --public https://pool.example/ --node-api http://127.0.0.1:28701',
        says: 'any pool, from what it publishes',
      },
    ],
  },
  async (values, _operands, terminal) => {
    const nodeOf = (baseUrl: string) => createApiClient({ baseUrl, attempts: 3 }, nodeTransport());
    if (values.public !== undefined) {
      try {
        const node = values.nodeApi === undefined ? null : nodeOf(values.nodeApi);
        const report = await auditPublic({ pool: publicPool(values.public), node }, newerAnswers);
        terminal.out(values.json ? reportJson(report) : publicReportText(report));
        if (values.report !== undefined) await writeReport(values.report, report);
        return PUBLIC_EXITS[report.verdict];
      } catch (error) {
        // Bad answers of a pool are not a bug of this program: one line, without a stack.
        const { message } = error as Error;
        failed(
          'svc-pool audit',
          error instanceof PoolError ? error : new PoolError('pool_unreachable', message),
          terminal,
        );
        return PUBLIC_EXITS.unchecked;
      }
    }
    const { log, close } = openLog('audit', values, terminal.env);
    let books: OpenBooks | undefined;
    try {
      if (values.wallet !== undefined && values.walletTokenFile === undefined)
        throw new PoolError('options_disagree', '--wallet needs --wallet-token-file');
      books = await openBooks({ ...values, isReader: true }, 'svc-pool-audit', log);
      const { sql, network, poolAddress } = books;
      const asked = { ledger: values.nodeApi !== undefined, wallet: values.wallet !== undefined };
      const series = payoutSeries(parseAddress(poolAddress).payload);
      const report = await audit(sql, {
        network,
        onProgress: toldProgress({ log, now: steadyMillis }),
        ...(values.nodeApi === undefined ? {} : { ledger: { node: nodeOf(values.nodeApi), poolAddress } }),
        ...(values.wallet === undefined || values.walletTokenFile === undefined
          ? {}
          : {
              wallet: {
                reads: createWalletClient({ url: values.wallet, tokenFile: values.walletTokenFile }),
                series,
              },
            }),
      });
      terminal.out(values.json ? reportJson(report) : reportText(report, asked));
      if (values.report !== undefined) await writeReport(values.report, report);
      if (report.differences > 0) return PUBLIC_EXITS.false;
      return report.owed.length > 0 ? OWED_EXIT : PUBLIC_EXITS.holds;
    } catch (error) {
      failed('svc-pool audit', error, terminal);
      return 1;
    } finally {
      await books?.close();
      close();
    }
  },
);

const repairCommand = command(
  {
    name: 'svc-pool repair-payouts',
    summary: 'Compares the payouts of the books with the payments of the wallet, and with --apply corrects the books.',
    options: {
      network: poolOptions.network,
      dataDir: poolOptions.dataDir,
      database: parsed(
        { help: 'PostgreSQL server; without one the embedded one, with the pool stopped', placeholder: 'URL' },
        (word) => word,
      ),
      wallet: poolOptions.wallet,
      walletTokenFile: poolOptions.walletTokenFile,
      nodeApi: poolOptions.nodeApi,
      apply: flag({ help: 'correct the books; without it nothing is changed' }),
      advance: flag({
        help: 'also record payments that exceed the credits in the books and the income of the pool itself',
      }),
      ...logOptions,
    },
    examples: [
      {
        line: 'svc-pool repair-payouts --database postgres://pool:secret@db/pool --wallet http://127.0.0.1:28703 --wallet-token-file wallet.token',
        says: 'while the pool is running: shows the differences',
      },
    ],
  },
  async (values, _operands, terminal) => {
    const { log, close } = openLog('repair', values, terminal.env);
    const stops: (() => unknown)[] = [close];
    try {
      const { dataDir, database } = values;
      const place = { dataDir, database, locksDirectory: values.wallet === undefined };
      const { sql, poolAddress, close: closeBooks } = await openBooks(place, 'svc-pool-repair', log);
      stops.push(closeBooks);
      const link = await openWalletLink(values, values.nodeApi[0] as string, {
        log,
        started: (_, stop) => stops.push(stop),
        fault: (reason) => terminal.err(`svc-pool repair-payouts: ${reason}\n`),
      });
      const { lines, agree } = await repairPayouts(
        { apply: values.apply, advance: values.advance },
        {
          sql,
          wallet: createWalletClient({ ...link, address: poolAddress }),
          series: payoutSeries(parseAddress(poolAddress).payload),
        },
      );
      terminal.out(lines.map((line) => `${line}\n`).join(''));
      return agree ? 0 : 1;
    } catch (error) {
      failed('svc-pool repair-payouts', error, terminal);
      return 1;
    } finally {
      for (const stop of stops.reverse()) await stop();
    }
  },
);

const evidenceCommand = command(
  {
    name: 'svc-pool verify-evidence',
    summary:
      'Checks a miner’s evidence against a pool. Exits with 0 if it proves the pool wrong, with 1 if it does not, and with 3 if it is valid only for a key that is not known to be the pool’s. Exits with 4 for two credit lists of one slice (they prove nothing by themselves, because pools do not sign lists), and with 5 for credits that are still not paid.',
    operands: [{ name: 'FILE', help: 'evidence-*.json of a miner' }],
    options: {
      poolKey: parsed(
        { help: 'public key of the pool in hex, or its short name; otherwise the one in the file', placeholder: 'KEY' },
        (word) => {
          if (!/^([0-9a-f]{32}|[0-9a-f]{3904})$/.test(word))
            throw new Error('must be a key of 3,904 hex characters, or its short name of 32');
          return word;
        },
      ),
      poolApi: parsed(
        { help: 'API of the pool: to check also whether it publishes this key and this slice', placeholder: 'URL' },
        (word) => word,
      ),
      nodeApi: parsed(
        {
          help: 'API of a node: to check also, with --pool-api, whether the ledger commits to this slice',
          placeholder: 'URL',
        },
        (word) => word,
      ),
      json: flag({ help: 'answer in JSON' }),
    },
    examples: [
      {
        line: 'svc-pool verify-evidence evidence-books-less-pplns-812.json --pool-api https://pool.example',
        says: 'with what the pool publishes',
      },
    ],
  },
  (values, [file], terminal) => verifyEvidence(file as string, values, terminal),
);

export const poolCommand = commandTable('svc-pool', 'A mining pool whose books its miners can check.', [
  runCommand,
  auditCommand,
  repairCommand,
  backupCommand,
  restoreCommand,
  newKeyCommand,
  evidenceCommand,
  doctorCommand('svc-pool', poolOptions, (values) => poolDoctor(values, steadyMillis)),
]);
