package faults

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// headFaults are responses with a malformed head, followed by the page and the end of the
// connection. Browsers show such pages.
var headFaults = []Fault{
	head("status-colon", true, "HTTP/1.1 200: OK", func(r Response) []string { return sized(r) }),
	head("status-icy", true, "ICY 200 OK", func(r Response) []string { return sized(r) }),
	head("status-http2", true, "HTTP/2 200", func(r Response) []string { return sized(r) }),
	head("status-bare", false, "HTTP/1.1 200", func(r Response) []string { return sized(r) }),
	head("http-1.0", false, "HTTP/1.0 200 OK", func(Response) []string { return nil }),
	head("length-words", true, ok, func(Response) []string { return []string{"Content-Length: thousand"} }),
	head("length-negative", true, ok, func(Response) []string { return []string{"Content-Length: -1"} }),
	head("length-two", true, ok, func(r Response) []string { return append(sized(r), "Content-Length: 7") }),
	head("header-no-colon", true, ok, func(r Response) []string { return append(sized(r), "This line has no colon") }),
	head("header-nul", true, ok, func(r Response) []string { return append(sized(r), "X-Nul: a\x00b") }),
	head("header-folded", true, ok, func(r Response) []string { return append(sized(r), "X-Folded: one", "  two") }),
	head("header-space", true, ok, func(r Response) []string { return append(sized(r), "X-Space : here") }),
	head("early-hints", false, "HTTP/1.1 103 Early Hints\r\nLink: </static/site.css>; rel=preload\r\n\r\n"+ok,
		func(r Response) []string { return sized(r) }),
	head("te-identity", true, ok, func(Response) []string { return []string{"Transfer-Encoding: identity"} }),
	wired("head-lf", true, "lines of the head that end in a bare LF", func(r Response) []byte {
		return bytes.Join([][]byte{[]byte(strings.ReplaceAll(headOf(ok, sized(r)...), "\r\n", "\n")), r.Body}, nil)
	}),
	wired("status-none", true, "a page without a head, as HTTP/0.9 has it", func(r Response) []byte { return r.Body }),
	wired("length-short", true, "bytes after the end that Content-Length gives", func(r Response) []byte {
		return append(append([]byte(headOf(ok, sized(r)...)), r.Body...), "<p>These words were not announced.</p>\n"...)
	}),
	unusable("head-garbage", "bytes that mean nothing", func(Response) []byte {
		return bytes.Repeat([]byte("\x00\x9d\xff\x01\x07"), 200)
	}),
	unusable("head-ssh", "the banner of another protocol", func(Response) []byte { return []byte("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n") }),
	unusable("head-endless", "4 MiB of header lines", func(Response) []byte {
		return append([]byte(ok+"\r\n"), bytes.Repeat([]byte("X-Filler: "+strings.Repeat("x", 1000)+"\r\n"), 4<<10)...)
	}),
	unusable("status-42", "a status code of 42", func(r Response) []byte { return []byte(headOf("HTTP/1.1 42 What", sized(r)...)) }),
}

// bodyFaults are bodies with odd framing or an early end.
var bodyFaults = []Fault{
	chunkedBody("chunked", false, "small chunks, with extensions and a trailer", func(b []byte) []byte {
		return append(chunks(b, 700, ";name=\"value\"\r\n", "\r\n"), "0\r\nX-Trailer: done\r\n\r\n"...)
	}),
	chunkedBody("chunked-lf", true, "chunk sizes that end in a bare LF", func(b []byte) []byte {
		return append(chunks(b, 4000, "\n", "\r\n"), "0\r\n\r\n"...)
	}),
	chunkedBody("chunked-false", true, "a plain body that claims to be chunked", func(b []byte) []byte { return b }),
	closedEarly("truncated", "Content-Length gives more than comes", func(r Response) []byte {
		return append([]byte(headOf(ok, sized(r)...)), r.Body[:r.MainEnd]...)
	}),
	closedEarly("chunked-truncated", "no last chunk", func(r Response) []byte {
		return append([]byte(headOf(ok, "Transfer-Encoding: chunked")), chunks(r.Body[:r.MainEnd], 4000, "\r\n", "\r\n")...)
	}),
	warned(closedEarly("chunked-invalid", "a chunk size that is none", func(r Response) []byte {
		b := append([]byte(headOf(ok, "Transfer-Encoding: chunked")), chunks(r.Body[:r.MainEnd], 4000, "\r\n", "\r\n")...)
		return append(b, "what?\r\n"...)
	})),
}

