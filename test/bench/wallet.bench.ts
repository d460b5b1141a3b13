/**
 * The wallet daemon as a pool uses it: payments per second with 10,000 outputs, the time `balance` takes meanwhile, and
 * the start with 100,000 entries of history. A real node that finalizes a cut every 2.5 s and a real daemon, each a process of
 * its own.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatAddress } from '../../protocol/address.ts';
import { WalletRoot } from '../../wallet/keys/derivation.ts';
import { Keyring } from '../../wallet/keys/keyring.ts';
import { phraseOfEntropy } from '../../wallet/keys/phrase.ts';
import { sealWalletFile, writeWalletFile } from '../../wallet/keys/wallet-file.ts';
import { readToken } from '../../wallet/rpc/token.ts';
import { outputKey } from '../../wallet/state/records.ts';
import { WalletStore } from '../../wallet/state/store.ts';
import { type Bench, bench } from './harness.ts';

const OUTPUTS = 10_000;
const HISTORY = 100_000;
const SECONDS = 10;
/** Payments a second while the time of `balance` is taken. */
const PACE = 50;
const MOST_UNDERWAY = 64;
const WORKERS = 8;
/** What the same question costs when nobody pays: shows what of a time is the machine's and this process's own. */
const IDLE_SERVER = `const server = require('node:http').createServer((_, answer) => answer.end('{"balance":"0"}'));
server.listen(0, '127.0.0.1', () => process.stderr.write('idle at 127.0.0.1:' + server.address().port + ' \\n'));`;
const programs = new URL('../../', import.meta.url).pathname;

const hash = (text: string): string => createHash('sha384').update(text).digest('hex');
const entropy = new Uint8Array(createHash('sha256').update('benchmark').digest());
const keyring = new Keyring(new WalletRoot(phraseOfEntropy(entropy), '', 'development'));
const record = keyring.addressRecord('receive', 0, 0);
const recipients = Array.from({ length: 7 }, (_, i) => ({
  to: formatAddress(new Uint8Array(49).fill(i + 1, 1), 'development'),
  amount: '0.01',
}));

/** Starts a program and waits for the line that says where it listens. */
function start(words: string[], ready: RegExp): Promise<{ child: ChildProcess; address: string }> {
  const child = spawn(process.execPath, words, { cwd: programs, stdio: ['ignore', 'ignore', 'pipe'] });
  return new Promise((resolve, reject) => {
    let text = '';
    child.stderr?.on('data', (data: Buffer) => {
      text += data.toString();
      const address = ready.exec(text)?.[1];
      if (address !== undefined) resolve({ child, address });
    });
    child.once('exit', () => reject(new Error(text)));
  });
}

