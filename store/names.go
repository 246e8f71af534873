package store

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/passbook-run/passbook/durable"
)

// blobs is the part of the store where names are digests.
const blobs = "blobs/"

const maxSegment = 200 // leaves room for the ending of a temporary file

var segment = regexp.MustCompile(`^[a-zA-Z0-9._~-]+$`)

// checkName accepts what is a name on every medium: a path on disk as well as
// a key of a bucket.
func checkName(name string) error {
	if strings.HasPrefix(name+"/", blobs) {
		return fmt.Errorf("%q is not a name to create: %s is for blobs", name, blobs)
	}
	for s := range strings.SplitSeq(name, "/") {
		switch {
		case !segment.MatchString(s), s == ".", s == "..":
			return fmt.Errorf("%q is not a name: letters, digits and . _ ~ - are allowed, with single slashes between", name)
		case durable.IsTemp(s):
			return fmt.Errorf("%q is not a name: it ends like a temporary file", name)
		case len(s) > maxSegment:
			return fmt.Errorf("%q is not a name: a part of it is longer than %d characters", name, maxSegment)
		}
	}
	return nil
}

// checkPrefix accepts the beginning of a name.
func checkPrefix(prefix string) error {
	if prefix == "" || checkName(strings.TrimSuffix(prefix, "/")) == nil {
		return nil
	}
	return fmt.Errorf("%q does not begin a name", prefix)
}
