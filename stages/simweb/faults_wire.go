package simweb

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// headFaults are malformed heads. Each is sent whole, with the page behind it, and
// the connection closed. Browsers show the page.
var headFaults = []Fault{
	head("status-colon", true, "HTTP/1.1 200: OK", func(a answer) []string { return sized(a) }),
	head("status-icy", true, "ICY 200 OK", func(a answer) []string { return sized(a) }),
	head("status-http2", true, "HTTP/2 200", func(a answer) []string { return sized(a) }),
	head("status-bare", false, "HTTP/1.1 200", func(a answer) []string { return sized(a) }),
	head("http-1.0", false, "HTTP/1.0 200 OK", func(answer) []string { return nil }),
	head("length-words", true, ok, func(answer) []string { return []string{"Content-Length: thousand"} }),
	head("length-negative", true, ok, func(answer) []string { return []string{"Content-Length: -1"} }),
	head("length-two", true, ok, func(a answer) []string { return append(sized(a), "Content-Length: 7") }),
	head("header-no-colon", true, ok, func(a answer) []string { return append(sized(a), "This line has no colon") }),
	head("header-nul", true, ok, func(a answer) []string { return append(sized(a), "X-Nul: a\x00b") }),
	head("header-folded", true, ok, func(a answer) []string { return append(sized(a), "X-Folded: one", "  two") }),
	head("header-space", true, ok, func(a answer) []string { return append(sized(a), "X-Space : here") }),
	head("early-hints", false, "HTTP/1.1 103 Early Hints\r\nLink: </static/site.css>; rel=preload\r\n\r\n"+ok,
		func(a answer) []string { return sized(a) }),
	head("te-identity", true, ok, func(answer) []string { return []string{"Transfer-Encoding: identity"} }),
	wired("head-lf", true, "lines of the head that end in a bare LF", func(_ visit, a answer) []byte {
		return bytes.Join([][]byte{[]byte(strings.ReplaceAll(headOf(ok, sized(a)...), "\r\n", "\n")), a.body}, nil)
	}),
	wired("status-none", true, "a page without a head, as HTTP/0.9 has it", func(_ visit, a answer) []byte { return a.body }),
	wired("length-short", true, "bytes after the end that Content-Length gives", func(_ visit, a answer) []byte {
		return append(append([]byte(headOf(ok, sized(a)...)), a.body...), "<p>These words were not announced.</p>\n"...)
	}),
	nothing("head-garbage", "bytes that mean nothing", func(visit, answer) []byte {
		return bytes.Repeat([]byte("\x00\x9d\xff\x01\x07"), 200)
	}),
	nothing("head-ssh", "the banner of another protocol", func(visit, answer) []byte { return []byte("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n") }),
	nothing("head-endless", "4 MiB of header lines", func(visit, answer) []byte {
		return append([]byte(ok+"\r\n"), bytes.Repeat([]byte("X-Filler: "+strings.Repeat("x", 1000)+"\r\n"), 4<<10)...)
	}),
	nothing("status-42", "a status code of 42", func(_ visit, a answer) []byte { return []byte(headOf("HTTP/1.1 42 What", sized(a)...)) }),
}

// bodyFaults are bodies that are framed in odd ways or end too soon.
var bodyFaults = []Fault{
	chunkedBody("chunked", false, "small chunks, with extensions and a trailer", func(b []byte) []byte {
		return append(chunks(b, 700, ";name=\"value\"\r\n", "\r\n"), "0\r\nX-Trailer: done\r\n\r\n"...)
	}),
	chunkedBody("chunked-lf", true, "chunk sizes that end in a bare LF", func(b []byte) []byte {
		return append(chunks(b, 4000, "\n", "\r\n"), "0\r\n\r\n"...)
	}),
	chunkedBody("chunked-false", true, "a plain body that claims to be chunked", func(b []byte) []byte { return b }),
	cut("truncated", "Content-Length gives more than comes", func(_ visit, a answer) []byte {
		return append([]byte(headOf(ok, sized(a)...)), a.body[:a.doc.mainEnd]...)
	}),
	cut("chunked-truncated", "no last chunk", func(_ visit, a answer) []byte {
		return append([]byte(headOf(ok, "Transfer-Encoding: chunked")), chunks(a.body[:a.doc.mainEnd], 4000, "\r\n", "\r\n")...)
	}),
	warned(cut("chunked-invalid", "a chunk size that is none", func(_ visit, a answer) []byte {
		b := append([]byte(headOf(ok, "Transfer-Encoding: chunked")), chunks(a.body[:a.doc.mainEnd], 4000, "\r\n", "\r\n")...)
		return append(b, "what?\r\n"...)
	})),
}