// connectionFaults close, reset or delay the connection.
var connectionFaults = []Fault{
	{Name: "reset", About: "the connection is reset before any answer", Class: Quick, Outcome: schema.ConnectError, script: reset},
	{Name: "close", About: "the connection is closed before any answer", Class: Quick, Outcome: schema.ConnectError,
		script: func(context.Context, net.Conn, Response, time.Duration) {}},
	{Name: "slow", About: "the page, after a delay that every time limit allows", Class: Slow, Outcome: schema.OK, Status: 200,
		Page: WholePage, script: func(ctx context.Context, conn net.Conn, r Response, pause time.Duration) {
			if sleep(ctx, pause) {
				_, _ = conn.Write(append([]byte(headOf(ok, sized(r)...)), r.Body...))
			}
		}},
	{Name: "hang", About: "the request is read and never answered", Class: Slow, Outcome: schema.Timeout, script: hang},
	{Name: "drip-head", About: "a header line now and then, without end", Class: Slow, Outcome: schema.Timeout,
		script: func(ctx context.Context, conn net.Conn, _ Response, pause time.Duration) {
			drip(ctx, conn, ok+"\r\n", "X-Drip: drip\r\n", pause)
		}},
	{Name: "drip-body", About: "the page, then a comment now and then, without end", Class: Slow, Outcome: schema.OK, Status: 200,
		Page: WholePage, Truncated: schema.TruncatedTime,
		script: func(ctx context.Context, conn net.Conn, r Response, pause time.Duration) {
			drip(ctx, conn, headOf(ok)+string(r.Body), "<!-- drip -->\n", pause)
		}},
	{Name: "hang-body", About: "the main part of the page, then nothing more", Class: Slow, Outcome: schema.OK, Status: 200,
		Page: MainPage, Truncated: schema.TruncatedTime,
		script: func(ctx context.Context, conn net.Conn, r Response, pause time.Duration) {
			if _, err := conn.Write(append([]byte(headOf(ok, sized(r)...)), r.Body[:r.MainEnd]...)); err == nil {
				hang(ctx, conn, r, pause)
			}
		}},
}

// HTML is the Content-Type of pages.
const HTML = "text/html; charset=utf-8"

const ok = "HTTP/1.1 200 OK"

// headOf returns a head with the Content-Type of pages and the given lines.
func headOf(status string, lines ...string) string {
	b := status + "\r\nContent-Type: " + HTML + "\r\n"
	for _, l := range lines {
		b += l + "\r\n"
	}
	return b + "\r\n"
}

func sized(r Response) []string { return []string{"Content-Length: " + strconv.Itoa(len(r.Body))} }

func wired(name string, warning bool, about string, send func(Response) []byte) Fault {
	return Fault{Name: name, About: about, Class: Quick, Outcome: schema.OK, Status: 200, Page: WholePage, Warning: warning, bytes: send}
}

func head(name string, warning bool, status string, lines func(r Response) []string) Fault {
	return wired(name, warning, fmt.Sprintf("a head like %q", headOf(status, lines(Response{})...)), func(r Response) []byte {
		return append([]byte(headOf(status, lines(r)...)), r.Body...)
	})
}

// unusable makes a fault whose response no crawler can use.
func unusable(name, about string, send func(Response) []byte) Fault {
	return Fault{Name: name, About: about, Class: Quick, Outcome: schema.ProtocolError, bytes: send}
}

func chunkedBody(name string, warning bool, about string, body func([]byte) []byte) Fault {
	return wired(name, warning, about, func(r Response) []byte {
		return append([]byte(headOf(ok, "Transfer-Encoding: chunked")), body(r.Body)...)
	})
}

// closedEarly returns a fault that closes the connection after the main part, before the end of
// the body.
func closedEarly(name, about string, send func(Response) []byte) Fault {
	return Fault{Name: name, About: about, Class: Quick, Outcome: schema.OK, Status: 200, Page: MainPage,
		Truncated: schema.TruncatedDisconnect, bytes: send}
}

// chunks frames b in chunks, without a last chunk.
func chunks(b []byte, size int, sizeEnd, dataEnd string) []byte {
	var out []byte
	for part := range slices.Chunk(b, size) {
		out = fmt.Appendf(out, "%x%s%s%s", len(part), sizeEnd, part, dataEnd)
	}
	return out
}

// reset makes the connection send an RST when it is closed.
func reset(_ context.Context, conn net.Conn, _ Response, _ time.Duration) {
	if c, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		_ = c.SetLinger(0) // if this fails, the client sees a normal end of the connection
	}
}

// hang waits until the client closes the connection.
func hang(_ context.Context, conn net.Conn, _ Response, _ time.Duration) {
	var b [512]byte
	for {
		if _, err := conn.Read(b[:]); err != nil {
			return
		}
	}
}

// drip writes the first text, and then the piece after each pause until the client closes the
// connection.
func drip(ctx context.Context, conn net.Conn, first, piece string, pause time.Duration) {
	for {
		if _, err := conn.Write([]byte(first)); err != nil || !sleep(ctx, pause) {
			return
		}
		first = piece
	}
}

// sleep waits for d. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