/** Processor seconds a process has used: what a busy machine does not falsify. Linux counts them in hundredths. */
function processorSeconds(child: ChildProcess): number {
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function stop(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await gone;
}

async function writeWallet(file: string): Promise<void> {
  await writeWalletFile(file, await sealWalletFile({ entropy, passphrase: '' }, 'development', 'benchmark'));
  writeFileSync(`${file}.password`, 'benchmark\n', { mode: 0o600 });
}

const startDaemon = (file: string, service: string) =>
  start(
    ['wallet/main.ts', 'daemon', '--file', file, '--service', service, '--listen', '127.0.0.1:0'],
    /wallet daemon ready listen=(\S+)/,
  );

/** As many payments as the callers get answered. */
async function fastest(
  b: Bench,
  pay: (name: string) => Promise<unknown>,
  [daemon, node]: [ChildProcess, ChildProcess],
) {
  let sent = 0;
  const before = performance.now();
  const used = [daemon, node].map(processorSeconds);
  const caller = async (_: unknown, number: number) => {
    for (; performance.now() < before + 1000 * SECONDS; sent++) await pay(`fast ${number} ${sent}`);
  };
  await Promise.all(Array.from({ length: WORKERS }, caller));
  b.note(`${sent} payments to 7 recipients each by ${WORKERS} callers`);
  b.figure('send_many', (1000 * sent) / (performance.now() - before), 'op/s');
  const [daemonSeconds = 0, nodeSeconds = 0] = [daemon, node].map(
    (child, i) => processorSeconds(child) - (used[i] ?? 0),
  );
  b.figure('send_many-daemon-cpu', (1000 * daemonSeconds) / sent, 'ms');
  b.figure('send_many-node-cpu', (1000 * nodeSeconds) / sent, 'ms');
}

/** The time `balance` takes while payments come at an even pace. */
async function paced(b: Bench, pay: (name: string) => Promise<unknown>, balance: () => Promise<unknown>) {
  const idle = await start(['-e', IDLE_SERVER], /idle at (\S+)/);
  try {
    await pacedBeside(b, pay, balance, async () => await (await fetch(`http://${idle.address}/`)).json());
  } finally {
    await stop(idle.child);
  }
}

async function pacedBeside(
  b: Bench,
  pay: (name: string) => Promise<unknown>,
  balance: () => Promise<unknown>,
  idle: () => Promise<unknown>,
) {
  const end = performance.now() + 1000 * SECONDS;
  const times: number[] = [];
  const idleTimes: number[] = [];
  const timed = async (call: () => Promise<unknown>, into: number[]) => {
    const before = performance.now();
    await call();
    into.push(performance.now() - before);
  };
  const paid: Promise<unknown>[] = [];
  let underway = 0;
  const beat = setInterval(() => {
    // A daemon takes 128 connections: on a machine that cannot keep the pace, the pace gives way.
    if (underway >= MOST_UNDERWAY) return;
    underway++;
    paid.push(pay(`paced ${paid.length}`).finally(() => underway--));
  }, 1000 / PACE);
  while (performance.now() < end) {
    await timed(balance, times);
    await timed(idle, idleTimes);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  clearInterval(beat);
  await Promise.all(paid);
  const at = (share: number, list: number[]) => list.sort((x, y) => x - y)[Math.floor(list.length * share)] as number;
  b.note(`${times.length} calls of balance during ${paid.length} payments at ${PACE} a second`);
  for (const [name, share] of [
    ['p50', 0.5],
    ['p99', 0.99],
  ] as const) {
    b.figure(`balance-${name}`, at(share, times), 'ms');
    b.figure(`idle-server-${name}`, at(share, idleTimes), 'ms');
  }
}

async function payments(b: Bench, directory: string): Promise<void> {
  const file = join(directory, 'wallet.json');
  await writeWallet(file);
  const node = await start(
    ['test/bench/wallet-node.ts', record.address, String(OUTPUTS), '1000000000'],
    /public API address=(\S+)/,
  );
  const daemon = await startDaemon(file, `http://${node.address}`);
  try {
    const token = readToken(`${file}.token`);
    const call = async (method: string, params: unknown): Promise<Record<string, unknown>> => {
      const answer = await fetch(`http://${daemon.address}/v1/rpc`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      });
      const { result, error } = (await answer.json()) as { result?: Record<string, unknown>; error?: unknown };
      if (result === undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
      return result;
    };
    while ((await call('balance', {})).outputs !== OUTPUTS) await new Promise((resolve) => setTimeout(resolve, 200));
    const pay = (name: string) => call('send_many', { recipients, request_id: name });
    await Promise.all(Array.from({ length: WORKERS }, (_, i) => pay(`warm ${i}`)));
    await fastest(b, pay, [daemon.child, node.child]);
    await paced(b, pay, () => call('balance', {}));
  } finally {
    await stop(daemon.child);
    await stop(node.child);
  }
}

async function startUp(b: Bench, directory: string): Promise<void> {
  const file = join(directory, 'old.json');
  await writeWallet(file);
  const store = await WalletStore.open(join(`${file}.state`, 'store'));
  const outputs = [{ output: 0, address: record.address, amount: 1_000_000n }];
  const common = { spent: 0n, fee: null, recipients: [], payloadHex: '', senders: [], requestId: null, outputs };
  for (let i = 0; i < HISTORY; i += 5000)
    await store.write(
      [
        {
          history: Array.from({ length: 5000 }, (_, k) => ({
            ...common,
            height: 1 + Math.floor((i + k) / 4),
            transaction: hash(`history ${i + k}`),
            kind: 'reward' as const,
            received: 1_000_000n,
          })),
        },
      ],
      false,
    );
  await store.write(
    [
      {
        meta: { ...WalletStore.firstMeta('development'), indexedHeight: HISTORY / 4 },
        addresses: [{ ...record, given: true, used: true }],
        outputsAdded: Array.from({ length: OUTPUTS }, (_, i) => ({
          key: outputKey(hash(`history ${i}`), 0),
          amount: 1_000_000n,
          address: record.address,
          height: 1,
          source: 'work_reward' as const,
        })),
      },
    ],
    true,
  );
  await store.close();
  const times: number[] = [];
  const used: number[] = [];
  for (let i = 0; i < 5; i++) {
    const before = performance.now();
    const { child } = await startDaemon(file, 'http://127.0.0.1:9');
    times.push((performance.now() - before) / 1000);
    used.push(processorSeconds(child));
    await stop(child);
  }
  b.note(
    `${HISTORY} entries of history and ${OUTPUTS} outputs; from the start of the process to its listener, password included`,
  );
  b.figure('start-cpu', used.sort((x, y) => x - y)[2] as number, 's');
  b.figure('start', times.sort((x, y) => x - y)[2] as number, 's');
}

export default bench('payments through the daemon, balance meanwhile, start with a long history', async (b) => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  try {
    await payments(b, directory);
    await startUp(b, directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
