package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/http1/wiretest"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/coding"
)

// gzCRC returns s as a gzip stream with a wrong checksum.
func gzCRC(s string) string {
	b := []byte(wiretest.Encode("gzip", s))
	b[len(b)-8] ^= 0xff
	return string(b)
}

// badResponse is a malformed response with the expected result.
type badResponse struct {
	name     string
	raw      string
	status   int
	body     string
	warnings []string
	trunc    http1.Truncation // expected reason why bytes of the body are missing
	wireCut  http1.Truncation // expected reason why bytes of the payload are missing
	kind     error
	reason   string // text that the error must contain
	rawBody  string // expected raw body, if not the bytes after the head
}

var badResponses = []badResponse{
	// net/http drops these responses completely.
	{name: "content length is a word", raw: "HTTP/1.1 200 OK\r\nContent-Length: thousand\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnLengthInvalid}},
	{name: "two content lengths, the larger true", raw: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnLengthConflict}},
	{name: "two content lengths, the smaller true", raw: "HTTP/1.1 200 OK\r\nContent-Length: 37\r\nContent-Length: 9999\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnLengthConflict}},
	{name: "colon after status code", raw: "HTTP/1.1 200: OK\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnStatusLine}},
	{name: "no status line, body at once", raw: wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnNoStatusLine}},
	{name: "no status line, header at once", raw: "Content-Type: text/html\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnNoStatusLine}},
	{name: "no status line, CGI status", raw: "Status: 404 Not Found\r\nContent-Type: text/html\r\n\r\n" + wiretest.Page, status: 404, body: wiretest.Page, warnings: []string{http1.WarnNoStatusLine}},
	{name: "ICY", raw: "ICY 200 OK\r\nContent-Type: text/html\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnICY}},
	{name: "HTTP/2 as status line", raw: "HTTP/2 200\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnVersion}},
	{name: "transfer encoding identity", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnTransferEncoding}},
	{name: "transfer encoding gzip, chunked", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + wiretest.Chunks(wiretest.Encode("gzip", wiretest.Page), 20), status: 200, body: wiretest.Page, warnings: []string{http1.WarnTransferEncoding}},
	{name: "header line without a colon", raw: "HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnHeaderNoColon}},
	{name: "NUL in header", raw: "HTTP/1.1 200 OK\r\nX-A: b\x00c\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnHeaderNUL}},
	{name: "location that does not parse", raw: "HTTP/1.1 302 Found\r\nLocation: /100%\r\nContent-Length: 0\r\n\r\n", status: 302, warnings: []string{http1.WarnLocation}},
	{name: "location with spaces and backslashes", raw: "HTTP/1.1 302 Found\r\nLocation: \\a b\r\nContent-Length: 0\r\n\r\n", status: 302, warnings: []string{http1.WarnLocation}},
	{name: "location that is not ASCII", raw: "HTTP/1.1 302 Found\r\nLocation: /caf\xe9\r\nContent-Length: 0\r\n\r\n", status: 302, warnings: []string{http1.WarnLocation}},
	{name: "two locations", raw: "HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n", status: 302, warnings: []string{http1.WarnLocationConflict}},
	{name: "the same location twice, and none", raw: "HTTP/1.1 302 Found\r\nLocation:\r\nLocation: /a\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n", status: 302},
	{name: "location of no redirect", raw: "HTTP/1.1 201 Created\r\nLocation: /100%\r\nContent-Length: 0\r\n\r\n", status: 201},
	{name: "chunk lines end in bare LF", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n25\n" + wiretest.Page + "\n0\n\n", status: 200, body: wiretest.Page, warnings: []string{http1.WarnChunkLine, http1.WarnChunkEnd}},
	{name: "plain body labelled gzip", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{coding.WarnFalse}},
	{name: "x-gzip", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: x-gzip\r\n\r\n" + wiretest.Encode("gzip", wiretest.Page), status: 200, body: wiretest.Page},
	{name: "gzip twice", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip\r\n\r\n" + wiretest.Encode("gzip", wiretest.Encode("gzip", wiretest.Page)), status: 200, body: wiretest.Page},
	{name: "gzip named twice, applied once", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip\r\n\r\n" + wiretest.Encode("gzip", wiretest.Page), status: 200, body: wiretest.Page, warnings: []string{coding.WarnFalse}},
	{name: "short body", raw: "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, trunc: http1.TruncDisconnect, wireCut: http1.TruncDisconnect},
	{name: "truncated chunk", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" + wiretest.Page, status: 200, body: wiretest.Page, trunc: http1.TruncDisconnect, wireCut: http1.TruncDisconnect},
	{name: "no last chunk", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n25\r\n" + wiretest.Page + "\r\n", status: 200, body: wiretest.Page, trunc: http1.TruncDisconnect, wireCut: http1.TruncDisconnect},
	{name: "truncated gzip", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + strings.TrimSuffix(wiretest.Encode("gzip", wiretest.Page), wiretest.Encode("gzip", wiretest.Page)[len(wiretest.Encode("gzip", wiretest.Page))-8:]), status: 200, body: wiretest.Page, warnings: []string{coding.WarnTruncated}, trunc: http1.TruncDisconnect},
	{name: "gzip with a bad checksum", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzCRC(wiretest.Page), status: 200, body: wiretest.Page, warnings: []string{coding.WarnChecksum}},
	{name: "garbage after gzip", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + wiretest.Encode("gzip", wiretest.Page) + "garbage", status: 200, body: wiretest.Page, warnings: []string{coding.WarnTrailing}},

	// Status lines.
	{name: "lower case", raw: "http/1.1 200 ok\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page},
	{name: "no reason", raw: "HTTP/1.1 200\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page},
	{name: "no status code", raw: "HTTP/1.1 OK\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnStatusMissing}},
	{name: "nothing but the version", raw: "HTTP/1.1\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnStatusMissing}},
	{name: "status code of LinkedIn", raw: "HTTP/1.1 999 Request denied\r\nContent-Length: 0\r\n\r\n", status: 999},
	{name: "status code too long", raw: "HTTP/1.1 20000 OK\r\n\r\n", kind: ErrProtocol, reason: "status code"},
	{name: "status code too low", raw: "HTTP/1.1 000 \r\n\r\n", kind: ErrProtocol, reason: "status code"},
	{name: "two spaces and a tab", raw: "HTTP/1.1  \t200 OK\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnStatusLine}},
	{name: "unheard of version", raw: "HTTP/1.7 200 OK\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnVersion}},
	{name: "empty lines first", raw: "\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnLeadingBytes}},
	{name: "stray bytes first", raw: "xyzHTTP/1.1 200 OK\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnLeadingBytes}},
	{name: "stray bytes that are no text first", raw: "\xff\xff\xffHTTP/1.1 200 OK\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnLeadingBytes}},
	{name: "plain text at once", raw: "It works!", status: 200, body: "It works!", warnings: []string{http1.WarnNoStatusLine}},
	{name: "SSH banner", raw: "SSH-2.0-OpenSSH_9.9\r\n", kind: ErrProtocol, reason: "SSH"},
	{name: "SMTP banner", raw: "220 mail.example.org ESMTP\r\n", kind: ErrProtocol, reason: "mail"},
	{name: "TLS alert", raw: "\x15\x03\x01\x00\x02\x02\x46", kind: ErrProtocol, reason: "TLS"},
	{name: "HTTP/2 settings frame", raw: "\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80", kind: ErrProtocol, reason: "HTTP/2"},
	{name: "binary", raw: "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b", kind: ErrProtocol, reason: "no HTTP"},
	{name: "endless empty lines", raw: strings.Repeat("\r\n", 5000), kind: ErrProtocol, reason: "empty lines"},
	{name: "nothing", raw: "", kind: ErrDisconnect},
	{name: "closed inside the status line", raw: "HTTP/1.1 20", kind: ErrDisconnect},
	{name: "switching protocols", raw: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", kind: ErrProtocol, reason: "101"},

	// Heads.
	{name: "bare LF in the head", raw: "HTTP/1.1 200 OK\nContent-Length: 37\n\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnBareLF}},
	{name: "bare CR in a value", raw: "HTTP/1.1 200 OK\r\nX-A: b\rSet-Cookie: c\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnHeaderCR}},
	{name: "folded", raw: "HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\n\td\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnHeaderFolded}},
	{name: "space before colon", raw: "HTTP/1.1 200 OK\r\nContent-Length : 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnHeaderSpace}},
	{name: "no field name", raw: "HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnHeaderEmptyName}},
	{name: "document where a header line should be", raw: "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnHeadEndMissing}},
	{name: "head cut", raw: "HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Le", status: 302, warnings: []string{http1.WarnHeadTruncated}, trunc: http1.TruncDisconnect, wireCut: http1.TruncDisconnect},
	{name: "endless header", raw: "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: b\r\n", 1<<17), kind: ErrProtocol, reason: "longer than"},
	{name: "endless header line", raw: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 1<<20), kind: ErrProtocol, reason: "longer than"},
	{name: "more fields than are kept", raw: "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 2000) + "\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnHeaderCount}},
	{name: "interim responses", raw: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page},
	{name: "endless interim responses", raw: strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 11_000), kind: ErrProtocol, reason: "head too long"},
	{name: "a hundred interim responses", raw: strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 100) + "HTTP/1.1 200 OK\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page},

	// Lengths.
	{name: "negative length", raw: "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnLengthInvalid}},
	{name: "length with a sign", raw: "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnLengthInvalid}},
	{name: "length beyond any number", raw: "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnLengthInvalid}},
	{name: "length of exabytes", raw: "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, trunc: http1.TruncDisconnect, wireCut: http1.TruncDisconnect},
	{name: "the same length twice", raw: "HTTP/1.1 200 OK\r\nContent-Length: 37, 37\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page},
	{name: "empty length", raw: "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page},
	{name: "bytes after the body", raw: "HTTP/1.1 200 OK\r\nContent-Length: 37\r\n\r\n" + wiretest.Page + "and more", status: 200, body: wiretest.Page, warnings: []string{http1.WarnBodyUnexpected}, rawBody: wiretest.Page},
	{name: "204 with a body", raw: "HTTP/1.1 204 No Content\r\nContent-Length: 37\r\n\r\n" + wiretest.Page, status: 204, warnings: []string{http1.WarnBodyUnexpected}, rawBody: "-"},
	{name: "304 with a length", raw: "HTTP/1.1 304 Not Modified\r\nContent-Length: 37\r\n\r\n", status: 304},
	{name: "length and chunks", raw: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + wiretest.Chunks(wiretest.Page, 10), status: 200, body: wiretest.Page, warnings: []string{http1.WarnLengthIgnored}},

	// Chunks.
	{name: "chunk extensions", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n25;a=b;c=\"d\"\r\n" + wiretest.Page + "\r\n0;e\r\n\r\n", status: 200, body: wiretest.Page},
	{name: "trailer fields", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n25\r\n" + wiretest.Page + "\r\n0\r\nX-Sum: 1\r\n\r\n", status: 200, body: wiretest.Page},
	{name: "chunk size with spaces", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n 25  \r\n" + wiretest.Page + "\r\n0\r\n\r\n", status: 200, body: wiretest.Page, warnings: []string{http1.WarnChunkLine}},
	{name: "chunk size with leading zeros", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0000000000000000000000025\r\n" + wiretest.Page + "\r\n000\r\n\r\n", status: 200, body: wiretest.Page},
	{name: "no end after the last chunk", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n25\r\n" + wiretest.Page + "\r\n0\r\n", status: 200, body: wiretest.Page, warnings: []string{http1.WarnTrailer}},
	{name: "no line break after chunk data", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n25\r\n" + wiretest.Page + "0\r\n\r\n", status: 200, body: wiretest.Page, warnings: []string{http1.WarnChunkEnd}},
	{name: "chunk longer than its size", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n25\r\n" + wiretest.Page + "xyz\r\n0\r\n\r\n", status: 200, body: wiretest.Page, warnings: []string{http1.WarnChunkEnd, http1.WarnChunkInvalid}, trunc: http1.TruncDisconnect, wireCut: http1.TruncDisconnect},
	{name: "second chunk size is no number", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n25\r\n" + wiretest.Page + "\r\nzz\r\nmore", status: 200, body: wiretest.Page, warnings: []string{http1.WarnChunkInvalid}, trunc: http1.TruncDisconnect, wireCut: http1.TruncDisconnect},
	{name: "chunk size of 17 digits", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n25\r\n" + wiretest.Page + "\r\nfffffffffffffffff\r\nmore", status: 200, body: wiretest.Page, warnings: []string{http1.WarnChunkInvalid}, trunc: http1.TruncDisconnect, wireCut: http1.TruncDisconnect},
	{name: "not chunked at all", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{http1.WarnNotChunked}},
	{name: "not chunked, several lines", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n<p>a\n<p>b\n" + wiretest.LongPage, status: 200, body: "<p>a\n<p>b\n" + wiretest.LongPage, warnings: []string{http1.WarnNotChunked}},
	{
		name: "more framing than allowed, up to a line break after a chunk", status: 200, body: strings.Repeat("x", 209_715), warnings: []string{http1.WarnChunkOverhead},
		raw:   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a\r\nx\r\n" + strings.Repeat("1\r\nx\r\n", 220_000),
		trunc: http1.TruncLength, wireCut: http1.TruncLength,
	},
	{name: "not chunked, with a length", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page[:5], warnings: []string{http1.WarnLengthIgnored, http1.WarnNotChunked}, rawBody: wiretest.Page[:5]},
	{name: "chunked said by HTTP/1.0", raw: "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + wiretest.Chunks(wiretest.Page, 7), status: 200, body: wiretest.Page},
	{name: "endless chunk extension", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n25\r\n" + wiretest.Page + "\r\n1;" + strings.Repeat("a", 10000) + "\r\n", status: 200, body: wiretest.Page, warnings: []string{http1.WarnChunkInvalid}, trunc: http1.TruncDisconnect, wireCut: http1.TruncDisconnect},

	// Codings.
	{name: "unknown coding", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: UTF-8\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{coding.WarnUnknown}},
	{name: "identity coding", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page},
	{name: "plain body labelled br", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{coding.WarnFalse}},
	{name: "plain body labelled deflate", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{coding.WarnFalse}},
	{name: "plain body labelled zstd", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{coding.WarnFalse}},
	{name: "gzip labelled deflate", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n" + wiretest.Encode("gzip", wiretest.Page), status: 200, body: wiretest.Page},
	{name: "six codings", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip, gzip, gzip, gzip, gzip\r\n\r\n" + wiretest.Page, status: 200, body: wiretest.Page, warnings: []string{coding.WarnTooMany}},
	{name: "empty body labelled gzip", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", status: 200},
	{name: "gzip mark and nothing more", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b", status: 200, warnings: []string{coding.WarnTruncated}, trunc: http1.TruncDisconnect},
	{name: "gzip in two members", raw: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + wiretest.Encode("gzip", wiretest.Page[:10]) + wiretest.Encode("gzip", wiretest.Page[10:]), status: 200, body: wiretest.Page},
}

func TestMalformedResponsesAreSalvagedOrNamed(t *testing.T) {
	for _, tt := range badResponses {
		t.Run(tt.name, func(t *testing.T) {
			c := clientTo(t, rawServer(t, answer(tt.raw)), nil)
			x, err := get(t, c, "http://host.test/")
			if tt.kind != nil {
				if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.reason) {
					t.Fatalf("error %v, want %v with %q", err, tt.kind, tt.reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := badResponse{
				name: tt.name, raw: tt.raw, status: x.Status, body: string(x.Body), warnings: wiretest.Codes(x.Warnings),
				trunc: x.BodyTruncated, wireCut: x.Truncated, rawBody: tt.rawBody,
			}
			if d := cmp.Diff(tt, got, cmp.AllowUnexported(badResponse{})); d != "" {
				t.Errorf("(-want +got)\n%s\nwarnings: %q", d, x.Warnings)
			}
			checkRaw(t, x, tt)
		})
	}
}

// checkRaw checks that the received bytes are stored unchanged.
func checkRaw(t *testing.T, x *Exchange, tt badResponse) {
	t.Helper()
	got := raw(t, x)
	if i := strings.Index(tt.raw, got); i < 0 {
		t.Errorf("the raw response is not a part of what was sent:\n%.300q", got)
		return
	}
	switch tt.rawBody {
	case "":
		// All bytes must be stored, unless the rest is unreadable.
		if !strings.HasSuffix(tt.raw, got) && x.Truncated == http1.Complete {
			t.Errorf("raw response %.200q does not end as sent", got)
		}
	case "-":
		tt.rawBody = ""
		fallthrough
	default:
		if body := got[len(x.RawHead):]; body != tt.rawBody {
			t.Errorf("raw body %q, want %q", body, tt.rawBody)
		}
	}
	for p := range x.RawParts {
		if len(p) == 0 {
			t.Error("RawParts yields an empty part")
		}
	}
}
