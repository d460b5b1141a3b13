/** A thread of `npm run bench -- staking-model`: runs what it is sent, one at a time, and answers with figures or with the first difference. */
import { parentPort } from 'node:worker_threads';
import { useNativeSha384 } from '../../runtime/native/native-sha384.ts';
import { type ModelFigures, type ModelSettings, runModel } from './model-run.ts';

export type ModelAnswer = { readonly settings: ModelSettings; readonly figures: ModelFigures } | ModelFailure;
export type ModelFailure = { readonly settings: ModelSettings; readonly difference: string };

useNativeSha384();

function answer(settings: ModelSettings): ModelAnswer {
  try {
    return { settings, figures: runModel(settings) };
  } catch (error) {
    return { settings, difference: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

parentPort?.on('message', (settings: ModelSettings) => parentPort?.postMessage(answer(settings)));
