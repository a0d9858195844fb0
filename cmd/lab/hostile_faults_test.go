//go:build lab

package lab

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// hostileFaults is the table of TestHostile. The table does not repeat the faults of simweb.Faults,
// which TestASyntheticWebIsFetchedAsItsTruthSays covers.
func hostileFaults() []hostileFault {
	return slices.Concat(handshakeFaults(), nameFaults(), brokenFaults(), endlessFaults(), bombFaults(), documentFaults(),
		lyingFaults(), redirectFaults(), refusalFaults(), robotsFaults(), sitemapFaults(), namedSitemapFaults())
}

// okPage returns a fault whose document must be stored.
func okPage(f hostileFault) hostileFault {
	f.outcome, f.status, f.page = schema.OK, 200, true
	return f
}

func cutPage(truncated string, f hostileFault) hostileFault {
	f = okPage(f)
	f.truncated = truncated
	return f
}

func handshakeFaults() []hostileFault {
	over := func(name, mode, failure string) hostileFault {
		return hostileFault{name: name, url: "https://" + name + ".test/", tls: mode, outcome: schema.TLSError, failure: failure}
	}
	taken := func(name, mode, certificate string) hostileFault {
		return okPage(hostileFault{name: name, url: "https://" + name + ".test/", tls: mode, certificate: certificate, links: -1})
	}
	hang := over("tls-hang", "hang", "TLS handshake timed out")
	hang.outcome = schema.RobotsUnreachable
	return []hostileFault{
		taken("tls-good", "good", ""),
		taken("tls-expired", "expired", "expired"),
		taken("tls-early", "early", "not_yet_valid"),
		taken("tls-other-host", "other", "other_name"),
		taken("tls-self-signed", "self", "untrusted"),
		taken("tls-old-version", "old", ""),
		over("tls-close", "close", "EOF"),
		over("tls-reset", "reset", "reset"),
		over("tls-half-record", "half", "EOF"),
		over("tls-plain-http", "plain", "does not look like a TLS handshake"),
		over("tls-alert", "alert", "handshake failure"),
		over("tls-garbage", "garbage", "does not look like a TLS handshake"),
		hang,
	}
}

func nameFaults() []hostileFault {
	named := func(mode string) hostileFault {
		return hostileFault{name: "dns-" + mode, dns: mode, outcome: schema.DNSError}
	}
	silent, otherID, garbage := named("silent"), named("other-id"), named("garbage")
	silent.failure, otherID.failure, garbage.failure = "timeout", "timeout", "timeout"
	many := named("many")
	many.outcome, many.failure = schema.ConnectError, "refused"
	return []hostileFault{
		named("nxdomain"), named("servfail"), named("refused"), named("nodata"), named("cname-loop"), named("cut"),
		silent, otherID, garbage, many,
		okPage(named("flap")), okPage(named("cname-chain")), okPage(named("dead-first")),
		{name: "refused", outcome: schema.ConnectError, failure: "refused"},
	}
}

// brokenFaults returns faults that close the connection too early.
func brokenFaults() []hostileFault {
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
	return []hostileFault{
		{name: "close-at-once", outcome: schema.ConnectError, serve: func(x exchange) {}},
		{name: "reset-at-once", outcome: schema.ConnectError, serve: func(x exchange) { x.reset() }},
		{name: "close-in-status", outcome: schema.ConnectError, failure: "inside the status line", serve: func(x exchange) { x.send("HTTP/1.") }},
		{name: "reset-in-head", outcome: schema.ConnectError, serve: func(x exchange) {
			x.send(head)
			time.Sleep(300 * time.Millisecond)
			x.reset()
		}},
		{name: "silence", outcome: schema.Timeout, serve: func(x exchange) { x.sendNothing() }},
		{name: "silence-in-head", outcome: schema.Timeout, serve: func(x exchange) { x.send(head); x.sendNothing() }},
		cutPage(schema.TruncatedDisconnect, hostileFault{name: "reset-in-body", links: 1, serve: func(x exchange) {
			x.send(head + "Content-Length: 100000\r\n\r\n<p>Begun <a href=/on>on</a>")
			time.Sleep(300 * time.Millisecond)
			x.reset()
		}}),
		cutPage(schema.TruncatedTime, hostileFault{name: "silence-in-body", links: 1, serve: func(x exchange) {
			x.send(head + "Content-Length: 100000\r\n\r\n<p>Begun <a href=/on>on</a>")
			x.sendNothing()
		}}),
		cutPage(schema.TruncatedTime, hostileFault{name: "silence-in-chunk", links: 1, serve: func(x exchange) {
			x.send(head + "Transfer-Encoding: chunked\r\n\r\n80\r\n<p>Begun <a href=/on>on</a>")
			x.sendNothing()
		}}),
	}
}

