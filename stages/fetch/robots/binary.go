package robots

import (
	"encoding/json"
	"time"
)

// ruleOverhead is the approximate memory of a rule without its text, in bytes.
const ruleOverhead = 160

// Size returns the approximate memory of the group, in bytes.
func (g *Group) Size() int {
	n := 0
	for i := range g.rules {
		r := &g.rules[i]
		n += ruleOverhead + len(r.line) + len(r.directory.text)
		if len(r.line) < len(r.text) || len(r.line) == maxRuleText {
			n += len(r.text) // otherwise text shares its memory with line
		}
	}
	for i := range g.rfc {
		n += ruleOverhead
		if r := &g.rfc[i]; r.text != g.rules[i].text {
			n += len(r.text) + len(r.directory.text)
		}
	}
	for i := range g.signals {
		n += 2*ruleOverhead + len(g.signals[i].path.text)
	}
	return n
}

// packed is the encoding of a Group.
type packed struct {
	Delay, Rate       time.Duration
	HasDelay, HasRate bool
	Rules             []packedRule
	Signals           []packedSignals
}

type packedRule struct {
	Text, Line string
	Allow      bool
	Num        int
}

type packedSignals struct{ Path, Signals string }

// AppendBinary appends an encoding of the group, which only the same version of crawlbatch can
// decode.
func (g *Group) AppendBinary(b []byte) ([]byte, error) {
	p := packed{Delay: g.delay, Rate: g.rate, HasDelay: g.hasDelay, HasRate: g.hasRate}
	for i := range g.rules {
		r := &g.rules[i]
		p.Rules = append(p.Rules, packedRule{r.text, r.line, r.allow, r.num}) // both strings are valid UTF-8
	}
	for i := range g.signals {
		p.Signals = append(p.Signals, packedSignals{g.signals[i].path.text, g.signals[i].signals.String()})
	}
	text, err := json.Marshal(p)
	return append(b, text...), err
}

// UnmarshalBinary decodes an encoding made by AppendBinary.
func (g *Group) UnmarshalBinary(b []byte) error {
	*g = Group{}
	var p packed
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	g.delay, g.rate, g.hasDelay, g.hasRate = p.Delay, p.Rate, p.HasDelay, p.HasRate
	for _, r := range p.Rules {
		g.rules = append(g.rules, makeRule(compiled(r.Text), r.Allow, r.Line, r.Num))
	}
	g.rfc = rfcRules(g.rules)
	for _, s := range p.Signals {
		l := signalLine{path: compiled(s.Path)}
		l.signals.Add(s.Signals)
		g.signals = append(g.signals, l)
	}
	return nil
}
