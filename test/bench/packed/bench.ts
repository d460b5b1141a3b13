/** bench.mjs of the packed folder: the benchmark pow-gpu without the rest of the project. */
import { renderTable, runBenchmark } from '../harness.ts';
import benchmark from '../pow-gpu.bench.ts';

const figures = await runBenchmark('pow-gpu', benchmark, process.argv.slice(2), (text) => process.stdout.write(text));
process.stdout.write(`\n${renderTable(figures)}\n`);
for (const figure of figures) process.stdout.write(`${JSON.stringify(figure)}\n`);
// Dawn keeps its threads.
process.exit(0);
