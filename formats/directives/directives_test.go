package directives

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// robotsContent is the expected content of a Robots. In forbids, "i" stands for NoIndex, "f" for
// NoFollow, and "a" for NoArchive.
type robotsContent struct {
	forbids, list, until string
}

func contentOf(d *Robots) robotsContent {
	var s robotsContent
	for _, f := range []struct {
		set bool
		as  string
	}{{d.NoIndex, "i"}, {d.NoFollow, "f"}, {d.NoArchive, "a"}} {
		if f.set {
			s.forbids += f.as
		}
	}
	s.list = d.String()
	if !d.UnavailableAfter.IsZero() {
		s.until = d.UnavailableAfter.Format(time.RFC3339)
	}
	return s
}

func TestXRobotsTag(t *testing.T) {
	tests := []struct {
		name   string
		fields []string
		want   robotsContent
	}{
		{"one directive", []string{"noindex"}, robotsContent{"i", "noindex", ""}},
		{"several, in any letter case", []string{" NoIndex ,NOFOLLOW,noArchive"}, robotsContent{"ifa", "noindex,nofollow,noarchive", ""}},
		{"none is two", []string{"none"}, robotsContent{"if", "none", ""}},
		{"another name of noarchive", []string{"nocache"}, robotsContent{"a", "nocache", ""}},
		{"repeated fields add up", []string{"noindex", "nofollow", "noindex"}, robotsContent{"if", "noindex,nofollow", ""}},
		{"to allow takes nothing back", []string{"noindex", "index, follow, all"}, robotsContent{"i", "noindex,index,follow,all", ""}},
		{"for us", []string{"ourbot: noindex"}, robotsContent{"i", "noindex", ""}},
		{"for us in another letter case", []string{"OurBot : nofollow"}, robotsContent{"f", "nofollow", ""}},
		{"for all", []string{"*: noindex", "robots: nofollow"}, robotsContent{"if", "noindex,nofollow", ""}},
		{"for another", []string{"otherbot: noindex, nofollow"}, robotsContent{"", "", ""}},
		{"for another whose name begins alike", []string{"ourbots: noindex", "our: noindex"}, robotsContent{"", "", ""}},
		{"for another, then for us", []string{"otherbot: noindex, ourbot: nofollow"}, robotsContent{"f", "nofollow", ""}},
		{"for us, then for another", []string{"ourbot: nofollow, noarchive, otherbot: noindex"}, robotsContent{"fa", "nofollow,noarchive", ""}},
		{"for all, then for another", []string{"noindex, otherbot: nofollow, noarchive"}, robotsContent{"i", "noindex", ""}},
		{"a name holds for its field only", []string{"otherbot: nofollow", "noindex"}, robotsContent{"i", "noindex", ""}},
		{"a name without directives", []string{"otherbot:, noindex", "ourbot:"}, robotsContent{"", "", ""}},
		{"directives with values", []string{"max-snippet: 20, noindex, max-image-preview:large"}, robotsContent{"i", "max-snippet: 20,noindex,max-image-preview:large", ""}},
		{"values after a name", []string{"ourbot: max-snippet:-1, noarchive"}, robotsContent{"a", "max-snippet:-1,noarchive", ""}},
		{"a date", []string{"unavailable_after: 25 Jun 2010 15:00:00 PST"}, robotsContent{"", "unavailable_after: 25 jun 2010 15:00:00 pst", "2010-06-25T23:00:00Z"}},
		{"a date with a comma", []string{"unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, noarchive"},
			robotsContent{"a", "unavailable_after: friday, 25-jun-10 15:00:00 gmt,noarchive", "2010-06-25T15:00:00Z"}},
		{"a date of another", []string{"otherbot: unavailable_after: 2010-06-25"}, robotsContent{"", "", ""}},
		{"a date of ours", []string{"ourbot: unavailable_after: 2010-06-25T15:00:00+02:00"}, robotsContent{"", "unavailable_after: 2010-06-25t15:00:00+02:00", "2010-06-25T13:00:00Z"}},
		{"the earlier of two dates", []string{"unavailable_after: 2012-01-01", "unavailable_after: 2011-01-01"},
			robotsContent{"", "unavailable_after: 2012-01-01,unavailable_after: 2011-01-01", "2011-01-01T00:00:00Z"}},
		{"no date", []string{"unavailable_after: soon, noindex"}, robotsContent{"i", "unavailable_after: soon,noindex", ""}},
		{"white space for commas", []string{"noindex nofollow"}, robotsContent{"if", "noindex,nofollow", ""}},
		{"semicolons for commas", []string{"noindex; noarchive"}, robotsContent{"ia", "noindex,noarchive", ""}},
		{"white space between those and directives for others", []string{"NOODP noindex  nosnippet"}, robotsContent{"i", "noodp,noindex,nosnippet", ""}},
		{"words that are no directives", []string{"please do not noindex"}, robotsContent{"", "please do not noindex", ""}},
		{"what matters stands behind much", []string{strings.Repeat("x,y"+strings.Repeat("z", 90)+",", 2000) + "noindex"}, robotsContent{"i", "x,y" + strings.Repeat("z", 63) + ",noindex", ""}},
		{"bytes", []string{"\xff\x00, noindex\xff"}, robotsContent{"", "\uFFFD,noindex\uFFFD", ""}},
		{"nothing", []string{"", ",,", " "}, robotsContent{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var d Robots
			for _, f := range tt.fields {
				d.Field(f, "ourbot")
			}
			if diff := cmp.Diff(tt.want, contentOf(&d), cmp.AllowUnexported(robotsContent{})); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.fields, diff)
			}
		})
	}
}

