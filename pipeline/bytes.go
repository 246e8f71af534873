package pipeline

import (
	"errors"
	"math"
	"strconv"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// Bytes is a number of bytes. Definitions write it with a unit: 500KB, 32MB, 2GB, or 64MiB.
type Bytes int64

// units are the units of sizes, the largest first.
var units = []struct {
	name  string
	bytes int64
}{{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// String returns the size in the largest unit that needs no fraction.
func (b Bytes) String() string {
	for _, u := range units {
		if b != 0 && int64(b)%u.bytes == 0 {
			return strconv.FormatInt(int64(b)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + " bytes"
}

var sizeShape = lazyregexp.New(`^([1-9][0-9]{0,5}(?:\.[0-9]+)?) ?([KMG]i?B)$`)

// parseSize reads a size with its unit.
func parseSize(text string) (Bytes, error) {
	m := sizeShape.FindStringSubmatch(text)
	if m == nil {
		return 0, errors.New("is not a size; write a number with its unit, such as 500KB, 32MB or 2GB")
	}
	number, err := strconv.ParseFloat(m[1], 64)
	for _, u := range units {
		if u.name == m[2] {
			number *= float64(u.bytes)
		}
	}
	return Bytes(math.Round(number)), err
}

func checkSize(text string) error {
	_, err := parseSize(text)
	return err
}

func (b *Bytes) read(text string) (err error) {
	*b, err = parseSize(text)
	return err
}