// endlessFaults returns faults whose responses never end.
func endlessFaults() []hostileFault {
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
	chunked := head + "Transfer-Encoding: chunked\r\n\r\n"
	return []hostileFault{
		{name: "endless-status-line", outcome: schema.ProtocolError, serve: func(x exchange) { x.sendEndless("HTTP/1.1 200 ", strings.Repeat("O", 4096), 0) }},
		{name: "endless-header", outcome: schema.ProtocolError, failure: "longer than", serve: func(x exchange) { x.sendEndless(head+"X-A: ", strings.Repeat("a", 4096), 0) }},
		{name: "endless-headers", outcome: schema.ProtocolError, failure: "longer than", serve: func(x exchange) { x.sendEndless(head, "X-A: b\r\n", 0) }},
		{name: "endless-folding", outcome: schema.ProtocolError, failure: "longer than", serve: func(x exchange) { x.sendEndless(head+"X-A: b\r\n", " c\r\n", 0) }},
		{name: "endless-interim", outcome: schema.ProtocolError, failure: "longer than", serve: func(x exchange) { x.sendEndless("", "HTTP/1.1 102 Processing\r\n\r\n", 0) }},
		{name: "endless-early-hints", outcome: schema.ProtocolError, failure: "longer than", serve: func(x exchange) {
			x.sendEndless("", "HTTP/1.1 103 Early Hints\r\nLink: </"+strings.Repeat("a", 1000)+">; rel=preload\r\n\r\n", 0)
		}},
		{name: "drip-head", outcome: schema.Timeout, serve: func(x exchange) { x.sendEndless(head, "X", 50*time.Millisecond) }},
		cutPage(schema.TruncatedLength, hostileFault{name: "endless-body", links: 1, serve: func(x exchange) {
			x.sendEndless(head+"\r\n<p><a href=/on>on</a>", strings.Repeat("word ", 4000), 0)
		}}),
		cutPage(schema.TruncatedTime, hostileFault{name: "drip-body", links: 1, serve: func(x exchange) {
			x.sendEndless(head+"\r\n<p><a href=/on>on</a>", "x", 50*time.Millisecond)
		}}),
		cutPage(schema.TruncatedLength, hostileFault{name: "endless-chunks", links: 1, serve: func(x exchange) {
			x.sendEndless(chunked+"15\r\n<p><a href=/on>on</a>\r\n", "400\r\n"+strings.Repeat("y", 1024)+"\r\n", 0)
		}}),
		cutPage(schema.TruncatedLength, hostileFault{name: "chunks-of-a-byte", links: 1, warning: "chunk-overhead", serve: func(x exchange) {
			x.sendEndless(chunked+"15\r\n<p><a href=/on>on</a>\r\n", strings.Repeat("1\r\nz\r\n", 1000), 0)
		}}),
		cutPage(schema.TruncatedDisconnect, hostileFault{name: "endless-chunk-extension", links: 1, warning: "chunk-invalid", serve: func(x exchange) {
			x.sendEndless(chunked+"15\r\n<p><a href=/on>on</a>\r\n5;a=", strings.Repeat("b", 4096), 0)
		}}),
		cutPage(schema.TruncatedLength, hostileFault{name: "long-chunk-extensions", links: 1, warning: "chunk-overhead", serve: func(x exchange) {
			x.sendEndless(chunked+"15\r\n<p><a href=/on>on</a>\r\n", "1;a="+strings.Repeat("b", 4000)+"\r\nz\r\n", 0)
		}}),
		okPage(hostileFault{name: "endless-trailer", links: 1, warning: "trailer", serve: func(x exchange) {
			x.sendEndless(chunked+"15\r\n<p><a href=/on>on</a>\r\n0\r\n", "X-Trailer: "+strings.Repeat("t", 500)+"\r\n", 0)
		}}),
		okPage(hostileFault{name: "silent-trailer", links: 1, warning: "trailer", serve: func(x exchange) {
			x.send(chunked + "15\r\n<p><a href=/on>on</a>\r\n0\r\n")
			x.sendNothing()
		}}),
		cutPage(schema.TruncatedLength, hostileFault{name: "server-push", serve: func(x exchange) {
			x.sendEndless("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Was: multipart/x-mixed-replace\r\n\r\n--b\r\n", "<p>frame\r\n--b\r\n", 0)
		}}),
		{name: "event-stream", outcome: schema.MIMEFiltered, status: 200, serve: func(x exchange) {
			x.sendEndless("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", "data: tick tick tick tick\n\n", time.Millisecond)
		}},
	}
}

