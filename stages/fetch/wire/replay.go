package wire

import (
	"bytes"
	"fmt"
	"net/http"
)

// Replay reads the response of a GET again from the bytes that were kept of it, as
// RawReader gives them and a WARC record holds them, with the tolerance with which
// it was read from the wire. Status, Header, Payload, PayloadDigest and Body equal
// those of the exchange that was kept, if maxBody (0: 5 MiB) does; how the
// connection ended is not in the bytes, so Truncated may differ. Release the
// exchange, which is never nil. The error says why the bytes are no response.
func Replay(raw []byte, https bool, maxBody int64) (*Exchange, error) {
	c := replayLimits(maxBody)
	x := &Exchange{}
	m := &message{
		source: newSource(bytes.NewReader(raw)), x: x, method: http.MethodGet, https: https, maxHeader: c.MaxHeader, maxBody: c.MaxBody,
	}
	err := m.readHead()
	if err == nil {
		_ = m.readBody() // it can only be short, as it was on the wire
	}
	return x, m.replayed(err, c)
}

// ReplayPayload is Replay of a response whose head was kept without its body, as a
// revisit record has it, and of the payload that another record holds, which is
// copied.
func ReplayPayload(head, payload []byte, https bool, maxBody int64) (*Exchange, error) {
	c := replayLimits(maxBody)
	x := &Exchange{}
	m := &message{
		source: newSource(bytes.NewReader(head)), x: x, method: http.MethodGet, https: https, maxHeader: c.MaxHeader, maxBody: c.MaxBody,
	}
	err := m.readHead()
	if err == nil {
		x.Payload = append(getBuffer(len(payload)), payload...)
	}
	return x, m.replayed(err, c)
}

// replayed ends a replay: the buffers are the exchange's, and the body is decoded.
func (m *message) replayed(err error, c Config) error {
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
	decoder{maxBody: c.MaxBody, maxRatio: c.MaxRatio}.body(x)
	return nil
}

// replayLimits are the bounds that hold for a body when it comes over the wire.
func replayLimits(maxBody int64) Config {
	c := Config{MaxBody: maxBody}
	c.defaultLimits()
	return c
}
