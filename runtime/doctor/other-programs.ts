/** What a program asks of others: whether a node answers, is the right one, and is up to date; whether clocks agree. */
import { connect } from 'node:net';
import type { SteadyClock } from '../clock/clock.ts';
import { plainFetch, textOf } from '../node-client/http-fetch.ts';
import { bad, type Check, type Finding, ok, warn } from './doctor.ts';

const ASK_MILLIS = 5_000;
const CLOCK_WARN_MILLIS = 2_000;
const CLOCK_BAD_MILLIS = 30_000;

/** The part of its answer that is looked at; it may be another program's. */
type NodeStatus = Partial<
  Record<'version' | 'network' | 'state' | 'finalized_height', string> &
    Record<'update_required' | 'update_announced', boolean>
>;

async function ask(
  url: string,
): Promise<{ readonly status: number; readonly dateMillis: number; readonly body: unknown }> {
  const response = await plainFetch(url, { method: 'GET', headers: {}, signal: AbortSignal.timeout(ASK_MILLIS) });
  const body: unknown = await textOf(response)
    .then(JSON.parse)
    .catch(() => undefined);
  return { status: response.status, dateMillis: Date.parse(response.headers.get('date') ?? ''), body };
}

const away = (url: string, option: string, error: unknown): Finding =>
  bad(`no answer from ${url} (${reasonOf(error)})`, `start the node, or correct ${option}`);

const reasonOf = (error: unknown): string => {
  const { code, message } = error as Error & { readonly code?: unknown };
  return typeof code === 'string' ? code : message;
};

/** The public API of a node: it answers, is of the network, and has the newest cut; and its clock and ours agree. */
export function nodeChecks(
  urls: readonly string[],
  option: string,
  network: string | undefined,
  now: SteadyClock,
): Check[] {
  return urls.flatMap((url) => [
    {
      name: 'node',
      look: async () => {
        try {
          const { status, body } = await ask(`${url}/v1/node/status`);
          if (status !== 200) return bad(`${url} answers ${status}`, `name the public API of a node with ${option}`);
          const node = (body ?? {}) as NodeStatus;
          const says = `${url}: release ${node.version}, ${node.network}, cut ${node.finalized_height}, ${node.state}`;
          if (network !== undefined && node.network !== network)
            return bad(`${says}; the program is for ${network}`, `correct --network or ${option}`);
          if (node.update_required === true)
            return bad(`${says}; the network follows rules that it does not know`, 'update the node');
          if (node.state !== 'ready')
            return warn(says, 'wait until it has caught up; svcd doctor on its machine says more');
          return node.update_announced === true
            ? warn(`${says}; there is a newer release`, 'read its notes, and update the node')
            : ok(says);
        } catch (error) {
          return away(url, option, error);
        }
      },
    },
    {
      name: 'clock',
      look: async () => {
        try {
          const began = now();
          const { dateMillis } = await ask(`${url}/health`);
          if (Number.isNaN(dateMillis)) return ok('the node does not tell its time');
          // The header has whole seconds.
          const apart = Math.max(0, Math.abs(now() - dateMillis) - (now() - began) - 1_000);
          const says = `this clock and that of ${url} are ${apart < 1_000 ? 'together' : `${(apart / 1000).toFixed(1)} s apart`}`;
          const remedy =
            'set the clock by NTP on both machines (timedatectl set-ntp true): blocks dated ahead are refused';
          if (apart > CLOCK_BAD_MILLIS) return bad(says, remedy);
          return apart > CLOCK_WARN_MILLIS ? warn(says, remedy) : ok(says);
        } catch {
          return warn('no node answers, so this clock could not be compared', `start the node, or correct ${option}`);
        }
      },
    },
  ]);
}

export const miningListenerChecks = (urls: readonly string[]): Check[] =>
  urls.map((url) => ({
    name: 'mining listener',
    look: async () => {
      try {
        const { status } = await ask(`${url}/health`);
        return status === 200
          ? ok(`${url} answers`)
          : bad(`${url} answers ${status}`, 'name the mining listener of a node with --node');
      } catch (error) {
        return away(url, '--node', error);
      }
    },
  }));

/** Whether a server accepts connections. */
export const reachCheck = (
  name: string,
  { host, port }: { readonly host: string; readonly port: number },
  remedy: string,
): Check => ({
  name,
  look: () =>
    new Promise<Finding>((settle) => {
      const began = performance.now();
      const socket = connect({ host: host.replace(/^\[|\]$/g, ''), port, timeout: ASK_MILLIS });
      const end = (finding: Finding): void => {
        socket.destroy();
        settle(finding);
      };
      socket.once('connect', () => end(ok(`${host}:${port} answers in ${Math.round(performance.now() - began)} ms`)));
      socket.once('timeout', () => end(bad(`no answer from ${host}:${port} within ${ASK_MILLIS / 1000} s`, remedy)));
      socket.once('error', (error: NodeJS.ErrnoException) =>
        end(bad(`${host}:${port}: ${error.code ?? error.message}`, remedy)),
      );
    }),
});

/** Whether an address to be paid at and a pool are named, and each pool can be reached. */
export const poolChecks = (
  hasAddress: boolean,
  pools: readonly { readonly host: string; readonly port: number }[],
): Check[] => [
  {
    name: 'address',
    look: () =>
      hasAddress && pools.length > 0
        ? ok('pool and address are given')
        : bad(
            hasAddress ? 'no pool is named' : 'no address is named',
            'name both: -o stratum+tcp://pool.example:28720 -u ADDRESS.rig1',
          ),
  },
  ...pools.map((pool) =>
    reachCheck('pool', pool, 'look at the address and port that the pool names, and at your firewall'),
  ),
];