// squeeze compresses with a coding.
func squeeze(coding string, b []byte) []byte {
	var out bytes.Buffer
	switch coding {
	case "gzip":
		w, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
		w.Write(b)
		w.Close()
	case "br":
		w := brotli.NewWriterLevel(&out, 4)
		w.Write(b)
		w.Close()
	case "zstd":
		w, err := zstd.NewWriter(&out)
		if err != nil {
			panic(err)
		}
		w.Write(b)
		w.Close()
	}
	return out.Bytes()
}

func bombFaults() []hostileFault {
	page := []byte("<!doctype html><title>bomb</title><p><a href=/on>on</a>")
	spaces := append(bytes.Clone(page), bytes.Repeat([]byte(" "), 64<<20)...)
	bomb := func(name string, body []byte, codings ...string) hostileFault {
		for _, c := range codings {
			body = squeeze(c, body)
		}
		text := string(body)
		return cutPage(schema.TruncatedLength, hostileFault{name: name, title: "bomb", links: 1, serve: func(x exchange) {
			x.answer(text, "Content-Encoding: "+strings.Join(codings, ", "))
		}})
	}
	// The fetcher undoes at most five layers of compression. After five of these six, the body is still
	// compressed and therefore no document.
	six := bomb("bomb-six-layers", page, "gzip", "gzip", "gzip", "gzip", "gzip", "gzip")
	six.outcome, six.truncated, six.page = schema.MIMEFiltered, "", false
	five := bomb("five-layers", page, "gzip", "br", "zstd", "gzip", "br")
	five.truncated = ""
	window := hostileFault{name: "zstd-window", outcome: schema.ProtocolError, status: 200, failure: "cannot be decoded", warning: "coding-corrupt", truncated: schema.TruncatedDisconnect, serve: func(x exchange) {
		// This Zstandard frame asks for a window of 3.75 TB (RFC 8878, 3.1.1.1.2).
		x.answer("\x28\xb5\x2f\xfd\x00\xff\x01\x00\x00", "Content-Encoding: zstd")
	}}
	return []hostileFault{
		bomb("bomb-gzip", spaces, "gzip"), bomb("bomb-br", spaces, "br"), bomb("bomb-zstd", spaces, "zstd"),
		bomb("bomb-gzip-gzip", spaces, "gzip", "gzip"), bomb("bomb-zstd-br", spaces, "zstd", "br"), bomb("bomb-three", spaces, "gzip", "zstd", "gzip"),
		five, six, window,
		{name: "gzip-endless-name", outcome: schema.ProtocolError, status: 200, failure: "cannot be decoded", truncated: schema.TruncatedLength, serve: func(x exchange) {
			x.sendEndless("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03", strings.Repeat("n", 4096), 0)
		}},
	}
}

