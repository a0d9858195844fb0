package table

import (
	"reflect"
	"strings"

	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// Published files have encodings that every reader supports. Text in lists, and in columns with the tag dict, uses
// RLE_DICTIONARY until the dictionary is full. All other text is PLAIN. Data pages have version 1.
//
// Other programs misread the encodings of working files (Fast, Packed), which only crawlbatch reads: there, text is
// RLE_DICTIONARY with the tag dict, DELTA_BYTE_ARRAY with the tag delta, and otherwise DELTA_LENGTH_BYTE_ARRAY. Spark up to
// 4.0.0 misreads DELTA_LENGTH_BYTE_ARRAY with nulls (SPARK-52240). fastparquet supports no delta encoding and misreads lists
// of plain text. In data pages of version 2, fastparquet also misreads nulls and lists of numbers.

// fields returns schema options that replace the parquet tags of some fields of the struct type t in published files.
func (o *writerOptions) fields(t reflect.Type) (opts []parquet.SchemaOption) {
	if o.working {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		tag := f.Tag.Get("parquet")
		switch {
		case schema.HasDictionary(f):
			opts = append(opts, parquet.StructTag(reflect.StructTag(`parquet:"`+tag+`,dict"`), f.Name))
		case f.Type.Kind() == reflect.String && strings.Contains(tag, ",delta"):
			plain := strings.Replace(tag, ",delta", ",plain", 1)
			opts = append(opts, parquet.StructTag(reflect.StructTag(`parquet:"`+plain+`"`), f.Name))
		case f.Type == reflect.TypeFor[[]string]():
			opts = append(opts, parquet.StructTag(f.Tag+` parquet-element:",dict"`, f.Name))
		}
	}
	return opts
}

// dictionaryBytes returns the size of the largest dictionary, in bytes. When the dictionary of a
// column is full, the rest of the row group has the encoding PLAIN. The dictionary of the column
// target of the links dataset takes one to two MiB.
func (o *writerOptions) dictionaryBytes() int64 {
	if o.working {
		return 1 << 20
	}
	return 4 << 20
}

// pages returns the writer options for the pages of a published file.
func (o *writerOptions) pages() []parquet.WriterOption {
	if o.working {
		return nil
	}
	return []parquet.WriterOption{parquet.DefaultEncodingFor(parquet.ByteArray, &parquet.Plain), parquet.DataPageVersion(1)}
}
