package store_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
)

func BenchmarkPut(b *testing.B) {
	for _, size := range []int{4 << 10, 100 << 10} {
		b.Run(fmt.Sprintf("%d KB", size>>10), func(b *testing.B) {
			s, err := store.Open(b.Context(), "file://"+b.TempDir())
			require.NoError(b, err)
			data := make([]byte, size)
			b.SetBytes(int64(size))
			for n := uint64(0); b.Loop(); n++ {
				binary.LittleEndian.PutUint64(data, n)
				if _, err := s.Put(b.Context(), data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("4 KB, there already", func(b *testing.B) {
		s, err := store.Open(b.Context(), "file://"+b.TempDir())
		require.NoError(b, err)
		data := make([]byte, 4<<10)
		for b.Loop() {
			if _, err := s.Put(b.Context(), data); err != nil {
				b.Fatal(err)
			}
		}
	})
}