func documentFaults() []hostileFault {
	document := func(name string, links int, body string) hostileFault {
		return okPage(hostileFault{name: name, links: links, serve: func(x exchange) { x.page(body) }})
	}
	var links, attributes strings.Builder
	for n := range 1_000_000 {
		fmt.Fprintf(&attributes, " a%d=", n)
		if n < 100_000 {
			fmt.Fprintf(&links, "<a href=/%d>l</a>", n)
		}
	}
	million := document("million-links", 10_000, strings.Repeat("<a href=/x>", 470_000)) // a document with 1,000,000 links does not fit into 5 MiB
	million.truncated = ""
	long := document("long-attribute", 0, "<p title='"+strings.Repeat("x", 6<<20))
	long.truncated = schema.TruncatedLength
	lots := document("million-attributes", 1, "<a href=/x"+attributes.String()+">many</a>")
	lots.truncated, lots.links = schema.TruncatedLength, -1
	base := document("base-javascript", 1, `<base href="javascript:alert(1)//"><a href=/x>x</a>`)
	return []hostileFault{
		million, long, lots, base,
		document("many-links", 10_000, links.String()),
		document("deep-nesting", 1, strings.Repeat("<div>", 100_000)+"<a href=/x>deep</a>"),
		document("deep-formatting", 10_000, strings.Repeat("<b><i><u><a href=/x>", 60_000)),
		document("unclosed-comment", 1, "<a href=/x>x</a><!-- "+strings.Repeat("<a href=/y>", 100_000)),
		document("nul-bytes", 1, strings.Repeat("\x00", 100_000)+"<a href=/x>x</a>"),
		document("odd-links", 1, `<a href="http://[::1">1</a><a href="javascript:x">2</a><a href="data:text/html,x">3</a><a href="//">4</a>`+
			`<a href="http://user:secret@odd-links.test/x">5</a><a href="http://%00/">6</a><a href="mailto:a@b">7</a>`),
		document("refresh-to-itself", 0, `<meta http-equiv=refresh content="0">`+`<meta http-equiv=refresh content="0;url=/again">`),
		okPage(hostileFault{name: "relative-trap", links: 2, serve: func(x exchange) { x.page(`<a href="a/">a</a><a href="b/">b</a>`) }}),
	}
}

// lyingFaults returns faults whose responses contain false statements.
func lyingFaults() []hostileFault {
	const text = "<p>Grüße aus <a href=/k%C3%B6ln>Köln</a> und noch ein paar Wörter über Städte am Fluß."
	lie := func(name string, links int, serve func(x exchange)) hostileFault {
		return okPage(hostileFault{name: name, links: links, serve: serve})
	}
	warned := func(code string, f hostileFault) hostileFault {
		f.warning = code
		return f
	}
	utf16 := func(s string) string {
		var b strings.Builder
		for _, r := range s {
			b.WriteByte(byte(r))
			b.WriteByte(byte(r >> 8))
		}
		return b.String()
	}
	latin1 := func(s string) string {
		var b strings.Builder
		for _, r := range s {
			b.WriteByte(byte(r))
		}
		return b.String()
	}
	limited := hostileFault{name: "retry-after-century", outcome: schema.Deferred, status: 429, serve: func(x exchange) {
		x.reply("429 Too Many Requests", "", "Retry-After: 3153600000")
	}}
	var cookies, fields []string
	for n := range 500 {
		cookies = append(cookies, fmt.Sprintf("Set-Cookie: c%d=%s; Domain=.test", n, strings.Repeat("v", 400)))
	}
	for n := range 9000 {
		fields = append(fields, fmt.Sprintf("X-%d: y", n))
	}
	const short = "<p>Short <a href=/x>x</a>"
	partial := lie("partial-unasked", 1, func(x exchange) {
		x.reply("206 Partial Content", short, "Content-Range: bytes 0-24/9999999")
	})
	partial.status = 206
	return []hostileFault{
		limited,
		lie("utf8-is-latin1", 1, func(x exchange) { x.answer(latin1(text), "Content-Type: text/html; charset=utf-8") }),
		lie("latin1-is-utf8", 1, func(x exchange) { x.answer(text, "Content-Type: text/html; charset=iso-8859-1") }),
		lie("utf16-without-bom", 1, func(x exchange) { x.answer(utf16(text), "Content-Type: text/html; charset=utf-16le") }),
		lie("meta-lies", 1, func(x exchange) {
			x.answer("\ufeff<meta charset=windows-1251>"+text, "Content-Type: text/html; charset=koi8-r")
		}),
		lie("charset-unknown", 1, func(x exchange) { x.answer(text, "Content-Type: text/html; charset="+strings.Repeat("x", 5000)) }),
		{name: "type-says-html", outcome: schema.MIMEFiltered, status: 200, serve: func(x exchange) {
			x.answer("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"+strings.Repeat("\x00\x01", 2000), "Content-Type: text/html")
		}},
		lie("type-says-image", 1, func(x exchange) { x.answer(short, "Content-Type: image/png") }),
		lie("type-endless", 1, func(x exchange) { x.answer(short, "Content-Type: text/html; a="+strings.Repeat("b", 100_000)) }),
		warned("content-length-invalid", lie("length-2-63", 1, func(x exchange) { x.answer(short, "Content-Length: 9223372036854775808") })),
		cutPage(schema.TruncatedDisconnect, hostileFault{name: "length-too-long", links: 1, serve: func(x exchange) { x.answer(short, "Content-Length: 9223372036854775807") }}),
		warned("content-length-conflict", lie("length-two", 1, func(x exchange) {
			x.answer(short, fmt.Sprintf("Content-Length: %d", len(short)), "Content-Length: 4611686018427387904")
		})),
		warned("content-length-invalid", lie("length-list", 1, func(x exchange) { x.answer(short, "Content-Length: 1e9, ,+7,0x10") })),
		lie("length-zero", 0, func(x exchange) { x.answer(short, "Content-Length: 0") }),
		cutPage(schema.TruncatedDisconnect, hostileFault{name: "chunk-2-63", links: 1, warning: "chunk-invalid", serve: func(x exchange) {
			x.answer("19\r\n"+short+"\r\nffffffffffffffff\r\nmore", "Transfer-Encoding: chunked")
		}}),
		lie("cookie-bomb", 1, func(x exchange) { x.answer(short, cookies...) }),
		warned("header-count", lie("header-bomb", 1, func(x exchange) { x.answer(short, fields...) })),
		{name: "status-999", outcome: schema.HTTP5xx, status: 999, serve: func(x exchange) { x.reply("999 Request denied", short) }},
		warned("status-code-missing", lie("status-negative", 1, func(x exchange) { x.reply("-200 OK", short) })),
		partial,
		{name: "not-modified-unasked", outcome: schema.ProtocolError, status: 304, failure: "without a known document", serve: func(x exchange) { x.reply("304 Not Modified", "") }},
		{name: "http2-preface", outcome: schema.ProtocolError, serve: func(x exchange) {
			x.send("\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64\x00\x04\x40\x00\x00\x00\x00\x02\x00\x00\x00\x00")
		}},
		{name: "switching-protocols", outcome: schema.ProtocolError, status: 101, serve: func(x exchange) { x.reply("101 Switching Protocols", "", "Upgrade: websocket") }},
	}
}

