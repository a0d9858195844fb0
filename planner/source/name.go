package source

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// ErrOption means that the options after the name of a file are wrong.
var ErrOption = errors.New("the options of a source are #column=NAME,format=FORMAT,priority=NAME,where=CONDITION: each at most once, where last, and names with a comma in double quotes")

// DefaultColumn is the name of the column with the URLs, if the user names no column.
const DefaultColumn = "url"

// The formats of a file that is not Parquet.
const (
	formatText = "text" // one URL per line
	formatCSV  = "csv"
	formatTSV  = "tsv"
	formatJSON = "json" // one JSON object per line
)

var formats = []string{formatText, formatCSV, formatTSV, formatJSON}

// reading says how entries are read from the files of a source.
type reading struct {
	column   string // name of the column with the URLs, "" for DefaultColumn
	format   string // format of files other than Parquet, "" if the file's name decides
	priority string // name of the column with the priorities, or ""
	where    filter // conditions on the records
}

// names lists the columns that a record needs: the URL, the conditions' columns, the priority.
func (r *reading) names() []string {
	names := []string{r.url()}
	for _, c := range r.where {
		names = append(names, c.column)
	}
	if r.priority != "" {
		names = append(names, r.priority)
	}
	return names
}

func (r *reading) url() string {
	if r.column == "" {
		return DefaultColumn
	}
	return r.column
}

// hasColumns reports whether the user gave an option that only makes sense for a file with columns.
func (r *reading) hasColumns() bool { return r.column != "" || r.priority != "" || len(r.where) > 0 }

// optionStart matches the beginning of the options in the name of a source.
var optionStart = regexp.MustCompile(`#[A-Za-z_]+=`)

// splitName divides the name of a source into the name of its files and its options. The options
// begin at the first "#WORD=". If a file with the whole name exists, # is part of its name, and there
// are no options. In a pattern, "[#]" stands for a # of the file's name.
func splitName(name string) (files string, r reading, err error) {
	at := optionStart.FindStringIndex(name)
	if at == nil {
		return name, r, nil
	}
	if _, err := os.Stat(name); err == nil {
		return name, r, nil
	}
	files, rest := name[:at[0]], name[at[0]+1:]
	given := map[string]bool{}
	for more := true; more; {
		var key, value string
		key, rest, _ = strings.Cut(rest, "=")
		if given[key] {
			return "", r, fmt.Errorf("option %q is given twice: %w", key, ErrOption)
		}
		given[key] = true
		if key == "where" {
			r.where, err = parseFilter(rest)
			return files, r, err
		}
		if value, rest, more, err = cutValue(rest); err == nil {
			err = r.set(key, value)
		}
		if err != nil {
			return "", r, err
		}
	}
	return files, r, nil
}

// cutValue cuts an option's value off a text. A value in double quotes may contain commas. In such
// a value, "" stands for one double quote. more is true if another option follows.
func cutValue(text string) (value, rest string, more bool, err error) {
	if !strings.HasPrefix(text, `"`) {
		value, rest, more = strings.Cut(text, ",")
		return value, rest, more, nil
	}
	for i := 1; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		if strings.HasPrefix(text[i+1:], `"`) {
			i++
			continue
		}
		value, rest = strings.ReplaceAll(text[1:i], `""`, `"`), text[i+1:]
		if rest == "" || rest[0] == ',' {
			return value, strings.TrimPrefix(rest, ","), rest != "", nil
		}
		break
	}
	return "", "", false, fmt.Errorf("the quotes of %.40q are wrong: %w", text, ErrOption)
}

// set sets one option other than where.
func (r *reading) set(key, value string) error {
	switch {
	case key == "format" && slices.Contains(formats, value):
		r.format = value
	case key == "format":
		return fmt.Errorf("format %.40q is none of %s: %w", value, strings.Join(formats, ", "), ErrOption)
	case value == "":
		return fmt.Errorf("option %.40q has no value: %w", key, ErrOption)
	case key == "column":
		r.column = value
	case key == "priority":
		r.priority = value
	default:
		return fmt.Errorf("unknown option %.40q (write [#] for a # in the name of a file): %w", key, ErrOption)
	}
	return nil
}

// formatOf returns the format of a file that is not Parquet. It is the option format or, without
// this option, follows from the file's name. formatOf ignores suffixes of compression, such as .gz.
func (r *reading) formatOf(name string) string {
	if r.format != "" {
		return r.format
	}
	name = strings.ToLower(name)
	for _, suffix := range []string{".gz", ".gzip", ".zst", ".zstd"} {
		name = strings.TrimSuffix(name, suffix)
	}
	switch {
	case strings.HasSuffix(name, ".csv"):
		return formatCSV
	case strings.HasSuffix(name, ".tsv"), strings.HasSuffix(name, ".tab"):
		return formatTSV
	case strings.HasSuffix(name, ".json"), strings.HasSuffix(name, ".jsonl"), strings.HasSuffix(name, ".ndjson"):
		return formatJSON
	}
	return formatText
}
