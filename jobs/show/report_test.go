package show

import (
	"bytes"
	"strings"
	"testing"

	"crawlbatch.io/crawlbatch/jobs/verify"
)

func TestWhatIsStoredCannotWriteToTheTerminalOrTheShell(t *testing.T) {
	var out bytes.Buffer
	r := &verify.Report{
		Crawl: "2026-11", Store: "s3://b/p", Rounds: []int{0}, Sample: 1,
		Checked: []verify.Checked{{Invariant: 1, Check: "c", Looked: 1, Of: "rows", Found: 3}},
		Violations: []verify.Violation{{
			Invariant: 1, Check: "c", Object: "tables/x.parquet", Row: "http://a.test/$(id)\x1b]0;x\a", Problem: "two\nlines\x1b[2J", Where: "url = 'http://a.test/$(id)'",
		}},
	}
	if err := Report(&out, r); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\a") {
		t.Errorf("control characters in %q", out.String())
	}
	for _, want := range []string{
		"\nc in round 0, tables/x.parquet: two lines\\u001b[2J\n",
		"\n  in DuckDB: SELECT * FROM 's3://b/p/tables/x.parquet' WHERE url = 'http://a.test/$(id)';\n",
		"\n2 more of the same kinds are not listed\n",
		"\n3 violations in 1 round: not as promised\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
}
