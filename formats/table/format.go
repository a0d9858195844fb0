package table

import (
	"reflect"
	"strings"

	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// Format is the option that selects the columns and encodings of a version of schema.FormatVersion.
// If the inputs of a task have an older version, the task thus writes the same bytes as an older
// program. Zero means the newest version.
//
//	1: Text columns use RLE_DICTIONARY with the tag dict, DELTA_BYTE_ARRAY with the tag delta, and
//	   otherwise DELTA_LENGTH_BYTE_ARRAY. Data pages have version 2.
//	2: Text in lists and in columns with the tag dict uses RLE_DICTIONARY until the dictionary is full.
//	   All other text is PLAIN. Data pages have version 1. Files compressed with Zstandard are no
//	   larger than in version 1.
//
//	4: More text columns have dictionaries, and dictionaries may be larger.
//
// Other programs misread format 1. Spark up to 4.0.0 misreads DELTA_LENGTH_BYTE_ARRAY with nulls
// (SPARK-52240). fastparquet supports no delta encoding and misreads lists of plain text. In data
// pages of version 2, fastparquet also misreads nulls and lists of numbers.
//
// Working files (Fast) always use the encodings of version 1, because no other program reads them.
func Format(version int) WriterOption {
	return func(o *writerOptions) {
		if version > 0 {
			o.format = version
		}
	}
}

// fields returns schema options that replace the parquet tags of some fields of the struct type t, as
// the format requires.
func fields(t reflect.Type, o *writerOptions) (opts []parquet.SchemaOption) {
	portable := o.portable()
	for _, f := range reflect.VisibleFields(t) {
		switch {
		case schema.Since(f) > o.format:
			opts = append(opts, parquet.StructTag(`parquet:"-"`, f.Name))
		case portable && schema.HasDictionary(f, o.format):
			tag := f.Tag.Get("parquet") + ",dict"
			opts = append(opts, parquet.StructTag(reflect.StructTag(`parquet:"`+tag+`"`), f.Name))
		case portable && f.Type.Kind() == reflect.String && strings.Contains(f.Tag.Get("parquet"), ",delta"):
			tag := strings.Replace(f.Tag.Get("parquet"), ",delta", ",plain", 1)
			opts = append(opts, parquet.StructTag(reflect.StructTag(`parquet:"`+tag+`"`), f.Name))
		case portable && f.Type == reflect.TypeFor[[]string]():
			opts = append(opts, parquet.StructTag(f.Tag+` parquet-element:",dict"`, f.Name))
		}
	}
	return opts
}

// portable reports whether programs other than crawlbatch must be able to read the file.
func (o *writerOptions) portable() bool { return o.format >= 2 && !o.working }

// dictionaryBytes returns the size of the largest dictionary, in bytes. When the dictionary of a
// column is full, the rest of the row group has the encoding PLAIN. The dictionary of the column
// target of the links dataset takes one to two MiB.
func (o *writerOptions) dictionaryBytes() int64 {
	if o.portable() && o.format >= 4 {
		return 4 << 20
	}
	return 1 << 20
}

// pages returns the writer options for the pages of a portable file.
func (o *writerOptions) pages() []parquet.WriterOption {
	if !o.portable() {
		return nil
	}
	return []parquet.WriterOption{parquet.DefaultEncodingFor(parquet.ByteArray, &parquet.Plain), parquet.DataPageVersion(1)}
}
