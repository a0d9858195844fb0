package robots

import (
	"encoding/binary"
	"errors"
	"time"

	"crawlbatch.io/crawlbatch/formats/directives"
)

// errBinary means that AppendBinary did not write the bytes.
var errBinary = errors.New("not a group of robots.txt rules")

// overhead is the approximate memory of a rule without its text, in bytes.
const overhead = 160

// Size is the approximate memory of the group, in bytes.
func (g *Group) Size() int {
	n := 0
	for i := range g.rules {
		r := &g.rules[i]
		n += overhead + len(r.line) + len(r.directory.text)
		if len(r.line) < len(r.text) || len(r.line) == maxRuleText {
			n += len(r.text) // otherwise text is a part of line
		}
	}
	for i := range g.rfc {
		n += overhead
		if r := &g.rfc[i]; r.text != g.rules[i].text {
			n += len(r.text) + len(r.directory.text)
		}
	}
	for i := range g.signals {
		n += 2*overhead + len(g.signals[i].path.text)
	}
	return n
}

// AppendBinary appends an encoding of the group that only the same version of the program
// can decode.
func (g *Group) AppendBinary(b []byte) ([]byte, error) {
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	pause := func(d time.Duration, has bool) {
		if !has {
			d = -1
		}
		b = binary.AppendVarint(b, int64(d))
	}
	pause(g.delay, g.hasDelay)
	pause(g.rate, g.hasRate)
	b = binary.AppendUvarint(b, uint64(len(g.rules)))
	for i := range g.rules {
		r := &g.rules[i]
		n := uint64(r.num) << 1
		if r.allow {
			n |= 1
		}
		b = binary.AppendUvarint(b, n)
		text(r.text)
		text(r.line)
	}
	b = binary.AppendUvarint(b, uint64(len(g.signals)))
	for i := range g.signals {
		text(g.signals[i].path.text)
		text(g.signals[i].signals.String())
	}
	return b, nil
}

// UnmarshalBinary decodes the encoding of AppendBinary.
func (g *Group) UnmarshalBinary(b []byte) error {
	ok := true
	number := func() uint64 {
		n, k := binary.Uvarint(b)
		if ok = ok && k > 0; !ok {
			return 0
		}
		b = b[k:]
		return n
	}
	text := func() string {
		n := number()
		if ok = ok && n <= uint64(len(b)); !ok {
			return ""
		}
		s := string(b[:n])
		b = b[n:]
		return s
	}
	pause := func() (time.Duration, bool) {
		n, k := binary.Varint(b)
		if ok = ok && k > 0; !ok || n < 0 {
			b = b[max(k, 0):]
			return 0, false
		}
		b = b[k:]
		return time.Duration(n), true
	}
	*g = Group{}
	g.delay, g.hasDelay = pause()
	g.rate, g.hasRate = pause()
	for n := number(); ok && n > 0; n-- {
		num := number()
		r := rule{pattern: compiled(text()), allow: num&1 != 0, num: int(num >> 1), line: text()}
		if r.allow {
			r.directory, _ = r.pattern.directory()
		}
		g.rules = append(g.rules, r)
	}
	g.rfc = rfcRules(g.rules)
	for n := number(); ok && n > 0; n-- {
		l := signalLine{path: compiled(text())}
		var s directives.Signals
		s.Add(text())
		l.signals = s
		g.signals = append(g.signals, l)
	}
	if !ok || len(b) > 0 {
		*g = Group{}
		return errBinary
	}
	return nil
}
