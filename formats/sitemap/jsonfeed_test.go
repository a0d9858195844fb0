package sitemap

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const jsonHead = `{"version":"https://jsonfeed.org/version/1.1",`

func TestItemsOfAJSONFeedOutliveTheirFieldsOfAWrongType(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string
		cut      bool
	}{
		{"attachments that are no list, or of no objects", `"items":[{"url":"/1","attachments":{}},{"url":"/2","attachments":[1,{"url":"/f"},"x",[2]]},{"url":"/3","attachments":"x"}]}`,
			[]string{"/1", "/2 file=/f", "/3"}, false},
		{"an id that is a list", `"items":[{"id":[1,{}],"url":"/1"},{"id":["https://example.com/2"]},{"id":"https://example.com/3"}]}`,
			[]string{"/1", "https://example.com/3"}, false},
		{"items that are no list, then items", `"items":{"a":[1]},"items":null,"items":[{"url":"/1"}]}`, []string{"/1"}, false},
		{"an item that is too long", `"items":[{"url":"/1"},{"url":"/2","x":"` + strings.Repeat("[", maxValue) + `"},{"url":"/3","title":"]}"}]}`,
			[]string{"/1", "/3 | ]}"}, false},
		{"a malformed item", `"items":[{"url":"/1"},{"url" "/2"},{"url":"/3","title":"\"]"},]}`, []string{"/1", `/3 | "]`}, false},
		{"brackets in texts", `"x":"]}\\","items":[{"url":"/1","title":"a\\\"}]"}]}`, []string{`/1 | a\"}]`}, false},
		{"what follows the items", `"items":[{"url":"/1"}],"x":[{}],"items":[{"url":"/2"}]} and more`, []string{"/1", "/2"}, false},
		{"no comma, no colon", `"items":[{"url":"/1"}{"url":"/2"}],"x" 1}`, []string{"/1", "/2"}, true},
		{"cut within a string", `"items":[{"url":"/1"},{"url":"/2\`, []string{"/1"}, true},
		{"cut within a number", `"items":[{"url":"/1"},12`, []string{"/1"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, sum := briefs(t, jsonHead+tt.in, Limits{})
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("entries (-want +got):\n%s", d)
			}
			if sum.Cut != tt.cut {
				t.Errorf("cut is %t, want %t", sum.Cut, tt.cut)
			}
		})
	}
}

func TestTextsHoldNoControlCharacters(t *testing.T) {
	for name, in := range map[string]string{
		"RSS":  "<rss><channel><title>A\x00 &#8;\x01B</title><description>\x01C\x7FD</description><item><link>/a</link><title>x\x08y</title><description>&lt;p>s\x0B\xC2\x85t&lt;b>\x02</description></item></channel></rss>",
		"JSON": jsonHead + `"title":"A\u0000\u0008\u0001B","description":"\u0001C\u007fD","items":[{"url":"/a","title":"x\u0008y","content_html":"<p>s\u000b\u0085t<b>\u0002"}]}`,
	} {
		got, sum, err := entriesOf(t, []byte(in), Limits{})
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		if d := cmp.Diff([]string{"A B", "C D", "x y", "s t"}, []string{sum.Title, sum.Description, got[0].Title, got[0].Summary}); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
