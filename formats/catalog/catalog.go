package catalog

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// Type is the type of a column.
type Type int

// The types of the columns of datasets.
const (
	String Type = iota
	Boolean
	Int16
	Int32
	Int64
	Float64
	Timestamp // microseconds UTC
	StringList
	Int32List
)

// names holds four names of each type: in the documentation, in DuckDB, in the dialects of Hive
// (Athena's DDL and Spark), and in Trino.
var names = [...][4]string{
	String:     {"string", "VARCHAR", "string", "varchar"},
	Boolean:    {"boolean", "BOOLEAN", "boolean", "boolean"},
	Int16:      {"int16", "SMALLINT", "smallint", "smallint"},
	Int32:      {"int32", "INTEGER", "int", "integer"},
	Int64:      {"int64", "BIGINT", "bigint", "bigint"},
	Float64:    {"float64", "DOUBLE", "double", "double"},
	Timestamp:  {"timestamp", "TIMESTAMP", "timestamp", "timestamp(3)"},
	StringList: {"list of string", "VARCHAR[]", "array<string>", "array(varchar)"},
	Int32List:  {"list of int32", "INTEGER[]", "array<int>", "array(integer)"},
}

func (t Type) String() string { return names[t][0] }

// DuckDB returns the type's name in DuckDB.
func (t Type) DuckDB() string { return names[t][1] }

// Hive returns the type's name in Athena's DDL and in Spark.
func (t Type) Hive() string { return names[t][2] }

// Trino returns the type's name in Trino.
func (t Type) Trino() string { return names[t][3] }

// Column is a column of a dataset.
type Column struct {
	Name        string
	Type        Type
	Nullable    bool
	Stable      bool // whether two crawls of the same web give the same values
	Description string
}

// Dataset is a published table.
type Dataset struct {
	Name       string
	Row        string   // what a row describes, such as "a planned URL and its one outcome"
	Columns    []Column // columns that the Parquet files hold
	Partitions []Column // columns whose values are part of the key of a file: crawl, round and, for captures, subset
	SortedBy   []string // columns that determine the order of the rows in each file
}

// The partition columns.
var (
	crawlColumn  = Column{"crawl", String, false, true, "name of the crawl, such as 2026-11"}
	subsetColumn = Column{"subset", String, false, true, "warc (documents), crawldiagnostics (redirects, errors) or robotstxt"}
	roundColumn  = Column{"round", Int32, false, true, "round of the crawl, from 0"}
)

// Datasets returns all published datasets, in the order in which the documentation lists them.
func Datasets() []Dataset { return slices.Clone(datasets()) }

var datasets = sync.OnceValue(func() []Dataset {
	return []Dataset{
		dataset[schema.Capture]("captures", "a stored response, including redirect hops and robots.txt", "url_surtkey", "url"),
		dataset[schema.Fetch]("fetches", "a planned URL and its one outcome", "url_surtkey", "url"),
		dataset[schema.Request]("requests", "a request that was sent, with its evidence, including retries, redirect hops, robots.txt, sitemaps and attempts that got no connection", "host", "start"),
		dataset[schema.Page]("pages", "a successfully fetched document", "url_surtkey", "url"),
		dataset[schema.Text]("text", "a document's text", "url_surtkey", "url"),
		dataset[schema.Link]("links", "a link in the form in which its page has it", "source_surtkey", "source", "ordinal"),
		dataset[schema.Duplicate]("duplicates", "a page of a cluster of duplicates, or the representative of the cluster", "url_surtkey", "url"),
		dataset[schema.Host]("hosts", "a host", "host"),
		dataset[schema.Domain]("domains", "a registered domain with planned URLs", "domain"),
		dataset[schema.Term]("terms", "a term of the pages in a language, with the number of sampled pages that have it", "language", "term"),
		dataset[schema.URLRecord]("urls", "a URL whose state changed in the round", "url_surtkey", "url"),
		dataset[schema.Skip]("skips", "a URL that was found but not planned", "url_surtkey", "url"),
		dataset[schema.StageAttempt]("stages", "an attempt at a task, with its time and its cost", "stage", "task", "attempt"),
		dataset[schema.Run]("runs", "a round, with what was predicted and what it took", "plan"),
	}
})

// Find returns the dataset with the given name.
func Find(name string) (Dataset, error) {
	var known []string
	for _, d := range datasets() {
		if d.Name == name {
			return d, nil
		}
		known = append(known, d.Name)
	}
	return Dataset{}, fmt.Errorf("no dataset %q: the datasets are %s", name, strings.Join(known, ", "))
}

func dataset[T any](name, row string, sorted ...string) Dataset {
	d := Dataset{Name: name, Row: row, Partitions: []Column{crawlColumn, roundColumn}, SortedBy: sorted}
	if name == "captures" { // Common Crawl's partitions come first, as in its tables
		d.Partitions = []Column{crawlColumn, subsetColumn, roundColumn}
	}
	d.Columns = slices.Clip(Columns(reflect.TypeFor[T]())) // callers append to them
	return d
}

// Columns returns the columns of a row struct, including those of embedded structs.
func Columns(t reflect.Type) []Column {
	var out []Column
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		if name == "" || name == "-" {
			continue // an embedded struct is no column; VisibleFields lists its fields too
		}
		out = append(out, Column{
			Name:        name,
			Type:        typeOf(f.Type, options),
			Nullable:    slices.Contains(strings.Split(options, ","), "optional"),
			Stable:      f.Tag.Get("vol") == "",
			Description: f.Tag.Get("doc"),
		})
	}
	return out
}

func typeOf(t reflect.Type, options string) Type {
	if strings.Contains(options, "timestamp(") {
		return Timestamp
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Slice {
		return types[t.Kind()]
	}
	if t.Elem().Kind() == reflect.Int32 {
		return Int32List
	}
	return StringList
}

// types maps kinds of Go values to column types. Other kinds have the zero Type, String.
var types = map[reflect.Kind]Type{
	reflect.Bool: Boolean, reflect.Int16: Int16, reflect.Int32: Int32, reflect.Int64: Int64, reflect.Float64: Float64,
}
