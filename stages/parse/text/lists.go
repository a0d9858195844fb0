package text

import (
	"embed"
	"strings"
	"sync"
)

// wordLists holds the tables of words by language. In each file, each language has a line with its
// ISO-639-3 code and its words. A line that begins with a tab continues the line before.
//
//go:embed words
var wordLists embed.FS

// readLists returns the words of a file by language, separated by single spaces.
func readLists(file string) map[string]string {
	data, err := wordLists.ReadFile("words/" + file)
	if err != nil {
		panic(err) // a list is part of the program, so this cannot fail
	}
	lists := map[string]string{}
	for line := range strings.Lines(strings.ReplaceAll(string(data), "\n\t", " ")) {
		if code, words, _ := strings.Cut(strings.TrimSpace(line), " "); code != "#" {
			lists[code] = words
		}
	}
	return lists
}

// stopLists returns the list of function words of each language.
var stopLists = sync.OnceValue(func() map[string]*stopList {
	lists := map[string]*stopList{}
	for code, words := range readLists("stopwords.txt") {
		lists[code] = &stopList{words: words, byRun: unspacedLanguages[code], elided: elisions[code]}
	}
	return lists
})

// The table elisions holds, for each language, the letters of elided articles and similar words,
// such as l in l'eau. An apostrophe follows them.
var elisions = map[string]string{
	"cat": "l d m t s n",
	"fra": "l d j m t s n c qu jusqu lorsqu puisqu quoiqu",
	"ita": "l un d c s dell nell all dall sull quell quest dov com",
}

// unspacedLanguages are written without spaces. The parser finds words of these languages only if
// zero width spaces separate the words. (Chinese and Japanese are not in the list, because each
// code point of Han and Hiragana is a word.)
var unspacedLanguages = map[string]bool{"khm": true, "tha": true, "lao": true, "mya": true}
