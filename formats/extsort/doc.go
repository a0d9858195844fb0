// Package extsort sorts any number of records in bounded memory.
//
// The input is records of a key and a rest, both bytes. The output is the same records in the order of the keys'
// bytes. Records with equal keys keep the order in which they were added. The caller makes keys whose bytes have the order
// that it wants, such as numbers in big-endian order.
//
// A Sorter holds the encoded records in chunks of bytes without pointers. The garbage collector has nothing to scan
// there, and chunks are used again, so there is little garbage. When the records take as much memory as the Sorter may
// use, it writes them to a scratch file, called a run. A run tells of each key only where it differs from the key before
// it. At the end, the runs and the records in memory are merged, those of several Sorters in parallel. Package runfiles
// bounds the number of runs.
//
// Package extsort imports runfiles, and nothing else of crawlbatch.
package extsort