func TestMetaHasNoNames(t *testing.T) {
	var d Robots
	d.Meta("ourbot: noindex, NOFOLLOW")
	if diff := cmp.Diff(robotsContent{"f", "ourbot: noindex,nofollow", ""}, contentOf(&d), cmp.AllowUnexported(robotsContent{})); diff != "" {
		t.Error(diff)
	}
	d.Reset()
	d.Meta("none, unavailable_after: 1 Jan 2030 00:00:00 GMT")
	if got := contentOf(&d); got.forbids != "if" || got.until != "2030-01-01T00:00:00Z" {
		t.Errorf("got %+v", got)
	}
}

func TestUnavailableAfterEndsIndexing(t *testing.T) {
	var d Robots
	d.Field("unavailable_after: 2026-11-21 12:00:00", "")
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	if !d.Indexable(at.Add(-time.Second)) || d.Indexable(at) {
		t.Errorf("indexable before %t, at the time %t", d.Indexable(at.Add(-time.Second)), d.Indexable(at))
	}
}

func TestOthersAreBounded(t *testing.T) {
	var d Robots
	for i := range 100 {
		d.Meta("x" + strings.Repeat("y", i))
	}
	d.Meta("noarchive")
	if n := len(strings.Split(d.String(), ",")); n != maxOthers+1 || !d.NoArchive {
		t.Errorf("%d directives are listed", n)
	}
}

func TestControlCharactersAreWhiteSpace(t *testing.T) {
	var d Robots
	d.Field("a\x01b\x08, \x00noarchive\x7Fnoindex\u0085", "")
	if got, want := contentOf(&d), (robotsContent{"ia", "a b,noarchive,noindex", ""}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	var m TDM
	if m.PolicyAt("\x01https://example.com/\x00p\xFF"); m.Policy != "https://example.com/ p\uFFFD" {
		t.Errorf("policy %q", m.Policy)
	}
}

func TestSignals(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lists []string
		want  string
	}{
		{"as written", []string{"search=yes, ai-train=no"}, "ai-train=no,search=yes"},
		{"letter case and space", []string{" Search = YES ,AI-TRAIN=No"}, "ai-train=no,search=yes"},
		{"no wins", []string{"search=no", "search=yes, ai-input=yes,ai-input=no"}, "ai-input=no,search=no"},
		{"other words are passed over", []string{"search=maybe, ai-train, =no, ai input=no, use=no"}, "use=no"},
		{"nothing", []string{""}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Signals
			for _, l := range tt.lists {
				s.Add(l)
			}
			if got := s.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	var s, o Signals
	s.Add("search=no,ai-train=yes")
	o.Add("search=yes")
	if s.Override(o); s.String() != "ai-train=yes,search=yes" {
		t.Errorf("overridden: %q", s)
	}
}

func TestTDM(t *testing.T) {
	var d TDM
	d.Reservation("yes")
	if d.Reserved != nil {
		t.Error("a word was read as a reservation")
	}
	d.Reservation(" 0 ")
	if d.Reserved == nil || *d.Reserved {
		t.Error("the value 0 counts as a reservation, or as no statement")
	}
	d.Reservation("1")
	d.Reservation("0")
	if !*d.Reserved {
		t.Error("a reservation does not prevail over its opposite")
	}
	d.PolicyAt(" https://h/policy.json ")
	d.PolicyAt("https://h/other")
	if d.Policy != "https://h/policy.json" {
		t.Errorf("policy %q", d.Policy)
	}
}

func FuzzDirectives(f *testing.F) {
	f.Add("otherbot: noindex, ourbot: nofollow, unavailable_after: Friday, 25-Jun-10 15:00:00 GMT; max-snippet:20")
	f.Add("search=yes, ai-train=no")
	f.Fuzz(func(t *testing.T, value string) {
		var d, twice Robots
		d.Field(value, "ourbot")
		d.Meta(value)
		if !utf8.ValidString(d.String()) {
			t.Errorf("%q is not valid UTF-8", d.String())
		}
		if strings.ContainsFunc(d.String(), unicode.IsControl) {
			t.Errorf("%q holds control characters", d.String())
		}
		if limit := (maxOthers + len(words)) * (3*maxItem + 1); len(d.String()) > limit {
			t.Errorf("%d bytes are listed", len(d.String()))
		}
		twice.Meta(d.String())
		if d.NoIndex && !twice.NoIndex || d.NoArchive && !twice.NoArchive || d.NoFollow && !twice.NoFollow {
			t.Errorf("%q forbids less than %q", d.String(), value)
		}
		var s, again Signals
		s.Add(value)
		if again.Add(s.String()); again.String() != s.String() {
			t.Errorf("%q is read as %q", s, again)
		}
	})
}

func TestSignalNamesAreASCII(t *testing.T) {
	var s Signals
	s.Add("search=yes, \u212a=no, \u0130nput=no, ai-\u212a=yes")
	if got := s.String(); got != "search=yes" {
		t.Errorf("signals %q, want search=yes", got)
	}
}
