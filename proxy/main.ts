/** svc-proxy: many rigs behind one connection to a pool. */
import { stratumDoctor } from '../bridge/doctor.ts';
import { followConfig } from '../miner/config-watch.ts';
import { steadyMillis } from '../runtime/clock/clock.ts';
import { UsageError } from '../runtime/command-line/command-line.ts';
import { doctorCommand } from '../runtime/doctor/doctor.ts';
import { directoryChecks, portChecks } from '../runtime/doctor/machine.ts';
import { poolChecks } from '../runtime/doctor/other-programs.ts';
import { command, refuse, runProgram, serve, withCommands } from '../runtime/program.ts';
import { proxyCommand, proxyOptions } from './options.ts';
import { runProxy } from './proxy.ts';

const proxying = command(proxyCommand, async (values, _operands, terminal, { file, parse }) => {
  const lacks = (message: string, remedy: string): number =>
    refuse('svc-proxy', new UsageError('usage_option_missing', message, remedy), terminal);
  if (values.pool.length === 0) return lacks('no pool is named', 'add -o stratum2+tcp://HOST:PORT');
  if (values.user === undefined) return lacks('no address is named', 'add -u ADDRESS');
  return await serve('svc-proxy', values, terminal, async (running) => {
    const { log, shutdown } = running;
    const { apply } = await runProxy(values, running);
    if (file !== undefined) shutdown.add('config', followConfig(file, parse, apply, log));
  });
});

const doctor = doctorCommand('svc-proxy', proxyOptions, (values) => [
  ...directoryChecks(values.dataDir),
  ...stratumDoctor({ ...values, network: values.user?.address.network ?? 'mainnet', node: [] }, steadyMillis),
  ...portChecks(undefined, [
    { option: 'listen', address: values.listen },
    { option: 'listen-ws', address: values.listenWs },
    { option: 'stats-bind', address: values.statsBind },
    { option: 'web-bind', address: values.webBind },
    { option: 'metrics-bind', address: values.metricsBind },
  ]),
  ...poolChecks(
    values.user !== undefined,
    values.pool.map(({ endpoint }) => endpoint),
  ),
]);

await runProgram(withCommands(proxying, [doctor]));
