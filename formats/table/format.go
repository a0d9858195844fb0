package table

import (
	"reflect"
	"strings"

	"github.com/parquet-go/parquet-go"

	"crawlbatch.io/crawlbatch/formats/schema"
)

// Format writes the columns and encodings of a format version (schema.FormatVersion), so
// that tasks with inputs of an older version write the same bytes again. Zero means the
// newest version.
//
//	1: text is DELTA_BYTE_ARRAY where its tag says delta, else DELTA_LENGTH_BYTE_ARRAY,
//	   or RLE_DICTIONARY where it says dict; data pages are of version 2.
//	2: text is PLAIN or, in lists and where its tag says dict, RLE_DICTIONARY until the
//	   dictionary is full; data pages are of version 1. Spark up to 4.0.0 misreads
//	   DELTA_LENGTH_BYTE_ARRAY where there are nulls (SPARK-52240). fastparquet supports neither delta encoding. It misreads lists of numbers and pages of nulls if the pages are of version 2, and lists of plain text. With Zstandard, files of format 2 are no larger.
//
// Working files (Fast), which no other program reads, always use format 1.
func Format(version int) WriterOption {
	return func(o *writerOptions) {
		if version > 0 {
			o.format = version
		}
	}
}

// fields returns the tags that replace tags of the struct T.
func fields[T any](o *writerOptions) (opts []parquet.SchemaOption) {
	portable := o.portable()
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		switch {
		case schema.Since(f) > o.format:
			opts = append(opts, parquet.StructTag(`parquet:"-"`, f.Name))
		case portable && f.Type.Kind() == reflect.String && strings.Contains(f.Tag.Get("parquet"), ",delta"):
			tag := strings.Replace(f.Tag.Get("parquet"), ",delta", ",plain", 1)
			opts = append(opts, parquet.StructTag(reflect.StructTag(`parquet:"`+tag+`"`), f.Name))
		case portable && f.Type == reflect.TypeFor[[]string]():
			opts = append(opts, parquet.StructTag(f.Tag+` parquet-element:",dict"`, f.Name))
		}
	}
	return opts
}

// portable reports whether other programs must be able to read the file.
func (o *writerOptions) portable() bool { return o.format >= 2 && !o.working }

// pages returns the options for the pages of a portable file.
func (o *writerOptions) pages() []parquet.WriterOption {
	if !o.portable() {
		return nil
	}
	return []parquet.WriterOption{parquet.DefaultEncodingFor(parquet.ByteArray, &parquet.Plain), parquet.DataPageVersion(1)}
}
