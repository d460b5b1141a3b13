/** `svc-wallet doctor`: what the wallet's daemon needs. */
import { dirname } from 'node:path';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { ValuesOf } from '../../runtime/command-line/command-line.ts';
import type { Check } from '../../runtime/doctor/doctor.ts';
import { directoryChecks, isInUse, portChecks, secretCheck } from '../../runtime/doctor/machine.ts';
import { nodeChecks } from '../../runtime/doctor/other-programs.ts';
import { stateDirectory } from '../open.ts';
import { daemonListen, type daemonOptions, walletFile } from './options.ts';

export function walletDoctor(values: ValuesOf<typeof daemonOptions>, now: SteadyClock): Check[] {
  const file = walletFile(values);
  return [
    ...directoryChecks(dirname(file)),
    secretCheck('wallet file', file, 'make one with svc-wallet init, or name yours with --file'),
    ...(values.passwordFile === undefined
      ? []
      : [secretCheck('password file', values.passwordFile, 'write the password into it, or leave the option out')]),
    secretCheck('token', values.tokenFile ?? `${file}.token`, undefined),
    ...portChecks(isInUse(stateDirectory(file)), [{ option: 'listen', address: daemonListen(values) }]),
    ...nodeChecks([values.service], '--service', undefined, now),
  ];
}