func redirectFaults() []hostileFault {
	to := func(x exchange, location string) { x.reply("302 Found", "", "Location: "+location) }
	nowhere := func(name, location string) hostileFault {
		return hostileFault{name: name, outcome: schema.ProtocolError, status: 302, serve: func(x exchange) { to(x, location) }}
	}
	maze := func(name string, location func(x exchange) string) hostileFault {
		return hostileFault{name: name, outcome: schema.RedirectLimit, status: 302, serve: func(x exchange) { to(x, location(x)) }}
	}
	return []hostileFault{
		maze("maze-of-paths", func(x exchange) string { return x.r.URL.Path + "x" }),
		maze("maze-of-hosts", func(x exchange) string { return "http://n." + x.r.Host + "/" }),
		maze("maze-of-queries", func(x exchange) string { return "/?q=" + strings.Repeat("q", 3*len(x.r.URL.RawQuery)+1) }),
		maze("ping-pong", func(x exchange) string {
			if _, plain := x.Conn.(interface{ SetLinger(int) error }); plain {
				return "https://" + x.r.Host + "/"
			}
			return "http://" + x.r.Host + "/"
		}),
		maze("redirect-to-itself", func(x exchange) string { return x.r.URL.Path }),
		nowhere("redirect-javascript", "javascript:alert(1)"), nowhere("redirect-data", "data:text/html,hello"),
		nowhere("redirect-file", "file:///etc/passwd"), nowhere("redirect-long", "/"+strings.Repeat("x", 100_000)),
		{name: "redirect-elsewhere", outcome: schema.Redirected, status: 302, serve: func(x exchange) { to(x, "http://another-domain.test/") }},
	}
}

