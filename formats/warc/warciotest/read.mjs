// Reads WARC files with npm's warcio and prints one line for each record that warcio reads. It
// first reads each file whole, and then each record alone, at its given extent. Each line of
// standard input names a file: {"file":…,"extents":[{"offset":…,"length":…}]}.
//
// For a record that is read alone, it also checks the digests of the block as stored and of the
// payload without chunk framing. The verdicts are "ok", "differs", or "" if there is no digest.
//
// CRAWLBATCH_WARCIO names the node_modules directory that holds warcio.
import { createHash } from "node:crypto";
import { createReadStream, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { createInterface } from "node:readline";

const require = createRequire(resolve(process.env.CRAWLBATCH_WARCIO, "..", "read.mjs"));
const { AsyncIterReader, WARCParser } = require("warcio");

function base32(bytes) {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  let bits = 0, held = 0, out = "";
  for (const b of bytes) {
    held = (held << 8) | b;
    for (bits += 8; bits >= 5; bits -= 5) out += letters[(held >> (bits - 5)) & 31];
    held &= (1 << bits) - 1;
  }
  return bits > 0 ? out + letters[(held << (5 - bits)) & 31] : out;
}

function judge(digest, bytes) {
  if (!digest) return "";
  const [algorithm, value] = digest.split(":", 2);
  return base32(createHash(algorithm).update(bytes).digest()) === value ? "ok" : "differs";
}

async function payload(record, block) {
  let body = await record.readFully(false);
  // warcio finds the end of a head only after CRLF line ends, but some servers end lines with LF.
  if (record.httpHeaders && block.indexOf("\r\n\r\n") < 0) body = block.subarray(block.indexOf("\n\n") + 2);
  if (record.httpHeaders?.headers.get("Transfer-Encoding")?.toLowerCase() !== "chunked") return body;
  return await new AsyncIterReader([body], null, true).readFully();
}

function tell(file, offset, length, record, block = "", payload = "") {
  const answer = record.warcType === "response";
  console.log(JSON.stringify({
    file, offset, length, type: record.warcType, id: record.warcHeader("WARC-Record-ID"), uri: record.warcTargetURI ?? "",
    status: answer ? String(record.httpHeaders.statusCode) : "", block, payload, digest: record.warcPayloadDigest ?? "",
  }));
}

for await (const line of createInterface({ input: process.stdin })) {
  const { file, extents } = JSON.parse(line);
  const whole = new WARCParser(createReadStream(file));
  for (let record; (record = await whole.parse()) !== null; ) {
    const offset = whole.offset;
    await record.skipFully();
    tell(file, offset, whole.recordLength, record);
  }
  const bytes = readFileSync(file);
  for (const { offset, length } of extents) {
    const member = bytes.subarray(offset, offset + length);
    const raw = await new WARCParser([member], { parseHttp: false }).parse();
    const block = Buffer.from(await raw.readFully(false));
    const parser = new WARCParser([member]);
    const record = await parser.parse();
    const digest = record.warcType === "revisit" ? "" : record.warcPayloadDigest; // the payload of a revisit is in another record
    const verdict = judge(digest, await payload(record, block));
    tell(file, offset + parser.offset, parser.recordLength, record, judge(raw.warcBlockDigest, block), verdict);
  }
}
