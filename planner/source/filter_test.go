package source

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestConditionsAreParsedWithPositions(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"fetch_status = 200", "[fetch_status = 200]"},
		{" a='x''y' and B != -1.5 And \"c d\" <> 'é'", "[a = x'y] [B != -1.5] [c d != é]"},
		{"a IN (1, 2,3) AND b like 'a%'", "[a IN 1 2 3] [b LIKE a%]"},
		{"a<=1 AND b>=2 AND c<3 AND d>4 AND e = TRUE", "[a <= 1] [b >= 2] [c < 3] [d > 4] [e = true]"},
		{"", "character 1: want the name of a column"},
		{"a = 1 AND", "character 10: want the name of a column"},
		{"a = 1 OR b = 2", "character 7: want AND or the end"},
		{"a == 1", "character 4: want a number"},
		{"é = 1 AND 'x' = 1", "character 11: want the name of a column"},
		{"a ~ 1", "character 3: no word"},
		{"a = 'x", "character 5: no word, number or text in closed quotes"},
		{"a = x", "character 5: want a number, true, false or a text"},
		{"a = inf", "character 5: want a number"},
		{"a = 1e999", "character 5: want a number"},
		{"a", "character 2: want =, !="},
		{"a IN 1", "character 6: want ( after IN"},
		{"a IN ()", "character 7: want a number"},
		{"a IN (1", "character 8: want , or )"},
		{"a IN (1 2)", "character 9: want , or )"},
		{"a LIKE 1", "character 8: want a text in single quotes after LIKE"},
		{"NOT a = 1", "character 5: want =, !="},
	} {
		f, err := parseFilter(tc.text)
		got := shown(f)
		if err != nil {
			got = err.Error()
			if !errors.Is(err, ErrWhere) || strings.Contains(got, "\n") {
				t.Errorf("%q: %v", tc.text, err)
			}
		}
		if err == nil && got != tc.want || err != nil && !strings.Contains(got, tc.want) {
			t.Errorf("%q: %s; want %s", tc.text, got, tc.want)
		}
	}
}

func shown(f filter) string {
	var out []string
	for _, c := range f {
		s := c.column + " " + c.op
		for _, v := range c.values {
			switch v.kind {
			case text:
				s += " " + string(v.text)
			case integer:
				s += fmt.Sprint(" ", v.n)
			default:
				s += fmt.Sprint(" ", v.f)
			}
		}
		out = append(out, "["+s+"]")
	}
	return strings.Join(out, " ")
}

func TestPatternsMatchAsInSQL(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"%", "", true}, {"%", "abc", true}, {"a%", "abc", true}, {"a%", "ba", false}, {"%c", "abc", true},
		{"%b%", "abc", true}, {"%b%", "ac", false}, {"a_c", "abc", true}, {"a_c", "aéc", true}, {"_", "", false}, {"a%b%c", "axxbyyc", true}, {"a%b%c", "axxbyy", false},
		{"%%a", "xa", true}, {"%aab", "aaab", true}, {"%_b", "b", false}, {"%é_", "xéy", true}, {"a.c", "abc", false},
	} {
		if got := like([]byte(tc.pattern), []byte(tc.text)); got != tc.want {
			t.Errorf("%q LIKE %q: %t", tc.text, tc.pattern, got)
		}
	}
}

// FuzzWhere checks that mayHold accepts every range of values in which a value meets the condition.
func FuzzWhere(f *testing.F) {
	f.Add("a = 1 AND b IN ('x', 'y') AND c LIKE 'a%b_'", "x", "y", int64(1), 2.5)
	f.Add("a >= 1.5 AND b <> 'x'", "", "\xff", int64(math.MaxInt64), math.NaN())
	f.Fuzz(func(t *testing.T, expression, s1, s2 string, n int64, x float64) {
		filter, err := parseFilter(expression)
		if err != nil {
			if !errors.Is(err, ErrWhere) {
				t.Error(err)
			}
			return
		}
		values := []value{{}, textOf(s1), textOf(s2), {kind: integer, n: n}, {kind: integer, n: n / 2}, {kind: real, f: x}, {kind: real, f: x / 2}}
		for _, c := range filter {
			for _, v := range values {
				holds := c.holds(v)
				for _, w := range values {
					if v.kind != w.kind || v.kind == null {
						continue
					}
					least, most := v, w
					if order, ok := compare(v, w); !ok {
						continue
					} else if order > 0 {
						least, most = w, v
					}
					// Texts that hold numbers have another order as texts, so no reader skips a range of texts
					// because of a number.
					if v.kind == text && slices.ContainsFunc(c.values, func(l value) bool { return l.kind != text }) {
						continue
					}
					if holds && !c.mayHold(least, most) {
						t.Errorf("%s holds for %+v, but not within %+v to %+v", shown(filter), v, least, most)
					}
				}
			}
		}
	})
}