func refusalFaults() []hostileFault {
	const service = "refused by a service in front of the site"
	text := strings.Repeat("<p>This article explains what a page with the title Just a moment means, and what sites do with it. ", 30)
	return []hostileFault{
		{name: "refused-field", outcome: schema.Blocked, status: 403, failure: service + ": cloudflare", serve: func(x exchange) {
			x.reply("403 Forbidden", "<title>Just a moment...</title>", "Content-Type: text/html", "CF-Mitigated: challenge")
		}},
		{name: "refused-with-200", outcome: schema.Blocked, status: 200, failure: service + ": imperva", serve: func(x exchange) {
			x.answer("Request unsuccessful. Incapsula incident ID: 877-1", "Content-Type: text/html")
		}},
		{name: "refused-by-title", outcome: schema.Blocked, status: 200, failure: service + ": other", serve: func(x exchange) {
			x.answer("<title>Access denied</title><p>You cannot see this.", "Content-Type: text/html")
		}},
		{name: "refused-robots", outcome: schema.RobotsUnreachable, failure: "vercel", robots: func(x exchange) {
			x.reply("429 Too Many Requests", "<title>Vercel Security Checkpoint</title>", "Content-Type: text/html", "x-vercel-mitigated: challenge")
		}},
		{name: "payment", outcome: schema.PaymentRequired, status: 402, serve: func(x exchange) {
			x.reply("402 Payment Required", "pay", "Content-Type: text/html", "Crawler-Price: USD 0.01")
		}},
		okPage(hostileFault{name: "about-refusals", links: -1, serve: func(x exchange) {
			x.answer("<title>Just a moment</title>"+text+"<code>_cf_chl_opt</code> Request unsuccessful. Incapsula incident", "Content-Type: text/html")
		}}),
	}
}

func robotsFaults() []hostileFault {
	unreachable := func(name string, robots func(x exchange)) hostileFault {
		return hostileFault{name: name, outcome: schema.RobotsUnreachable, robots: robots}
	}
	denied := func(name string, robots func(x exchange)) hostileFault {
		return hostileFault{name: name, outcome: schema.RobotsDenied, robots: robots}
	}
	allowed := func(name string, robots func(x exchange)) hostileFault {
		return okPage(hostileFault{name: name, robots: robots})
	}
	const deny = "User-agent: *\nDisallow: /\n"
	// linked returns two faults in which robots.txt denies a path as it is linked, which differs from its canonical
	// form: in a planned URL, and in the target of a redirect.
	linked := func(name, rule, given, canonical string) []hostileFault {
		host := "http://" + name
		robots := func(x exchange) { x.answer("User-agent: *\nDisallow: "+rule+"\n", "Content-Type: text/plain") }
		return []hostileFault{
			{name: name, url: host + ".test" + given, canon: host + ".test" + canonical, outcome: schema.RobotsDenied, robots: robots},
			{name: name + "-to", outcome: schema.RobotsDenied, status: 302, robots: robots, failure: rule, serve: func(x exchange) {
				x.reply("302 Found", "", "Location: "+given)
			}},
		}
	}
	text := func(body string) func(x exchange) {
		return func(x exchange) { x.answer(body, "Content-Type: text/plain") }
	}
	filler := func(n int) string { return strings.Repeat("Disallow: /nothing-that-matters\n", n/32) }
	bomb := string(squeeze("gzip", append([]byte(deny), bytes.Repeat([]byte("#"), 64<<20)...)))
	return slices.Concat(linked("robots-tilde", "/%7Ejoe/", "/%7Ejoe/a", "/~joe/a"), linked("robots-order", "/q?z=1&a=2", "/q?z=1&a=2", "/q?a=2&z=1"),
		linked("robots-star", "/star-%2A.html", "/star-*.html", "/star-*.html"), linked("robots-letters", "/secret/", "/%73ecre%74/x", "/secret/x"), []hostileFault{
			denied("robots-escapes", text("User-agent: *\n"+strings.Repeat("Disallow: /"+strings.Repeat("*%7E%2a", 1000)+"\n", 60)+"Disallow: /%2A\nDisallow: /$\n")),
			denied("robots-endless", func(x exchange) {
				x.sendEndless("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"+deny, filler(32<<10), 0)
			}),
			denied("robots-bomb", func(x exchange) { x.answer(bomb, "Content-Encoding: gzip", "Content-Type: text/plain") }),
			allowed("robots-one-line", func(x exchange) {
				x.sendEndless("HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\nContent-Type: text/plain\r\n\r\nDisallow: ", strings.Repeat("/", 32<<10), 0)
			}),
			allowed("robots-beyond-500k", text("User-agent: *\n"+filler(510<<10)+"Disallow: /\n")),
			denied("robots-within-500k", text("User-agent: *\n"+filler(480<<10)+"Disallow: /\n")),
			allowed("robots-html", func(x exchange) { x.page("<p>Not found, dear robot.") }),
			allowed("robots-nul", text("\x00User-agent: *\x00\n\x00Disallow: /\n")),
			denied("robots-wildcards", text("User-agent: *\nDisallow: /"+strings.Repeat("*a", 5000)+"\nDisallow: "+strings.Repeat("*", 5000)+"\n")),
			unreachable("robots-drip", func(x exchange) { x.sendEndless("HTTP/1.1 200 OK\r\n\r\nUser-agent: *\n", "#", 50*time.Millisecond) }),
			unreachable("robots-silence", func(x exchange) { x.sendNothing() }),
			unreachable("robots-cut", func(x exchange) { x.answer("User-agent: *\n", "Content-Length: 1000") }),
			unreachable("robots-500", func(x exchange) { x.status(500) }),
			allowed("robots-redirects", func(x exchange) { x.reply("302 Found", "", "Location: /robots.txt") }),
			allowed("robots-418", func(x exchange) { x.status(418) }),
			unreachable("robots-garbage", func(x exchange) { x.send(strings.Repeat("\x00\x9d\xff", 500)) }),
		})
}

