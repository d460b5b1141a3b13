/** Miners of the reconnect storm, in a process of their own: all connect at once, and again whenever they are turned away. */
import { connect, type Socket } from 'node:net';
import { addressOf } from './stratum-client.ts';

export type StormTask = { readonly port: number; readonly miners: number };
/** How a storm ended: all have a job; how many got their old session back; how often one had to try again. */
export type StormReport = { readonly served: number; readonly resumed: number; readonly retries: number };

type Miner = { readonly number: number; session: string; socket: Socket | null };

const miners: Miner[] = [];
const RETRY_MILLIS = 200;

const login = ({ number, session }: Miner): string =>
  `{"jsonrpc":"2.0","id":1,"method":"mining.subscribe","params":{"agent":"storm/1"${session === '' ? '' : `,"session":"${session}"`}}}\n` +
  `{"jsonrpc":"2.0","id":2,"method":"mining.authorize","params":{"username":"${addressOf(number)}.s"}}\n`;

/** Resolves when the miner has a job; whether its session was resumed, and how many attempts failed. */
function join(miner: Miner, port: number): Promise<{ resumed: boolean; retries: number }> {
  const before = miner.session;
  let retries = 0;
  return new Promise((resolve) => {
    const attempt = (): void => {
      let text = '';
      let isIn = false;
      const socket = connect({ port, host: '127.0.0.1' }, () => void socket.write(login(miner)));
      miner.socket = socket;
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        if (isIn) return;
        text += chunk.toString('latin1');
        if (!text.includes('mining.notify')) return;
        isIn = true;
        miner.session = /"session":"([0-9a-f]{32})"/.exec(text)?.[1] ?? '';
        resolve({ resumed: miner.session === before, retries });
      });
      socket.on('close', () => {
        if (isIn || miner.socket !== socket) return;
        retries++;
        setTimeout(attempt, RETRY_MILLIS);
      });
    };
    attempt();
  });
}

process.on('message', ({ port, miners: count }: StormTask) => {
  // Open connections are cut off first, all at once.
  for (const miner of miners) {
    const { socket } = miner;
    miner.socket = null;
    socket?.destroy();
  }
  while (miners.length < count) miners.push({ number: miners.length, session: '', socket: null });
  void Promise.all(miners.map((miner) => join(miner, port))).then((joined) => {
    const report: StormReport = {
      served: joined.length,
      resumed: joined.filter(({ resumed }) => resumed).length,
      retries: joined.reduce((sum, { retries }) => sum + retries, 0),
    };
    process.send?.(report);
  });
});
process.on('disconnect', () => process.exit(0));
