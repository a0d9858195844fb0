package config

import (
	"encoding"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Duration is a time in Go's notation: 500ms, 2s, 20h.
type Duration time.Duration

// Std returns the duration as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// MarshalText writes the shortest form, such as 2s for 2000ms, and 20h for 20h0m0s.
func (d Duration) MarshalText() ([]byte, error) {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return []byte(s), nil
}

func (d Duration) String() string { text, _ := d.MarshalText(); return string(text) }

// UnmarshalText reads a duration in Go's notation or a number of days, such as 30d.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if days, ok := strings.CutSuffix(string(b), "d"); ok {
		v, err = time.ParseDuration(days + "h")
		if v > math.MaxInt64/24 || v < math.MinInt64/24 || strings.ContainsAny(days, "hmsuµn") {
			err = strconv.ErrRange
		}
		v *= 24
	}
	if err != nil {
		return fmt.Errorf("%q is not a duration: write a number and a unit, such as 500ms, 2s, 20h or 30d", b)
	}
	*d = Duration(v)
	return nil
}

// UnmarshalYAML is UnmarshalText with the line and the key in errors.
func (d *Duration) UnmarshalYAML(n ast.Node) error { return unmarshalScalar(n, d) }

// Bytes is a size: 5MiB, 64KiB, 1GB, or a plain number of bytes.
type Bytes int64

var byteUnits = []struct {
	suffix string
	factor float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1}}

// MarshalText writes a whole number of the largest binary unit that divides the size.
func (b Bytes) MarshalText() ([]byte, error) {
	for i := 3; i >= 0; i-- {
		if f := int64(byteUnits[i].factor); b != 0 && int64(b)%f == 0 {
			return fmt.Appendf(nil, "%d%s", int64(b)/f, byteUnits[i].suffix), nil
		}
	}
	return strconv.AppendInt(nil, int64(b), 10), nil
}

func (b Bytes) String() string { text, _ := b.MarshalText(); return string(text) }

// UnmarshalText reads a number with an optional unit.
func (b *Bytes) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || v < 0 || math.IsNaN(v) || v*u.factor >= math.MaxInt64 {
			break
		}
		*b = Bytes(v * u.factor)
		return nil
	}
	return fmt.Errorf("%q is not a size: write a number and a unit, such as 64KiB, 5MiB or 1GiB", text)
}

// UnmarshalYAML is UnmarshalText with the line and the key in errors.
func (b *Bytes) UnmarshalYAML(n ast.Node) error { return unmarshalScalar(n, b) }

// lineError is an error at a line of the file.
type lineError struct {
	line int
	text string
}

func (e *lineError) Error() string { return e.text }

func unmarshalScalar(n ast.Node, into encoding.TextUnmarshaler) error {
	text := n.GetToken().Value
	if s, ok := n.(*ast.StringNode); ok {
		text = s.Value
	}
	if err := into.UnmarshalText([]byte(text)); err != nil {
		return &lineError{n.GetToken().Position.Line, keyText(n.GetPath()) + err.Error()}
	}
	return nil
}