func sitemapFaults() []hostileFault {
	sitemap := func(name string, links int, body string, lines ...string) hostileFault {
		return okPage(hostileFault{name: name, links: links, serve: func(x exchange) {
			x.answer(body, append(lines, "Content-Type: application/xml")...)
		}})
	}
	const xml = `<?xml version="1.0"?>`
	var million, lol strings.Builder
	for n := range 150_000 { // as many URLs as fit into 5 MiB
		fmt.Fprintf(&million, "<url><loc>/p%d</loc></url>", n)
	}
	lol.WriteString(xml + `<!DOCTYPE urlset [<!ENTITY a "http://billion-laughs.test/">`)
	for n := range 20 {
		c := 'a' + rune(n)
		fmt.Fprintf(&lol, `<!ENTITY %c "%s">`, c+1, strings.Repeat(fmt.Sprintf("&%c;", c), 10))
	}
	lol.WriteString(`]><urlset><url><loc>&u;</loc></url><url><loc>http://billion-laughs.test/plain</loc></url></urlset>`)
	bomb := append([]byte(xml+"<urlset><url><loc>/in-bomb</loc></url>"), bytes.Repeat([]byte(" "), 64<<20)...)
	gz := okPage(hostileFault{name: "sitemap-bomb", links: 1, truncated: schema.TruncatedLength, serve: func(x exchange) {
		x.answer(string(squeeze("gzip", bomb)), "Content-Type: application/xml", "Content-Encoding: gzip")
	}})
	return []hostileFault{
		sitemap("sitemap-index-loop", 2, xml+`<sitemapindex><sitemap><loc>/</loc></sitemap><sitemap><loc>/other.xml</loc></sitemap></sitemapindex>`),
		sitemap("sitemap-million", 50_000, xml+"<urlset>"+million.String()+"</urlset>"),
		sitemap("billion-laughs", 2, lol.String()),
		sitemap("external-entity", 1, xml+`<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>/&x;</loc></url></urlset>`),
		gz,
		sitemap("feed-nested", 1, xml+strings.Repeat("<rss><channel><item>", 50_000)+"<link>/x</link>"),
	}
}

