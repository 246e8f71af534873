package store

import (
	"fmt"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// blobs is the prefix of blobs; other names are created by callers.
const blobs = "blobs/"

const maxSegment = 200 // leaves space for the suffix of a temporary file

var segment = lazyregexp.New(`^[a-zA-Z0-9._~-]+$`)

// checkName accepts names that are valid on every medium, as a path and as a key of a bucket.
func checkName(name string) error {
	if strings.HasPrefix(name+"/", blobs) {
		return fmt.Errorf("invalid name %q: prefix %s is reserved for blobs", name, blobs)
	}
	for s := range strings.SplitSeq(name, "/") {
		switch {
		case !segment.MatchString(s), s == ".", s == "..":
			return fmt.Errorf("invalid name %q: use letters, digits and . _ ~ - with single slashes between", name)
		case disk.IsTemp(s):
			return fmt.Errorf("invalid name %q: it has the suffix of a temporary file", name)
		case len(s) > maxSegment:
			return fmt.Errorf("invalid name %q: a part is longer than %d characters", name, maxSegment)
		}
	}
	return nil
}

// checkPrefix accepts a prefix of a name.
func checkPrefix(prefix string) error {
	if prefix == "" || checkName(strings.TrimSuffix(prefix, "/")) == nil {
		return nil
	}
	return fmt.Errorf("invalid prefix %q", prefix)
}
