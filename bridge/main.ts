/** svc-bridge: solo mining to each miner's own address. */

import { steadyMillis } from '../runtime/clock/clock.ts';
import { doctorCommand } from '../runtime/doctor/doctor.ts';
import { directoryChecks, portChecks } from '../runtime/doctor/machine.ts';
import { openLog } from '../runtime/log/log.ts';
import { command, failureText, runProgram, version } from '../runtime/program.ts';
import { DEFAULT_SHUTDOWN_LIMIT_MS, Shutdown } from '../runtime/shutdown.ts';
import { bridgeOptions, runBridge } from './bridge.ts';
import { stratumDoctor } from './doctor.ts';

const bridging = command(
  {
    name: 'svc-bridge',
    summary: 'A stratum bridge: miners work for their own addresses on the templates of a node.',
    options: bridgeOptions,
    examples: [
      { line: 'svc-bridge', says: 'with an embedded node of the development network' },
      {
        line: 'svc-bridge --node http://127.0.0.1:28702 --listen 0.0.0.0:28710',
        says: 'for miners of other machines, at the node of this one',
      },
      { line: 'svc-bridge --tls-cert chain.pem --tls-key key.pem', says: 'with TLS on the same port' },
    ],
  },
  async (values, _operands, terminal) => {
    const { log, close } = openLog('bridge', values, terminal.env);
    const limitMs = DEFAULT_SHUTDOWN_LIMIT_MS + values.drainTime;
    const shutdown = new Shutdown({ limitMs }, { log, process, now: steadyMillis });
    shutdown.add('log', close);
    try {
      await runBridge(values, { log, shutdown, version: version() });
    } catch (error) {
      terminal.err(`svc-bridge: ${failureText(error)}\n`);
      shutdown.request('failed to start', 1);
    }
    return await shutdown.done;
  },
);

const doctor = doctorCommand('svc-bridge', bridgeOptions, (values) => [
  ...directoryChecks(values.dataDir),
  ...stratumDoctor(values, steadyMillis),
  ...portChecks(undefined, [
    { option: 'listen', address: values.listen },
    { option: 'listen-ws', address: values.listenWs },
    { option: 'stats-bind', address: values.statsBind },
    { option: 'metrics-bind', address: values.metricsBind },
  ]),
]);

await runProgram({
  spec: bridging.spec,
  commands: [doctor],
  start: ([word, ...rest], terminal) =>
    word === 'doctor'
      ? doctor.start(rest, terminal)
      : bridging.start(word === undefined ? [] : [word, ...rest], terminal),
});
