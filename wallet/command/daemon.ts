/** `svc-wallet daemon`: the wallet, its loop and its listener, until a signal ends them. */

import { parseAddress } from '../../protocol/address.ts';
import { attempt } from '../../protocol/errors.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { watchClock } from '../../runtime/clock/watched-clock.ts';
import { showListenAddress, type ValuesOf } from '../../runtime/command-line/command-line.ts';
import { openLog } from '../../runtime/log/log.ts';
import type { Terminal } from '../../runtime/program.ts';
import { DEFAULT_SHUTDOWN_LIMIT_MS, Shutdown } from '../../runtime/shutdown.ts';
import { openWallet } from '../open.ts';
import { WalletServer } from '../rpc/server.ts';
import { readOrCreateToken } from '../rpc/token.ts';
import { WalletError } from '../wallet-error.ts';
import { daemonListen, type daemonOptions, walletFile } from './options.ts';
import type { Prompt } from './prompt.ts';

export async function runDaemon(
  values: ValuesOf<typeof daemonOptions>,
  terminal: Terminal,
  prompt: Prompt,
): Promise<number> {
  const { log, close } = openLog('wallet', values, terminal.env);
  const shutdown = new Shutdown({ limitMs: DEFAULT_SHUTDOWN_LIMIT_MS }, { log, process, now: steadyMillis });
  shutdown.add('log', close);
  shutdown.add('clock', watchClock(log.child('clock')).stop);
  let failure: unknown;
  const begin = async (): Promise<void> => {
    const file = walletFile(values);
    const wallet = await openWallet(
      {
        file,
        passwordFile: values.passwordFile,
        service: values.service,
        nodeIdentity: values.nodeIdentity,
        confirmations: values.confirmations,
        validityCuts: values.validity,
        maxFeePerMass: BigInt(values.maxFeePerMass),
        ...(values.autoCompound === undefined ? {} : { autoCompound: values.autoCompound }),
        ...(values.autoSweepTo === undefined ? {} : { autoSweepTo: values.autoSweepTo }),
      },
      {
        log,
        ask: prompt.interactive ? () => prompt.askHidden('Password: ') : undefined,
        fault(error) {
          log.error('the state cannot be written', { error });
          shutdown.request('fault', 1);
        },
        check(network) {
          if (values.autoSweepTo === undefined) return;
          const sweep = attempt(() => parseAddress(values.autoSweepTo as string, network));
          if (!sweep.ok) throw new WalletError('address_invalid', `--auto-sweep-to: ${sweep.error.message}`);
        },
      },
    );
    shutdown.add('wallet', () => wallet.close());
    const token = await readOrCreateToken(values.tokenFile ?? `${file}.token`);
    const server = new WalletServer(wallet, {
      listen: daemonListen(values),
      allowRemote: values.allowRemote,
      token,
      proxies: values.trustedProxy,
      hosts: values.hostName,
    });
    const address = await server.start();
    shutdown.add('listener', () => server.close());
    wallet.start();
    log.info('wallet daemon ready', {
      listen: showListenAddress(address),
      network: wallet.network,
      service: values.service,
    });
  };
  const code = await shutdown.run(begin, (error) => {
    failure = error;
    return 1;
  });
  // What had started is stopped; the caller prints the reason.
  if (failure !== undefined) throw failure;
  return code;
}
