/**
 * docs/conformance-tests.md names tests that show rows of the specification. After a whole run their states there are written from its results: a named test
 * that is gone, did not run or failed is a failure of the run, even where nobody else would notice.
 */
import { isAbsolute, relative } from 'node:path';

/** @typedef {{ name: string; assertionResults?: { title: string; status: string }[] }} FileResult */

const ROW = /^(\| .* \| )(passed|failed|not run)( \| (test\/\S+?\.ts): (.*) \|)$/;

/** The page with the same state at every named test: what is left is known without a run. @param {string} page */
export const withoutResults = (page) =>
  page
    .split('\n')
    .map((line) => line.replace(ROW, '$1passed$3'))
    .join('\n');

/** `test.each` puts values into a title. @param {string} title */
const pattern = (title) =>
  new RegExp(
    `^${title
      .split(/%[sdifjoOc#$]|\$[\w.]+/)
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('[\\s\\S]*')}$`,
  );

/**
 * The page with the states of this run, and the rows whose test did not pass.
 * @param {string} page
 * @param {readonly FileResult[]} results
 * @param {string} root
 */
export function judgeNamedTests(page, results, root) {
  const files = new Map(
    results.map(({ name, assertionResults = [] }) => [
      isAbsolute(name) ? relative(root, name) : name,
      assertionResults,
    ]),
  );
  /** @type {string[]} */
  const wrong = [];
  const lines = page.split('\n').map((line) => {
    const [, before, , after, file = '', title = ''] = ROW.exec(line) ?? [];
    if (before === undefined) return line;
    const wanted = pattern(title.replaceAll('\\|', '|'));
    const own = (files.get(file) ?? []).filter((one) => wanted.test(one.title));
    const ran = own.filter(({ status }) => status === 'passed' || status === 'failed');
    const state = ran.length < own.length || ran.length === 0 ? 'not run' : 'passed';
    const judged = ran.some(({ status }) => status === 'failed') ? 'failed' : state;
    if (judged !== 'passed') wrong.push(`${judged}: ${file}: ${title}`);
    return `${before}${judged}${after}`;
  });
  return { page: lines.join('\n'), wrong: [...new Set(wrong)] };
}
