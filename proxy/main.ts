/** svc-proxy: many rigs behind one connection to a pool. */
import { stratumDoctor } from '../bridge/doctor.ts';
import { steadyMillis } from '../runtime/clock/clock.ts';
import { doctorCommand } from '../runtime/doctor/doctor.ts';
import { directoryChecks, portChecks } from '../runtime/doctor/machine.ts';
import { openLog } from '../runtime/log/log.ts';
import { command, failureText, runProgram, version } from '../runtime/program.ts';
import { DEFAULT_SHUTDOWN_LIMIT_MS, Shutdown } from '../runtime/shutdown.ts';
import { proxyCommand, proxyOptions } from './options.ts';
import { runProxy } from './proxy.ts';

const USAGE = 2;

const proxying = command(proxyCommand, async (values, _operands, terminal) => {
  const usage = (message: string, remedy: string): number => {
    terminal.err(`svc-proxy: ${message} (${remedy}) [usage_option_missing]\n`);
    return USAGE;
  };
  if (values.pool.length === 0) return usage('no pool is named', 'add -o stratum2+tcp://HOST:PORT');
  if (values.user === undefined) return usage('no address is named', 'add -u ADDRESS');
  const { log, close } = openLog('proxy', values, terminal.env);
  const limitMs = DEFAULT_SHUTDOWN_LIMIT_MS + values.drainTime;
  const shutdown = new Shutdown({ limitMs }, { log, process, now: steadyMillis });
  shutdown.add('log', close);
  try {
    await runProxy(values, { log, shutdown, version: version() });
  } catch (error) {
    terminal.err(`svc-proxy: ${failureText(error)}\n`);
    shutdown.request('failed to start', 1);
  }
  return await shutdown.done;
});

const doctor = doctorCommand('svc-proxy', proxyOptions, (values) => [
  ...directoryChecks(values.dataDir),
  ...stratumDoctor({ ...values, network: values.user?.address.network ?? 'mainnet', node: [] }, steadyMillis),
  ...portChecks(undefined, [
    { option: 'listen', address: values.listen },
    { option: 'listen-ws', address: values.listenWs },
    { option: 'stats-bind', address: values.statsBind },
    { option: 'metrics-bind', address: values.metricsBind },
  ]),
]);

await runProgram({
  spec: proxying.spec,
  commands: [doctor],
  start: ([word, ...rest], terminal) =>
    word === 'doctor'
      ? doctor.start(rest, terminal)
      : proxying.start(word === undefined ? [] : [word, ...rest], terminal),
});
