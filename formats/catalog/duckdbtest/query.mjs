// Runs SQL files in one DuckDB session. For each file, prints the result of its last statement
// that has one: a line with the columns and their types as DuckDB sees them, then one JSON object
// per row:
//
//   node query.mjs views.sql question.sql …
//   {"file":"question.sql","columns":[["n","BIGINT"]]}
//   {"n":"17"}
//
// It fails (exit 1) at the first statement that DuckDB refuses, and names the statement.
//
// CRAWLBATCH_DUCKDB names the directory whose node_modules hold DuckDB.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const require = createRequire(resolve(process.env.CRAWLBATCH_DUCKDB ?? ".", "query.mjs"));
const { DuckDBInstance } = require("@duckdb/node-api");

const instance = await DuckDBInstance.create(":memory:");
const connection = await instance.connect();
// The session's time zone must not change an answer.
await connection.run("SET TimeZone = 'Asia/Kolkata'").catch(() => {});

for (const file of process.argv.slice(2)) {
  const statements = await connection.extractStatements(await readFile(file, "utf8"));
  let last = null;
  for (let i = 0; i < statements.count; i++) {
    try {
      const prepared = await statements.prepare(i);
      const reader = await prepared.runAndReadAll();
      if (reader.columnCount > 0) last = reader;
    } catch (err) {
      console.error(`${file}: statement ${i + 1}: ${err.message}`);
      process.exit(1);
    }
  }
  if (last === null) continue;
  const names = last.columnNames();
  const types = last.columnTypes().map(String);
  console.log(JSON.stringify({ file, columns: names.map((n, i) => [n, types[i]]) }));
  for (const row of last.getRowObjectsJson()) console.log(JSON.stringify(row));
}