// connectionFaults are played on the connection.
var connectionFaults = []Fault{
	{Name: "reset", About: "the connection is reset before any answer", Class: Quick, Outcome: schema.ConnectError, script: reset},
	{Name: "close", About: "the connection is closed before any answer", Class: Quick, Outcome: schema.ConnectError,
		script: func(context.Context, net.Conn, visit, answer, time.Duration) {}},
	{Name: "slow", About: "the page, after a delay that every time limit allows", Class: Slow, Outcome: schema.OK, Status: 200,
		Page: WholePage, script: func(ctx context.Context, conn net.Conn, _ visit, a answer, pause time.Duration) {
			if sleep(ctx, pause) {
				_, _ = conn.Write(append([]byte(headOf(ok, sized(a)...)), a.body...))
			}
		}},
	{Name: "hang", About: "the request is read and never answered", Class: Slow, Outcome: schema.Timeout, script: hang},
	{Name: "drip-head", About: "a header line now and then, without end", Class: Slow, Outcome: schema.Timeout,
		script: func(ctx context.Context, conn net.Conn, _ visit, _ answer, pause time.Duration) {
			drip(ctx, conn, ok+"\r\n", "X-Drip: drip\r\n", pause)
		}},
	{Name: "drip-body", About: "the page, then a comment now and then, without end", Class: Slow, Outcome: schema.OK, Status: 200,
		Page: WholePage, Truncated: schema.TruncatedTime,
		script: func(ctx context.Context, conn net.Conn, _ visit, a answer, pause time.Duration) {
			drip(ctx, conn, headOf(ok)+string(a.body), "<!-- drip -->\n", pause)
		}},
	{Name: "hang-body", About: "the main part of the page, then nothing more", Class: Slow, Outcome: schema.OK, Status: 200,
		Page: MainPage, Truncated: schema.TruncatedTime,
		script: func(ctx context.Context, conn net.Conn, v visit, a answer, pause time.Duration) {
			if _, err := conn.Write(append([]byte(headOf(ok, sized(a)...)), a.body[:a.doc.mainEnd]...)); err == nil {
				hang(ctx, conn, v, a, pause)
			}
		}},
}

const ok = "HTTP/1.1 200 OK"

// headOf is a head with the page's type and the given lines.
func headOf(status string, lines ...string) string {
	b := status + "\r\nContent-Type: " + htmlType + "\r\n"
	for _, l := range lines {
		b += l + "\r\n"
	}
	return b + "\r\n"
}

func sized(a answer) []string { return []string{"Content-Length: " + strconv.Itoa(len(a.body))} }

func wired(name string, warning bool, about string, wire func(visit, answer) []byte) Fault {
	return Fault{Name: name, About: about, Class: Quick, Outcome: schema.OK, Status: 200, Page: WholePage, Warning: warning, wire: wire}
}

func head(name string, warning bool, status string, lines func(a answer) []string) Fault {
	return wired(name, warning, fmt.Sprintf("a head like %q", headOf(status, lines(answer{})...)), func(_ visit, a answer) []byte {
		return append([]byte(headOf(status, lines(a)...)), a.body...)
	})
}

// nothing is an answer of which nothing can be made.
func nothing(name, about string, wire func(visit, answer) []byte) Fault {
	return Fault{Name: name, About: about, Class: Quick, Outcome: schema.ProtocolError, wire: wire}
}

func chunkedBody(name string, warning bool, about string, body func([]byte) []byte) Fault {
	return wired(name, warning, about, func(_ visit, a answer) []byte {
		return append([]byte(headOf(ok, "Transfer-Encoding: chunked")), body(a.body)...)
	})
}

// cut is a body that ends after the main part, with the connection.
func cut(name, about string, wire func(visit, answer) []byte) Fault {
	return Fault{Name: name, About: about, Class: Quick, Outcome: schema.OK, Status: 200, Page: MainPage,
		Truncated: schema.TruncatedDisconnect, wire: wire}
}

// chunks frames b without a last chunk.
func chunks(b []byte, size int, sizeEnd, dataEnd string) []byte {
	out := make([]byte, 0, len(b)+len(b)/size*16+32)
	for len(b) > 0 {
		n := min(size, len(b))
		out = strconv.AppendInt(out, int64(n), 16)
		out = append(out, sizeEnd...)
		out = append(out, b[:n]...)
		out = append(out, dataEnd...)
		b = b[n:]
	}
	return out
}

// reset closes the connection so that the other side gets a RST.
func reset(_ context.Context, conn net.Conn, _ visit, _ answer, _ time.Duration) {
	if c, ok := conn.(interface{ SetLinger(sec int) error }); ok {
		_ = c.SetLinger(0) // if it fails, the other side sees an end instead
	}
}

// hang waits until the other side goes away.
func hang(_ context.Context, conn net.Conn, _ visit, _ answer, _ time.Duration) {
	var b [512]byte
	for {
		if _, err := conn.Read(b[:]); err != nil {
			return
		}
	}
}

// drip writes first, then one more piece after each pause, until the other side goes away.
func drip(ctx context.Context, conn net.Conn, first, piece string, pause time.Duration) {
	for {
		if _, err := conn.Write([]byte(first)); err != nil || !sleep(ctx, pause) {
			return
		}
		first = piece
	}
}

// sleep reports whether it slept to the end.
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