// namedSitemapFaults returns faults in sitemaps that robots.txt names. The planned page itself has no fault.
func namedSitemapFaults() []hostileFault {
	named := func(name string, links int, lines string, sitemap func(x exchange)) hostileFault {
		return okPage(hostileFault{name: name, links: 1, listed: links,
			robots: func(x exchange) { x.answer("User-agent: *\nDisallow:\n"+lines, "Content-Type: text/plain") },
			serve: func(x exchange) {
				if x.r.URL.Path == "/" {
					x.page(`<a href="/on">on</a>`)
				} else {
					sitemap(x)
				}
			}})
	}
	const line, xml = "Sitemap: /named.xml\n", `<?xml version="1.0"?>`
	answer := func(body string) func(x exchange) {
		return func(x exchange) { x.answer(body, "Content-Type: application/xml") }
	}
	next := func(x exchange) string { return fmt.Sprintf("/%d.xml", len(x.r.URL.Path)*1000+x.nth) }
	var foreign, lines strings.Builder
	for n := range 40_000 {
		fmt.Fprintf(&foreign, "<url><loc>http://h%d.elsewhere.test/</loc></url>", n)
	}
	for n := range 5000 {
		fmt.Fprintf(&lines, "Sitemap: /%d.xml\n", n)
	}
	bomb := append([]byte(xml+"<urlset><url><loc>/in-bomb</loc></url>"), bytes.Repeat([]byte(" "), 64<<20)...)
	return []hostileFault{
		named("named-foreign", 3, line, answer(xml+"<urlset>"+foreign.String()+strings.Repeat("<url><loc>/own</loc></url>", 3)+"</urlset>")),
		named("named-loop", 2, line, answer(xml+`<sitemapindex><sitemap><loc>/named.xml</loc></sitemap><sitemap><loc>/b.xml</loc></sitemap></sitemapindex>`)),
		named("named-endless", 1, line, func(x exchange) {
			answer(xml + `<sitemapindex><sitemap><loc>` + next(x) + `</loc></sitemap></sitemapindex>`)(x)
		}),
		named("named-thousands", 0, lines.String(), answer(xml+"<urlset><url><loc>/a</loc></url></urlset>")),
		named("named-bomb", 1, line, func(x exchange) {
			x.answer(string(squeeze("gzip", bomb)), "Content-Type: application/xml", "Content-Encoding: gzip")
		}),
		named("named-garbage", 0, line, answer(strings.Repeat("\x00\x9d\xff", 5000))),
		named("named-page", 0, line, func(x exchange) { x.page(`<a href="/not-followed">sitemap</a>`) }),
		named("named-empty", 0, line, answer("")),
		named("named-gone", 0, line, func(x exchange) { x.status(404) }),
		named("named-broken", 0, line, func(x exchange) { x.status(500) }),
		named("named-redirects", 0, line, func(x exchange) { x.reply("302 Found", "", "Location: "+next(x)) }),
		named("named-to-itself", 0, line, func(x exchange) { x.reply("302 Found", "", "Location: /named.xml") }),
		named("named-away", 0, line, func(x exchange) { x.reply("302 Found", "", "Location: http://elsewhere.test/s.xml") }),
		named("named-elsewhere", 0, "Sitemap: http://elsewhere.test/s.xml\nSitemap: http://127.0.0.1/s.xml\nSitemap: file:///etc/passwd\n", answer("")),
		named("named-no-url", 0, "Sitemap: http://[::1\nSitemap: \x00\nSitemap: "+strings.Repeat("/a", 20_000)+"\n", answer("")),
	}
}

// addressFaults returns faults that lead to addresses that are not public.
func addressFaults() []hostileFault {
	named := func(name, addrs string) hostileFault {
		return hostileFault{name: name, dns: "is " + addrs, outcome: schema.AddressBlocked}
	}
	spelled := func(name, host string) hostileFault {
		return hostileFault{name: name, url: "http://" + host + "/", outcome: schema.AddressBlocked}
	}
	return []hostileFault{
		named("address-loopback", "127.0.0.1"), named("address-loopback6", "::1"), named("address-private", "10.0.0.7"),
		named("address-metadata", "169.254.169.254"), named("address-shared", "100.64.0.1"), named("address-mapped", "::ffff:10.0.0.1"),
		named("address-nat64", "64:ff9b::7f00:1"), named("address-unspecified", "0.0.0.0"), named("address-multicast", "224.0.0.1"),
		named("address-all-private", "10.0.0.1 192.168.0.1 172.16.0.1 fd00::1"),
		spelled("spelled-plainly", "127.0.0.1"), spelled("spelled-mapped", "[::ffff:a9fe:a9fe]"), spelled("spelled-6", "[::1]"),
		{name: "address-redirect", outcome: schema.AddressBlocked, status: 302, serve: func(x exchange) {
			x.reply("302 Found", "", "Location: http://inner.address-redirect.test/latest/meta-data")
		}},
	}
}
