package wire

import (
	"time"

	"crawlbatch.io/crawlbatch/formats/http1"
	"crawlbatch.io/crawlbatch/formats/http1/buffers"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/coding"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
)

// Timing holds the duration of each phase, at least 1 ns. It is 0 for a phase that did not happen.
// For example, an exchange on a kept connection has no connect, and a URL with an IP address needs
// no look-up.
type Timing struct {
	DNS       time.Duration // wait for the look-up, even if the cache answers
	Connect   time.Duration // duration of the TCP attempts until one succeeded, including CONNECT
	TLS       time.Duration
	FirstByte time.Duration // time from the write of the request's first byte to the first byte of the response
	Total     time.Duration // time from the call of Do to its return
}

// Exchange is one request and its response. Only one goroutine at a time may use it. Its byte
// slices are valid until Release; strings, Header and Warnings stay valid.
type Exchange struct {
	// RawRequest is the request as written, without credentials for a proxy.
	RawRequest []byte

	http1.Response // its Payload has at most MaxBody bytes
	// PayloadDigest is the SHA-1 of Payload in the form of WARC: "sha1:" and 32 characters of
	// base32. Without a response it is empty.
	PayloadDigest  string
	coding.Decoded // its Body has at most MaxBody bytes

	dial.Peer
	KeptAlive bool // whether the connection was kept open afterwards

	Start    time.Time // when the request's first byte was about to be written; zero if it never was
	Timing   Timing
	BytesIn  int64 // bytes read from the peer, inside TLS and with interim responses
	BytesOut int64 // bytes written to the peer, inside TLS

	share *share // share of Config.Memory; nil before the response begins
}

// Release returns the buffers to their pool and clears every byte slice. A second call does
// nothing. A goroutine must release an exchange before it calls Do again. Otherwise that Do could
// wait in vain for the memory of this exchange.
func (x *Exchange) Release() {
	buffers.Put(x.RawRequest)
	x.RawRequest = nil
	x.Decoded.Release()
	x.Response.Release()
	if x.share != nil {
		x.share.release()
	}
}
