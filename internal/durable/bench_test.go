package durable_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/passbook-run/passbook/internal/durable"
)

func BenchmarkWriteFile(b *testing.B) {
	path := filepath.Join(b.TempDir(), "state.json")
	data := bytes.Repeat([]byte("x"), 4<<10)
	for b.Loop() {
		if err := (durable.Disk{}).WriteFile(path, data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriteAll(b *testing.B) {
	for _, n := range []int{4, 16} {
		b.Run(fmt.Sprintf("%d files", n), func(b *testing.B) {
			dir := b.TempDir()
			var files []durable.File
			for i := range n {
				path := filepath.Join(dir, fmt.Sprint(i))
				files = append(files, durable.File{Path: path, Data: bytes.Repeat([]byte("x"), 4<<10), Perm: 0o600})
			}
			for b.Loop() {
				if err := (durable.Disk{}).WriteAll(files); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	path := filepath.Join(b.TempDir(), "log")
	line := bytes.Repeat([]byte("x"), 500)
	var size int64
	for b.Loop() {
		var err error
		if size, err = (durable.Disk{}).Append(path, size, line, 0o600); err != nil {
			b.Fatal(err)
		}
	}
}
