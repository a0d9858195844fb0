package lexer

import "testing"

func TestWithoutTagsKeepsOnlyTheText(t *testing.T) {
	for in, want := range map[string]string{
		"Jane": "Jane", `<a href="/jane" rel=author>Jane</a>`: "Jane", "<span class=by>By <b>Jane</b> Doe</span>": "By Jane Doe",
		"<p>Jane</p>\n<p>Bob</p>": "Jane, Bob", "Jane<br/>Bob<br>": "Jane, Bob", "<ul><li>A</li><li>B</li></ul>": "A, B",
		"<b>Jane &amp; Bob</b>": "Jane & Bob", "Jane &amp; Bob": "Jane &amp; Bob",
		"Jane <jane@example.com>": "Jane <jane@example.com>", "a < b": "a < b", "<3 Jane": "<3 Jane",
		"<script>no()</script>Jane": "Jane", "<!-- no -->Jane</span>": "Jane", `<img src="/jane.png">`: "", "Jane <a href='/x": "Jane <a href='/x",
	} {
		if got := WithoutTags(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
