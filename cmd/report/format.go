package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"crawlbatch.io/crawlbatch/jobs/show"
)

// missing stands for a value that does not exist.
const missing = "–"

// number returns a value as a number, and 0 for a text.
func number(v any) float64 {
	switch n := v.(type) {
	case int64:
		return float64(n)
	case float64:
		return n
	}
	return 0
}

// exact writes a value without rounding.
func exact(v any) string {
	switch n := v.(type) {
	case int64:
		return strconv.FormatInt(n, 10)
	case float64:
		return strconv.FormatFloat(n, 'g', -1, 64)
	case string:
		return n
	}
	return ""
}

// formatted writes a value with its unit, for people.
func formatted(v any, unit string) string {
	if text, ok := v.(string); ok {
		if unit == unitTime { // 2006-01-02T15:04:05.000Z
			return strings.Replace(text[:min(len(text), len("2006-01-02T15:04:05"))], "T", " ", 1)
		}
		return text
	}
	if v == nil {
		return missing
	}
	n := number(v)
	switch unit {
	case unitBytes:
		return scaled(n, 1000, "B", "kB", "MB", "GB", "TB", "PB")
	case unitShare:
		return percent(n)
	case unitMS:
		return duration(n / 1000)
	case unitSeconds:
		return duration(n)
	case unitHours:
		return duration(n * 3600)
	case unitDollars:
		return "$" + significant(n)
	case unitRate:
		return significant(n) + " / s"
	}
	if whole, ok := v.(int64); ok {
		return show.Thousands(whole)
	}
	if n == math.Trunc(n) && math.Abs(n) < 1e15 {
		return show.Thousands(int64(n))
	}
	return significant(n)
}

// significant writes a number with three digits.
func significant(n float64) string {
	switch a := math.Abs(n); {
	case a >= 1000 && a < 1e15:
		return show.Thousands(int64(math.Round(n)))
	case a >= 100:
		return strconv.FormatFloat(n, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(n, 'f', 1, 64)
	case a >= 0.9995:
		return strconv.FormatFloat(n, 'f', 2, 64)
	}
	if a := math.Abs(n); a >= 1e-6 {
		return strconv.FormatFloat(n, 'f', 2-int(math.Floor(math.Log10(a))), 64)
	}
	return strconv.FormatFloat(n, 'g', 3, 64)
}

func scaled(n, unit float64, names ...string) string {
	i := 0
	for math.Abs(n) >= unit*0.9995 && i < len(names)-1 {
		n, i = n/unit, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%.0f %s", n, names[0])
	}
	return significant(n) + " " + names[i]
}

func percent(n float64) string {
	switch p := 100 * n; {
	case p == 0 || math.Abs(p) >= 10 && p == math.Trunc(p):
		return fmt.Sprintf("%.0f %%", p)
	case math.Abs(p) < 0.1:
		return fmt.Sprintf("%.2g %%", p)
	default:
		return fmt.Sprintf("%.1f %%", p)
	}
}

// duration writes seconds, such as 12.3 ms, 4.5 s, 3 min 20 s, 5 h 10 min or 3 d 4 h.
func duration(s float64) string {
	switch {
	case s == 0:
		return "0 s"
	case s < 0.9995:
		return significant(s*1000) + " ms"
	case s < 59.95:
		return strconv.FormatFloat(s, 'f', 1, 64) + " s"
	}
	whole := int64(math.Round(s))
	switch {
	case whole < 3600:
		return two(whole, 60, "min", 1, "s")
	case whole < 86400:
		return two(whole, 3600, "h", 60, "min")
	}
	return two(whole, 86400, "d", 3600, "h")
}

// two writes whole seconds in two units.
func two(s, large int64, name string, small int64, smallName string) string {
	text := fmt.Sprintf("%s %s", show.Thousands(s/large), name)
	if rest := s % large / small; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return text
}
