/** svc-bridge: solo mining to each miner's own address. */

import { steadyMillis } from '../runtime/clock/clock.ts';
import { doctorCommand } from '../runtime/doctor/doctor.ts';
import { directoryChecks, portChecks } from '../runtime/doctor/machine.ts';
import { command, runProgram, serve, withCommands } from '../runtime/program.ts';
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
  (values, _operands, terminal) => serve('svc-bridge', values, terminal, (running) => runBridge(values, running)),
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

await runProgram(withCommands(bridging, [doctor]));
