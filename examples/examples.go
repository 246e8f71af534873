// Package examples carries the example pipelines inside the program, so that the demo runs anywhere.
package examples

import "embed"

// Files are the examples' folders.
//
//go:embed all:corpus
var Files embed.FS
