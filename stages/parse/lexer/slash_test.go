package lexer

import (
	"testing"

	"golang.org/x/net/html/atom"
)

func TestTagsThatEndWithASlash(t *testing.T) {
	for in, want := range map[string]bool{"<p/>": true, "<p />": true, "<a b='c'/>": true, "<a b=c />": true, "<a b/>": true, "<p>": false,
		"<a b=c/>": false, "<a b='c/'>": false, "<a / b>": false, "<a b=/>": false, "<a b='/'>": false, "</p/>": true} {
		z := Lexer{Src: []byte(in)}
		if z.Next(); z.Empty != want {
			t.Errorf("%s (%s): %v", in, atom.P, z.Empty)
		}
	}
}
