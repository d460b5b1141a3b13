/** `faucet`: the wallet gives coins to whoever asks, within limits; for the launch of a network. */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseCoins } from '../../protocol/amount.ts';
import { NETWORK_NAMES } from '../../protocol/network.ts';
import { readAddressRange } from '../../runtime/clients/client-address.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import {
  integer,
  listenAddress,
  parsed,
  repeated,
  showListenAddress,
} from '../../runtime/command-line/command-line.ts';
import { hostNameOption } from '../../runtime/door/host-name.ts';
import { logOptions } from '../../runtime/log/log.ts';
import { type Command, serve } from '../../runtime/program.ts';
import { sessionOptions } from '../command/options.ts';
import { terminalPrompt } from '../command/prompt.ts';
import { openSession, type Session } from '../command/session.ts';
import { walletCommand } from '../command/wallet-command.ts';
import { Faucet } from './faucet.ts';
import { listenForFaucet } from './faucet-listener.ts';

const LIMITS = 'Limits';
/** How often a wallet that the command itself has open reads new cuts; a daemon does so by itself. */
const TURN_MILLIS = 2_000;

const faucetOptions = {
  ...sessionOptions,
  amount: parsed(
    { help: 'what an address gets, once a day', group: LIMITS, placeholder: 'COINS', default: '10' },
    (word) => {
      const amount = parseCoins(word);
      if (amount < 1n) throw new Error('must be more than nothing');
      return amount;
    },
  ),
  perNetwork: integer({
    help: 'payments a day to one network of clients: /24 of IPv4, /48 of IPv6',
    group: LIMITS,
    min: 1,
    max: 1_000_000,
    default: 3,
  }),
  perDay: integer({ help: 'payments a day in all', group: LIMITS, min: 1, max: 100_000, default: 1_000 }),
  listen: listenAddress({ help: 'page and API', default: '127.0.0.1:28708' }),
  trustedProxy: repeated(
    parsed({ help: 'proxy that must name its clients with X-Forwarded-For', placeholder: 'CIDR' }, readAddressRange),
  ),
  hostName: hostNameOption('Options'),
  ...logOptions,
} as const;

/** Ends with the session. */
function keepReading(session: Session, fault: (error: unknown) => void): () => Promise<void> {
  const stop = new AbortController();
  const loop = (async () => {
    while (!stop.signal.aborted) {
      await session.turn();
      await sleep(TURN_MILLIS, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  })().catch(fault);
  return async () => {
    stop.abort();
    await loop;
    await session.close();
  };
}

export const faucetCommand = (name: string): Command =>
  walletCommand(
    {
      name: `${name} faucet`,
      summary: 'gives coins of this wallet to whoever asks, by a page and an API, within limits of a day',
      options: faucetOptions,
      examples: [
        {
          line: `${name} faucet --amount 10 --per-network 3 --per-day 1000`,
          says: 'on this machine; a TLS proxy in front is named with --trusted-proxy',
        },
      ],
    },
    (values, _, terminal) =>
      serve(`${name} faucet`, values, terminal, async ({ log, shutdown }) => {
        const session = await openSession(values, terminalPrompt);
        shutdown.add(
          'wallet',
          keepReading(session, (error) => {
            log.error('the wallet cannot go on', { error });
            shutdown.request('fault', 1);
          }),
        );
        const { network: named } = await session.call('status', {});
        const network = NETWORK_NAMES.find((known) => known === named);
        if (network === undefined) throw new Error(`the wallet names the network '${String(named)}'`);
        const { amount, perNetwork, perDay } = values;
        const faucet = new Faucet(
          { network, amount, perNetwork, perDay },
          { call: session.call, now: steadyMillis, log },
        );
        const { listen, trustedProxy: proxies, hostName: hosts } = values;
        const listener = await listenForFaucet({ listen, proxies, hosts }, faucet, log);
        shutdown.add('listener', () => listener.close());
        log.info('faucet ready', { listen: showListenAddress(listener.address), network, left: await faucet.left() });
      }),
  );
