package schema_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// decoded returns the links of sets.
func decoded(t *testing.T, sets []schema.LinkSet) (links []schema.Link) {
	t.Helper()
	for _, s := range sets {
		n := len(links)
		if err := schema.EachLink(s.SourceSURT, s.Source, string(s.Links), func(l *schema.Link) error {
			links = append(links, *l)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if got := links[n:]; len(got) != int(s.Count) || got[0].Ordinal != s.First || got[len(got)-1].Ordinal != s.Last {
			t.Errorf("the set says %d links from %d to %d, and holds %v", s.Count, s.First, s.Last, got)
		}
	}
	return links
}

// everyLink returns links of one document that set each column, and links that set none.
func everyLink(t *testing.T) []schema.Link {
	t.Helper()
	full := schema.Link{Target: "https://a.example/x", Kind: "a"}
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			if f.IsZero() {
				f.SetString("value of " + v.Type().Field(i).Name)
			}
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int32, reflect.Int64:
			f.SetInt(7)
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		default:
			t.Fatalf("a column of type %v", f.Type())
		}
	}
	weight := 0.25
	links := []schema.Link{full, full, {Kind: "img", Anchor: "no target"}, full, {Target: full.Source}, {Target: full.Source + "/more", LastMod: -1}, {Target: "h", Weight: &weight}}
	for i := range links {
		links[i].Source, links[i].SourceSURT, links[i].Ordinal = full.Source, full.SourceSURT, int32(i*i)
	}
	return links
}

func TestASetKeepsEveryColumnOfItsLinks(t *testing.T) {
	links := everyLink(t)
	sets := slices.Collect(schema.LinkSets(links))
	if len(sets) != 1 {
		t.Fatalf("%d sets of one document", len(sets))
	}
	if d := cmp.Diff(links, decoded(t, sets)); d != "" {
		t.Errorf("the links of the set (-want +got):\n%s", d)
	}
}

func TestSetsEndWithTheirDocument(t *testing.T) {
	redirect := func(from, to string) schema.Link {
		return schema.Link{Source: from, Target: to, Kind: schema.KindRedirect}
	}
	link := func(source string, ordinal int32) schema.Link {
		return schema.Link{Source: source, Target: "t", Kind: "a", Ordinal: ordinal}
	}
	links := []schema.Link{redirect("r", "s"), redirect("s", "a"), link("a", 0), link("a", 1), link("a", 0), link("b", 1)}
	for i := range int32(2000) { // more than a set holds
		links = append(links, link("c", i))
		links[len(links)-1].Anchor = "a long anchor"
	}
	sets := slices.Collect(schema.LinkSets(links))
	var sizes []int32
	for _, s := range sets {
		sizes = append(sizes, s.Count)
		if one := s.Count == 1 && (s.Source == "r" || s.Source == "s"); one != s.Redirect {
			t.Errorf("the set of %q: redirect is %v", s.Source, s.Redirect)
		}
	}
	if want := []int32{1, 1, 2, 1, 1}; !slices.Equal(sizes[:5], want) || len(sizes) < 7 {
		t.Errorf("sets of %v links, want %v and at least two of the last document", sizes, want)
	}
	if d := cmp.Diff(links, decoded(t, sets)); d != "" {
		t.Errorf("the links of the sets (-want +got):\n%s", d)
	}
}

func TestADamagedSetIsAnError(t *testing.T) {
	links := everyLink(t)
	set := slices.Collect(schema.LinkSets(links))[0]
	none := func(*schema.Link) error { return nil }
	ends := 0
	for n := range set.Links {
		err := schema.EachLink("", set.Source, string(set.Links[:n]), none)
		if err == nil {
			ends++ // of a link
		} else if !errors.Is(err, schema.ErrLinkSet) {
			t.Errorf("the first %d bytes: got %v, want ErrLinkSet", n, err)
		}
	}
	if ends != len(links) {
		t.Errorf("%d prefixes of %d links are no error", ends, len(links))
	}
	stop := errors.New("stop")
	if err := schema.EachLink("", set.Source, string(set.Links), func(*schema.Link) error { return stop }); err != stop { //nolint:errorlint // the same error
		t.Errorf("got %v, want the caller's error", err)
	}
}

// FuzzEachLink checks that damaged links are an error and never a panic, and that links which decode are
// the same after they were encoded again.
func FuzzEachLink(f *testing.F) {
	f.Add("https://a.example/", []byte{0x1f, 3, 1, 'x', 0})
	f.Fuzz(func(t *testing.T, source string, data []byte) {
		var links []schema.Link
		var e schema.LinkEncoder
		e.Begin(source)
		if schema.EachLink("", source, string(data), func(l *schema.Link) error {
			links = append(links, *l)
			e.Add(l)
			return nil
		}) != nil {
			return
		}
		var again []schema.Link
		if err := schema.EachLink("", source, string(e.Encoded()), func(l *schema.Link) error {
			again = append(again, *l)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if len(links) != len(again) {
			t.Fatalf("%d links, and %d after they were encoded again", len(links), len(again))
		}
		for i := range links {
			a, b := links[i], again[i]
			if a.Weight != nil && b.Weight != nil && *a.Weight != *a.Weight { // NaN
				a.Weight, b.Weight = nil, nil
			}
			if d := cmp.Diff(a, b); d != "" {
				t.Fatal(d)
			}
		}
	})
}
