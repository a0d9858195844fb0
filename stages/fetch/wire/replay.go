package wire

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// Limits bound a response that is read again, as they did when it came.
type Limits struct {
	MaxBody int64     // bytes of payload and of decoded body; 0: 5 MiB
	Allow   Allowance // nil: MaxBody holds for all
}

// Replay reads the response of a GET again from the bytes that were kept of it, as
// RawReader gives them and a WARC record holds them, with the tolerance with which
// it was read from the wire. Status, Header, Payload, PayloadDigest and Body equal
// those of the exchange that was kept, if the limits do; how the connection ended is
// not in the bytes, so Truncated may differ. Release the exchange, which is never
// nil. The error says why the bytes are no response.
func Replay(raw []byte, https bool, l Limits) (*Exchange, error) {
	m := replaying(bytes.NewReader(raw), https, l)
	err := m.readHead()
	if err == nil {
		_ = m.readBody() // it can only be short, as it was on the wire
	}
	return m.x, m.replayed(err)
}

// ReplayPayload is Replay of a response whose head was kept without its body, as a
// revisit record has it, and of the payload that another record holds, which is
// copied.
func ReplayPayload(head, payload []byte, https bool, l Limits) (*Exchange, error) {
	// Where a head has no end, or there is none, the document tells.
	m := replaying(io.MultiReader(bytes.NewReader(head), bytes.NewReader(payload)), https, l)
	err := m.readHead()
	if err == nil {
		m.x.Payload = append(getBuffer(len(payload)), payload...)
		m.testPrefix(true)
	}
	return m.x, m.replayed(err)
}

// replaying is a message that is read again.
func replaying(from io.Reader, https bool, l Limits) *message {
	c := Config{MaxBody: l.MaxBody}
	c.defaultLimits()
	x := &Exchange{}
	m := &message{
		source: newSource(from), x: x, method: http.MethodGet, https: https, kept: true,
		maxHeader: c.MaxHeader, maxBody: c.MaxBody, maxRatio: c.MaxRatio,
	}
	if l.Allow != nil {
		m.onPrefix = func() bool {
			b, owned := decoder{maxBody: m.maxBody, maxRatio: m.maxRatio}.prefix(x)
			m.maxBody = max(m.maxBody, l.Allow(x, b[:min(len(b), prefixLen)]))
			if owned {
				putBuffer(b)
			}
			return true
		}
	}
	return m
}

// replayed ends a replay: the buffers are the exchange's, and the body is decoded.
func (m *message) replayed(err error) error {
	x := m.x
	m.source.rest()
	for _, b := range [][]byte{x.RawHead, x.Payload, x.framing.bytes} {
		if b != nil {
			x.buffers = append(x.buffers, b)
		}
	}
	if err != nil {
		return fmt.Errorf("no HTTP response: %w", err)
	}
	x.PayloadDigest = digest(x.Payload)
	decoder{maxBody: m.maxBody, maxRatio: m.maxRatio}.body(x)
	return nil
}
