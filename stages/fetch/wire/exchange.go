package wire

import (
	"time"

	"crawlbatch.io/crawlbatch/stages/fetch/wire/buffers"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/coding"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/dial"
	"crawlbatch.io/crawlbatch/stages/fetch/wire/http1"
)

// Timing holds the duration of each phase, at least 1 ns. The duration of a phase that did not
// happen is 0, for example on a kept connection or for a host that is an address.
type Timing struct {
	DNS       time.Duration // wait for the look-up, even if the answer comes from the cache
	Connect   time.Duration // duration of the TCP attempts until one succeeded, and of CONNECT
	TLS       time.Duration
	FirstByte time.Duration // time from the write of the request's first byte to the read of the response's first byte
	Total     time.Duration // time from the call of Do to its return
}

// Exchange is one request and its response. Only one goroutine at a time may use it. The byte
// slices are valid until Release. Strings, the Header and the Warnings stay valid.
type Exchange struct {
	// RawRequest is the request as written, without credentials for a proxy.
	RawRequest []byte

	http1.Response // the Payload of the Response has at most MaxBody bytes
	// PayloadDigest is the SHA-1 of Payload in the form that WARC uses: "sha1:" and 32 characters
	// of base32. If there was no response, PayloadDigest is empty.
	PayloadDigest  string
	coding.Decoded // the Body of the Decoded has at most MaxBody bytes

	dial.Peer
	KeptAlive bool // whether the connection was kept for a later exchange

	Start    time.Time // when the client was about to write the request's first byte; zero if this did not happen
	Timing   Timing
	BytesIn  int64 // bytes read from the peer inside TLS, including interim responses
	BytesOut int64 // bytes written to the peer inside TLS

	share *share // share of Config.Memory; nil before the response
}

// Release returns the buffers to their pool and clears every byte slice. A second call does
// nothing. A goroutine must release an exchange before its next Do, because the next Do may wait
// for the memory.
func (x *Exchange) Release() {
	buffers.Put(x.RawRequest)
	x.RawRequest = nil
	x.Decoded.Release()
	x.Response.Release()
	if x.share != nil {
		x.share.release()
	}
}
