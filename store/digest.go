package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// Digest names a blob: the sha-256 of its bytes in 64 lower-case hex digits.
type Digest string

// DigestOf is the digest of data.
func DigestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest(hex.EncodeToString(sum[:]))
}

// Valid says whether d has the form of a digest.
func (d Digest) Valid() bool {
	if len(d) != 2*sha256.Size {
		return false
	}
	for _, c := range []byte(d) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func (d Digest) check() error {
	if d.Valid() {
		return nil
	}
	return fmt.Errorf("%q is not a digest: 64 hex digits in lower case are needed", string(d))
}

// name is where the blob lives in the store.
func (d Digest) name() string { return blobs + string(d[:2]) + "/" + string(d[2:]) }

// copyDigest copies r to w and gives the digest and the length of what passed.
func copyDigest(w io.Writer, r io.Reader) (Digest, int64, error) {
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, h), r)
	return Digest(hex.EncodeToString(h.Sum(nil))), n, err
}
